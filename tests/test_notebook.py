"""What a notebook shows: traces, models and the package, short and with what to do."""

from __future__ import annotations

import copy
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.comparing import Permutations
from onlinegp.kernels import RBF
from onlinegp.sparkline import HEIGHT, sparkline


def around_seventy(seed: int, n: int = 1500):
    """Return two features in units of their own, and a y of mean 70 whose noise has a hundredth of its variance."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 40, n), rng.uniform(20, 90, n)])
    f = np.sin(X[:, 0] / 8) + 0.5 * np.cos(X[:, 1] / 20)
    return X, 70 + 9 * f / f.std() + 0.9 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def traces():
    X, y = around_seventy(0)
    return ogp.run(ogp.KRLST().scaled(), X, y), ogp.run(ogp.KRLST(), X, y)


def test_a_trace_is_told_in_a_line(traces):
    good, bad = map(repr, traces)
    assert good.startswith("Trace(1500 rows, 1 not scored, RMSE ")
    assert len(good) < 120
    assert "\n" not in good
    assert "95% intervals cover 94.5%" in good
    assert "Use onlinegp.Tuned(model), which finds scales, kernel and noise, or model.scaled()" in bad
    one = ogp.run(ogp.KRLST(), np.zeros((20, 1)), np.zeros((20, 1)))
    assert one.summary_line().startswith("20 rows of 1 output, 1 not scored, ")
    assert len(bad) < 300
    two = ogp.run(ogp.KRLST(), np.zeros((3, 1)), np.zeros((3, 2)))
    assert "3 rows of 2 outputs" in repr(two)
    assert repr(two.first(0)) == "Trace(no rows)"


def test_the_summary_is_that_of_the_rows(traces):
    trace = traces[0]
    lower, upper = trace.interval(0.95)
    told = trace.summary()
    assert told["rmse"] == pytest.approx(np.sqrt(np.mean((trace.y - trace.mean)[1:] ** 2)))
    assert told["coverage"] == np.mean(((trace.y >= lower) & (trace.y <= upper))[1:])
    assert (told["rows"], told["size"]) == (1500, trace.size[-1])


def test_a_trace_in_html(traces):
    for trace in (*traces, ogp.run(ogp.KRLST(), np.zeros((3, 1)), np.zeros((3, 2))), traces[0].first(0)):
        page = trace._repr_html_()
        assert len(page) < 40_000
        tree = ElementTree.fromstring(f"<body>{page}</body>")
        assert "Trace" in "".join(tree.itertext())
        assert len(list(tree.iter("{http://www.w3.org/2000/svg}path"))) == (3 if len(trace) else 0)


def test_the_small_picture_averages_nothing():
    """A mean that follows fast waves covers them; an average would be flat. What is no number is left out."""
    y = np.sin(np.arange(5000) * 2.0)
    mean = ElementTree.fromstring(sparkline(y, y, y - 0.1, y + 0.1))[2].get("d")
    tops, bottoms = (np.array([[float(v) for v in p.split()] for p in line.split("L")]) for line in mean.split("M")[1:])
    assert len(tops) == len(bottoms) == 240
    assert np.all(bottoms[:, 1] - tops[:, 1] > 0.6 * HEIGHT)
    y[1000:2500] = np.nan
    broken = sparkline(y, y, y, y)
    assert "nan" not in broken
    assert ElementTree.fromstring(broken)[2].get("d").count("M") == 4  # two ends, in two parts
    nothing = np.full(10, np.nan)
    assert "nan" not in sparkline(nothing, nothing, nothing, nothing)
    assert sparkline(np.ones(1), np.ones(1), np.ones(1), np.ones(1)).count("M") == 4


def test_a_trace_draws_itself(traces):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    band = traces[0].plot(rows=slice(100, 150), ax=ax)
    assert band.mean.get_xdata().tolist() == list(range(100, 150))
    assert band.mean.get_ydata() == pytest.approx(traces[0].mean[100:150])


@pytest.mark.parametrize("seed", range(4))
def test_scaled_intervals_cover_a_target_around_seventy(seed):
    X, y = around_seventy(seed)
    assert ogp.run(ogp.KRLST(), X, y).summary()["coverage"] < 0.1
    assert ogp.run(ogp.KRLST().scaled(), X, y).summary()["coverage"] == pytest.approx(0.95, abs=0.02)


def test_scaled_is_the_model_around_a_model():
    model = ogp.QKLMS(step=0.3).scaled(rows=50)
    assert isinstance(model, ogp.Scaled)
    assert (model.rows, model.model.step) == (50, 0.3)


def test_models_have_scikit_learns_diagram():
    pytest.importorskip("sklearn")
    for model in (ogp.KRLST(budget=17).scaled(), ogp.Auto(), ogp.Mixture([ogp.KRLST(), ogp.LinearRLS()])):
        page = model._repr_html_()
        assert "sk-container" in page
        assert type(model).__name__ in page


def test_without_scikit_learn_the_text_is_shown(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.utils", None)
    assert ogp.KRLST()._repr_html_() is None


def test_the_river_adapter_shows_what_it_wraps():
    pytest.importorskip("river")
    from river import preprocessing

    from onlinegp.river import RiverRegressor

    model = RiverRegressor(ogp.KRLST(budget=7))
    assert str(model) == "RiverRegressor(KRLST(budget=7))"
    assert "KRLST(budget=7)" in repr(model)
    assert "KRLST(budget=7)" in repr(preprocessing.StandardScaler() | model)


def test_the_package_shows_what_is_for_users():
    assert {"plots", "datasets", "metrics", "KRLST", "run", "__version__"} <= set(dir(ogp))
    assert not {"checks", "locks", "engine", "batch", "trace", "import_module", "TYPE_CHECKING"} & set(dir(ogp))
    assert all(hasattr(ogp, name) for name in dir(ogp))
    with pytest.raises(AttributeError, match="no attribute 'plotz'"):
        _ = ogp.plotz
    with pytest.raises(AttributeError, match=r"no attribute 'krlst'. Use onlinegp.KRLST."):
        _ = ogp.krlst


def test_plots_and_datasets_need_no_import_of_their_own():
    code = (
        "import onlinegp as ogp, sys; ogp.plots.stream; ogp.datasets.channel_switch; print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def before_data(n: int = 60):
    """Return a stream of one input around 70, which no model that has seen nothing expects."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-3, 3, (n, 1))
    return X, 70 + np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)


