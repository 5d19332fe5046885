"""Data frames: columns by name, errors that name them, and the caller's own kind out."""

from __future__ import annotations

import pickle
import sys
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("narwhals")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

import onlinegp as ogp  # noqa: E402
from models import stream  # noqa: E402
from onlinegp import frames  # noqa: E402
from onlinegp.kernels import RBF  # noqa: E402

MAKE = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
every_kind = pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
SCALES = RBF([0.5, 2.0])  # so that the order of the columns matters


def columns(n=80, seed=0):
    X, y = stream(n, seed=seed)
    return {"temp": X[:, 0], "load": X[:, 1]}, X, y


def model():
    return ogp.KRLST(SCALES, noise=0.05, budget=30)


@every_kind
def test_a_frame_gives_what_its_array_gives(make):
    data, X, y = columns()
    framed = model().fit(make(data), y)
    plain = model().fit(X, y)
    assert np.array_equal(framed.predict(make(data)), plain.predict(X))
    assert framed.feature_names_in_.tolist() == ["temp", "load"]
    assert framed.feature_names_in_.dtype == object
    assert not hasattr(plain, "feature_names_in_")
    assert framed.score(make(data), y) == plain.score(X, y)


@every_kind
def test_shuffled_columns_are_taken_by_name(make):
    data, X, y = columns()
    shuffled = make({"load": data["load"], "temp": data["temp"]})
    framed = model().fit(make(data), y)
    expected = framed.predict(X, return_std=True)
    assert np.array_equal(framed.predict(shuffled, return_std=True), expected)
    assert framed.score(shuffled, y) == framed.score(X, y)
    again = model().fit(make(data), y).partial_fit(shuffled, y)
    assert np.array_equal(again.predict(X), framed.partial_fit(X, y).predict(X))


@every_kind
def test_missing_and_unknown_columns_are_named(make):
    data, _, y = columns()
    framed = model().fit(make(data), y)
    before = framed.to_bytes()
    with pytest.raises(ValueError, match=r"the training of KRLST: X lacks 'load'\. Pass 'temp', 'load'"):
        framed.predict(make({"temp": data["temp"]}))
    with pytest.raises(ValueError, match="also has 'wind'"):
        framed.partial_fit(make({**data, "wind": data["temp"]}), y)
    with pytest.raises(ValueError, match="lacks 'load' and also has 'wind'"):
        framed.score(make({"temp": data["temp"], "wind": data["temp"]}), y)
    assert framed.to_bytes() == before


@every_kind
def test_text_dates_and_gaps_are_refused_by_name(make):
    data, _, y = columns(4)
    bad = {
        "text": (
            ["a", "b", "c", "d"],
            r"column 'text' of X must hold numbers.*Columns\(model\) around the whole model",
        ),
        "when": ([datetime(2024, 1, 1)] * 4, "column 'when' of X must hold numbers"),
        "gap": (
            [1.0, 2.0, None, 4.0],
            r"column 'gap' of X contains NaN or nothing at row 2 .*Columns\(model, missing='impute'\)",
        ),
        "far": ([1.0, np.inf, 3.0, 4.0], r"column 'far' of X contains infinity at row 1"),
    }
    for name, (values, message) in bad.items():
        fresh = model()
        with pytest.raises(ValueError, match=message):
            fresh.fit(make({**data, name: values}), y)
        assert not hasattr(fresh, "feature_names_in_")
    with pytest.raises(ValueError, match="y contains NaN or nothing at row 1"):
        model().fit(make(data), make({"y": [1.0, None, 3.0, 4.0]})["y"])
    with pytest.raises(ValueError, match=r"y must hold numbers, got .* Convert it first, .*pd\.to_numeric"):
        model().fit(make(data), make({"y": ["a", "b", "c", "d"]})["y"])


def test_two_columns_with_one_name_are_refused():
    twice = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["temp", "temp"])
    for call in (model().fit, lambda X, y: ogp.run(model(), X, y), ogp.Columns(model()).fit):
        with pytest.raises(ValueError, match=r"X has several columns with the name 'temp'\. Rename them"):
            call(twice, [1.0, 2.0])


@every_kind
def test_integers_booleans_and_series(make):
    X = {"count": [1, 2, 3, 4], "on": [True, False, True, True]}
    y = make({"y": [1, 2, 3, 4]})["y"]
    framed = ogp.OnlineGP().fit(make(X), y)
    plain = ogp.OnlineGP().fit([[1, 1], [2, 0], [3, 1], [4, 1]], [1, 2, 3, 4])
    assert np.array_equal(framed.alpha_, plain.alpha_)
    both = ogp.OnlineGP().fit(make(X), make({"a": [1, 2, 3, 4], "b": [4, 3, 2, 1]}))
    assert both.predict(make(X)).shape == (4, 2)


GAPS = [1.0, None, 3.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: GAPS,
        lambda: pd.Series(GAPS),
        lambda: pd.Series([1, None, 3], dtype="Int64"),
        lambda: pl.Series(GAPS),
        lambda: pa.array(GAPS),
        lambda: pa.chunked_array([GAPS]),
    ],
)
def test_a_series_of_any_kind_may_have_gaps(make):
    assert np.array_equal(frames.series(make()), [1.0, np.nan, 3.0], equal_nan=True)
    expected = ogp.Detector().detect([1.0, np.nan, 3.0])
    assert np.array_equal(ogp.Detector().detect(make()).mean, expected.mean)
    forecast = ogp.Forecaster().fit(make()).forecast(2)
    assert np.array_equal(forecast.quantiles, ogp.Forecaster().fit([1.0, np.nan, 3.0]).forecast(2).quantiles)


