"""KAFBOX's linear filters on the fixed stream, and what ours do otherwise: see tests/fixtures/README.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.engine.compiled import leaf
from onlinegp.models.linear.information_form import LinearLearner

FIXTURE = Path(__file__).parents[1] / "fixtures" / "channel_switch.npz"


class Unrenewed(ogp.LinearRLS):
    """RLS as KAFBOX has it: what forgetting takes from the prior is not given back, and the prior fades to nothing."""

    def start(self, features, outputs):
        options = {name: getattr(self, name) for name in ("noise", "prior", "forgetting", "intercept")}
        return leaf(self.engine, UnrenewedLearner(features, outputs, **options))


class UnrenewedLearner(LinearLearner):
    def __init__(self, features, outputs, **options):
        super().__init__(features, outputs, **options)
        self.renewal = np.zeros_like(self.renewal)


# KAFBOX's `c` is noise / prior. Its Kalman filter takes a drift of 0.1 and a noise of 0.01 whatever it is told.
CASES = {
    "lms": ogp.LMS(step=0.05, intercept=False),
    "nlms": ogp.NLMS(step=0.9, epsilon=1e-6, intercept=False),
    "rls": Unrenewed(noise=1.0, prior=1e4, forgetting=0.99, intercept=False),
    "problms": ogp.kafbox.ProbLMS(noise=0.01, drift=1e-4, prior=0.01, intercept=False),
    "kalman": ogp.Kalman(noise=0.01, drift=0.1, prior=1.0, intercept=False),
    "memory_cell": ogp.Persistence(),
}


@pytest.fixture(scope="module")
def golden():
    return np.load(FIXTURE)


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("name", CASES)
def test_predictions(name, engine, golden):
    model = CASES[name].unfitted()
    if "engine" in model.parameter_names():
        model.set_params(engine=engine)
    trace = ogp.run(model, golden["x"], golden["y"])
    np.testing.assert_allclose(trace.mean, golden[f"prediction__{name}"], rtol=0, atol=1e-8)


def test_a_prior_that_stays_matters_little_where_all_inputs_come(golden):
    """Given back, the prior of variance 1e4 weighs as much as a part in a million of a hundred rows."""
    X, y = golden["x"], golden["y"]
    ours = ogp.run(ogp.LinearRLS(noise=1.0, prior=1e4, forgetting=0.99, intercept=False), X, y)
    np.testing.assert_allclose(ours.mean[50:], golden["prediction__rls"][50:], rtol=0, atol=1e-4)


def test_where_an_input_stays_away_only_ours_keeps_a_finite_variance():
    """KAFBOX's covariance of a weight that no input excites grows by 1 / forgetting per row, to infinity."""
    X = np.column_stack([np.random.default_rng(0).normal(size=80_000), np.zeros(80_000)])
    kafbox, ours = (
        cls(noise=1.0, prior=1e4, forgetting=0.99, intercept=False).fit(X, X[:, 0])
        for cls in (Unrenewed, ogp.LinearRLS)
    )
    assert ours.predict_one([0.0, 1.0], return_std=True)[1] ** 2 == pytest.approx(1e4, rel=0.03)
    with pytest.raises(ogp.BreakdownError):
        kafbox.predict_one([0.0, 1.0], return_std=True)