def test_a_row_that_was_predicted_before_any_data_is_not_scored():
    X, y = before_data()
    model = ogp.Auto(rows=20)
    first, later = ogp.run(model, X[:40], y[:40]), ogp.run(model, X[40:], y[40:])
    assert first.scored.tolist() == [False] + [True] * 39  # nothing was known of row 0
    assert later.scored.all()  # the model goes on
    told = first.summary()
    assert (told["rows"], told["scored"]) == (40, 39)
    assert told["rmse"] == pytest.approx(np.sqrt(np.mean((first.y - first.mean)[1:] ** 2)), rel=1e-12)
    assert told["log_density"] == pytest.approx(first.log_density[1:].mean(), rel=1e-12)
    assert abs(first.y[0] - first.mean[0]) > 60  # it would have been all of the error
    assert told["rmse"] < 2.0
    assert "40 rows, 1 not scored, RMSE" in repr(first)
    assert "not scored" not in repr(later)
    assert len(first.to_frame()) == 40  # every prediction is kept
    assert repr(first.first(1)) == "Trace(1 rows, none scored: the model had not learned any data)"


def test_with_a_horizon_more_rows_are_predicted_before_any_data():
    X, y = before_data()
    for model in (ogp.Lagged(ogp.KRLST().scaled(), lags=2, horizon=3), ogp.Lagged(ogp.KRLST(), lags=0, horizon=3)):
        outer = ogp.Calibrated(model)
        assert ogp.run(outer, X, y).scored.tolist() == [False] * 3 + [True] * (len(y) - 3)
    assert ogp.run(ogp.Mixture([ogp.KRLST(), model]), X, y).scored.tolist() == [False] + [True] * (len(y) - 1)


