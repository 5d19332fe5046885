"""A forecaster learns rows as consecutive, and warns if the dates of a pandas index say that rows are missing."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import onlinegp as ogp

pd = pytest.importorskip("pandas")


def series(**dates):
    index = pd.date_range("2024-01-01", **dates)
    return pd.Series(np.sin(np.arange(len(index), dtype=float)), index)


def test_missing_dates_are_counted_with_a_remedy():
    daily = series(periods=60).drop(pd.date_range("2024-02-01", periods=3))
    with pytest.warns(
        UserWarning, match=r"3 rows are missing .* a row each day\..* y\.asfreq\('D'\) for days"
    ) as caught:
        ogp.Forecaster().fit(daily)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "y",
    [series(periods=60)[::-1], pd.concat([series(periods=60)] * 2), pd.concat([series(periods=60)] * 2).sort_index()],
    ids=["newest first", "two series", "repeated"],
)
def test_dates_out_of_order_are_reported(y):
    with pytest.warns(UserWarning, match=r"out of order or repeat\..* y\.sort_index\(\)") as caught:
        ogp.Forecaster().fit(y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "y",
    [
        series(periods=60).drop(pd.date_range("2024-02-01", periods=3)).asfreq("D"),
        series(periods=60, freq="h", tz="Europe/Berlin"),
        series(periods=400, tz="Europe/Berlin"),
        pd.Series(np.arange(60.0), pd.date_range("2025-10-25", periods=60, freq="h", tz="Europe/Berlin")),
        series(periods=60, freq="B"),
        series(periods=40, freq="ME"),
        series(periods=1),
        series(periods=20).set_axis(pd.DatetimeIndex([None] * 20)),
        series(periods=20).reset_index(drop=True),
    ],
    ids=["filled", "hours", "summer time", "hour that repeats", "weekdays", "months", "one", "no dates", "numbers"],
)
def test_dates_without_gaps_give_no_warning(y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ogp.Forecaster().fit(y)
