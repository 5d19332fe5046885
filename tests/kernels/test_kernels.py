"""Laws that every kernel obeys, and the values of each, from its formula."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.kernels import (
    RBF,
    Constant,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Scaled,
    Sum,
)
from onlinegp.kernels.base import FIXED

ARD = (0.7, 1.9, 1.2)


@dataclass(frozen=True)
class Brownian(Kernel):
    """The kernel of one's own that the documentation shows."""

    rate: float = 1.0

    def __call__(self, X, Z=None):
        return self.rate * np.minimum(X[:, :1], (X if Z is None else Z)[:, :1].T)

    def diag(self, X):
        return self.rate * X[:, 0]


BUILT_IN = [
    RBF(0.8),
    RBF(ARD),
    RBF(np.array(ARD)),
    Matern12(0.8),
    Matern12(ARD),
    Matern32(0.8),
    Matern32(list(ARD)),
    Matern52(0.8),
    Matern52(ARD),
    RationalQuadratic(0.8, alpha=1.7),
    RationalQuadratic(ARD, alpha=0.4),
    Periodic(0.9, period=2.3),
    Periodic(ARD, period=2.3),
    Periodic(0.9, period=(2.3, 1.1, 3.0)),
    Periodic(ARD, period=(2.3, 1.1, 3.0)),
    Linear(),
    Linear(ARD),
    Polynomial(),
    Polynomial(degree=3, offset=0.5, scale=0.3),
    Polynomial(degree=2, offset=0.0),
    Constant(1.3),
    2.0 * RBF(ARD),
    RBF(0.5) + 0.3 * Linear(ARD) + 1.0,
    RBF(ARD) * Periodic(1.0, period=2.0),
    1.5 * (Matern32(ARD) * (Matern12(2.0) + Constant(0.5))),
]
ALL = [*BUILT_IN, Brownian(0.7), 2.0 * Brownian(0.7) + RBF(ARD)]


def name(kernel: Kernel) -> str:
    return f"{type(kernel).__name__}{kernel.theta.size}"


every_kernel = pytest.mark.parametrize("kernel", ALL, ids=name)
every_built_in = pytest.mark.parametrize("kernel", BUILT_IN, ids=name)


@pytest.fixture
def X():
    """Twelve positive points in three dimensions, one of them twice."""
    X = np.random.default_rng(3).uniform(0.1, 2.5, (12, 3))
    X[7] = X[2]
    return X


# Laws


@every_kernel
def test_symmetric_and_positive_semidefinite(kernel, X):
    K = kernel(X)
    assert K.shape == (12, 12)
    np.testing.assert_array_equal(K, K.T)
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] > -1e-13 * eigenvalues[-1]


@every_kernel
def test_diagonal_row_and_blocks_are_those_of_the_matrix(kernel, X):
    K = kernel(X)
    np.testing.assert_allclose(kernel.diag(X), np.diag(K), rtol=1e-13)
    np.testing.assert_allclose(kernel(X, X[:5]), K[:, :5], rtol=1e-12, atol=1e-15)
    for x, column in zip(X, K.T, strict=True):
        np.testing.assert_allclose(kernel.row(X, x), column, rtol=1e-12, atol=1e-15)


@every_kernel
def test_gradient_is_the_derivative_with_respect_to_theta(kernel, X):
    gradient, h = kernel.gradient(X), 1e-5
    assert gradient.shape == (kernel.theta.size, 12, 12)
    for derivative, e in zip(gradient, h * np.eye(kernel.theta.size), strict=True):
        ahead, behind = kernel.with_theta(kernel.theta + e), kernel.with_theta(kernel.theta - e)
        np.testing.assert_allclose(derivative, (ahead(X) - behind(X)) / (2 * h), atol=2e-7, rtol=1e-7)


@every_kernel
def test_pullback_is_the_weighted_sum_of_the_gradient(kernel, X):
    W = np.random.default_rng(4).normal(size=(12, 12))
    W += W.T
    expected = np.einsum("ij,pij->p", W, kernel.gradient(X))
    np.testing.assert_allclose(kernel.pullback(X, W), expected, rtol=1e-10, atol=1e-10)


