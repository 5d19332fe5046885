"""The NumPy twins of the benchmarks predict what onlinegp predicts: otherwise a ratio means nothing."""

from __future__ import annotations

import baselines
import cases
import limits
import local
import numpy as np
import pytest
import trees

import onlinegp as ogp
from onlinegp.kernels import RBF

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


def test_trees_are_measured_beside_their_parts():
    size = trees.Size(warm=30, samples=5, block=10, stored=30, keys=3)
    found = trees.trees(1, size)
    cases = [row["case"] for row in found]
    assert {"KRLST(100)", "HeavyTailed(KRLST(100))", "Mixture(KRLST(100), LinearRLS)", "RandomFeatureGP"} <= set(cases)
    assert all(row["one"] > 0.0 and row["block"] > 0.0 for row in found)
    us = {row["case"]: row for row in found}
    mixture = us["Mixture(KRLST(100), LinearRLS)"]
    for way in ("one", "block"):
        assert mixture[f"parts of {way}"] == us["KRLST(100)"][way] + us["LinearRLS"][way]
    shown = trees.lines(found).splitlines()
    assert [line[:44].rstrip() for line in shown[1:]] == cases
    line = shown[1 + cases.index("Mixture(KRLST(100), LinearRLS)")]
    assert f"{mixture['one'] / mixture['parts of one']:.0%}" in line


def test_members_of_auto_that_share_rows_count_once():
    """Members that clip spikes keep their own rows; targets that are mostly zero are not clipped."""
    X, y = trees.stream(60, 0)
    for target, others in ((y, ["LocalGP"]), (np.where(np.arange(60) % 3 == 0, y, 0.0), [])):
        auto = ogp.Auto(rows=30, members=("residual", "local", "linear"), kernel=RBF(2.0)).fit(X, target)
        found = [type(model).__name__ for model in trees.members(auto, X, target)]
        assert found == ["ResidualGP", *others, "LinearRLS"]
    alone = ogp.Auto(rows=30, members=("local", "linear"), kernel=RBF(2.0)).fit(X, y)
    assert len(trees.members(alone, X, y)) == len(alone.weights_)
