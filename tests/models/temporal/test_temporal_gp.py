"""The Gaussian process over time: the batch GP of the same kernel, at any times, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.engine import available
from onlinegp.kernels import RBF, Constant, Linear, Matern12, Matern32, Matern52, Periodic
from onlinegp.kernels.temporal import LocalTrend, RandomWalk, Season

ENGINES = [
    "python",
    pytest.param("native", marks=pytest.mark.skipif(not available(), reason="the compiled engine was not built")),
]
KERNELS = {
    "Matern12": Matern12(3.0),
    "Matern32": 2.0 * Matern32(3.0),
    "Matern52": Matern52(4.0),
    "line": Constant(2.0) + 0.01 * Linear(),
    "periodic": Periodic(1.0, 12.0),
    "quasi-periodic": Matern32(30.0) + Periodic(0.8, 12.0) * Matern12(50.0) + 0.5 * Periodic(1.0, 7.0) * Matern52(40.0),
    "walk": RandomWalk(3.0, 0.2),
    "trend": LocalTrend(5.0, 0.3, 0.1, 0.01, 0.1),
    "slowly damped": LocalTrend(5.0, 0.3, 0.1, 0.01, 0.02),
    "not damped": LocalTrend(5.0, 0.3, 0.1, 0.01, 0.0),
    "season": Season(12.0, 5, 2.0, 0.05) + LocalTrend(5.0, 0.3, 0.1, 0.01, 0.02),
    "growing season": Linear(0.01) * Periodic(1.0, 12.0),
    "wandering season": RandomWalk(1.0, 0.1) * Periodic(1.0, 12.0),
    "product of sums": (Matern12(5.0) + Constant(0.5)) * (Periodic(1.0, 12.0) + 1.0),
}


def times(how, rng, n=80):
    if how == "irregular":
        return np.sort(rng.uniform(0, n, n))
    return np.arange(float(n)) if how == "regular" else np.delete(np.arange(n + 30.0), np.arange(40, 70))


def batch(kernel, noise, T, y, S):
    """The Gaussian process solved densely: mean and standard deviation of y at S."""
    K = kernel(T) + noise * np.eye(len(T))
    solved = np.linalg.solve(K, np.column_stack([y, kernel(T, S)]))
    variance = np.diag(kernel(S) - kernel(S, T) @ solved[:, 1:]) + noise
    return kernel(S, T) @ solved[:, 0], np.sqrt(variance)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", ["regular", "irregular", "gaps"])
@pytest.mark.parametrize("name", KERNELS)
def test_it_is_the_batch_gp(name, how, engine):
    rng = np.random.default_rng(0)
    t = times(how, rng)
    y = np.sin(t / 3) + 0.02 * t + 0.1 * rng.normal(size=len(t))
    ahead = t[-1] + np.array([0.0, 0.5, 1.0, 7.0, 30.0])
    expected = batch(KERNELS[name], 0.05, t[:, None], y, ahead[:, None])
    model = ogp.TemporalGP(KERNELS[name], noise=0.05, time=0, engine=engine).fit(t[:, None], y)
    assert np.allclose(model.predict(ahead[:, None], return_std=True), expected, rtol=0, atol=1e-9)


def test_it_agrees_with_gp_regression():
    rng = np.random.default_rng(1)
    t = np.sort(rng.uniform(0, 50, 60))[:, None]
    y = np.sin(t[:, 0])
    ahead = np.array([[51.0], [55.0]])
    kernel = 1.5 * Matern32(2.0)
    expected = ogp.GPRegression(kernel, noise=0.1).fit(t, y).predict(ahead, return_std=True)
    found = ogp.TemporalGP(kernel, noise=0.1, time=0).fit(t, y).predict(ahead, return_std=True)
    assert np.allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
def test_inputs_beside_time_act_linearly(engine):
    rng = np.random.default_rng(2)
    t, x = np.arange(100.0), rng.normal(size=(100, 2))
    y = np.sin(t / 5) + x @ [2.0, -1.0] + 0.05 * rng.normal(size=100)
    X = np.column_stack([x[:, 0], t, x[:, 1]])
    model = ogp.TemporalGP(Matern32(5.0), noise=0.01, time=1, input_variance=4.0, engine=engine).fit(X, y)
    effect = model.predict([[1.0, 101.0, 0.0], [0.0, 101.0, 1.0], [0.0, 101.0, 0.0]])
    assert np.allclose(effect[:2] - effect[2], [2.0, -1.0], atol=0.05)


def test_rows_without_a_time_are_one_unit_apart():
    y = np.sin(np.arange(50.0) / 3)
    by_row = ogp.TemporalGP(Matern32(5.0)).fit(None, y)
    by_time = ogp.TemporalGP(Matern32(5.0), time=0).fit(np.arange(50.0)[:, None], y)
    assert by_row.predict(np.empty((1, 0)))[0] == by_time.predict([[50.0]])[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_outlier_moves_a_robust_state_as_one_of_two_deviations(engine):
    y = np.concatenate([np.zeros(50), [100.0]])
    exact, robust = (
        ogp.TemporalGP(RandomWalk(1.0, 0.1), noise=1.0, robust=robust, engine=engine)
        .fit(None, y)
        .predict(np.empty((1, 0)))
        for robust in (None, 2.0)
    )
    assert exact[0] > 20
    assert 0 < robust[0] < 2


@pytest.mark.skipif(not available(), reason="the compiled engine was not built")
def test_a_million_rows_stay_finite():
    rng = np.random.default_rng(3)
    kernel = LocalTrend(10.0, 0.3, 0.1, 0.001, 0.05) + Matern12(3.0) + Season(24.0, 11, 1.0, 1e-4) + Constant(1e4)
    model = ogp.TemporalGP(kernel, noise=0.1)
    for _ in range(10):
        model.partial_fit(None, rng.normal(size=100_000))
    mean, std = model.predict(np.empty((1, 0)), return_std=True)
    assert abs(mean[0]) < 5
    assert 0.3 < std[0] < 3
    P = model.learner.dump()["P"][0]
    assert np.linalg.eigvalsh(P).min() > -1e-9 * np.abs(P).max()


def test_time_does_not_go_back():
    model = ogp.TemporalGP(time=0).fit([[1.0], [2.0]], [0.0, 0.0])
    before = model.learner.dump()
    late, y = [[3.0], [2.5]], [0.0, 0.0]
    calls = (
        *(lambda method=method: getattr(model, method)(late, y) for method in ("partial_fit", "fit", "run", "skip")),
        lambda: model.learn_one([1.5], 0.0),
    )
    for learn in calls:
        with pytest.raises(ValueError, match="times must not decrease"):
            learn()
    assert all(np.array_equal(value, before[name]) for name, value in model.learner.dump().items())


def test_the_past_is_not_predicted():
    """The state is that of the last row: its prediction of an earlier time would be the present value."""
    model = ogp.TemporalGP(time=0).fit([[1.0], [2.0]], [0.0, 0.0])
    calls = (
        lambda: model.predict([[3.0], [1.5]]),
        lambda: model.predict(np.array([[1.5]])),
        lambda: model.predict_one([1.5]),
        lambda: model.predict_distribution([[1.5]]),
        lambda: model.predict_interval(np.array([[1.5]])),
    )
    for predict in calls:
        with pytest.raises(ValueError, match="must not be before the last learned row, at 2"):
            predict()
    assert model.predict([[3.0], [2.0]]).shape == (2,)


@pytest.mark.parametrize("engine", ENGINES)
def test_where_times_are_not_checked_a_late_row_does_not_turn_time_back(engine):
    model = ogp.Mixture([ogp.TemporalGP(RandomWalk(1.0, 1.0), noise=0.01, time=0, engine=engine)])
    t, y = np.array([[-5.0], [100.0], [2.0], [101.0]]), np.zeros(4)
    std = model.run(t, y).std
    assert std[3] < 1.2  # one unit of time after the latest row, not 99


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kernel", [Linear() * Linear() * Linear(), LocalTrend(damping=1e10)], ids=["cube", "trend"])
def test_times_beyond_all_numbers_break_down_by_name(kernel, engine):
    t = np.array([[0.0], [1.0], [9e149]])
    with pytest.raises(ogp.BreakdownError, match="TemporalGP"):
        ogp.TemporalGP(kernel, time=0, engine=engine).run(t, np.ones(3))


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (RBF(), "Use Matern52 for RBF"),
        (Matern32(1.0) * Matern52(1.0), "at most one of Matern32"),
        (Periodic(0.02, 12.0), "needs .* harmonics"),
        (Matern12(1.0) * RandomWalk(), "is not supported"),
        (Matern32([1.0, 2.0]), "one number"),
    ],
)
def test_what_has_no_state_space_is_refused(kernel, reason):
    with pytest.raises(ValueError, match=reason):
        ogp.TemporalGP(kernel).check()


def test_wrong_parameters_are_refused():
    with pytest.raises(ValueError, match="time must be a column"):
        ogp.TemporalGP(time=3).fit([[0.0]], [0.0])
    with pytest.raises(TypeError, match="time must be"):
        ogp.TemporalGP(time="t").check()
    with pytest.raises(ValueError, match="robust"):
        ogp.TemporalGP(robust=0.0).check()


@pytest.mark.parametrize("kernel", [LocalTrend(), RandomWalk(), LocalTrend() + 2.0 * Season(period=7.5, harmonics=3)])
def test_kernels_over_time_are_stored_in_files(kernel):
    t = np.arange(30.0)[:, None]
    model = ogp.TemporalGP(kernel).fit(t, np.sin(t[:, 0]))
    again = ogp.from_bytes(model.to_bytes())
    assert repr(again.kernel) == repr(kernel)
    assert again.predict_one([31.0], return_std=True) == model.predict_one([31.0], return_std=True)
