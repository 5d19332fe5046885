"""The simulated data against the facts of their systems."""

import json
from pathlib import Path

import numpy as np
import pytest

from onlinegp.datasets import channel_switch, embed, lorenz, mackey_glass, robot_arm
from onlinegp.datasets.arm import hand

TESTS = Path(__file__).parents[1]

SIMULATED = {
    "robot_arm": lambda seed: robot_arm(50, seed=seed),
    "channel": lambda seed: channel_switch(50, switch=20, seed=seed),
    "channel, colored": lambda seed: channel_switch(50, switch=20, color=0.9, seed=seed),
    "channel, output": lambda seed: channel_switch(50, switch=20, regressor="output", seed=seed),
}


@pytest.mark.parametrize("make", SIMULATED.values(), ids=SIMULATED.keys())
def test_the_seed_decides_every_byte(make):
    X, y = make(3)
    again_X, again_y = make(np.random.default_rng(3))
    assert X.tobytes() == again_X.tobytes()
    assert y.tobytes() == again_y.tobytes()
    other_X, other_y = make(4)
    assert not np.array_equal(X, other_X)
    assert not np.array_equal(y, other_y)


# ---------------------------------------------------------------- embed


def test_embed_by_hand():
    X, y = embed([0, 1, 2, 3, 4, 5], 2, horizon=3)
    np.testing.assert_array_equal(X, [[1, 0], [2, 1]])
    np.testing.assert_array_equal(y, [4, 5])
    assert X.dtype == np.float64
    assert X.flags.c_contiguous


@pytest.mark.parametrize(("lags", "horizon"), [(1, 1), (3, 1), (2, 4), (7, 5)])
def test_embed_pairs_the_past_with_the_future(lags, horizon):
    s = np.random.default_rng(0).standard_normal(12)
    X, y = embed(s, lags, horizon=horizon)
    assert len(X) == len(y) == 12 - lags - horizon + 1
    for i, (row, target) in enumerate(zip(X, y, strict=True)):
        t = i + lags - 1
        np.testing.assert_array_equal(row, [s[t - k] for k in range(lags)])
        assert target == s[t + horizon]


@pytest.mark.parametrize("horizon", [None, 0, 2, -1, -3, -6])
def test_embed_pairs_a_signal_with_a_target(horizon):
    s, d = np.random.default_rng(0).standard_normal((2, 12))
    X, y = embed(s, 3, horizon=horizon, target=d)
    h = horizon or 0
    times = [t for t in range(2, 12) if 0 <= t + h < 12]
    np.testing.assert_array_equal(X, [[s[t], s[t - 1], s[t - 2]] for t in times])
    np.testing.assert_array_equal(y, [d[t + h] for t in times])
    assert X.flags.c_contiguous
    assert not np.shares_memory(y, d)


def test_embed_pairs_a_signal_with_several_targets():
    s, both = np.arange(6.0), np.arange(12.0).reshape(6, 2)
    X, Y = embed(s, 2, target=both)
    for j in (0, 1):
        X_j, y_j = embed(s, 2, target=both[:, j])
        assert np.array_equal(X, X_j)
        assert np.array_equal(Y[:, j], y_j)
    with pytest.raises(ValueError, match=r"Pass one column, series\[:, 0\], or embed each column"):
        embed(both, 2)
    with pytest.raises(ValueError, match="target contains NaN"):
        embed(s, 2, target=np.where(both == 3.0, np.nan, both))


def test_embed_refuses_what_it_cannot_embed():
    with pytest.raises(ValueError, match=r"at least 6 samples with lags=5 and horizon=1, got 5"):
        embed(np.arange(5.0), 5)
    with pytest.raises(ValueError, match=r"at least 6 samples with lags=2 and horizon=-5, got 5"):
        embed(np.arange(5.0), 2, horizon=-5, target=np.arange(5.0))
    with pytest.raises(ValueError, match=r"same number of samples, got 5 and 4\. Cut"):
        embed(np.arange(5.0), 2, target=np.arange(4.0))
    with pytest.raises(ValueError, match="target must have two dimensions"):
        embed(np.arange(5.0), 2, target=np.ones((5, 2, 1)))
    with pytest.raises(ValueError, match="horizon must be at least 1, got 0"):
        embed(np.arange(5.0), 2, horizon=0)
    with pytest.raises(TypeError, match="horizon must be a whole number"):
        embed(np.arange(5.0), 2, horizon=-1.5, target=np.arange(5.0))
    with pytest.raises(ValueError, match="one dimension"):
        embed(np.ones((5, 2)), 2)
    with pytest.raises(ValueError, match="series contains NaN"):
        embed([1.0, np.nan, 2.0], 1)
    with pytest.raises(ValueError, match="lags must be at least 1"):
        embed(np.arange(5.0), 0)


