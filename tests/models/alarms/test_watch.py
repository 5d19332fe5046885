"""The detector row by row: its definition, its compiled twin, and streams that must not disturb it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from onlinegp.engine import available
from onlinegp.models.alarms.constants import COUNTS, KEPT, NUMBERS, C, Constants
from onlinegp.models.alarms.predictors import find_season
from onlinegp.models.alarms.scales import SHARE, find_shift, from_scale, to_scale
from onlinegp.models.alarms.tails import Tail
from onlinegp.models.alarms.watch import Watch

native = pytest.mark.skipif(not available(), reason="the compiled engine was not built")


def watch(*, engine="auto", scores=False, season=None, daily=False, **rule):
    compiled = available() and engine == "auto"
    return Watch(scores=scores, season=season, daily=daily, native=compiled, rule=Constants()._replace(**rule))


def noise(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n)


def autoregressive(n, seed=0, keep=0.9):
    y = noise(n, seed)
    for i in range(1, n):
        y[i] += keep * y[i - 1]
    return y


def with_gaps(n):
    y = autoregressive(n)
    y[200:215] = y[700:740] = np.nan
    return y


STREAMS = {
    "noise": noise(1200),
    "autoregressive": 100.0 + autoregressive(1200),
    "season": np.sin(np.arange(1200) / 7.0) + 0.01 * noise(1200),
    "rounded": np.round(noise(1200)),
    "constant": np.where(np.arange(1200) < 600, 3.0, 4.0),
    "gaps": with_gaps(1200),
    "skewed": np.exp(autoregressive(1200)),
    "counts": np.random.default_rng(0).poisson(np.exp(1.0 + np.sin(np.arange(1200) / 20.0))).astype(float),
    "huge": 1e140 * noise(1200),
    "tiny": 1e-140 * noise(1200),
    "faults": np.where(np.arange(1200) // 40 % 17 == 11, 8.0, 0.0) + noise(1200),
}


@native
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("scores", [False, True])
def test_engines_agree_to_the_last_bit(name, scores):
    y = STREAMS[name]
    v = np.where(np.isnan(y), np.nan, noise(len(y), 1)) if scores else y
    one, other = watch(scores=scores, generation=400.0), watch(scores=scores, generation=400.0, engine="python")
    np.testing.assert_allclose(one.add(y, v), other.add(y, v), rtol=1e-12, atol=1e-12)
    for field in one.fields:
        np.testing.assert_allclose(getattr(one, field), getattr(other, field), rtol=1e-12, err_msg=field)


@pytest.mark.parametrize("name", STREAMS)
def test_the_scores_of_a_prefix_are_the_prefix_of_the_scores(name):
    y = STREAMS[name]
    whole = watch().add(y, y)
    for n in np.random.default_rng(1).integers(1, len(y), 35):
        np.testing.assert_array_equal(watch().add(y[:n], y[:n]), whole[:n])


@pytest.mark.parametrize("name", STREAMS)
def test_any_pieces_give_the_same_bits(name):
    y = STREAMS[name]
    whole, pieces = watch(), watch()
    expected = whole.add(y, y)
    cuts = [0, 1, 2, 150, 151, 256, 257, 512, 700, 720, len(y)]
    found = [pieces.add(y[a:b], y[a:b]) for a, b in pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert all(np.array_equal(a, b) for a, b in zip(whole.dump().values(), pieces.dump().values(), strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_no_event_opens_in_the_first_150_rows(seed):
    rng = np.random.default_rng(seed)
    y = rng.standard_t(2, 150) * 10.0 ** rng.integers(-5, 6) + 10.0 ** rng.integers(-5, 6)
    assert not watch().add(y, y)[:, C["score"]].any()


def test_a_start_that_settles_opens_no_event_soon_after():
    events = 0
    for seed in range(40):
        y = noise(400, seed) + 20.0 * np.exp(-np.arange(400) / 30.0)
        events += watch().add(y, y)[:, C["event"]].max()
    assert events <= 40 * 250 * 0.001 + 12


def test_a_day_that_tells_nothing_does_not_raise_the_rate():
    opened = {0: 0.0, 96: 0.0}
    for season in opened:
        for seed in range(4):
            y = noise(8000, seed)
            opened[season] += watch(season=season, daily=season > 0).add(y, y)[:, C["event"]].max()
    assert opened[96] <= 1.2 * opened[0] + 3.0


def test_a_constant_stream_has_no_events_and_its_first_change_has_one():
    y = np.full(3000, 5.0)
    assert not watch().add(y, y)[:, C["score"]].any()
    y[2000] = 6.0
    out = watch().add(y, y)
    assert out[2000, C["event"]] == 1.0
    assert out[:2000, C["event"]].max() == 0.0


@pytest.mark.parametrize("digits", [0, 1])
def test_rounded_streams_keep_the_rate(digits):
    events = rows = 0
    for seed in range(8):
        y = np.round(noise(6000, seed), digits)
        one = watch()
        one.add(y, y)
        events, rows = events + one.counts[COUNTS.index("events")], rows + len(y)
    assert events / rows < 0.0015


@pytest.mark.parametrize("fault", ["stuck", "missing"])
def test_a_sensor_that_comes_back_opens_no_second_event_unless_it_comes_back_elsewhere(fault):
    y, v = noise(1300), noise(1300, 1)
    y[1000:1030] = 0.5 if fault == "stuck" else np.nan
    v[1030:1033] = 12.0  # a model has followed the fault
    back, elsewhere = (
        watch(scores=True).add(series, v)[1000:, C["event"]] for series in (y, np.append(y[:1030], y[1030:] + 8.0))
    )
    assert len(set(back) - {0.0}) == 1
    assert len(set(elsewhere) - {0.0}) == 2


def test_a_gap_is_an_event_unless_gaps_are_usual():
    y = noise(3000)
    y[2000:2040] = np.nan
    out = watch().add(y, y)
    assert 2000 < np.flatnonzero(out[:, C["event"]] > 0)[-1] < 2070
    opened = np.flatnonzero(out[2000:2040, C["score"]] >= 3.0)
    assert len(opened)
    usual = noise(6000)
    usual[np.arange(6000) % 100 < 40] = np.nan
    late = watch().add(usual, usual)[3000:]
    assert not (late[np.isnan(usual[3000:]), C["score"]] >= 3.0).any()


@pytest.mark.parametrize("unit", [1e-100, 1e-3, 1e100])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_units_and_origin_do_not_matter(unit, shift):
    y = np.round(autoregressive(900), 2)
    expected, found = watch().add(y, y), watch().add(unit * (y + shift), unit * (y + shift))
    np.testing.assert_allclose(found[:, :3], expected[:, :3], rtol=1e-3, atol=1e-3)


SCALES = {
    "noise": (False, 20.0 + noise(2000)),
    "negative": (False, np.exp(autoregressive(2000)) - 1.0),
    "mostly zero": (False, np.where(noise(2000) > 0.3, np.exp(noise(2000, 1)), 0.0)),
    "constant": (False, np.full(2000, 3.0)),
    "line": (False, np.arange(2000.0)),
    "skewed": (True, np.exp(autoregressive(2000))),
    "tiny": (True, 1e-200 * np.exp(autoregressive(2000))),
}


@pytest.mark.parametrize("name", SCALES)
def test_a_scale_is_found_and_undone(name):
    logarithm, y = SCALES[name]
    shift = find_shift(y)
    assert shift == pytest.approx(SHARE * y.mean() if logarithm else 0.0, rel=1e-12)
    for value in [*y[:50], 0.0, -0.1 * y.mean()]:
        there = to_scale(float(value), shift)
        assert from_scale(there, shift) == pytest.approx(float(value), rel=1e-12, abs=1e-12 * y.mean())


def test_rows_on_another_scale_are_judged_as_if_they_had_always_been():
    y = np.exp(autoregressive(1500))
    one = watch(season=0)
    out = one.add(y, y)
    shift = one.numbers[NUMBERS.index("shift")]
    assert shift > 0.0
    z = np.log(y + shift)
    z -= z.max() + 1.0  # negative, so that it keeps its scale
    expected = watch(season=0).add(z, z)
    np.testing.assert_allclose(out[1024:, :3], expected[1024:, :3], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("period", [2, 23, 97])
def test_a_stream_without_noise_that_repeats_is_a_habit(period):
    y = np.where(np.arange(4000) % period == 0, 1.0, 0.0)
    assert np.count_nonzero(watch().add(y, y)[:, C["score"]] >= 3.0) <= 1


def test_a_drop_of_a_skewed_stream_is_found():
    found = 0
    for seed in range(20):
        y = np.exp(0.7 * noise(3000, seed))
        y[2500:2540] *= 0.25
        found += (watch().add(y, y)[2500:2540, C["score"]] >= 3.0).any()
    assert found >= 18


def test_the_tail_of_a_pareto_law_is_found():
    rng = np.random.default_rng(0)
    x = (1.0 - rng.random(9000)) ** -0.2  # shape .2
    values, counts, law = np.zeros((2, KEPT), np.float32), np.zeros((2, 2), np.int64), np.zeros(5)
    tail = Tail(values, counts, law, 0.0, Constants())
    for one in x:
        tail.learn(one)
    for p in (1e-2, 1e-3, 1e-4):
        assert tail.evidence(p**-0.2, 0.95) == pytest.approx(-np.log10(p), abs=0.4)
    assert tail.evidence(1.0, 0.95) == 0.0
    np.testing.assert_array_equal(values[0, : counts[0, 0]], np.sort(x.astype(np.float32))[::-1][:KEPT])


def test_generations_forget_what_is_old():
    values, counts, law = np.zeros((2, KEPT), np.float32), np.zeros((2, 2), np.int64), np.zeros(5)
    tail = Tail(values, counts, law, 0.0, Constants()._replace(generation=100.0))
    for x in [50.0, *noise(250) ** 2]:
        tail.learn(x)
    assert values.max() < 50.0
    assert counts[:, 1].tolist() == [51, 100]


def test_removing_values_leaves_the_largest_for_last():
    values, counts, law = np.zeros((2, KEPT), np.float32), np.zeros((2, 2), np.int64), np.zeros(5)
    tail = Tail(values, counts, law, 0.0, Constants())
    for x in range(20):
        tail.learn(float(x))
    tail.remove_above(15.0, 3)
    assert values[0, : counts[0, 0]].tolist() == [19.0, *range(15, -1, -1)]
    tail.thin(6.0)  # 10 values above, of which the fourth root stays
    assert values[0, : counts[0, 0]].tolist() == [19.0, 15.0, *range(6, -1, -1)]


def test_rare_spikes_have_no_season_unless_they_repeat():
    false = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        false += find_season(np.where(rng.random(512) < 0.02, rng.exponential(5.0, 512), 0.0)) > 0
    assert false <= 2
    assert find_season(np.where(np.arange(512) % 60 == 7, 5.0, 0.0)) == 60


@pytest.mark.parametrize("season", [12, 24, 96, 168])
def test_a_season_is_found(season):
    t = np.arange(1024)
    y = np.sin(2.0 * np.pi * t / season) + 0.5 * np.sin(4.0 * np.pi * t / season) + 0.3 * noise(1024)
    assert abs(find_season(y) - season) <= max(1, 0.02 * season)
    assert find_season(noise(1024)) == 0
    assert find_season(np.ones(500)) == 0


@pytest.mark.parametrize(
    ("field", "spoil"),
    [
        ("counts", lambda a: a + 10**6),
        ("counts", lambda a: np.where(np.arange(len(a)) == COUNTS.index("rows"), 2**63 - 1, a)),
        ("counts", lambda a: np.where(np.arange(len(a)) == COUNTS.index("open"), a[COUNTS.index("events")] + 1, a)),
        ("sizes", lambda a: a + np.array([1, 0])),
        ("sizes", lambda a: a * np.array([0, 1])),
        ("values", lambda a: a - 1.0),
        ("numbers", lambda a: a * np.nan),
        ("numbers", lambda a: np.where(np.arange(len(a)) == NUMBERS.index("shift"), -1.0, a)),
        ("recent", lambda a: a[:-1]),
    ],
)
def test_a_state_that_contradicts_itself_is_refused(field, spoil):
    one = watch()
    one.add(STREAMS["noise"], STREAMS["noise"])
    contents = one.dump()
    contents[field] = spoil(contents[field]).astype(contents[field].dtype)
    with pytest.raises(ValueError, match=field):
        watch().load(contents)
