"""The least mean squares algorithms that are no recipe: what each of them must be equal to."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import onlinegp as ogp
from models import STEPS, stream
from onlinegp.engine import available
from onlinegp.engine.compiled import readable
from onlinegp.kernels import RBF, Linear, Matern32, Matern52
from onlinegp.learner import Outcome, run_by_row
from onlinegp.models.breakdown import BreakdownError
from onlinegp.models.lms.coherence import largest_coherence
from onlinegp.models.lms.mxklms import gradient, shares

native = pytest.mark.skipif(not available(), reason="the compiled engine was not built")


@pytest.mark.parametrize("name", STEPS)
def test_a_run_is_predict_then_learn_bit_for_bit(name):
    X, y = stream(150)
    Y = np.column_stack([y, -2.0 * y])
    predicted, size = STEPS[name].start(2, 2).run(X, Y)
    slow, sizes = run_by_row(STEPS[name].start(2, 2), X, Y)
    np.testing.assert_array_equal(predicted.mean, slow.mean)
    np.testing.assert_array_equal(predicted.std, slow.std)
    np.testing.assert_array_equal(size, sizes)


@native
@pytest.mark.parametrize("name", [name for name, model in STEPS.items() if "engine" in model.get_params(deep=False)])
def test_both_engines_agree(name):
    X, y = stream(300)
    traces = [ogp.run(copy.deepcopy(STEPS[name]).set_params(engine=e), X, y) for e in ("native", "python")]
    np.testing.assert_array_equal(traces[0].size, traces[1].size)
    np.testing.assert_allclose(traces[0].mean, traces[1].mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(traces[0].std, traces[1].std, rtol=1e-9)


@pytest.mark.parametrize("name", STEPS)
def test_each_output_learns_as_if_alone_where_the_centers_are_the_same(name):
    X, y = stream(100)
    both, one = copy.deepcopy(STEPS[name]).fit(X, np.column_stack([y, y])), copy.deepcopy(STEPS[name]).fit(X, y)
    mean, std = both.predict(X, return_std=True)
    assert mean.shape == std.shape == (100, 2)
    np.testing.assert_allclose(mean, np.column_stack([one.predict(X)] * 2), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", STEPS)
def test_they_learn(name):
    """Half of the variance of y at least, on a stream ten times as long as the laws'."""
    X, y = stream(1200)
    trace = ogp.run(copy.deepcopy(STEPS[name]), X, y)
    assert ((y - trace.mean)[600:] ** 2).mean() < 0.5 * y[600:].var()


@pytest.mark.parametrize("name", [name for name in STEPS if name.split("-")[0] not in ("MKNLMS", "MXKLMS", "RFFKLMS")])
def test_centers_and_weights_make_the_mean(name):
    X, y = stream(100)
    model = copy.deepcopy(STEPS[name]).fit(X, y)
    np.testing.assert_allclose(model.kernel(X, model.centers_) @ model.alpha_, model.predict(X), rtol=1e-9, atol=1e-12)


def test_coherence_is_that_of_the_definition():
    rng = np.random.default_rng(0)
    kernel, C, x = Linear() + RBF(1.0), rng.normal(size=(9, 2)), rng.normal(size=(1, 2))
    k, kxx, kcc = kernel(C, x)[:, 0], float(kernel.diag(x)[0]), kernel.diag(C)
    assert largest_coherence(k, kxx, kcc) == pytest.approx((np.abs(k) / np.sqrt(kxx * kcc)).max(), rel=1e-12)
    assert largest_coherence(k[:0], kxx, kcc[:0]) == 0.0
    assert largest_coherence(np.zeros(2), 0.0, np.zeros(2)) == 0.0  # a kernel that is 0 there


# FBKLMS


