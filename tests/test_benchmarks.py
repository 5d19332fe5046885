"""The NumPy twins of the benchmarks predict what onlinegp predicts: otherwise a ratio means nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.kernels import RBF

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import baselines
import cases
import limits

import local

CASES = {
    "klms": (ogp.KLMS(RBF(), step=0.5), {"step": 0.5}),
    "knlms": (ogp.KNLMS(RBF(), step=0.5, coherence=1.0, epsilon=0.01), {"step": 0.5, "epsilon": 0.01}),
    "beta": (ogp.BetaKLMS(RBF(), beta=0.1, noise=0.01), {"beta": 0.1, "noise": 0.01}),
    "qklms": (ogp.QKLMS(RBF(), step=0.5, radius=0.5), {"step": 0.5, "radius": 0.5}),
    "krlst": (
        ogp.KRLST(RBF(), noise=0.01, budget=30, forgetting=0.999),
        {"noise": 0.01, "budget": 30, "forgetting": 0.999},
    ),
}


@pytest.mark.parametrize("kind", ["naive", "tuned"])
@pytest.mark.parametrize("name", CASES)
def test_twins_predict_the_same(name, kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4))
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(400)
    model, settings = CASES[name]
    expected = ogp.run(type(model)(**model.get_params(deep=False)), X, y).mean
    actual = getattr(baselines, f"{name}_{kind}")(X, y, **settings)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("rows", [40, 500])
def test_the_twin_of_the_nearest_rows_predicts_the_same(rows):
    rng = np.random.default_rng(0)
    X, questions = rng.standard_normal((rows, local.D)), rng.standard_normal((30, local.D))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(rows)
    model = ogp.LocalGP(RBF(2.0), noise=local.NOISE, neighbors=local.NEIGHBORS).fit(X, y)
    np.testing.assert_allclose(local.numpy_twin(X, y, questions), model.predict(questions, True), rtol=1e-9, atol=1e-11)


def test_limits_take_a_mean_number_of_centers(monkeypatch):
    """Which is no whole number where a budget is not always full."""
    monkeypatch.setattr(limits, "bandwidth", lambda size, threads: float(np.zeros(size).nbytes))
    monkeypatch.setattr(limits, "row_seconds", lambda m, d, passes=1: 1e-6)
    assert all(case.limit(99.5) > 0 for case in cases.CASES)
