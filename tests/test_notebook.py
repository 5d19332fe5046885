"""What a notebook shows: traces, models and the package, short and with what to do."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

import onlinegp as ogp
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
    assert "scaled()" in bad
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
    assert repr(first.first(1)) == "Trace(1 rows, none scored: the model had not seen any data)"


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
