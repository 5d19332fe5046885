"""Dates of common forms, the step between them, and the dates that follow, also where clocks and months are uneven."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from onlinegp.columns.time_steps import NotDates, Step, infer_step, parse_dates, round_times

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1949-01", "1949-02"], datetime(1949, 2, 1)),
        (["Jan-49", "Feb-49"], datetime(1949, 2, 1)),
        (["Jan-05", "Feb-05"], datetime(2005, 2, 1)),
        (["January 1990", "February 1990"], datetime(1990, 2, 1)),
        (["2020Q1", "2020Q2"], datetime(2020, 4, 1)),
        (["1959", "1960"], datetime(1960, 1, 1)),
        (["1959.0", "1960.0"], datetime(1960, 1, 1)),
        (["2024-01-30", "2024-01-31"], datetime(2024, 1, 31)),
        (["2024-01-31 22:00", "2024-01-31 23:30"], datetime(2024, 1, 31, 23, 30)),
        (["2024-01-31T23:00:00+01:00"], datetime(2024, 1, 31, 22, tzinfo=UTC)),
        (["2024-01-31T23:00:00Z"], datetime(2024, 1, 31, 23, tzinfo=UTC)),
        (["20240130", "20240131"], datetime(2024, 1, 31)),
        (["01/13/2024", "01/14/2024"], datetime(2024, 1, 14)),
        (["13/01/2024", "14/01/2024"], datetime(2024, 1, 14)),
        (["31.12.2023", "01.01.2024"], datetime(2024, 1, 1)),
        (["1/2/2024", "2/2/2024", "3/2/2024", "13/2/2024"], datetime(2024, 2, 13)),
        (["1706745600", "1706749200"], datetime(2024, 2, 1, 1, tzinfo=UTC)),
        (["1706745600000", "1706749200000"], datetime(2024, 2, 1, 1, tzinfo=UTC)),
    ],
)
def test_dates_of_many_forms(texts, expected):
    assert parse_dates(texts)[-1] == expected


@pytest.mark.parametrize("texts", [["north"], ["1.5", "2.5"], ["12", "13"], ["2024-01-31", "2024-13-45"], []])
def test_what_is_no_date_is_refused(texts):
    with pytest.raises(NotDates):
        parse_dates(texts)


def dates(first, step, n):
    return [first + k * step for k in range(n)]


@pytest.mark.parametrize(
    ("moments", "words"),
    [
        (dates(datetime(2024, 1, 1), timedelta(hours=1), 50), "each hour"),
        (dates(datetime(2024, 1, 1), timedelta(minutes=15), 50), "every 15 minutes"),
        (dates(datetime(2024, 1, 1), timedelta(days=1), 50), "each day"),
        (dates(datetime(2024, 1, 1), timedelta(days=7), 50), "each week"),
        ([datetime(2000 + k // 12, k % 12 + 1, 1) for k in range(40)], "each month"),
        ([datetime(2000 + k // 4, 3 * (k % 4) + 1, 1) for k in range(40)], "each quarter"),
        ([datetime(1900 + k, 1, 1) for k in range(40)], "each year"),
        ([d for d in dates(datetime(2024, 1, 1), timedelta(days=1), 60) if d.weekday() < 5], "each weekday"),
    ],
)
def test_the_step_is_found_also_with_gaps(moments, words):
    assert str(infer_step(moments)) == words
    kept = [m for i, m in enumerate(moments) if i % 7 != 3]
    step = infer_step(kept)
    assert str(step) == words
    assert np.array_equal(np.rint(step.places(kept)), [i for i in range(len(moments)) if i % 7 != 3])


def test_times_without_a_step_have_none():
    rng = np.random.default_rng(0)
    assert infer_step([datetime(2024, 1, 1) + timedelta(seconds=s) for s in np.sort(rng.uniform(0, 1e6, 100))]) is None
    assert infer_step([datetime(2024, 1, 1)] * 2) is None
    assert str(infer_step([datetime(2024, 1, 1), datetime(2024, 1, 2)])) == "each day"


def test_times_without_a_step_are_rounded():
    rng = np.random.default_rng(0)
    moments = [datetime(2024, 1, 1, tzinfo=BERLIN) + timedelta(seconds=s) for s in np.sort(rng.uniform(0, 5e5, 100))]
    step, rounded = round_times(moments)
    assert str(step) == "each hour"
    assert all(
        r.minute == r.second == 0 and abs(r - m) <= timedelta(minutes=30) for r, m in zip(rounded, moments, strict=True)
    )


def test_months_keep_their_day_as_far_as_they_have_it():
    ends = [datetime(2023, 10, 31), datetime(2023, 11, 30), datetime(2023, 12, 31), datetime(2024, 1, 31)]
    following = infer_step(ends).after(ends[-1], 4)
    assert [(d.month, d.day) for d in following] == [(2, 29), (3, 31), (4, 30), (5, 31)]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        # ends of months and quarters, of which neither the first nor the last date has 31 days
        ("2021-02-28 2021-03-31 2021-04-30", "2021-05-31 2021-06-30 2021-07-31"),
        ("2020-06-30 2020-09-30 2020-12-31 2021-03-31 2021-06-30 2021-09-30", "2021-12-31 2022-03-31 2022-06-30"),
        ("2020-02-29 2020-03-31 2020-05-31", "2020-06-30 2020-07-31"),
        ("2023-12-30 2024-01-30 2024-02-29 2024-03-30", "2024-04-30 2024-05-30"),  # the 30th
        ("2023-11-30 2023-12-29 2024-01-31 2024-02-29 2024-03-29", "2024-04-30 2024-05-31 2024-06-28 2024-07-31"),
        ("2024-01-31 2024-02-29 2024-03-28 2024-04-30 2024-05-31 2024-06-28", "2024-07-31 2024-08-30"),  # a holiday
        ("2024-04-01 2024-05-01 2024-06-03 2024-07-01", "2024-08-01 2024-09-02 2024-10-01 2024-11-01 2024-12-02"),
        ("2024-01-19 2024-02-16 2024-03-15 2024-04-19", "2024-05-19 2024-06-19"),  # third Fridays: about a month
        ("2024-01-29 2024-02-26 2024-03-25", "2024-04-22 2024-05-20"),  # four weeks
    ],
)
def test_days_of_months_are_those_of_all_dates(texts, expected):
    moments = parse_dates(texts.split())
    step = infer_step(moments)
    assert np.array_equal(step.places(moments), np.rint(step.places(moments)))
    following = step.after(moments[-1], len(expected.split()))
    assert [f"{d:%Y-%m-%d}" for d in following] == expected.split()


def test_hours_go_on_when_clocks_change():
    spring = Step("second", 3600.0).after(datetime(2024, 3, 31, 0, tzinfo=BERLIN), 4)
    assert [d.isoformat()[11:] for d in spring] == [
        "01:00:00+01:00",
        "03:00:00+02:00",
        "04:00:00+02:00",
        "05:00:00+02:00",
    ]
    autumn = Step("second", 3600.0).after(datetime(2024, 10, 27, 1, tzinfo=BERLIN), 3)
    assert [d.isoformat()[11:] for d in autumn] == ["02:00:00+02:00", "02:00:00+01:00", "03:00:00+01:00"]


def test_days_keep_their_hour_when_clocks_change():
    days = Step("second", 86_400.0).after(datetime(2024, 3, 30, 12, tzinfo=BERLIN), 2)
    assert [d.isoformat() for d in days] == ["2024-03-31T12:00:00+02:00", "2024-04-01T12:00:00+02:00"]


def test_hours_of_a_clock_are_a_grid_also_over_its_change():
    start = datetime(2024, 10, 26, 22, tzinfo=UTC)
    texts = [f"{(start + timedelta(hours=k)).astimezone(BERLIN):%Y-%m-%d %H:%M}" for k in range(30)]
    assert len(set(texts)) == 29  # two o'clock came twice
    moments = parse_dates(texts, BERLIN)
    step = infer_step(moments)
    assert str(step) == "each hour"
    assert np.array_equal(step.places(moments), np.arange(30))


def test_each_series_has_its_own_hours_when_clocks_are_put_back():
    start = datetime(2024, 10, 26, 22, tzinfo=UTC)
    texts = [f"{(start + timedelta(hours=k)).astimezone(BERLIN):%Y-%m-%d %H:%M}" for k in range(30)]
    one_by_one = parse_dates(texts * 2, BERLIN, ["a"] * 30 + ["b"] * 30)
    in_turns = parse_dates(np.repeat(texts, 2).tolist(), BERLIN, ["a", "b"] * 30)
    for moments in (one_by_one[:30], one_by_one[30:], in_turns[::2], in_turns[1::2]):
        assert np.array_equal(infer_step(moments).places(moments), np.arange(30))


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([f"01/{k % 12 + 1:02d}/{2020 + k // 12}" for k in range(30)], "each month"),  # the day first
        ([f"{k % 12 + 1}/1/{2020 + k // 12}" for k in range(12)], "each month"),  # the month first
        ([f"{k:02d}/01/2020" for k in (1, 2, 3, 5, 4, 6, 7, 8, 9, 10, 11, 12, 13)], "each day"),
    ],
)
def test_of_two_readings_of_dates_the_one_in_even_order_is_right(texts, words):
    assert str(infer_step(parse_dates(texts))) == words


def test_the_step_is_found_when_most_rows_are_missing():
    rows = np.flatnonzero(np.random.default_rng(0).random(800) < 0.3)
    assert str(infer_step([datetime(2024, 1, 1) + timedelta(hours=row) for row in rows.tolist()])) == "each hour"
    minutes = np.random.default_rng(0).integers(0, 60 * 800, 800)  # at irregular times
    assert infer_step([datetime(2024, 1, 1) + timedelta(seconds=s) for s in minutes.tolist()]) is None


def test_weekdays_skip_weekends():
    assert [d.day for d in Step("weekday", 1.0).after(datetime(2024, 1, 5), 3)] == [8, 9, 10]