@pytest.mark.parametrize("engine", ["python", "auto"])
def test_the_first_row_of_each_key_is_not_scored(engine, tmp_path):
    from onlinegp.fleet import step

    X, y = before_data(6)
    keys, model = ["a", "b", "a", "a", "c", "b"], ogp.KRLST(budget=5, engine=engine)
    first = [False, False, True, True, False, True]
    fleet = ogp.Fleet(model)
    assert fleet.run(keys, X, y).scored.tolist() == first
    assert fleet.run([*keys, "d"], np.vstack([X, X[:1]]), np.append(y, 1.0)).scored.tolist() == [True] * 6 + [False]
    with ogp.Fleet(model, store=tmp_path / "f.db", keep=2) as stored:
        stored.begin(1)
        stored.newer(keys, range(6))  # keys that have an order, and have learned nothing
        assert stored.run(keys, X, y).scored.tolist() == first
    with ogp.Fleet.load(tmp_path / "f.db") as stored:
        assert stored.run(keys, X, y).scored.all()
    assert (
        ogp.Fleet(ogp.Lagged(model, lags=1, horizon=2)).run(keys, X, y).scored.tolist()
        == [False] * 3 + [True] + [False] * 2
    )
    state, trace = step(model, None, X, y)
    assert trace.scored.tolist() == [False] + [True] * 5
    assert step(model, state, X, y)[1].scored.all()


def test_a_model_shows_what_it_has_learned():
    model = ogp.KRLST().fit([{"<a>": 1.0, "b": 2.0}, {"<a>": 2.0, "b": 2.0}], [1.0, 2.0])
    html = model._repr_html_()
    assert html.startswith("<div><strong>KRLST</strong>: 2 rows of &lt;a&gt;, b, size 2</div>")
    assert "rows of" not in (ogp.KRLST()._repr_html_() or "")


def body(page: str) -> str:
    return "".join(ElementTree.fromstring(f"<body>{page}</body>").itertext())


