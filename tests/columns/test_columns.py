"""Columns of data frames as numbers: against plain loops, on every kind of frame, and never from the future."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.columns import Encoding
from onlinegp.columns.dates import are_dates, likely_format, moment, phases, seconds
from onlinegp.columns.encoders import Calendar, OneHot, Ordinal
from onlinegp.columns.plan import Plan, Rules, learn

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")

DATA = {
    "x": [1.0, None, 3.0, 5.0],
    "city": ["Rome", "Bern", "Rome", None],
    "when": [datetime(2024, 1, 31, 6), datetime(2024, 2, 1, 12), None, datetime(2024, 12, 31, 18)],
}
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def as_lists(frame):
    if isinstance(frame, pa.Table):
        return frame.to_pydict()
    return {name: list(frame[name]) for name in frame.columns}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_frame(kind):
    frame = KINDS[kind](DATA)
    columns = Encoding(missing="impute").fit(frame)
    out = columns.transform(frame)
    assert type(out) is type(frame)
    got = as_lists(out)
    assert list(got) == columns.names_
    assert got["x"] == [1.0, 3.0, 3.0, 5.0]
    assert got["x=missing"] == [0.0, 1.0, 0.0, 0.0]
    assert got["city=Rome"] == [1.0, 0.0, 1.0, 2 / 3]
    assert got["city=missing"] == [0.0, 0.0, 0.0, 1.0]
    assert got["when.days"][:2] == [0.0, 1.25]
    assert got["when.hour_sin"][0] == pytest.approx(1.0)
    assert got["when=missing"] == [0.0, 0.0, 1.0, 0.0]


def test_the_index_of_pandas_stays_and_a_model_takes_the_result():
    rng = np.random.default_rng(0)
    index = pd.date_range("2024-01-01", periods=80, freq="h")
    frame = pd.DataFrame({"x": rng.normal(size=80), "state": rng.choice(["on", "off"], 80)}, index=index)
    y = 2.0 * (frame["state"] == "on")
    X = Encoding().fit(frame[:40]).transform(frame)
    assert X.index.equals(index)
    trace = ogp.run(ogp.KRLST(noise=1e-4), X, y)
    assert np.abs(trace.mean - y)[40:].mean() < 0.2


def test_calendar_is_what_a_loop_over_datetime_says():
    rng = np.random.default_rng(1)
    start = datetime(1931, 5, 6, 7, 8, 9, 123456)
    moments = [start + timedelta(seconds=float(s)) for s in rng.uniform(0, 4e9, 300)]
    X = Calendar(seconds(moments[:1])[0], True).encode(moments)
    for row, m in zip(X, moments, strict=True):
        hour = m.hour + m.minute / 60 + (m.second + m.microsecond / 1e6) / 3600
        slow = [hour / 24, m.weekday() / 7, (m.month - 1 + (m.day - 1) / 31) / 12]
        circles = [wave(2 * math.pi * p) for p in slow for wave in (math.sin, math.cos)]
        np.testing.assert_allclose(row[:6], circles, atol=1e-9)
        assert row[6] == pytest.approx((m - moments[0]).total_seconds() / 86400, abs=1e-9)


def test_zones_count_for_time_and_the_clock_on_the_wall_for_hours():
    summer = timezone(timedelta(hours=2))
    pair = [datetime(2024, 6, 1, 12, tzinfo=summer), datetime(2024, 6, 1, 10, tzinfo=UTC)]
    assert np.ptp(seconds(pair)) == 0.0
    assert phases(pair)["hour"].tolist() == [12.0, 10.0]


def test_dates_without_times_have_no_hour():
    plan = learn(["d"], ["date"], np.array([[moment("2024-01-01")], [moment("2024-01-02")]], dtype=object), Rules())
    assert plan.names == ["d.weekday_sin", "d.weekday_cos", "d.month_sin", "d.month_cos", "d.days"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-01-31", datetime(2024, 1, 31)),
        (" 2024-01-31 23:59 ", datetime(2024, 1, 31, 23, 59)),
        ("2024-01-31T23:59:00Z", datetime(2024, 1, 31, 23, 59, tzinfo=UTC)),
        ("2024-01-31T23:59:00.5+00:00", datetime(2024, 1, 31, 23, 59, 0, 500000, tzinfo=UTC)),
        (date(2024, 1, 31), datetime(2024, 1, 31)),
    ],
)
def test_iso_dates(text, value):
    assert moment(text) == value


@pytest.mark.parametrize("text", ["31.12.2024", "2024-13-01", "noon", "", 5, None, "\u0662024-01-01", "2024-01-31x"])
def test_no_dates(text):
    with pytest.raises(ValueError, match=r".*"):
        moment(text)


def test_formats_are_found_and_checked():
    assert likely_format(["31.12.2024", "01.02.2024"]) == "%d.%m.%Y"
    assert likely_format(["12/31/2024"]) == "%m/%d/%Y"
    assert likely_format(["31.12.2024", "soon"]) is None
    assert likely_format([]) is None
    assert are_dates(["31.12.2024"], "%d.%m.%Y")
    for wrong in ("%H:%M", "dd.mm.yyyy", "%", "%Y"):
        with pytest.raises(ValueError, match="date_format must name day, month and year"):
            Encoding(date_format=wrong)


def test_the_most_frequent_categories_stay_and_the_rest_is_other():
    cells = np.array([[c] for c in "ccccbbbaad"], dtype=object)
    predicted: list[str] = []
    plan = learn(["c"], ["category"], cells, Rules("onehot", limit=2), predicted.append)
    assert plan.columns[0].part == OneHot(("b", "c"))
    assert plan(np.array([["b"], ["c"], ["a"], ["new"]], dtype=object)).tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]]
    assert "4 categories in the first rows, such as 'b': the 2 most frequent are kept" in predicted[0]
    plan = learn(["c"], ["category"], cells, Rules("ordinal", limit=3))
    assert plan.columns[0].part == Ordinal(("a", "b", "c"))
    assert plan(np.array([["c"], ["a"], ["new"]], dtype=object)).tolist() == [[2], [0], [3]]


def test_rows_after_fit_change_nothing():
    first = pd.DataFrame({"x": [1.0, None], "c": ["a", "b"]})
    later = pd.DataFrame({"x": [None, 100.0], "c": ["new", "a"]})
    columns = Encoding(missing="impute").fit(first)
    assert columns.transform(later).values.tolist() == [[1.0, 1.0, 0.0, 0.0], [100.0, 0.0, 1.0, 0.0]]
    whole = columns.transform(pd.concat([first, later]))
    assert whole.values.tolist()[:2] == columns.transform(first).values.tolist()


def test_a_flag_is_there_only_if_something_was_missing():
    columns = Encoding(missing="impute").fit(pd.DataFrame({"x": [1.0, 3.0]}))
    assert columns.names_ == ["x"]
    assert columns.transform(pd.DataFrame({"x": [None, 1.0]}, dtype=float))["x"].tolist() == [2.0, 1.0]


def test_what_is_ignored_is_left_out():
    frame = pd.DataFrame(DATA)[["city", "when", "x"]].fillna({"x": 0.0})
    assert Encoding(categories="ignore", dates="ignore").fit(frame).names_ == ["x"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"categories": "hash"}, r"categories must be one of onehot, ordinal, ignore, got 'hash'"),
        ({"dates": None}, "dates must be one of"),
        ({"missing": "mean"}, "missing must be one of"),
        ({"limit": 0}, "limit must be at least 1"),
    ],
)
def test_wrong_parameters(options, error):
    with pytest.raises(ValueError, match=error):
        Encoding(**options)


@pytest.mark.parametrize(
    ("later", "error"),
    [
        ({"x": [None], "d": ["2024-01-01"]}, r"column 'x' has no value at row 0.*missing='impute'"),
        ({"x": [1.0], "d": ["31.12.2024"]}, r"column 'd', row 0.*'31.12.2024' is not a date.*date_format"),
        ({"x": [1.0], "d": [5]}, r"column 'd', row 0.*5 is not a date"),
        ({"x": ["one"], "d": ["2024-01-01"]}, r"column 'x', row 0.*'one' is not a number"),
        ({"x": ["1,234"], "d": ["2024-01-01"]}, r"'1,234' is not a number. Write numbers with digits and a decimal"),
        ({"x": [math.inf], "d": ["2024-01-01"]}, r"column 'x', row 0.*inf must be below 1e\+150. Replace it by None"),
        ({"d": ["2024-01-01"]}, r"lacks the column 'x'"),
    ],
)
def test_wrong_rows_are_named(later, error):
    columns = Encoding().fit(pd.DataFrame({"x": [1.0, 2.0], "d": ["2024-01-01", "2024-01-02"]}))
    with pytest.raises(ValueError, match=error):
        columns.transform(pd.DataFrame(later))


def test_what_cannot_be_learned_is_named():
    with pytest.raises(ValueError, match="two columns would have the name 'c=a'"):
        Encoding().fit(pd.DataFrame({"c": ["a"], "c=a": [1.0]}))
    with pytest.raises(ValueError, match="'x' has no value in the first 2 rows"):
        Encoding(missing="impute").fit(pd.DataFrame({"x": [math.nan, math.nan]}))
    with pytest.raises(ValueError, match="Call fit"):
        Encoding().transform(pd.DataFrame({"x": [1.0]}))
    with pytest.raises(TypeError, match="must be a data frame"):
        Encoding().fit(np.ones((2, 2)))


@pytest.mark.parametrize(
    ("column", "warning"),
    [
        ([1.0, 2.0, "unknown"], r"'c' is not used, because .* it has 'unknown'. Convert it, pass na_values="),
        (pd.to_timedelta([1, 2, 3], "D"), r"'c' is not used, because .* Convert it"),
        (["31.12.2024", "30.12.2024", "24.12.2024"], r"'c' has dates of another form: use date_format='%d.%m.%Y'"),
        (["1,234", "1,235", "1,236"], r"'c' has 3 categories in the first rows, such as '1,234': the 2 most .* limit="),
    ],
)
def test_columns_that_are_not_what_they_seem_are_named(column, warning):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "c": column})
    with pytest.warns(UserWarning, match=warning):
        Encoding(limit=2).fit(frame)


@pytest.mark.parametrize(
    ("column", "names"),
    [
        ([1.0, 2.0, "?"], ["c", "c=missing"]),
        ([datetime(2026, 1, 1), "?", "?"], ["c.weekday_sin", "c.weekday_cos", "c.month_sin", "c.month_cos", "c.days"]),
    ],
)
def test_a_text_for_missing_values_does_not_change_the_kind_of_a_column(column, names):
    frame = pd.DataFrame({"c": pd.Series(column, dtype=object)})
    assert Encoding(missing="impute", na_values=["?"]).fit(frame).names_[: len(names)] == names


def test_a_table_without_any_column_to_encode_is_refused():
    with pytest.warns(UserWarning, match="'t' is not used"), pytest.raises(ValueError, match=r"no column .* 't'"):
        Encoding().fit(pd.DataFrame({"t": pd.to_timedelta([1, 2], "D")}))


@pytest.mark.parametrize("values", [pd.array([1, None, 3], dtype="Int64"), [Decimal(1), None, Decimal(3)]])
def test_missing_numbers_of_every_type_are_imputed(values):
    frame = pd.DataFrame({"x": values})
    assert Encoding(missing="impute").fit_transform(frame).values.tolist() == [[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]


def plan() -> Plan:
    cells = np.array([[1.0, "a", moment("2024-01-01T05:00")], [math.nan, "b", None]], dtype=object)
    return learn("xcd", ["number", "category", "date"], cells, Rules("onehot", 5, "calendar", None, "impute"))


def test_a_plan_survives_a_file():
    assert Plan.load(json.loads(json.dumps(plan().dump()))) == plan()


ODD = [None, True, -1, 2**5000, math.nan, math.inf, "x", [], ["a", "a"], [None], {}, [1e200]]


def test_no_forged_plan_is_believed():
    """Every value replaced by odd ones, or left out: refused, or a plan that gives as many finite numbers as names."""
    refused = 0
    cells = np.array([[1.0, "a", moment("2024-01-01")], [math.nan, None, None]], dtype=object)
    for i in range(3):
        for key in plan().dump()[i]:
            for value in [*ODD, ...]:
                contents = plan().dump()
                if value is ...:
                    del contents[i][key]
                else:
                    contents[i][key] = value
                try:
                    forged = Plan.load(contents)
                except ValueError:
                    refused += 1
                    continue
                some = cells[: 1 + all(column.means for column in forged.columns)]
                assert forged(some).shape == (len(some), len(forged.names))
                assert np.isfinite(forged(some)).all()
    assert refused > 100
    for contents in (None, {}, [1], [{}], "x"):
        with pytest.raises(ValueError, match="plan"):
            Plan.load(contents)


def test_the_example_of_the_class_runs():
    import doctest

    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder(recurse=False).find(ogp.Columns, "Columns"):
        assert runner.run(test).failed == 0
    assert runner.tries > 3
