"""Pictures: each takes axes, returns what it drew, and shows the numbers that it should."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import onlinegp as ogp
from models import MODELS, stream
from onlinegp.kernels import RBF

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

from onlinegp import plots  # noqa: E402


@pytest.fixture(scope="module")
def traces():
    X, y = stream(200)
    names = ("KLMS", "KRLST")
    return y, {name: ogp.run(copy.deepcopy(MODELS[name]), X, y) for name in names}


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.mark.parametrize("model", [ogp.KRLST(RBF(0.7), noise=0.05, budget=15), ogp.GPRegression(RBF(0.7), noise=0.05)])
def test_fit_draws_mean_and_interval(model):
    X, y = stream(60, features=1)
    model.fit(X, y)
    ax = plt.figure().subplots()
    drawn = plots.fit(model, X, y, grid=[0.0, 0.5, 1.0], ax=ax)
    mean, std = model.predict([[0.0], [0.5], [1.0]], return_std=True)
    assert np.array_equal(drawn.mean.get_ydata(), mean)
    top = drawn.interval.get_paths()[0].vertices[:, 1].max()
    assert top == pytest.approx((mean + 1.959964 * std).max(), rel=1e-6)
    assert drawn.mean.axes is ax
    assert np.array_equal(drawn.data.get_ydata(), y)
    assert (drawn.centers is None) == isinstance(model, ogp.GPRegression)
    assert ax.get_xlabel() == "input"


def test_fit_chooses_its_grid_and_needs_one_input():
    X, y = stream(60, features=1)
    drawn = plots.fit(ogp.KLMS().fit(X, y))
    assert drawn.data is None
    assert drawn.mean.get_xdata()[0] < X.min()
    with pytest.raises(ValueError, match="one input"):
        plots.fit(ogp.KLMS().fit(*stream(10)))


def test_stream(traces):
    y, named = traces
    drawn = plots.stream(y, named["KRLST"], rows=slice(50, 100))
    assert np.array_equal(drawn.data.get_ydata(), y[50:100])
    assert np.array_equal(drawn.mean.get_xdata(), np.arange(50, 100))
    with pytest.raises(ValueError, match="one value per row"):
        plots.stream(y[:10], named["KRLST"])


def test_learning_curves(traces):
    y, named = traces
    lines = plots.learning_curves(y, named, window=10)
    e2 = (y - named["KRLST"].mean) ** 2
    assert lines[1].get_ydata()[-1] == pytest.approx(10 * np.log10(e2[-10:].mean()))
    assert [line.get_label() for line in lines] == ["KLMS", "KRLST"]
    assert len(plots.learning_curves(y, named["KLMS"])) == 1


def test_calibration(traces):
    from onlinegp.metrics import coverage

    y, named = traces
    (line,) = plots.calibration(y, named["KRLST"])
    level = line.get_xdata()[30]
    assert line.get_ydata()[30] == coverage(y, named["KRLST"].mean, named["KRLST"].std, level)
    trace = ogp.run(ogp.Conformal(ogp.KRLST(noise=1e-3, budget=5)), np.zeros((len(y), 1)), y)
    (line,) = plots.calibration(y, trace)  # of the intervals, which are not those of the density
    lower, upper = trace.interval(level)
    assert line.get_ydata()[30] == np.mean((lower <= y) & (y <= upper))


def test_dictionary(traces):
    _, named = traces
    lines = plots.dictionary(named)
    assert np.array_equal(lines[0].get_ydata(), np.arange(1, 201))
    assert lines[1].get_ydata().max() == 25


@pytest.mark.parametrize("name", MODELS)
def test_covariance(name):
    model = copy.deepcopy(MODELS[name]).fit(*stream(40))
    image = plots.covariance(model)
    order = np.argsort(model.centers_[:, 0], kind="stable")
    assert np.array_equal(image.get_array(), model.posterior_cov_[order][:, order])
    assert image.norm.vmin == -image.norm.vmax


def test_more_curves_than_colors(traces):
    _, named = traces
    lines = plots.dictionary({str(i): named["KLMS"] for i in range(9)})
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 9


def test_importing_plots_imports_no_matplotlib():
    import subprocess
    import sys
    from pathlib import Path

    code = "import sys, onlinegp.plots; print('matplotlib' in sys.modules)"
    source = Path(ogp.__file__).parents[1]
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=source)
    assert answer.stdout.strip() == "False"


def test_a_model_and_its_predictions_draw_themselves():
    X, y = stream(60, features=1)
    auto = ogp.Auto(rows=40, members=("krlst", "linear")).fit(X, y)
    assert np.array_equal(auto.plot(X, y, grid=[0.0, 1.0]).mean.get_ydata(), auto.predict([[0.0], [1.0]]))
    assert auto.plot(X, y).centers is None
    with pytest.raises(ValueError, match="fit needs X and y, or grid"):
        auto.plot()
    with pytest.raises(ValueError, match=r"fitted models with one input.*run\(model, X, y\)\.plot"):
        ogp.KRLST().plot()
    predicted = auto.predict_distribution(X)
    drawn = predicted.plot(y)
    assert np.array_equal(drawn.mean.get_ydata(), predicted.mean)
    assert np.array_equal(drawn.data.get_ydata(), y)
    assert predicted.plot().data is None
    with pytest.raises(ValueError, match=r"in the shape \(60,\), got \(3,\)"):
        predicted.plot(y[:3])
    both = ogp.KRLST().fit(X, np.column_stack([y, y])).predict_distribution(X)
    Y = np.column_stack([y, y])
    with pytest.raises(
        ValueError, match=r"^trace must have one output, got 2\. Pass one, and its y: trace\.output\(0\), y\[:, 0\]"
    ):
        plots.learning_curves(Y, {"both": ogp.run(ogp.NLMS(), X, Y)})
    with pytest.raises(ValueError, match=r"output\(0\)"):
        both.plot()
    with pytest.raises(TypeError, match=r"^covariance draws models with centers, such as KRLST, got NLMS\.$"):
        plots.covariance(ogp.NLMS().fit(X, y))


def test_something_else_than_a_trace(traces):
    y, named = traces
    for wrong in (y, list(named.values()), {"KLMS": y}):
        for draw in (plots.learning_curves, plots.calibration):
            with pytest.raises(
                TypeError, match=r"traces must be what onlinegp\.run returned, or a dict of such traces"
            ):
                draw(y, wrong)
        with pytest.raises(TypeError, match=r"traces must be what onlinegp\.run returned"):
            plots.dictionary(wrong)
    with pytest.raises(
        TypeError, match=r"trace must be what onlinegp\.run returned, got ndarray\. The data y come first"
    ):
        plots.stream(named["KLMS"], y)


def test_a_forecast_without_data_has_no_data_in_its_legend():
    ahead = ogp.Forecaster().fit(np.sin(np.arange(60.0))).forecast(5)
    for y, names in ((None, ["95% interval", "mean"]), (np.ones(3), ["data", "95% interval", "mean"])):
        axes = ahead.plot(y).mean.axes
        assert [text.get_text() for text in axes.get_legend().get_texts()] == names
