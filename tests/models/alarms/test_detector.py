"""Events: when they open and clear, what they are called, what they say, and that confirming one helps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.models.alarms.reasons import sentence


def noise(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n)


def found(y, **parameters):
    """What is detected, with those events that are still open as they are in the end."""
    detector = ogp.Detector(**parameters)
    detection = detector.detect(y)
    return detection, [*detection.events, *(event for event in detector.events_ if event.end is None)]


def at(events, start, end):
    """Events that opened within rows, as they were in the end."""
    last = {event.number: event for event in events}
    return [event for event in last.values() if start <= event.start < end]


AT = 2000
FAULTS = {
    "spike": lambda y: y + 8.0 * (np.arange(len(y)) == AT),
    "level": lambda y: y + 3.0 * (np.arange(len(y)) >= AT),
    "trend": lambda y: y + 0.02 * np.maximum(np.arange(len(y)) - AT, 0),
    "variance": lambda y: np.where(np.arange(len(y)) >= AT, 3.0 * y, y),
    "stuck": lambda y: np.where((np.arange(len(y)) >= AT) & (np.arange(len(y)) < AT + 30), y[AT], y),
    "missing": lambda y: np.where((np.arange(len(y)) >= AT) & (np.arange(len(y)) < AT + 30), np.nan, y),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_each_kind_of_fault_is_named(kind):
    named = 0
    for seed in range(10):
        events = at(found(FAULTS[kind](noise(2500, seed)))[1], AT, AT + 250)
        named += bool(events) and events[0].kind == kind
    assert named >= 7


def test_a_broken_season_is_named():
    named = 0
    for seed in range(10):
        t = np.arange(3000)
        y = 2.0 * np.sin(2.0 * np.pi * t / 48) + 0.3 * noise(3000, seed)
        y[AT : AT + 48] = 0.3 * noise(48, seed + 100)
        events = at(found(y)[1], AT, AT + 60)
        named += bool(events) and events[0].kind == "season broken"
    assert named >= 7


def test_an_event_opens_escalates_and_clears_once():
    y = noise(3000)
    y[AT : AT + 40] += np.linspace(4.0, 8.0, 40)
    detection, events = found(y)
    (event,) = at(events, AT, AT + 40)
    opened = [one for one in detection.events if one.number == event.number]
    assert [one.end is None for one in opened] == [True, False]
    assert event.start <= event.peak <= event.end < AT + 120
    assert event.severity >= opened[0].severity >= 3.0
    rows = np.flatnonzero(detection.event == event.number)
    assert rows[0] == event.start
    assert np.array_equal(rows, np.arange(rows[0], rows[-1] + 1))
    assert detection.score[event.start] >= 3.0
    assert detection.odds[event.start] < 0.01


def test_a_fault_that_is_small_at_first_builds_up_since_then():
    y = np.random.default_rng(0).standard_normal(1200)
    y[1000:] += 3.0
    y[1004:] += 3.0  # which outdoes the event that is open
    events = ogp.Detector().detect(y).events
    assert [event.since for event in events if event.start >= 1000] == [1000, 1000]


def test_the_same_fault_is_found_again():
    first = again = 0
    for seed in range(20):
        y = noise(3000, seed)
        y[1000:1040] += 4.0
        y[2500:2540] += 4.0
        score = found(y)[0].score
        first += (score[1000:1045] >= 3.0).any()
        again += (score[2500:2545] >= 3.0).any()
    assert first >= 18
    assert again >= 14


def test_a_model_that_has_nothing_but_lags_leaves_the_events_to_the_series():
    y = np.sin(np.arange(2300) / 10.0) + 0.1 * noise(2300)
    y[AT] += 1.0
    alone, lagged = ogp.Detector().detect(y), ogp.Detector(ogp.Lagged(ogp.LinearRLS(), lags=4)).detect(y)
    np.testing.assert_array_equal(lagged.score, alone.score)
    np.testing.assert_array_equal(lagged.event, alone.event)
    assert not np.array_equal(lagged.mean, alone.mean)


def test_a_new_level_is_reported_once_and_accepted():
    once = cleared = 0
    for seed in range(20):
        y = noise(3500, seed)
        y[AT:] += 4.0
        events = at(found(y)[1], AT, AT + 500)
        once += len(events) == 1
        cleared += bool(events) and events[0].end is not None
    assert once >= 16
    assert cleared >= 18


def test_the_rate_of_events_is_the_one_that_was_asked_for():
    rows = events = 0
    for seed in range(12):
        y = noise(8000, seed)
        rows, events = rows + len(y), events + len({event.number for event in found(y)[1]})
    assert 0.4 < events / rows * 1000 < 1.7
    many = len({event.number for event in found(noise(8000), rate=0.01)[1]})
    assert many > 8


def test_rates_of_heavy_tails_and_of_rain_are_off_by_as_much_as_the_guide_says():
    rng = np.random.default_rng(12)

    def rain(wet):
        return np.where(rng.random(6000) < wet, rng.gamma(0.7, 2.0, 6000), 0.0).round(1)

    streams = {
        "gaussian": (lambda: rng.standard_normal(6000), 1.2, 1.8),
        "t3": (lambda: rng.standard_t(3, 6000), 1.6, 2.5),
        "rain": (lambda: rain(0.3), 1.6, 2.6),
        "rare rain": (lambda: rain(0.03), 1.3, 2.2),
    }
    for name, (draw, low, high) in streams.items():
        opened = sum(event.end is None for _ in range(20) for event in found(draw(), rate=0.001)[0].events)
        assert low <= opened / 120 <= high, name


def test_confirming_events_lets_the_next_one_be_found():
    plain = confirmed = 0
    for seed in range(30):
        y = noise(3000, seed)
        for start in (1500, 2000, 2500):
            y[start : start + 20] += 2.0
        ignored, told = ogp.Detector(), ogp.Detector()
        for part in (slice(0, 1900), slice(1900, 2400)):
            ignored.detect(y[part])
            for event in at(told.detect(y[part]).events, 1500, 2400):
                told.confirm(event)
        plain += bool(at(ignored.detect(y[2400:]).events, 2500, 2520))
        confirmed += bool(at(told.detect(y[2400:]).events, 2500, 2520))
    assert confirmed >= 22
    assert confirmed >= plain + 5


@pytest.mark.parametrize("engine", ["python", "auto"])
def test_confirming_everything_again_and_again_leaves_lists_to_compare_with(engine):
    y = noise(1200, 1)
    y[800:] += 30.0
    detector = ogp.Detector(rate=0.05, engine=engine)
    detector.detect(y[:800])
    for start in range(800, 1200, 20):
        detector.detect(y[start : start + 20])
        for event in 3 * detector.events_:
            detector.confirm(event)
    size, rows = np.moveaxis(detector.dump()["learned"]["output0.watch.sizes"], -1, 0)
    assert (size[rows > 0] > 0).all()


def test_only_the_latest_events_can_be_confirmed():
    detector = ogp.Detector()
    with pytest.raises(ValueError, match="none yet"):
        detector.confirm(1)
    with pytest.raises(TypeError, match="got 'first'"):
        detector.confirm("first")
    y = noise(1000)
    y[800] = 20.0
    detector.detect(y)
    with pytest.raises(ValueError, match=r"latest events, 1, got 7"):
        detector.confirm(7)
    before = detector.to_bytes()
    detector.confirm(detector.events_[-1])
    assert detector.to_bytes() != before


def test_saving_in_the_middle_of_an_event_changes_nothing(tmp_path):
    y = noise(2600)
    y[AT : AT + 100] += 5.0
    y[300:310] = np.nan
    whole = ogp.Detector()
    expected = whole.detect(y)
    for cut in (1, 305, AT + 3, AT + 60):
        one = ogp.Detector()
        first = one.detect(y[:cut])
        one.save(tmp_path / "one.ogp")
        other = ogp.load(tmp_path / "one.ogp")
        second = other.detect(y[cut:])
        assert [*first.events, *second.events] == expected.events
        np.testing.assert_array_equal(np.concatenate([first.score, second.score]), expected.score)
        assert other.to_bytes() == whole.to_bytes()


def test_a_fleet_has_events_of_each_key():
    rng = np.random.default_rng(0)
    fleet = ogp.Fleet(ogp.Detector())
    keys = np.tile(np.arange(20), 600)
    y = rng.standard_normal(len(keys))
    y[(keys == 7) & (np.arange(len(keys)) // 20 >= 500)] += 6.0
    fleet.learn(keys, None, y)
    assert [event.kind for event in fleet[7].events_][-1] == "level"
    assert fleet[7].events_[-1].start == 500
    alone = ogp.Detector()
    alone.detect(y[keys == 7])
    assert fleet[7].events_ == alone.events_


def test_several_outputs_have_events_of_their_own():
    y = np.stack([noise(1500), noise(1500, 1)], axis=1)
    y[1000, 1] += 12.0
    detection = ogp.Detector().detect(y)
    assert detection.score.shape == (1500, 2)
    assert [(event.start, event.output) for event in at(detection.events, 990, 1010)] == [(1000, 1)]


def inputs_with_a_fault(seed, blamed, kind):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((1500, 8))
    for i in range(1, len(X)):
        X[i, :4] += 0.8 * X[i - 1, :4]
    y = X @ rng.uniform(0.5, 1.5, 8) + 0.1 * rng.standard_normal(1500)
    size = 6.0 * X[:, blamed].std()
    if kind == "shift":
        X[1200:, blamed] += size
    elif kind == "spike":
        X[1200, blamed] += size
    else:
        X[1200:1230, blamed] = X[1200, blamed] + size / 2
    return X, y


@pytest.mark.parametrize("kind", ["shift", "spike", "stuck"])
def test_the_input_with_the_fault_is_blamed(kind):
    right = 0
    for seed in range(20):
        blamed = seed % 8
        X, y = inputs_with_a_fault(seed, blamed, kind)
        detection = ogp.Detector(ogp.LinearRLS(noise=0.01)).detect(y, X)
        events = at(detection.events, 1200, 1240)
        right += bool(events) and events[0].unusual[:1] == (blamed,)
    assert right >= 18


def test_inputs_that_go_on_as_ever_are_not_blamed():
    found = blamed = 0
    t = np.arange(1500)
    for seed in range(12):
        season = 10.0 * np.sin(2.0 * np.pi * t / 144) + noise(1500, seed)
        steps = np.repeat(noise(30, seed + 100), 50)
        walk = np.cumsum(noise(1500, seed + 200))
        X = np.stack([season, steps, walk], axis=1)
        y = X.sum(axis=1) + noise(1500, seed + 300)
        y[1200 : 1200 + (1, 40, 300)[seed % 3]] += 8.0
        detector = ogp.Detector(ogp.LinearRLS())
        detector.detect(y, X)
        events = [event for event in detector.events_ if 1200 <= event.start < 1230]
        found += bool(events)
        blamed += any(event.unusual for event in events)
    assert found >= 10
    assert blamed <= 2


def test_a_spike_ends_where_its_last_odd_row_is():
    y = noise(1500)
    y[1000] += 12.0
    event = at(found(y)[1], 1000, 1001)[0]
    assert (event.kind, event.rows, event.end) == ("spike", 1, 1000)
    assert event.reason.endswith("at row 1000")


def test_a_value_just_outside_its_bounds_has_the_digits_to_tell():
    event = at(found(FAULTS["spike"](noise(2500)))[1], AT, AT + 5)[0]
    near = replace(event, observed=3.104, low=1.97, high=3.096, expected=2.5)
    assert sentence(near).startswith("the target 3.104 instead of 1.970 to 3.096,")


def test_reasons_can_be_read():
    y = 2.5 + 0.2 * noise(2500)
    y[AT : AT + 60] += 2.0
    X = np.stack([noise(2500, 3), noise(2500, 4)], axis=1)
    detector = ogp.Detector()
    events = at(detector.detect(y, X).events, AT, AT + 10)
    assert events[0].reason.startswith("the target 4.")
    assert "instead of 2." in events[0].reason
    assert events[0].reason.endswith("since row 2000; input 1 and input 2 as usual")
    gone = at(found(FAULTS["missing"](noise(2500)))[1], AT, AT + 40)[0]
    assert gone.reason == "the target is missing, since row 2000"
    stuck = at(found(FAULTS["stuck"](noise(2500)))[1], AT, AT + 40)[0]
    assert stuck.reason.startswith("the target is stuck at ")


def test_a_new_level_is_told_by_what_was_expected_before_the_model_followed():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((2500, 2))
    y = 3.0 + 0.2 * X[:, 0] + 0.1 * rng.standard_normal(2500)
    y[AT:] += 1.5
    detector = ogp.Detector(ogp.LinearRLS(noise=0.01, forgetting=0.95))
    detector.detect(y, X)
    (event,) = at(detector.events_, AT, AT + 3)
    assert event.kind == "level"
    assert event.high < 4.0 < event.observed
    assert "instead of" in event.reason


@pytest.mark.parametrize(
    ("kind", "words"), [("spike", "where 2.0 was expected"), ("level", "averages 1.9 where 2.0 was expected")]
)
def test_a_value_inside_its_bounds_is_not_said_to_be_outside(kind, words):
    base = found(FAULTS["stuck"](noise(2500)))[1][0]
    inside = replace(base, kind=kind, observed=1.9, expected=2.0, low=1.5, high=2.5)
    assert words in inside.reason
    assert "instead of" not in inside.reason


@pytest.mark.parametrize(("statistic", "words"), [("score 100 up", "more"), ("level 100 down", "less")])
def test_a_mean_that_the_model_followed_is_told_by_the_side_of_its_evidence(statistic, words):
    base = found(FAULTS["stuck"](noise(2500)))[1][0]
    for kind in ("level", "trend"):
        event = replace(base, kind=kind, observed=3.81, expected=3.802, low=3.5, high=4.104, statistic=statistic)
        assert f"the target averages slightly {words} than expected" in event.reason


def test_a_value_that_is_stuck_in_a_season_is_one_event():
    once = stuck = 0
    for seed in range(10):
        y = 5.0 * np.sin(2.0 * np.pi * np.arange(2400) / 48) + noise(2400, seed)
        y[2000:2040] = y[2000]
        events = {event.number: event for event in at(found(y)[1], 1990, 2100)}
        once += len(events) == 1
        stuck += any(event.kind == "stuck" for event in events.values())
    assert once >= 8
    assert stuck >= 8


@pytest.mark.parametrize("daily", [1, np.True_])
def test_daily_may_be_anything_that_is_true(daily):
    y = noise(300)
    alone, other = ogp.Detector(season=24, daily=True), ogp.Detector(season=24, daily=daily)
    np.testing.assert_array_equal(other.detect(y).score, alone.detect(y).score)