@every_kernel
def test_theta_round_trip(kernel, X):
    again = kernel.with_theta(kernel.theta)
    np.testing.assert_allclose(again(X), kernel(X), rtol=1e-13)
    np.testing.assert_allclose(again.theta, kernel.theta, rtol=1e-13)
    assert len(kernel.names) == len(set(kernel.names)) == kernel.theta.size
    doubled = kernel.with_theta(kernel.theta + np.log(2.0))
    np.testing.assert_allclose(np.exp(doubled.theta), 2.0 * np.exp(kernel.theta))


@every_kernel
def test_copies_are_equal_and_work(kernel, X):
    for other in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert other == kernel
        np.testing.assert_array_equal(other(X), kernel(X))
    assert kernel != kernel.with_theta(kernel.theta + 0.1)


@every_built_in
def test_repr_evaluates_back(kernel):
    assert eval(repr(kernel), globals() | {"array": np.array}) == kernel


@every_built_in
def test_near_and_far_points_are_finite(kernel):
    X = np.array([[0.0, 0.0, 0.0], [1e-160, 0.0, 0.0], [1e-9, 0.0, 0.0], [1e40, -1e40, 1e40]])
    assert np.isfinite(kernel(X)).all()
    assert np.isfinite(kernel.row(X, X[3])).all()
    assert np.isfinite(kernel.gradient(X[:3])).all()
    assert np.isfinite(kernel.pullback(X[:3], np.ones((3, 3)))).all()


# Values, from the formulas


def test_values():
    X, Z = np.array([[0.3, -1.0]]), np.array([[1.1, 0.5]])
    r2 = 0.8**2 / 0.7**2 + 1.5**2 / 1.9**2
    r, ard, dot = np.sqrt(r2), ARD[:2], 0.3 * 1.1 - 1.0 * 0.5
    waves = np.sin(np.pi * 0.8 / 2.3) ** 2 / 0.7**2 + np.sin(np.pi * 1.5 / 1.1) ** 2 / 1.9**2
    expected = [
        (RBF(ard), np.exp(-r2 / 2)),
        (Matern12(ard), np.exp(-r)),
        (Matern32(ard), (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r)),
        (Matern52(ard), (1 + np.sqrt(5) * r + 5 / 3 * r2) * np.exp(-np.sqrt(5) * r)),
        (RationalQuadratic(ard, alpha=1.7), (1 + r2 / 3.4) ** -1.7),
        (Periodic(ard, period=(2.3, 1.1)), np.exp(-2 * waves)),
        (Linear((2.0, 3.0)), 2.0 * 0.3 * 1.1 - 3.0 * 0.5),
        (Polynomial(degree=3, offset=0.5, scale=0.4), (0.4 * dot + 0.5) ** 3),
        (Constant(1.3), 1.3),
    ]
    for kernel, value in expected:
        assert kernel(X, Z).item() == pytest.approx(value, rel=1e-14)
        assert kernel.row(X, Z[0]).item() == pytest.approx(value, rel=1e-14)


def test_matern12_has_a_finite_gradient_where_points_meet():
    X = np.array([[0.0, 0.0], [0.0, 0.0], [1e-12, 0.0], [0.5, 0.5]])
    gradient = Matern12((1.0, 2.0)).gradient(X)
    assert np.isfinite(gradient).all()
    np.testing.assert_array_equal(gradient[:, :2, :2], 0.0)
    r = np.hypot(0.5, 0.25)
    assert gradient[0, 0, 3] == pytest.approx(0.25 / r * np.exp(-r))


def test_near_duplicates_far_from_the_origin_keep_their_distance():
    # the expanded form |x|^2 + |z|^2 - 2 x.z has lost it all here
    X = np.array([[1e6], [1e6 + 1e-3]])
    distance = X[1, 0] - X[0, 0]
    assert Matern12(1e-3)(X)[0, 1] == pytest.approx(np.exp(-distance / 1e-3), rel=1e-12)
    assert Matern12((1e-3,))(X)[0, 1] == pytest.approx(np.exp(-distance / 1e-3), rel=1e-12)


