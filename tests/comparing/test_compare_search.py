"""`ogp.compare`: what the search of a class starts from, what it tries, and by which rows it decides."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.datasets import channel_switch
from onlinegp.kernels import RBF


def channel(seed: int) -> tuple[np.ndarray, np.ndarray]:
    return channel_switch(150, switch=None, seed=seed)


def test_tuning_pays_on_rows_that_it_has_not_seen():
    found = ogp.compare({"tuned": ogp.KLMS, "wrong": ogp.KLMS(RBF(0.1))}, channel, runs=8, effort=6000, jobs=1)
    assert found.entries[0].name == "tuned"
    assert found.behind("wrong").low > 1.0, repr(found)


def test_the_search_goes_by_the_rows_that_are_ranked():
    def turning(seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((1000, 4))
        return X, np.where(np.arange(1000) < 500, 1.0, -1.0) * X.sum(axis=1) + rng.standard_normal(1000)

    late, all_of_it = (
        ogp.compare([ogp.LMS], turning, runs=2, effort=60_000, steady=rows, jobs=1)["LMS"].params["step"]
        for rows in (200, 500)
    )
    assert late < 0.6 * all_of_it  # the later rows need no step that follows the turn


def test_little_effort_reaches_what_a_class_declares():
    found = ogp.compare(
        {"tracker": partial(ogp.KRLST, budget=30)},
        lambda seed: channel_switch(400, switch=200, seed=seed),
        runs=2,
        effort=8000,
        jobs=1,
    )
    assert found["tracker"].tried == 20
    assert found["tracker"].params["forgetting"] < 0.9999


@pytest.mark.parametrize("by", ["error", "density"])
def test_a_linear_filter_starts_from_its_own_noise(by):
    """The noise of the likely kernels is that of a smooth function, which no linear filter can follow."""

    def wave(seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        X = rng.uniform(-3.0, 3.0, (300, 1))
        return X, np.sin(2.0 * X[:, 0]) + 0.02 * rng.standard_normal(300)

    found = ogp.compare([ogp.LinearRLS], wave, runs=2, effort=300, jobs=1, by=by)
    assert found.figures()[0]["coverage"] > 0.9
