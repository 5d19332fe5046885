"""`run` warns once if a model fails on the data: large errors, or intervals that are far too narrow."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.engine import available

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 2))
Y = X[:, 0] + rng.normal(size=600)


def test_a_noise_that_is_far_too_small_is_named_with_a_remedy():
    with pytest.warns(UserWarning, match=r"KRLST\(noise=0.001\) hold only \d+%.*Tuned\(KRLST\(\)\)") as caught:
        ogp.run(ogp.Scaled(ogp.KRLST(noise=1e-3, budget=20)), X, Y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert str(caught[0].message).endswith("set forgetting=0.999.")


def test_a_model_that_forgets_is_not_told_to_forget():
    with pytest.warns(UserWarning, match=r"hold only .* corrects the intervals\.$"):
        ogp.run(ogp.KRLST(noise=1e-3, budget=20, forgetting=0.99999), X, Y)


@pytest.mark.parametrize("name", ["KLMS", "QKLMS", "NORMA", "KAP", "KRLST", "RFFKLMS"])
def test_an_error_far_above_the_variance_of_y_is_named_with_a_remedy(name):
    """Inputs and targets in their own units: the kernel sees no neighbors, so the filters predict zero."""
    with pytest.warns(UserWarning, match=rf"error of {name} .* times the variance of y.*Tuned\({name}\(\)\)") as caught:
        ogp.run(getattr(ogp.kafbox, name)(), 300.0 + 50.0 * X, 1000.0 + 20.0 * Y)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_the_worst_output_counts():
    with pytest.warns(UserWarning, match="times the variance of y"):
        ogp.run(ogp.KLMS(), X, np.stack([Y, np.zeros(600), 50.0 + Y], axis=1))


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (ogp.KRLST(noise=1.0, budget=20), 600),
        (ogp.Calibrated(ogp.KRLST(noise=1e-3, budget=20)), 600),
        (ogp.KRLST(noise=1e-3, budget=20), 399),  # too few to judge
        (ogp.KLMS(), 600),  # has no noise
        (ogp.Scaled(ogp.KLMS()), 600),
        (ogp.Tuned(ogp.KLMS(), rows=100), 600),
    ],
)
def test_no_warning(model, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ogp.run(model, X[:rows], Y[:rows])


def test_intervals_of_late_targets_follow_their_errors():
    y = np.cumsum(Y)  # the relation to X drifts
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = ogp.run(ogp.Robust(ogp.Tuned(ogp.LinearRLS())), X, y, delay=48)
    assert 0.85 < np.mean(np.abs(trace.z[200:]) <= 1.96) < 0.99


def test_the_last_value_of_an_alternating_series_is_no_failure():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ogp.run(ogp.Persistence(), np.zeros((600, 1)), np.tile([1.0, -1.0], 300))


def test_a_model_after_the_data():
    with pytest.raises(TypeError, match=r"got ndarray\. The model comes first: run\(model, X, y\)\.$"):
        ogp.run(X, Y, ogp.KLMS())
    with pytest.raises(TypeError, match=r"got ndarray\. Try onlinegp\.KRLST\(\)\.$"):
        ogp.run(X, X, Y)


def test_a_pipeline_of_river_is_refused():
    river = pytest.importorskip("river.preprocessing")
    pipe = river.StandardScaler() | pytest.importorskip("onlinegp.river").RiverRegressor(ogp.KLMS())
    with pytest.raises(TypeError, match=r"a pipeline of scikit-learn whose last step is one, got Pipeline"):
        ogp.run(pipe, X, Y)


@pytest.mark.skipif(not available(), reason="the Python engine uses SciPy")
def test_the_check_of_normal_predictions_loads_no_scipy():
    """Loading it would take a hundred times as long as the run."""
    code = """
import sys, numpy as np, onlinegp as ogp
X = np.random.default_rng(0).normal(size=(600, 2))
ogp.run(ogp.KRLST(noise=1.0, budget=20), X, X[:, 0])
assert not any(name.startswith("scipy") for name in sys.modules), "scipy was loaded"
"""
    subprocess.run([sys.executable, "-c", code], check=True)