@pytest.mark.parametrize("kind", [RBF, Matern12, Matern32, Matern52, RationalQuadratic])
def test_distances_that_overflow_give_zero_not_nan(kind):
    X = np.array([[0.0], [1e149]])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(kind(1e-6)(X), np.eye(2), atol=1e-200)
        np.testing.assert_allclose(kind((1e-6,)).row(X, X[1]), [0.0, 1.0], atol=1e-200)


# Algebra and hyperparameters


def test_algebra():
    k, m = RBF(0.5), Matern32(2.0)
    assert k + m == Sum(k, m)
    assert k * m == Product(k, m)
    assert 2.0 * k == k * 2 == np.float64(2.0) * k == Scaled(k, 2.0)
    assert k + 1.0 == Sum(k, Constant(1.0))
    assert 1 + k == Sum(Constant(1.0), k)
    assert k != m
    assert RBF([1.0, 2.0]) == RBF((1.0, 2.0)) == RBF(np.array([1.0, 2.0]))
    for wrong in ("2", None, True, np.ones(2)):
        with pytest.raises(TypeError):
            k * wrong
        with pytest.raises(TypeError):
            wrong + k
    with pytest.raises(ValueError, match=r"variance must be positive and finite, got -1\.0"):
        -1.0 * k


def test_names_and_order_of_theta():
    kernel = 2.0 * RBF((0.5, 3.0)) + Periodic(0.9, period=(7.0, 8.0)) * Polynomial(offset=4.0)
    assert kernel.names == (
        "left.kernel.length_scale[0]",
        "left.kernel.length_scale[1]",
        "left.variance",
        "right.left.length_scale",
        "right.left.period[0]",
        "right.left.period[1]",
        "right.right.offset",
        "right.right.scale",
    )
    np.testing.assert_allclose(np.exp(kernel.theta), [0.5, 3.0, 2.0, 0.9, 7.0, 8.0, 4.0, 1.0])
    assert kernel.with_theta(np.zeros(8)).right.right == Polynomial(degree=2, offset=1.0)
    with pytest.raises(ValueError, match=r"theta must have shape \(8,\), got \(7,\).*length_scale"):
        kernel.with_theta(np.zeros(7))


def test_what_is_zero_stays_zero(X):
    kernel = Polynomial(offset=0.0)
    assert kernel.theta[0] == -np.inf
    assert kernel.with_theta(kernel.theta) == kernel
    np.testing.assert_array_equal(kernel.gradient(X)[0], 0.0)


def test_a_kernel_of_ones_own_needs_only_the_matrix(X):
    @dataclass(frozen=True)
    class Minimum(Kernel):
        rate: float = 2.0
        column: int = field(default=1, metadata=FIXED)

        def __call__(self, X, Z=None):
            Z = X if Z is None else Z
            return self.rate * np.minimum.outer(X[:, self.column], Z[:, self.column])

    kernel = Minimum()
    np.testing.assert_allclose(kernel.diag(X), 2.0 * X[:, 1])
    np.testing.assert_allclose(kernel.row(X, X[0]), kernel(X)[:, 0])
    np.testing.assert_allclose(kernel.gradient(X), [kernel(X)], rtol=1e-8)
    assert kernel.names == ("rate",)