# ---------------------------------------------------------------- robot_arm


def test_a_stretched_arm_is_where_geometry_puts_it():
    # links=1: the hand lies at (1, 0, 1), turned about z
    np.testing.assert_allclose(hand([[0.0], [np.pi / 2]]), [[1, 0, 1], [0, 1, 1]], atol=1e-15)
    # links=2: the first link's twist of 90 degrees sends the second's z to -y
    np.testing.assert_allclose(hand([[0.0, 0.0]]), [[1, -0.5, 0.5]], atol=1e-15)


def test_the_hand_is_the_product_of_the_links_matrices():
    def matrix(theta, a, d, twist):
        c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(twist), np.sin(twist)
        return np.array([[c, -s * ca, s * sa, a * c], [s, c * ca, -c * sa, a * s], [0, sa, ca, d], [0, 0, 0, 1]])

    theta = np.random.default_rng(0).uniform(-2, 2, 8)
    T = np.eye(4)
    for i, angle in enumerate(theta):
        T = T @ matrix(angle, 1 / 8, 1 / 8, np.pi / 2 * (-1) ** i)
    np.testing.assert_allclose(hand(theta[None])[0], T[:3, 3], atol=1e-14)


@pytest.mark.parametrize("links", [1, 3, 8, 12])
def test_robot_arm_is_scaled(links):
    X, y = robot_arm(4000, links=links, seed=1)
    assert X.shape == (4000, links)
    assert y.shape == (4000,)
    np.testing.assert_allclose(X.std(axis=0), 1.0, atol=0.05)
    assert abs(y.mean()) < 0.06
    assert abs(y.std() - 1.0) < 0.05


def test_every_seed_samples_the_same_arm():
    X, y = robot_arm(300, noise=0.0, seed=5)
    longer_X, longer_y = robot_arm(400, noise=0.0, seed=5)
    np.testing.assert_array_equal(longer_X[:300], X)
    np.testing.assert_array_equal(longer_y[:300], y)
    noisy = robot_arm(300, noise=0.04, seed=5)[1]
    assert np.std(noisy - y) == pytest.approx(0.2, rel=0.15)


def nmse_db_of_exact_gp(X, y, train):
    """Test error of a Gaussian process with the isotropic hyperparameters of maximum likelihood (seed 1)."""
    from scipy.linalg import cho_factor, cho_solve
    from scipy.spatial.distance import cdist

    length_scale, signal, noise = 1.79, 1.38, 0.0092
    A, B = X[:train] / length_scale, X[train:] / length_scale
    K = signal * np.exp(-0.5 * cdist(A, A, "sqeuclidean"))
    K[np.diag_indices(train)] += noise
    weights = cho_solve(cho_factor(K, lower=True, overwrite_a=True), y[:train])
    error = y[train:] - signal * np.exp(-0.5 * cdist(B, A, "sqeuclidean")) @ weights
    return 10 * np.log10(np.mean(error**2) / y[train:].var())


def test_robot_arm_is_as_hard_as_kin40k_at_1000_points():
    # an exact GP on 1,000 points of KIN40K: -9.9 and -10.1 dB (two permutations)
    assert -11.0 < nmse_db_of_exact_gp(*robot_arm(3000, seed=1), train=1000) < -9.5


@pytest.mark.slow
def test_robot_arm_is_as_hard_as_kin40k_at_5000_points():
    # an exact GP on 5,000 points of KIN40K: -15.7 dB with a length scale a dimension, -14.6 dB with one
    assert -16.0 < nmse_db_of_exact_gp(*robot_arm(10_000, seed=1), train=5000) < -14.5


# ---------------------------------------------------------------- channel_switch


def linear_fit(X, z):
    """Coefficients and largest residual of z = X h."""
    h = np.linalg.lstsq(X, z, rcond=None)[0]
    return h, np.abs(z - X @ h).max()


