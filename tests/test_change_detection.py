"""Cumulative sums: false alarms within the bound that theory gives, changes found soon."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from onlinegp.change_detection import KINDS, MAX_Z, RATIO, SHIFT, Cusum
from onlinegp.metrics import drifts
from onlinegp.predictions import Gaussian, Predictions

CHANGES = {
    "above": lambda z: z + 1.0,
    "below": lambda z: z - 1.0,
    "wide": lambda z: 1.5 * z,
    "narrow": lambda z: z / 1.5,
}


def slow(z, rate):
    """The definition: each sum alone, with densities."""
    p1 = {"above": (SHIFT, 1.0), "below": (-SHIFT, 1.0), "wide": (0.0, RATIO), "narrow": (0.0, 1.0 / RATIO)}
    alarms = []
    for kind in KINDS:
        s, odds = 0.0, stats.norm(*p1[kind])
        for i, value in enumerate(z):
            bounded = {"above": min(value, MAX_Z), "below": max(value, -MAX_Z), "wide": np.clip(value, -MAX_Z, MAX_Z)}
            x = bounded.get(kind, value)
            s = max(0.0, s + odds.logpdf(x) - stats.norm.logpdf(x))
            if s >= np.log(4.0 / rate):
                alarms.append((i, kind))
                s = 0.0
    return sorted(alarms, key=lambda alarm: (alarm[0], KINDS.index(alarm[1])))


def test_the_sums_are_those_of_the_definition():
    z = np.random.default_rng(0).standard_normal(400)
    z[100:130] += 1.2
    z[200:240] *= 2.0
    z[300:] /= 2.5
    assert drifts(z, 0.01) == slow(z, 0.01)
    assert len(drifts(z, 0.01)) > 3


@pytest.mark.parametrize("rate", [1e-2, 1e-3])
def test_false_alarms_are_within_the_bound(rate):
    z = np.random.default_rng(1).standard_normal(300_000)
    alarms = len(drifts(z, rate))
    assert 0.02 * rate < alarms / len(z) <= rate


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_is_found_soon_and_by_its_name(kind):
    delays, kinds = [], []
    for seed in range(30):
        z = CHANGES[kind](np.random.default_rng(seed).standard_normal(1000))
        row, found = drifts(z, 1e-4)[0]
        delays.append(row + 1)
        kinds.append(found)
    assert np.mean(delays) < 120.0
    assert kinds.count(kind) >= 24  # errors that are wide run above or below for a while too


def test_one_outlier_is_no_drift_and_four_misses_in_a_row_are():
    quiet = [0.0] * 20
    assert drifts([*quiet, 1e6, *quiet], 1e-3) == []
    assert drifts([*quiet, -np.inf, *quiet], 1e-3) == []
    assert drifts([*quiet, *[4.0] * 3], 1e-3) == []
    assert drifts([*quiet, *[4.0] * 4], 1e-3) == [(23, "above"), (23, "wide")]


def test_rows_without_a_target_count_nothing():
    one, two = Cusum(0.01), Cusum(0.01)
    one.add([1.0, np.nan, 2.0])
    two.add([1.0, 2.0])
    assert one.sums == two.sums


class Other(Gaussian):
    """A kind that knows only its cdf."""

    z, tail = Predictions.z, Predictions.tail


def test_z_and_tail_of_any_kind_come_from_its_cdf():
    y = np.array([-12.0, -1.0, 0.0, 0.3, 7.0])
    mean, std = np.full(5, 0.1), np.full(5, 1.5)
    np.testing.assert_allclose(Other(mean, std).z(y), Gaussian(mean, std).z(y), rtol=1e-8)
    np.testing.assert_allclose(Other(mean, std).tail(y), Gaussian(mean, std).tail(y), rtol=1e-8)
    assert Gaussian(mean, std).tail(np.full(5, 40.0)).min() > 0.0  # 26 standard deviations, and still no zero
    assert np.abs(Other(mean, std).z(np.full(5, 1e9))).max() < 38.0