def test_far_from_all_centers_a_new_one_gets_a_weight_of_its_own_error():
    """k is 0 there: KAFBOX divides by |k|^2, which gives a weight without bound, or none."""
    X, y = stream(50)
    model = ogp.kafbox.FBKLMS(RBF(0.7), step=0.5, budget=100, epsilon=1e-9).fit(X, y)
    before = model.alpha_
    model.learn_one([1e6, -1e6], 1.0)
    np.testing.assert_allclose(model.alpha_[-1], 0.5, rtol=1e-8)
    np.testing.assert_array_equal(model.alpha_[:-1], before)


def test_without_need_for_its_budget_fbklms_is_knlms():
    X, y = stream(200)
    one, other = (ogp.run(cls(RBF(0.7), coherence=0.8), X, y) for cls in (ogp.kafbox.FBKLMS, ogp.KNLMS))
    np.testing.assert_array_equal(one.size, other.size)
    np.testing.assert_allclose(one.mean, other.mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(one.std, other.std, rtol=1e-12)


def test_the_smallest_weight_leaves():
    model = ogp.kafbox.FBKLMS(RBF(0.5), budget=3)
    for x, y in ((0.0, 1.0), (5.0, 0.1), (10.0, 1.0)):
        model.learn_one([x], y)
    assert model.centers_[:, 0].tolist() == [0.0, 5.0, 10.0]
    model.learn_one([15.0], 1.0)
    assert model.centers_[:, 0].tolist() == [0.0, 10.0, 15.0]
    model.learn_one([20.0], 0.01)  # its own
    assert model.centers_[:, 0].tolist() == [0.0, 10.0, 15.0]


# QKLMSFB


def test_the_significance_is_that_of_the_definition():
    """density = K influence, whatever was quantized, admitted and removed."""
    X, y = stream(400)
    model = ogp.kafbox.QKLMSFB(RBF(0.7), radius=0.3, budget=15, forgetting=0.9).fit(X, y)
    f = model._readable.f
    K = RBF(0.7)(f.centers)
    np.testing.assert_allclose(f.numbers("density"), K @ f.numbers("influence"), rtol=1e-9)
    significance = np.abs(model.alpha_) * (K @ f.numbers("influence"))
    np.testing.assert_allclose(model._readable.significance(), significance, rtol=1e-9)


def test_the_influence_counts_the_samples_of_each_center():
    X, y = stream(200)
    model = ogp.kafbox.QKLMSFB(RBF(0.7), radius=0.5, budget=1000, forgetting=1.0).fit(X, y)
    influence = model._readable.f.numbers("influence")
    assert influence.sum() == 200
    assert model.size_ < 100


def test_without_need_for_its_budget_qklmsfb_is_qklms():
    X, y = stream(200)
    fixed, growing = (cls(RBF(0.7), radius=0.4) for cls in (ogp.kafbox.QKLMSFB, ogp.QKLMS))
    one, other = ogp.run(fixed.set_params(budget=1000), X, y), ogp.run(growing, X, y)
    np.testing.assert_array_equal(one.size, other.size)
    np.testing.assert_allclose(one.mean, other.mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(one.std, other.std, rtol=1e-12)


def test_a_weight_of_zero_does_no_harm():
    """KAFBOX divides by it."""
    model = ogp.kafbox.QKLMSFB(RBF(0.7), radius=0.5, budget=3)
    model.learn_one([0.0], 0.0)  # error 0, weight 0
    model.learn_one([0.1], 1.0)
    for x in (3.0, 6.0, 9.0, 12.0):
        model.learn_one([x], 1.0)
    assert model.size_ == 3
    assert np.isfinite(model.predict([[0.0], [3.0]])).all()


def test_the_least_significant_center_leaves():
    model = ogp.kafbox.QKLMSFB(RBF(0.5), radius=0.1, budget=3, forgetting=1.0)
    for x, y in ((0.0, 1.0), (3.0, 0.1), (6.0, 1.0), (9.0, 1.0)):
        model.learn_one([x], y)
    assert model.centers_[:, 0].tolist() == [0.0, 6.0, 9.0]


# KLMSCSL1 and KLMSCSAL1


def test_the_penalty_is_taken_off_and_zeros_leave():
    model = ogp.kafbox.KLMSCSL1(RBF(0.5), step=0.5, coherence=0.5, penalty=0.01)
    model.learn_one([0.0], 1.0)
    np.testing.assert_allclose(model.alpha_, [0.5 - 0.01])
    model.learn_one([9.0], -1.0)
    np.testing.assert_allclose(model.alpha_, [0.5 - 0.02, -0.5 + 0.01])
    for i in range(49):
        model.learn_one([100.0 + 10 * i], 0.01)  # each leaves at once: its weight is below the penalty
    assert model.centers_[:, 0].tolist() in ([], [0.0])


def test_the_adaptive_penalty_is_divided_by_the_size_of_the_weight():
    model = ogp.kafbox.KLMSCSAL1(RBF(0.5), step=0.5, coherence=0.5, penalty=0.01, epsilon=1e-3)
    model.learn_one([0.0], -0.5)  # the first weight is y / k(x, x)
    first = -0.5 + 0.01 / (0.5 + 1e-3)
    np.testing.assert_allclose(model.alpha_, [first], rtol=1e-13)
    model.learn_one([9.0], 1.0)  # a new weight has the penalty of one of size one
    np.testing.assert_allclose(model.alpha_, [first + 0.01 / (abs(first) + 1e-3), 0.5 - 0.01], rtol=1e-13)


def test_a_weight_of_minus_epsilon_has_a_finite_penalty():
    """Where KAFBOX's, 1 / |alpha + epsilon|, is infinite."""
    learner = ogp.kafbox.KLMSCSAL1(RBF(0.5), penalty=1e-9, epsilon=1e-6, engine="python").start(1, 1)
    learner.f.append(np.zeros(1), -1e-6, kcc=1.0)
    np.testing.assert_allclose(learner.thresholds(), [[1e-9 / 2e-6]])


@pytest.mark.parametrize("cls", [ogp.kafbox.KLMSCSL1, ogp.kafbox.KLMSCSAL1])
def test_an_empty_dictionary_fills_again(cls):
    """KAFBOX's stays empty for ever."""
    model = cls(RBF(0.5), step=0.5, penalty=0.3)
    for x in range(20):
        model.learn_one([10.0 * x], 0.0)
    assert model.size_ == 0
    assert model.predict_one([0.0]) == 0.0
    model.learn_one([0.0], 5.0)
    assert model.size_ == 1
    assert model.predict_one([0.0]) > 1.0


# MKNLMS and MXKLMS


@pytest.mark.parametrize("kernel", [RBF(0.7), 2.0 * Matern52([0.7, 0.9])])
def test_with_one_kernel_they_are_knlms_and_klms(kernel):
    X, y = stream(300)
    for one, other in (
        (ogp.kafbox.MKNLMS([kernel], coherence=0.8), ogp.KNLMS(kernel, coherence=0.8)),
        (ogp.kafbox.MXKLMS([kernel], step=0.4), ogp.KLMS(kernel, step=0.4)),
    ):
        mine, theirs = ogp.run(one, X, y), ogp.run(other, X, y)
        np.testing.assert_array_equal(mine.size, theirs.size)
        np.testing.assert_allclose(mine.mean, theirs.mean, rtol=0, atol=1e-10)
        np.testing.assert_allclose(mine.std, theirs.std, rtol=1e-10)


def test_mknlms_is_normalized_lms_on_all_kernel_rows_as_one():
    X, y = stream(200)
    kernels, step, epsilon = (RBF(0.5), 2.0 * Matern32(1.0)), 0.5, 1e-2
    trace = ogp.run(ogp.kafbox.MKNLMS(kernels, step=step, coherence=0.8, epsilon=epsilon), X, y)
    C, w, means = np.empty((0, 2)), np.zeros((2, 0)), []
    for x, target in zip(X, y, strict=True):
        K = np.array([kernel(C, x[None])[:, 0] for kernel in kernels])
        means.append((K * w).sum())
        norms = np.array([kernel.diag(x[None])[0] for kernel in kernels])
        if (np.abs(K) / norms[:, None]).max(initial=0.0) <= 0.8:  # both are stationary
            C, w, K = np.vstack([C, x]), np.hstack([w, np.zeros((2, 1))]), np.hstack([K, norms[:, None]])
        w = w + step * (target - means[-1]) * K / (epsilon + (K**2).sum())
    np.testing.assert_allclose(trace.mean, means, rtol=0, atol=1e-10)
    assert trace.size[-1] == len(C)


def test_the_gradient_of_the_shares_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    v, parts, y = rng.normal(size=(4, 2)), rng.normal(size=(4, 2)), rng.normal(size=2)

    def loss(v):
        return ((y - (shares(v) * parts).sum(axis=0)) ** 2).sum()

    numeric = np.zeros_like(v)
    for i in np.ndindex(v.shape):
        h = np.zeros_like(v)
        h[i] = 1e-6
        numeric[i] = (loss(v + h) - loss(v - h)) / 2e-6
    np.testing.assert_allclose(gradient(v, parts, y), numeric, rtol=0, atol=1e-8)


def test_the_kernel_that_fits_gets_the_share():
    X = np.random.default_rng(0).uniform(-3, 3, (600, 1))
    model = ogp.kafbox.MXKLMS([RBF(0.01), RBF(1.0), RBF(100.0)], mixing_step=0.5).fit(X, np.sin(2 * X[:, 0]))
    assert model.shares_.argmax() == 1
    assert model.shares_.sum() == pytest.approx(1.0)


def test_shares_stay_finite_whatever_the_errors():
    model = ogp.kafbox.MXKLMS([RBF(0.5), RBF(2.0)], mixing_step=1e6)
    X, y = stream(100)
    model.fit(X, 1e6 * y)
    assert np.isfinite(model.shares_).all()
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ogp.kafbox.MKNLMS(RBF(1.0)), "kernels must be a list of kernels"),
        (ogp.kafbox.MXKLMS([]), "kernels must have at least one"),
        (ogp.kafbox.MKNLMS(["rbf"]), "kernel must be a kernel"),
        (ogp.kafbox.MXKLMS(mixing_step=-1.0), "mixing_step must be zero or more"),
        (ogp.kafbox.FBKLMS(coherence=0.0), "coherence must be greater than 0"),
        (ogp.kafbox.FBKLMS(epsilon=0.0), "epsilon must be positive"),
        (ogp.kafbox.QKLMSFB(forgetting=0.0), "forgetting must be greater than 0"),
        (ogp.kafbox.QKLMSFB(budget=0), "budget must be at least 1"),
        (ogp.kafbox.KLMSCSL1(penalty=-1.0), "penalty must be zero or more"),
        (ogp.kafbox.KLMSCSAL1(epsilon=-1.0), "epsilon must be positive"),
        (ogp.kafbox.RFFKLMS(Linear()), "kernel must be RBF"),
        (ogp.kafbox.RFFKLMS(basis=0), "basis must be at least 1"),
        (ogp.kafbox.RFFKLMS(basis=10**9), "basis must be at most 1000000"),
        (ogp.kafbox.RFFKLMS(seed=-1), "seed must be a whole number"),
    ],
)
def test_bad_parameters_are_named(model, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(*stream(5))


def test_stored_centers_of_several_kernels_must_be_the_same():
    learner = ogp.kafbox.MKNLMS([RBF(0.5), RBF(1.0)]).start(2, 1)
    learner.learn(*(a.reshape(5, -1) for a in stream(5)))
    contents = learner.dump()
    contents["f1.centers"] = contents["f1.centers"] + 1.0
    with pytest.raises(ValueError, match="the same stored centers"):
        learner.load(contents)


@native
@pytest.mark.parametrize("name", [name for name, model in STEPS.items() if "engine" in model.get_params(deep=False)])
def test_what_one_engine_stored_the_other_continues(name):
    X, y = stream(200)
    Y = np.column_stack([y, -y])
    learners = [copy.deepcopy(STEPS[name]).set_params(engine=e).start(2, 2) for e in ("native", "python")]
    for learner in learners:
        learner.learn(X[:100], Y[:100])
    contents = learners[0].dump()
    assert contents.keys() == learners[1].dump().keys()
    learners[1].load(contents)
    for learner in learners:
        learner.learn(X[100:], Y[100:])
    one, other = (learner.predict(X) for learner in learners)
    np.testing.assert_allclose(one.mean, other.mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(one.std, other.std, rtol=1e-9)


# RFFKLMS


@pytest.mark.parametrize("kernel", [RBF(0.7), 3.0 * Matern52([0.7, 2.0]), Matern32(1.3)])
def test_products_of_features_are_the_values_of_the_kernel(kernel):
    """Where KAFBOX's are half of them."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    learner = ogp.kafbox.RFFKLMS(kernel, basis=40_000, engine="python").start(2, 1)
    Z = np.array([learner.z(x) for x in X])
    np.testing.assert_allclose(Z @ Z.T, kernel(X), atol=0.03 * float(kernel.diag(X)[0]))


def test_rffklms_is_klms_with_the_kernel_of_its_features():
    X, y = stream(100)
    model = ogp.kafbox.RFFKLMS(RBF(0.7), step=0.4, basis=50, seed=3)
    trace = ogp.run(model, X, y)
    Z = np.array([readable(model.start(2, 1)).z(x) for x in X])
    K, alpha = Z @ Z.T, np.zeros(100)
    for i in range(100):
        alpha[i] = 0.4 * (y[i] - K[i] @ alpha)
    np.testing.assert_allclose(trace.mean, y - alpha / 0.4, rtol=0, atol=1e-12)
    np.testing.assert_allclose(trace.std, 0.4**-0.5)


def test_the_seed_decides_and_no_other_generator_does():
    X, y = stream(30)
    np.random.seed(0)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    one, other, third = (ogp.kafbox.RFFKLMS(basis=20, seed=seed).fit(X, y).predict(X) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, other)
    assert not np.allclose(one, third)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@native
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("cls", [ogp.kafbox.KLMSCSL1, ogp.kafbox.KLMSCSAL1])
def test_the_scale_of_errors_is_compiled_and_that_of_the_readable_learner(cls, outputs):
    X, y = stream(150)
    Y = np.column_stack([y, 3.0 - 2.0 * y])[:, :outputs]
    model = cls(RBF(0.5), step=0.2)
    compiled, slow = (model.set_params(engine=engine).start(2, outputs) for engine in ("native", "python"))
    assert compiled.plan() is not None
    assert compiled.atomic
    compiled.learn(X[:1], Y[:1])  # then it is there
    for x, row in zip(X[1:], Y[1:], strict=True):
        assert compiled.learn_one(x, row if outputs > 1 else float(row[0])) != Outcome.UNSUPPORTED
    predicted, _ = slow.run(X, Y)
    again, _ = model.set_params(engine="native").start(2, outputs).run(X, Y)
    np.testing.assert_allclose(again.std, predicted.std, rtol=1e-9)
    np.testing.assert_allclose(compiled.predict(X[:1]).std[0], compiled.readable().errors.std, rtol=1e-15)
    np.testing.assert_allclose(compiled.readable().errors.std, slow.errors.std, rtol=1e-9)


@native
@pytest.mark.parametrize("around", [lambda model: model, ogp.Calibrated])
def test_a_model_that_diverges_one_sample_at_a_time_is_noticed(around):
    """Its standard deviation follows its errors: it is never sure, and only its size tells."""
    model = around(ogp.kafbox.KLMSCSL1(RBF(1.0), step=3.5))

    def learn(rows):
        for i in range(rows):
            model.learn_one(np.zeros(1), float(i % 2))

    with pytest.raises(BreakdownError):
        learn(400)
    assert model.n_samples_seen_ < 100