@pytest.mark.parametrize("color", [0.0, 0.9])
def test_the_channel_is_linear_behind_the_nonlinearity_and_switches_once(color):
    X, y = channel_switch(600, switch=200, noise=0.0, color=color, seed=2)
    z = np.arctanh(y)
    before, residual_before = linear_fit(X[:200], z[:200])
    after, residual_after = linear_fit(X[200:], z[200:])
    assert max(residual_before, residual_after) < 1e-6
    assert np.linalg.norm(before - after) > 0.1
    assert linear_fit(X[:201], z[:201])[1] > 1e-3


def test_the_channel_input_is_a_sliding_window_newest_first():
    X, y = channel_switch(100, switch=50, taps=4, lags=7)
    assert X.shape == (100, 7)
    assert y.shape == (100,)
    np.testing.assert_array_equal(X[1:, 1:], X[:-1, :-1])


@pytest.mark.parametrize("regressor", ["input", "output"])
def test_both_tasks_have_the_same_targets(regressor):
    X, y = channel_switch(100, switch=50, lags=6, regressor=regressor)
    np.testing.assert_array_equal(y, channel_switch(100, switch=50, lags=6)[1])
    if regressor == "output":
        np.testing.assert_array_equal(X[1:, 0], y[:-1])


def test_without_a_switch_one_channel_serves_throughout():
    X, y = channel_switch(300, switch=None, noise=0.0)
    assert linear_fit(X, np.arctanh(y))[1] < 1e-6


@pytest.mark.parametrize("color", [0.0, 0.8, -0.5])
def test_input_color_noise_and_scale_are_as_asked(color):
    def identity(v):
        return v

    X, clean = channel_switch(40_000, color=color, noise=0.0, nonlinearity=identity, seed=1)
    noisy = channel_switch(40_000, color=color, noise=0.09, nonlinearity=identity, seed=1)[1]
    assert X[:, 0].var() == pytest.approx(1.0, abs=0.06)
    assert np.corrcoef(X[:, 0], X[:, 1])[0, 1] == pytest.approx(color, abs=0.02)
    assert clean.var() == pytest.approx(1.0, abs=0.08)
    assert np.var(noisy - clean) == pytest.approx(0.09, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"switch": 2000}, "switch must be at most n = 1500, got 2000. Use switch=None"),
        ({"switch": 0}, "switch must be at least 1"),
        ({"noise": -0.1}, "noise must be zero or more"),
        ({"color": 1.0}, "color must lie between -1 and 1, got 1.0"),
        ({"regressor": "both"}, "regressor must be one of 'input', 'output', got 'both'"),
        ({"taps": 0}, "taps must be at least 1"),
    ],
)
def test_channel_switch_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        channel_switch(**arguments)


# ---------------------------------------------------------------- chaos


def test_mackey_glass_is_integrated_to_order_four():
    exact = mackey_glass(20, step=0.0625, discard=0)
    errors = [np.abs(mackey_glass(20, step=step, discard=0) - exact).max() for step in (1.0, 0.5)]
    assert errors[0] < 1e-4
    assert 10 < errors[0] / errors[1] < 24  # 2^4, give or take


def test_mackey_glass_starts_as_the_equation_says():
    # up to t = tau the delayed value is `start`: x(t) = q + (start - q) exp(-decay t), q = inflow / decay
    x = mackey_glass(6, start=0.5, discard=0)
    q = 0.2 * 0.5 / (1 + 0.5**10) / 0.1
    np.testing.assert_allclose(x, q + (0.5 - q) * np.exp(-0.1 * 6.0 * np.arange(6)), rtol=1e-9)


def test_mackey_glass_rests_at_its_fixed_point():
    # production / (1 + x^power) = decay at x = 1
    np.testing.assert_allclose(mackey_glass(50, start=1.0), 1.0, rtol=1e-12)


def test_mackey_glass_range_and_chaos():
    x = mackey_glass(2000)
    assert 0.15 < x.min() < 0.3
    assert 1.3 < x.max() < 1.45
    assert 0.85 < x.mean() < 0.95
    assert 0.25 < x.std() < 0.31
    nearby = mackey_glass(2000, start=1.2 + 1e-9)
    assert np.abs(x - nearby).max() > 0.5  # neighbors part ...
    assert abs(np.mean(x) - np.mean(nearby)) < 0.02  # ... on the same attractor


def test_mackey_glass_with_a_short_delay_settles():
    x = mackey_glass(50, tau=4.0, interval=1.0, discard=500)
    np.testing.assert_allclose(x, 1.0, atol=1e-6)