# What is refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBF(0.0), "length_scale must be positive and finite, got 0.0. It is a distance"),
        (lambda: RBF(-1.0), "length_scale must be positive"),
        (lambda: RBF(np.nan), "length_scale must be positive and finite, got nan"),
        (lambda: RBF([1.0, np.inf]), r"length_scale\[1\] must be positive and finite, got inf"),
        (lambda: RBF(()), r"length_scale must be a number, or one number per column, got \(\)"),
        (lambda: RBF("1.0"), "length_scale must be a number, got '1.0'"),
        (lambda: RBF(True), "length_scale must be a number"),
        (lambda: RBF(None), "length_scale must be a number"),
        (lambda: RBF([[1.0, 2.0]]), r"length_scale\[0\] must be a number"),
        (lambda: RBF(np.ones((2, 2))), r"length_scale\[0\] must be a number"),
        (lambda: RBF(np.array(1.0)), "length_scale must be a number"),
        (lambda: RationalQuadratic(1.0, alpha=0.0), "alpha must be positive"),
        (lambda: RationalQuadratic(-1.0), "length_scale must be positive"),
        (lambda: Periodic(1.0, period=(1.0, -2.0)), r"period\[1\] must be positive"),
        (lambda: Periodic(0.0), "length_scale must be positive"),
        (lambda: Linear(-1.0), "variance must be positive"),
        (lambda: Polynomial(degree=0), "degree must be at least 1, got 0"),
        (lambda: Polynomial(degree=1.5), "degree must be a whole number, got 1.5"),
        (lambda: Polynomial(offset=-1.0), "offset must be zero or more"),
        (lambda: Polynomial(scale=0.0), "scale must be positive"),
        (lambda: Constant(0.0), "variance must be positive"),
        (lambda: Sum(RBF(), 1.0), r"right of Sum must be a kernel, got 1.0 \(float\)"),
        (lambda: Product("k", RBF()), "left of Product must be a kernel"),
        (lambda: Scaled(2.0, RBF()), "kernel of Scaled must be a kernel"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


@pytest.mark.parametrize(
    "kernel", [RBF((1.0, 2.0)), Periodic((1.0, 2.0)), Periodic(1.0, (1.0, 2.0)), Linear((1.0, 2.0))]
)
def test_the_wrong_number_of_scales_is_refused(kernel, X):
    for use in (lambda: kernel(X), lambda: kernel.row(X, X[0]), lambda: kernel.gradient(X)):
        with pytest.raises(ValueError, match=r"has 2 value\(s\), but the inputs have 3 column\(s\)"):
            use()


# Against scikit-learn


def test_against_scikit_learn(X):
    sk = pytest.importorskip("sklearn.gaussian_process.kernels")
    pairs = [
        (RBF(ARD), sk.RBF(ARD)),
        (Matern12(ARD), sk.Matern(ARD, nu=0.5)),
        (Matern32(ARD), sk.Matern(ARD, nu=1.5)),
        (Matern52(0.8), sk.Matern(0.8, nu=2.5)),
        (RationalQuadratic(0.8, alpha=1.7), sk.RationalQuadratic(0.8, alpha=1.7)),
        (2.0 * RBF(ARD) + 0.5, sk.ConstantKernel(2.0) * sk.RBF(ARD) + sk.ConstantKernel(0.5)),
        (Linear() + 0.25, sk.DotProduct(0.5)),
        (RBF(0.5) * Matern32(2.0), sk.RBF(0.5) * sk.Matern(2.0, nu=1.5)),
    ]
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-10, atol=1e-14)
    x = X[:, :1]  # in one dimension; in more, theirs measures one sine of the distance
    ours, theirs = Periodic(0.9, period=2.3), sk.ExpSineSquared(0.9, periodicity=2.3)
    np.testing.assert_allclose(ours(x), theirs(x), rtol=1e-10)
    for ours, theirs in [(Matern52(ARD), sk.Matern(ARD, nu=2.5)), (RBF(ARD), sk.RBF(ARD))]:
        gradient = np.moveaxis(theirs(X, eval_gradient=True)[1], -1, 0)
        np.testing.assert_allclose(ours.gradient(X), gradient, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("make", [list, np.array])
def test_length_scales_that_their_owner_changes_later_stay_as_they_were(make):
    scales = make([1.0, 2.0])
    kernel = RBF(scales)
    scales[0] = 5.0
    assert list(kernel.length_scale) == [1.0, 2.0]


def test_a_list_of_kernels_that_grows_after_fit_does_not_change_the_model():
    X, y = np.linspace(-1.0, 1.0, 20)[:, None], np.linspace(0.0, 1.0, 20)
    parts = [RBF(1.0), RBF(0.5)]
    model = ogp.kafbox.MKNLMS(parts).fit(X, y)
    parts.append(RBF(0.1))
    for twin in (pickle.loads(pickle.dumps(model)), ogp.from_bytes(model.to_bytes())):
        assert np.array_equal(twin.predict(X), model.predict(X))


def test_a_periodic_kernel_keeps_its_digits_far_from_zero():
    """Seconds since 1970, and hours of the day."""
    X = 1.7e9 + np.random.default_rng(0).uniform(0.0, 1e5, (30, 1))
    kernel = Periodic(0.9, period=3600.0)
    np.testing.assert_allclose(kernel(X), [kernel.row(X, x) for x in X], rtol=0, atol=1e-13)