def test_a_series_of_several_outputs_may_be_rows_with_names():
    assert np.array_equal(frames.series([{"a": 1.0, "b": 2.0}, {"b": 4.0, "a": 3.0}]), [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(ValueError, match="Complex data not supported: y has dtype complex128"):
        frames.series([1.0 + 2.0j])
    for times in (pd.Series(pd.date_range("2026", periods=3)), pl.Series([datetime(2026, 1, 1)])):
        with pytest.raises(TypeError, match=r"y must hold numbers: got times of .* such as df\['y'\]"):
            frames.series(times)


@every_kind
def test_run_gives_the_callers_own_kind(make):
    data, X, y = columns()
    frame = make(data)
    trace = ogp.run(model(), frame, y)
    out = trace.to_frame()
    assert type(out) is type(frame)
    names = ["mean", "std", "lower", "upper", "log_density", "size"]
    assert list(getattr(out, "column_names", None) or out.columns) == names
    half = (np.asarray(out["upper"]) - np.asarray(out["lower"])) / 2
    np.testing.assert_allclose(half, 1.959964 * trace.std, rtol=1e-6)
    assert np.array_equal(np.asarray(out["mean"]), ogp.run(model(), X, y).mean)


def test_pandas_keeps_its_index():
    data, _, y = columns()
    index = pd.date_range("2024-01-01", periods=80, freq="h")
    out = ogp.run(model(), pd.DataFrame(data, index=index), pd.Series(y, index=index)).to_frame(level=0.5)
    assert out.index.equals(index)


def test_one_output_of_a_trace_keeps_the_index():
    rng = np.random.default_rng(0)
    index = pd.Index(list("abcdef"))
    trace = ogp.run(ogp.KLMS(), pd.DataFrame(rng.normal(size=(6, 2)), index=index), rng.normal(size=(6, 2)))
    assert list(trace.output(1).to_frame().index) == list(index)


def test_arrays_give_pandas_or_what_is_asked_for():
    _, X, y = columns()
    trace = ogp.run(ogp.KLMS(), X, np.column_stack([y, y]))
    assert isinstance(trace.to_frame(), pd.DataFrame)
    out = trace.to_frame(kind="polars")
    assert isinstance(out, pl.DataFrame)
    assert out.columns[:4] == ["mean_0", "mean_1", "std_0", "std_1"]
    with pytest.raises(ValueError, match="kind must be one of"):
        trace.to_frame(kind="excel")


def test_names_live_and_die_with_the_data():
    data, X, y = columns()
    started = model().partial_fit(pd.DataFrame(data), y)
    assert started.feature_names_in_.tolist() == ["temp", "load"]
    streamed = model()
    ogp.run(streamed, pl.DataFrame(data), y)
    assert streamed.feature_names_in_.tolist() == ["temp", "load"]
    assert pickle.loads(pickle.dumps(started)).feature_names_in_.tolist() == ["temp", "load"]
    started.partial_fit(X, y)
    assert hasattr(started, "feature_names_in_")
    assert not hasattr(started.fit(X, y), "feature_names_in_")


def test_odd_frames():
    data, X, y = columns()
    numbered = pd.DataFrame(X)
    assert not hasattr(model().fit(numbered, y), "feature_names_in_")
    with pytest.raises(TypeError, match="must all be strings"):
        model().fit(numbered.rename(columns={0: "temp"}), y)
    with pytest.raises(TypeError, match=r"X.collect\(\)"):
        model().fit(pl.LazyFrame(data), y)
    with pytest.raises(ValueError, match="several columns with the name"):
        model().fit(pd.DataFrame(X, columns=["temp", "temp"]), y)
    objects = pd.DataFrame(data).astype(object)
    assert np.array_equal(model().fit(objects, y).alpha_, model().fit(X, y).alpha_)
    with pytest.raises(ValueError, match="at least one sample"):
        model().fit(pd.DataFrame(data)[:0], y[:0])
    nullable = pd.DataFrame(data).convert_dtypes()
    assert np.array_equal(model().fit(nullable, pd.Series(y).convert_dtypes()).alpha_, model().fit(X, y).alpha_)


def test_without_narwhals_the_error_says_what_to_install(monkeypatch):
    import builtins

    data, _, y = columns(5)
    original = builtins.__import__

    def missing(name, *args, **kwargs):
        if name == "narwhals":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"onlinegp\[frames\]"):
        model().fit(pd.DataFrame(data), y)


def test_frames_are_not_imported_by_arrays():
    import subprocess
    import sys

    code = (
        "import sys, onlinegp; onlinegp.KLMS().fit([[0.0]], [1.0]).predict([[0.0]]); print('narwhals' in sys.modules)"
    )
    source = str(Path(ogp.__file__).parents[1])
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=source)
    assert answer.stdout.strip() == "False"


def test_names_survive_a_model_file():
    data, X, y = columns()
    again = ogp.from_bytes(model().fit(pl.DataFrame(data), y).to_bytes())
    assert again.feature_names_in_.tolist() == ["temp", "load"]
    shuffled = pd.DataFrame({"load": data["load"], "temp": data["temp"]})
    assert np.array_equal(again.predict(shuffled), again.predict(X))


def test_batch_regression_takes_columns_by_name_too():
    data, X, y = columns()
    batch = ogp.GPRegression().fit(pd.DataFrame(data), y)
    shuffled = pl.DataFrame({"load": data["load"], "temp": data["temp"]})
    assert np.array_equal(batch.predict(shuffled), batch.predict(X))
    with pytest.raises(ValueError, match="temp"):
        batch.predict(shuffled.select("load"))


def test_a_kind_of_frame_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    trace = ogp.run(ogp.NLMS(), np.eye(3), np.ones(3))
    with pytest.raises(
        ImportError, match=r"^a frame of pandas requires pandas, which is not installed.*polars, pyarrow"
    ):
        trace.to_frame()