def test_discard_only_shifts():
    np.testing.assert_array_equal(mackey_glass(10, discard=5), mackey_glass(15, discard=0)[5:])
    np.testing.assert_array_equal(lorenz(10, discard=5), lorenz(15, discard=0)[5:])


def test_lorenz_is_integrated_to_order_four():
    exact = lorenz(101, step=0.000625, discard=0)
    errors = [np.abs(lorenz(101, step=step, discard=0) - exact).max() for step in (0.01, 0.005)]
    assert errors[1] < 1e-4
    assert 10 < errors[0] / errors[1] < 24


def test_lorenz_rests_at_its_fixed_points():
    c = np.sqrt(8 / 3 * 27)
    for start in ([0, 0, 0], [c, c, 27], [-c, -c, 27]):
        np.testing.assert_allclose(lorenz(20, start=start, discard=0), np.tile(start, (20, 1)), atol=1e-11)


def test_lorenz_with_small_rho_dies_out():
    # V = rho x^2 / sigma + y^2 + z^2 falls to zero for rho < 1
    assert np.abs(lorenz(10, rho=0.5, discard=3000)).max() < 1e-5


def test_lorenz_attractor():
    x, y, z = lorenz(20_000).T
    assert -21 < x.min() < -17
    assert 17 < x.max() < 21
    assert 0 < z.min() < 5
    assert 45 < z.max() < 51
    assert abs(x.mean()) < 1.5
    assert 22 < z.mean() < 25
    # on average d(z)/dt = 0 and d(x^2)/dt = 0: E[xy] = beta E[z] and E[xy] = E[x^2]
    assert np.mean(x * y) == pytest.approx(8 / 3 * z.mean(), rel=0.01)
    assert np.mean(x * y) == pytest.approx(np.mean(x * x), rel=0.01)


def test_lorenz_keeps_its_symmetry():
    a = lorenz(500, start=(1, 2, 20), discard=0)
    b = lorenz(500, start=(-1, -2, 20), discard=0)
    np.testing.assert_array_equal(a * [-1, -1, 1], b)


def test_chaos_refuses():
    with pytest.raises(ValueError, match=r"tau must be a whole multiple of step = 0.1, got 17.05. Use step="):
        mackey_glass(10, tau=17.05)
    with pytest.raises(ValueError, match=r"interval must be a whole multiple of step = 0.005, got 0.001"):
        lorenz(10, interval=0.001)
    with pytest.raises(ValueError, match="start must be zero or more"):
        mackey_glass(10, start=-1.0)
    with pytest.raises(ValueError, match="start must be three numbers"):
        lorenz(10, start=(1.0, 2.0))
    with pytest.raises(ValueError, match=r"discard must be at least 1, got -1. Use 0"):
        lorenz(10, discard=-1)
    with pytest.raises(ValueError, match="n must be at least 1"):
        lorenz(0)


def test_the_step_that_an_error_proposes_works():
    with pytest.raises(ValueError, match="whole multiple") as error:
        mackey_glass(3, tau=17.05, interval=17.05)
    step = float(str(error.value).split("Use step=")[1].rstrip("."))
    assert mackey_glass(3, tau=17.05, interval=17.05, step=step).shape == (3,)


# ---------------------------------------------------------------- the KAFBOX fixture


def test_fixture_holds_what_its_readme_says():
    data = np.load(TESTS / "fixtures" / "channel_switch.npz")
    runs = json.loads((TESTS / "fixtures" / "channel_switch.json").read_text())["runs"]
    x, y = data["x"], data["y"]
    assert x.shape == (1500, 5)
    assert y.shape == (1500,)
    np.testing.assert_array_equal(x[1:, 1:], x[:-1, :-1])  # newest sample first
    np.testing.assert_array_equal(data["prediction__memory_cell"][1:], y[:-1])  # predict, then learn
    assert {key.split("__")[1] for key in data.files if key.startswith("prediction")} == set(runs)
    for name, run in runs.items():
        prediction = data[f"prediction__{name}"]
        assert prediction.dtype == np.float64
        assert prediction.shape == (1500,)
        if run["mse_db"] is not None:
            mse_db = 10 * np.log10(np.mean((y - prediction)[750:] ** 2))
            assert mse_db == pytest.approx(run["mse_db"], abs=1e-9)
        if f"size__{name}" in data.files:
            assert data[f"size__{name}"][-1] == run["final_size"]
        else:
            assert run["final_size"] == 0