@pytest.mark.parametrize(
    "model", [ogp.KRLST(), ogp.Scaled(ogp.KRLST()), ogp.Auto(rows=40, members=("krlst", "linear"))]
)
def test_a_model_tells_what_it_has_learned(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.utils", None)  # without its diagram
    X, y = around_seventy(0, 60)
    trace = model.run([{"<a>": a, "b": b} for a, b in X.tolist()], y)
    told = body(model._repr_html_())
    assert told.startswith(f"{type(model).__name__}: 60 rows of <a>, b, size {model.size_}")
    assert f"RMSE {trace.summary()['rmse']:.4g}" in told
    assert f"95% intervals cover {trace.summary()['coverage']:.1%}" in told
    assert "Importance of inputs, by length scales: " in told
    again = copy.deepcopy(model)._repr_html_()
    assert "RMSE" not in again  # which the copy has not run
    assert f"size {model.size_}" in body(again)


def test_a_model_tells_of_the_end_of_its_last_run():
    X, y = around_seventy(0)
    model = ogp.KRLST().scaled()
    trace = model.run(X, y)
    told = trace.last(1000).summary_line()
    assert told.startswith("1000 rows, RMSE")
    assert told in model._repr_html_()
    assert told not in model.fit(X, y)._repr_html_()


def test_predictions_are_told_in_a_line_with_a_picture():
    X, y = around_seventy(0, 80)
    model = ogp.Auto(rows=40, members=("krlst", "linear")).fit(X, y)
    two = ogp.KRLST().fit(X, np.column_stack([y, -y]))
    ahead = ogp.Lagged(ogp.KRLST().scaled(), lags=2).fit(None, y).forecast(5)
    for predicted in (model.predict_distribution(X), two.predict_distribution(X), ahead, ahead.rows(slice(0, 1))):
        assert len(repr(predicted)) < 120
        assert "\n" not in repr(predicted)
        tree = ElementTree.fromstring(f"<body>{predicted._repr_html_()}</body>")
        assert len(list(tree.iter("{http://www.w3.org/2000/svg}path"))) == (2 if len(predicted) > 1 else 0)
    mean = model.predict(X)
    assert f"80 rows, mean {mean.min():.4g} to {mean.max():.4g}, std" in repr(model.predict_distribution(X))
    assert "80 rows of 2 outputs" in repr(two.predict_distribution(X))
    assert repr(two.predict_distribution(X).rows(slice(0, 0))) == "Gaussian(0 rows of 2 outputs)"


def test_a_forecast_shows_its_first_steps():
    y = np.random.default_rng(0).normal(size=60).cumsum()
    ahead = ogp.Forecaster().fit(y).forecast(12)
    told = body(ahead._repr_html_())
    assert "and 4 more: to_frame()" in told
    dated = replace(ahead, dates=np.array([f"2024-{month:02d}" for month in range(1, 13)]))
    assert "from 2024-01 to 2024-12" in repr(dated)
    assert "2024-08" in body(dated._repr_html_())


def test_a_comparison_and_a_fleet_are_tables():
    X, y = around_seventy(0, 200)
    found = ogp.compare({"a<b": ogp.KRLST().scaled(), "line": ogp.LinearRLS().scaled()}, Permutations(X, y), runs=2)
    told = body(found._repr_html_())
    assert "a<b" in told
    assert "behind the best" in told
    fleet = ogp.Fleet(ogp.KRLST(budget=5))
    assert body(fleet._repr_html_()) == "Fleet(KRLST(budget=5), 0 models)"
    fleet.learn([f"<k{i % 7}>" for i in range(21)], X[:21], y[:21])
    told = body(fleet._repr_html_())
    assert told.startswith("Fleet(KRLST(budget=5), 7 models)keyrowssize<k0>33")
    assert "k5" not in told


def test_importance_follows_the_length_scales():
    X, y = around_seventy(0, 300)
    kernel = RBF([1.0, 4.0])
    model = ogp.KRLST(kernel).scaled().fit(X, y)
    moved = 1.0 - np.exp(-0.5 / np.array([1.0, 16.0]))
    np.testing.assert_allclose(model.importance_, moved / moved.sum(), rtol=1e-12)
    raw = ogp.GPRegression(RBF([8.0, 40.0])).fit(X, y)
    moved = 1.0 - np.exp(-0.5 * X.var(axis=0) / np.array([8.0, 40.0]) ** 2)
    np.testing.assert_allclose(raw.importance_, moved / moved.sum(), rtol=1e-12)
    assert ogp.KRLST(RBF([8.0, 1e6])).fit(X, y).importance_[1] < 1e-6
    lagged = ogp.Lagged(ogp.KRLST(RBF([1.0, 1.0, 2.0])).scaled(), lags=1).fit(X, y)
    assert lagged.importance_.shape == (3,)
    mixed = ogp.Mixture([ogp.KRLST(kernel).scaled(), ogp.LinearRLS().scaled()]).fit(X, y)
    np.testing.assert_allclose(mixed.importance_, model.importance_)  # what has no kernel does not count


def test_the_input_that_matters_is_found():
    rng = np.random.default_rng(0)
    rows = [{"on": x, "off": z} for x, z in rng.uniform(0, 10, (300, 2)).tolist()]
    y = [np.sin(row["on"]) for row in rows]
    for model in (
        ogp.Auto(rows=100),
        ogp.Tuned(ogp.KRLST(budget=50), rows=100),
        ogp.Columns(ogp.Tuned(ogp.KRLST(), rows=100)),
    ):
        on, off = model.fit(rows, y).importance_
        assert on > 0.9
        assert on + off == pytest.approx(1.0)


def test_without_a_kernel_there_is_no_importance():
    X, y = around_seventy(0, 30)
    for model in (ogp.LinearRLS(), ogp.LocalGP(), ogp.Persistence()):
        with pytest.raises(AttributeError, match="has no importance_"):
            _ = model.fit(X, y).importance_
    with pytest.raises(AttributeError, match="has not learned anything yet"):
        _ = ogp.KRLST().importance_
    with pytest.raises(AttributeError, match="before fit"):
        _ = ogp.GPRegression().importance_
