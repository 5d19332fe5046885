"""The kernel expansion and the loops over rows that the algorithms beyond recipes share."""

from __future__ import annotations

import numpy as np
import pytest

from onlinegp.kernels import RBF, Kernel, Linear, Matern32, Periodic
from onlinegp.learner import run_by_row
from onlinegp.models.expansion import Expansion
from onlinegp.models.rowwise import ErrorScale, StepLearner
from onlinegp.state import integer, learner

KERNELS = {
    "RBF": RBF(0.7),
    "ARD": 2.0 * Matern32([0.5, 0.9, 2.0]),
    "sum": RBF(1.0) + 0.3 * Linear() * Periodic(1.0, 2.0),
}


def changed(f, X):
    """Forty centers, of which some are removed from the front, the middle and the end, and some replaced."""
    for i, x in enumerate(X[:40]):
        f.append(x, [i / 40, -1.0], born=float(i))
    for j in (0, 17, f.size - 3, f.size - 4):
        f.remove(j)
    f.replace(5, X[40], [0.5, 0.25], born=40.0)
    f.append(X[41])
    f.weights[3] += 1.0
    f.numbers("born")[-1] = 41.0


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_rows_and_the_nearest_center_follow_what_is_appended_removed_and_replaced(kernel):
    X, k = np.random.default_rng(0).normal(size=(60, 3)), KERNELS[kernel]
    f = Expansion(k, 3, 2, also=("born",))
    changed(f, X)
    born = [i for i in range(40) if i not in (0, 18, 38, 39)]
    born[5] = 40
    C = X[[*born, 41]]
    assert f.size == len(C) == 37
    np.testing.assert_array_equal(f.centers, C)
    np.testing.assert_array_equal(f.numbers("born"), [*born, 41])
    np.testing.assert_array_equal(f.center(7), C[7])
    for x in X[42:]:
        row, mean = f.at(x)
        np.testing.assert_allclose(row, k(C, x[None])[:, 0], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(mean, row @ f.weights, rtol=1e-12)
        assert f.diagonal(x) == pytest.approx(k(x[None])[0, 0], rel=1e-13)
        d2 = ((C - x) ** 2).sum(axis=1)
        assert f.nearest(x) == (d2.argmin(), pytest.approx(d2.min()))
    np.testing.assert_allclose(f.rows(X), k(X, C), rtol=1e-12, atol=1e-13)


def test_the_mean_is_that_of_the_kernel_matrix():
    """Also where the capacity has just doubled, and where there is no center."""
    rng = np.random.default_rng(1)
    X, f = rng.normal(size=(70, 3)), Expansion(RBF(0.7), 3, 2)
    for i in range(50):
        k, mean = f.at(X[-1])
        np.testing.assert_allclose(k, RBF(0.7)(X[-1:], X[:i])[0], rtol=1e-13)
        np.testing.assert_allclose(mean, k @ f.weights if i else [0.0, 0.0], rtol=1e-12, atol=1e-14)
        f.append(X[i], rng.normal(size=2))
    np.testing.assert_allclose(f.rows(X), RBF(0.7)(X, X[:50]), rtol=1e-12)
    assert f.rows(X[:0]).shape == (0, 50)


def test_what_is_stored_continues_bit_for_bit():
    X = np.random.default_rng(2).normal(size=(60, 3))
    f = Expansion(RBF(0.7), 3, 2, also=("born",))
    changed(f, X)
    g = Expansion(RBF(0.7), 3, 2, also=("born",))
    g.load(f.dump())
    for x in X[42:]:
        for mine, theirs in zip(f.at(x), g.at(x), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        f.append(x, 0.5, born=7.0)
        g.append(x, 0.5, born=7.0)
    for name, value in f.dump().items():
        np.testing.assert_array_equal(value, g.dump()[name])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        ({"weights": np.zeros((3, 2))}, r"weights must be float64 of shape \(2, 2\)"),
        ({"centers": np.zeros((2, 4))}, r"centers must be float64 of shape \(2, 3\)"),
        ({"born": np.array([np.nan, 0.0])}, "born holds a value that is not finite"),
        ({"centers": None}, "centers must be float64"),
        ({"more": np.zeros(2)}, "unknown entry 'more'"),
        (
            {name: np.zeros((6, w)) for name, w in (("centers", 3), ("weights", 2))},
            "length of at most 5, got 6",
        ),
    ],
)
def test_stored_contents_that_do_not_fit_are_refused(spoil, message):
    f = Expansion(RBF(0.7), 3, 2, also=("born",), most=5)
    for _ in range(2):
        f.append(np.zeros(3))
    before = f.dump()
    with pytest.raises(ValueError, match=message):
        f.load(f.dump() | spoil)
    for name, value in f.dump().items():
        np.testing.assert_array_equal(value, before[name])


