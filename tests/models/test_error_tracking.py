"""What is followed along rows: the compiled loops give the bits of the readable ones, in any portions."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from onlinegp.models.error_tracking import StretchRule, fading_scales, fading_weights, tracked_stretch

rng = np.random.default_rng(0)
Z2 = np.abs(rng.standard_t(3, (300, 2))) ** 2 * [1.0, 1e3]
Z2[5], Z2[50, 0], Z2[51, 1] = 0.0, np.inf, 1e200
LOGS = rng.normal(-1.0, 3.0, (300, 4))
LOGS[7, 2], LOGS[8], LOGS[9, 1], LOGS[10, 0], LOGS[11, 3] = -np.inf, -np.inf, np.nan, np.inf, -1e19
RULE = StretchRule.at(0.9, 0.1)

CASES = {
    "normal": (Z2, lambda rows, state, **o: fading_scales(rows, 0.0, 0.99, *state, **o), ([20.0, 20.0], [20.0, 20.0])),
    "student": (Z2, lambda rows, state, **o: fading_scales(rows, 3.0, 0.99, *state, **o), ([7.0, 7.0], [20.0, 20.0])),
    "fading": (LOGS, lambda rows, state, **o: fading_weights(rows, 0.9, *state, **o), ([0.0, -1.0, 0.0, -3.0],)),
    "bayes": (LOGS, lambda rows, state, **o: fading_weights(rows, 1.0, *state, **o), ([0.0, 0.0, 0.0, 0.0],)),
    "stretch": (
        (rng.uniform(size=(900, 2)) < np.where(np.arange(900) < 500, 0.1, 0.5)[:, None]).astype(np.float64),
        lambda rows, state, **o: tracked_stretch(rows, RULE, *state, **o),
        ([0.0, 0.0],) * 4,
    ),
    "narrowed": (
        (np.arange(900)[:, None] % [890, 450] < 70).astype(np.float64),
        lambda rows, state, **o: tracked_stretch(rows, RULE, *state, **o),
        ([0.0, 0.0],) * 4,
    ),
}
every = pytest.mark.parametrize("case", CASES)


def start(case):
    rows, follow, state = CASES[case]
    return rows, follow, [np.array(one) for one in state]


@every
def test_the_compiled_loop_has_the_bits_of_the_readable_one(case):
    rows, follow, state = start(case)
    other = [one.copy() for one in state]
    np.testing.assert_array_equal(follow(rows, state), follow(rows, other, native=False))
    np.testing.assert_array_equal(state, other)
    assert np.isfinite(state).all()


@every
def test_portions_give_the_bits_of_the_whole(case):
    rows, follow, state = start(case)
    other = [one.copy() for one in state]
    whole = follow(rows, state)
    parts = [follow(rows[i : i + 7], other) for i in range(0, len(rows), 7)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(other, state)


def test_scales_of_known_residuals():
    z = np.random.default_rng(1).normal(0.0, 3.0, (20_000, 1))
    out = fading_scales(z**2, 0.0, 0.5 ** (1 / 500), np.full(1, 20.0), np.full(1, 20.0))
    assert out[0, 0] == 1.0
    assert out[2000:].mean() == pytest.approx(9.0, rel=0.03)
    t = 3.0 * np.random.default_rng(1).standard_t(4, (20_000, 1))
    out = fading_scales(t**2, 4.0, 0.5 ** (1 / 500), np.full(1, 20.0), np.full(1, 20.0))
    assert np.sqrt(out[2000:]).mean() == pytest.approx(3.0, rel=0.03)


def test_one_outlier_is_worth_a_bounded_number_of_rows():
    """After a row in which all but the least sure member fail, the best one of all rows before soon leads again."""
    logs = np.tile([0.0, -1.0], (40, 1))
    logs[20] = [-5000.0, -10.0]
    w = fading_weights(logs, 0.9, np.zeros(2))
    assert w[20, 0] > 0.99
    assert w[22, 0] > 0.9


def coverage_at_a_moment(scores, rows, *, scale=1.0):
    """Coverage of fresh rows after so many, by the stretch that is current then, for normal errors."""
    state = [np.zeros(scores.shape[1]) for _ in range(4)]
    for row in scores[:rows]:
        missed = np.abs(row) > 1.96 * np.exp(state[0])
        tracked_stretch(missed[None, :].astype(np.float64), RULE95, *state)
    return 2.0 * np.vectorize(NormalDist().cdf)(1.96 * np.exp(state[0]) / scale) - 1.0


RULE95 = StretchRule.at(0.95, 0.1)


@pytest.mark.parametrize("rows", [100, 300, 1000])
def test_the_stretch_settles_where_nothing_changes(rows):
    """Coverage at any moment is near 95%; steps of constant size leave a standard deviation of 0.02."""
    at = coverage_at_a_moment(np.random.default_rng(0).normal(size=(rows, 200)), rows)
    assert at.mean() == pytest.approx(0.95, abs=0.002)
    assert at.std() < 0.01


def test_a_stretch_that_grew_while_a_model_was_behind_shrinks_again():
    """Sixty misses widen the interval 200 times; without a miss it is three times as wide at most 420 rows later."""
    missed = np.zeros((600, 1))
    missed[:60] = 1.0
    stretch = tracked_stretch(missed, RULE95, *(np.zeros(1) for _ in range(4)))
    assert np.log(stretch[60, 0]) > np.log(100.0)
    assert np.log(stretch[400, 0]) > 0.6 * np.log(stretch[60, 0])  # one lucky stretch is not evidence enough
    assert stretch[480, 0] < 3.01
    rare = missed.copy()
    rare[60::100] = 1.0  # one miss in a hundred rows: the promised share is still to come, so small steps
    assert tracked_stretch(rare, RULE95, *(np.zeros(1) for _ in range(4)))[-1, 0] > 10.0


@pytest.mark.parametrize("scale", [0.5, 2.0, 10.0])
def test_the_stretch_follows_a_change(scale):
    scores = np.random.default_rng(0).normal(size=(1700, 200))
    scores[1000:] *= scale
    at = coverage_at_a_moment(scores, 1700, scale=scale)
    assert at.mean() == pytest.approx(0.95, abs=0.015)
    assert at.std() < 0.02
