"""Each class of models is tuned for itself, by what it declares."""

from __future__ import annotations

import numpy as np
import pytest

import onlinegp as ogp
from models import MODELS
from onlinegp.batch.likely_kernels import Hyperparameters
from onlinegp.batch.parameter_search import EFFORT, best_of, prequential
from onlinegp.batch.search_space import WIDELY, Isotropic, LengthScales, Times, Value, search_of, suggested
from onlinegp.kernels import RBF, Linear, Matern52

CLASSES = sorted({type(model) for model in MODELS.values()}, key=lambda cls: cls.__name__)


def wavy(n: int, features: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a function of the first two columns, with little noise, in about standard units."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, features))
    return X, np.sin(2.0 * X[:, 0]) + np.cos(X[:, 1]) - 0.6 + 0.05 * rng.standard_normal(n)


# Of a smooth function maximum likelihood makes long scales and a large amplitude; the last column does not matter.
SMOOTH = Hyperparameters(10.0 * RBF((3.0, 5.0, 1e5)), 1e-4, 1.0, 0.0)
OTHER = Hyperparameters(2.0 * Matern52((1.0, 2.0, 50.0)), 1e-2, 1.0, 0.0)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_never_worse_than_any_suggested_model(cls):
    X, y = wavy(160)
    found = [SMOOTH, OTHER]
    trial = best_of(cls, found, lambda model: prequential(model, X, y), budget=30)
    for one in found:
        simple = cls(**suggested(cls, one.kernel, one.noise, 30))
        assert trial.outcome.merit(search_of(cls).by) >= prequential(simple, X, y).merit(search_of(cls).by)
    assert prequential(trial.build(), X, y) == trial.outcome  # it is the model that was tried
    assert trial.rows == 160 * trial.tried <= EFFORT + 160 * len(found)


def test_a_linear_filter_tuned_on_a_smooth_series_finds_large_weights():
    """Past values that are nearly equal need weights that a prior of one does not allow."""
    X, y = ogp.datasets.embed(ogp.datasets.lorenz(1200)[:, 0] / 8.0, 6, horizon=5)
    tuning, rest = slice(0, 600), slice(600, None)
    trial = best_of(ogp.LinearRLS, [SMOOTH], lambda model: prequential(model, X[tuning], y[tuning]))

    def error(model: ogp.OnlineRegressor) -> float:
        return float(((model.fit(X[tuning], y[tuning]).run(X[rest], y[rest]).mean - y[rest]) ** 2).mean())

    assert trial.params["prior"] > 1.0
    assert error(trial.build()) < error(ogp.LinearRLS(noise=SMOOTH.noise)) / 4


def test_a_filter_without_a_kernel_does_not_spend_its_effort_on_kernels():
    X, y = wavy(100)
    trials = [best_of(ogp.NLMS, found, lambda model: prequential(model, X, y)) for found in ([SMOOTH], [SMOOTH, OTHER])]
    assert trials[0].tried == trials[1].tried == 1 + len(search_of(ogp.NLMS).tried["step"])
    assert trials[0].params == trials[1].params


def test_qklms_tuned_for_itself_beats_qklms_with_the_kernel_of_a_gp():
    X, y = wavy(2600)
    tuning, rest = slice(0, 600), slice(600, None)
    simple = ogp.QKLMS(**suggested(ogp.QKLMS, SMOOTH.kernel, SMOOTH.noise, None))
    trial = best_of(ogp.QKLMS, [SMOOTH], lambda model: prequential(model, X[tuning], y[tuning]))

    def error(model: ogp.OnlineRegressor) -> float:
        model.fit(X[tuning], y[tuning])
        return float(((model.run(X[rest], y[rest]).mean - y[rest]) ** 2).mean())

    assert error(trial.build()) < error(simple) / 4  # 6 dB, on rows that the search has not seen
    assert search_of(trial.estimator).by == "error"


def test_the_same_data_give_the_same_model():
    X, y = wavy(150)
    one, other = (best_of(ogp.KNLMS, [SMOOTH, OTHER], lambda model: prequential(model, X, y)) for _ in range(2))
    assert one.params == other.params
    assert one.tried == other.tried


def test_effort_and_time_end_a_search():
    X, y = wavy(100)
    judged = []

    def judge(model):
        judged.append(model)
        return prequential(model, X, y)

    assert best_of(ogp.QKLMS, [SMOOTH], judge, effort=700).rows == 700
    assert len(judged) == 7
    assert best_of(ogp.QKLMS, [SMOOTH, OTHER], judge, until=0.0).tried == 2  # those that are suggested


def test_with_a_seed_the_effort_is_spent_and_nothing_is_worse():
    X, y = wavy(100)

    def judge(model):
        return prequential(model, X, y)

    short = best_of(ogp.KRLST, [SMOOTH], judge, budget=20)
    assert short.rows < 3000
    long = best_of(
        ogp.KRLST, [SMOOTH], judge, budget=20, searched={**WIDELY, **search_of(ogp.KRLST).tried}, effort=3000, seed=0
    )
    assert long.rows == 3000
    assert long.log_density >= short.log_density
    few = best_of(ogp.KRLST, [SMOOTH], judge, budget=20, seed=0)
    assert few.tried == 8  # all there are: fixed or learned, and four ways to forget
    by_error = best_of(ogp.KRLST, [SMOOTH], judge, budget=20, by="error", seed=0)
    assert by_error.outcome.squared_error <= few.outcome.squared_error


def test_what_is_given_is_not_searched():
    X, y = wavy(150)
    given = {"step": 0.123, "kernel": RBF(0.9), "unknown": 1.0}
    trial = best_of(ogp.QKLMS, [SMOOTH], lambda model: prequential(model, X, y), given=given)
    assert trial.params["step"] == 0.123
    assert trial.params["kernel"] == RBF(0.9)
    assert trial.tried == 1 + len(search_of(ogp.QKLMS).tried["radius"])


def test_a_model_that_breaks_down_is_the_worst():
    X, y = wavy(60)
    outcome = prequential(ogp.KLMS(RBF(1.0), step=1e8), X, y)
    assert outcome.log_density == -np.inf
    assert outcome.merit("error") == -np.inf
    assert outcome.rows == 60


def test_moves():
    kernel = 2.0 * RBF((1.0, 4.0)) + Linear(0.5)
    assert Times(0.5).of(3.0) == 1.5
    assert Value("fixed").of("learned") == "fixed"
    scaled, same = LengthScales(2.0).of(kernel), Isotropic(0.5).of(kernel)
    for moved, scales in ((scaled, (2.0, 8.0)), (same, (0.5 * 2**0.5,) * 2)):
        np.testing.assert_allclose(moved.left.kernel.length_scale, scales)
        np.testing.assert_allclose(np.exp(moved.right.theta), np.exp(kernel.right.theta))
        np.testing.assert_allclose(moved.left.variance, 2.0)
    assert Isotropic(1.0).of(Linear(0.5)).theta == Linear(0.5).theta