def test_a_kernel_of_your_own():
    class Brownian(Kernel):
        def __call__(self, X, Z=None):
            return np.minimum(X, (X if Z is None else Z).T)

    f = Expansion(Brownian(), 1, 1)
    f.append(np.array([2.0]), 3.0)
    assert f.at(np.array([1.5]))[1] == 4.5
    with pytest.raises(ValueError, match="length_scale has 2"):
        Expansion(RBF([1.0, 2.0]), 3, 1)


class PlainKLMS(StepLearner):
    """KLMS with the errors' own scale: the smallest learner of steps."""

    fields = {"seen": integer(), "f": learner(), "errors": learner()}

    def __init__(self, outputs):
        self.features, self.outputs = 2, outputs
        self.f, self.errors = Expansion(RBF(0.7), 2, outputs), ErrorScale(outputs)

    @property
    def size(self):
        return self.f.size

    def look(self, x):
        k, mean = self.f.at(x)
        return mean, self.errors.std, k

    def correct(self, x, y, e, seen):
        self.f.append(x, 0.5 * e)
        self.errors.add(e, y, self.seen)


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_run_is_predict_then_learn(outputs):
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(50, 2)), rng.normal(size=(50, outputs))
    predicted, size = (one := PlainKLMS(outputs)).run(X, Y)
    slow, sizes = run_by_row(other := PlainKLMS(outputs), X, Y)
    np.testing.assert_array_equal(predicted.mean, slow.mean)
    np.testing.assert_array_equal(predicted.std, slow.std)
    np.testing.assert_array_equal(size, sizes)
    third = PlainKLMS(outputs)
    third.learn(X[:20], Y[:20])
    fourth = PlainKLMS(outputs)
    fourth.load(third.dump())
    fourth.learn(X[20:], Y[20:])
    for another in (other, fourth):
        for name, value in one.dump().items():
            np.testing.assert_array_equal(value, another.dump()[name])


def test_the_scale_of_errors_is_their_faded_root_mean_square():
    rng = np.random.default_rng(4)
    E = rng.normal(size=(400, 2)) * [1.0, 30.0]
    scale = ErrorScale(2, first=2.0)
    np.testing.assert_array_equal(scale.std, [2.0, 2.0])
    for i, e in enumerate(E):
        scale.add(e, np.zeros(2), i)  # of a y that never changes, so that no error is raised to its resolution
    weights = 0.99 ** np.arange(400, -1, -1)
    squares = np.vstack([[4.0, 4.0], E**2])
    np.testing.assert_allclose(scale.std**2, weights @ squares / weights.sum(), rtol=1e-12)
    again = ErrorScale(2, first=2.0)
    before = again.update(E, np.zeros(E.shape), 0)
    np.testing.assert_allclose(again.std, scale.std, rtol=1e-13)
    np.testing.assert_array_equal(before[0], [2.0, 2.0])
    np.testing.assert_allclose(before[1] ** 2, (0.99 * 4.0 + E[0] ** 2) / 1.99, rtol=1e-13)
    zeros = np.zeros((200_000, 2))
    assert (again.update(zeros, zeros, 400) > 0).all()


@pytest.mark.parametrize("spoil", [{"squares": np.array([-1.0])}, {"count": 0.5}, {"count": 1e9}, {"squares": None}])
def test_a_stored_scale_that_is_none_is_refused(spoil):
    scale = ErrorScale(1)
    with pytest.raises(ValueError, match=r"(squares|count) must be"):
        scale.load(scale.dump() | spoil)
