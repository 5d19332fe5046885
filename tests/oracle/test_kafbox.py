"""KAFBOX's predictions on a fixed stream: see tests/fixtures/README.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.kernels import RBF

FIXTURE = Path(__file__).parents[1] / "fixtures" / "channel_switch.npz"
K = RBF(1.0)

# model, tolerance of the predictions
CASES = {
    "klms": (ogp.KLMS(K, step=0.5), 1e-12),
    "qklms": (ogp.QKLMS(K, step=0.5, radius=0.5), 1e-12),
    "knlms": (ogp.KNLMS(K, step=0.5, coherence=0.95, epsilon=1e-2), 1e-12),
    "norma": (ogp.kafbox.NORMA(K, step=0.5, leak=0.01, budget=500), 1e-12),
    "krls": (ogp.KRLS(K, threshold=0.01), 1e-8),
    # 821 centers without regularization: rounding alone moves the predictions by 1e-3, the decisions stay the same
    "krls_def": (ogp.KRLS(K, threshold=1e-4), 1e-2),
    "swkrls": (ogp.kafbox.SWKRLS(K, noise=0.01, budget=50), 1e-8),
    "fbkrls": (ogp.kafbox.FBKRLS(K, noise=0.01, budget=100), 1e-8),
    "krlst_l1": (ogp.KRLST(K, noise=0.01, budget=100, jitter=1e-6), 1e-8),
    "krlst": (ogp.KRLST(K, noise=0.01, budget=50, forgetting=0.999, jitter=1e-6), 1e-8),
    "krlst_l99": (ogp.KRLST(K, noise=0.01, budget=100, forgetting=0.99, jitter=1e-6), 1e-8),
}


@pytest.fixture(scope="module")
def golden():
    return np.load(FIXTURE)


@pytest.fixture(scope="module")
def traces(golden):
    return {name: ogp.run(model, golden["x"], golden["y"]) for name, (model, _) in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_predictions_and_sizes(name, golden, traces):
    trace = traces[name]
    assert np.array_equal(trace.size, golden[f"size__{name}"])
    np.testing.assert_allclose(trace.mean, golden[f"prediction__{name}"], rtol=0, atol=CASES[name][1])


def test_rounding_does_not_decide_the_error_of_krls(golden, traces):
    half = len(golden["y"]) // 2
    errors = [golden["y"] - mean for mean in (traces["krls_def"].mean, golden["prediction__krls_def"])]
    ours, kafbox = (10 * np.log10(np.mean(e[half:] ** 2)) for e in errors)
    assert abs(ours - kafbox) < 0.01


@pytest.mark.parametrize("name", ["krlst", "krlst_l1", "krlst_l99"])
def test_krlst_variances(name, golden, traces):
    """KAFBOX scales the variance by a signal power s02 that it learns and does not forget; ours is without it.

    s02 is the mean of e^2 / s over the past, as KAFBOX has it: both after forgetting, the first sample with weight
    one and the others with weight lambda.
    """
    model, tolerance = CASES[name]
    trace, factor = traces[name], float(model.forgetting)
    kxx, noise = 1.0 + model.jitter, model.noise
    s = trace.std**2
    s_after = noise + kxx - factor * (kxx - (s - noise))
    s_after[0] = s[0]
    e = golden["y"] - np.sqrt(factor) * trace.mean
    weight = np.where(np.arange(len(s)) == 0, 1.0, factor)
    s02 = np.cumsum(weight * e**2 / s_after) / np.cumsum(weight)
    np.testing.assert_allclose(s02[:-1] * s[1:], golden[f"variance__{name}"][1:], rtol=0, atol=tolerance)


def test_learned_power_forgets_where_kafbox_does_not(golden):
    """With forgetting 1 both are the mean of e^2 / s; ours starts from one sample of power one, and fades."""
    X, y = golden["x"], golden["y"]
    fixed = ogp.run(ogp.KRLST(K, noise=0.01, budget=50, forgetting=0.999, jitter=1e-6), X, y)
    learned = ogp.run(ogp.KRLST(K, noise=0.01, budget=50, forgetting=0.999, jitter=1e-6, power="learned"), X, y)
    np.testing.assert_allclose(learned.mean, fixed.mean, rtol=0, atol=1e-12)
    power, evidence = 1.0, 1.0
    kxx, s = 1 + 1e-6, fixed.std**2
    for t in range(200):
        assert learned.std[t] ** 2 == pytest.approx(power * s[t], rel=1e-10)
        after = 0.01 + kxx - 0.999 * (kxx - (s[t] - 0.01))
        e = y[t] - np.sqrt(0.999) * fixed.mean[t]
        evidence = 0.999 * evidence + 1.0
        power += (e**2 / after - power) / evidence
