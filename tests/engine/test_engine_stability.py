"""Long streams: L L' stays K, S stays a covariance, nothing drifts and nothing grows, on both engines."""

import time

import numpy as np
import pytest
from pairs import native

import onlinegp as ogp
from engines import make_engine
from onlinegp.datasets import embed, lorenz
from onlinegp.engine import available
from onlinegp.kernels import RBF
from onlinegp.recipes.state import MOST_SEEN

needs_native = pytest.mark.skipif(not available(), reason="the compiled engine was not built")
engines = pytest.mark.parametrize("engine", [pytest.param("native", marks=needs_native), "python"])


def smooth(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A slow walk through the inputs: neighbors in time are neighbors in space, and places are seen again."""
    rng = np.random.default_rng(seed)
    t = np.arange(n) * 0.01
    X = np.column_stack([np.sin(t), np.cos(1.618 * t)])
    return X, (np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n))[:, None]


def independent(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    return X, (np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n))[:, None]


def chaotic(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Lorenz, without noise: the smoothest of all."""
    series = lorenz(n + 6)[:, 0]
    X, y = embed((series - series.mean()) / series.std(), 6)
    return X[:n], y[:n, None]


STREAMS = {"smooth": smooth, "independent": independent, "chaotic": chaotic}


def factor_error(recipe, state) -> float:
    """Return the largest entry of L L' - K, over that of K."""
    belief, L = recipe.belief, state.square("L")
    K = recipe.kernel(state.C)
    extra = belief.jitter * K.diagonal() if hasattr(belief, "jitter") else getattr(belief, "noise", 0.0)
    return float(np.abs(L @ L.T - K - np.diag(np.broadcast_to(extra, len(K)))).max() / K.diagonal().max())


def assert_healthy(recipe, engine, variance) -> None:
    state = engine.state
    assert factor_error(recipe, state) < 1e-12
    assert np.isfinite(variance).all()
    assert (variance >= state.power * recipe.belief.noise).all()
    if state.S is not None:
        S = state.scale * state.square("S") + (1.0 - state.scale) * np.eye(state.size)
        assert np.linalg.eigvalsh(S)[0] > -1e-13
    if state.dQ is not None:
        exact = (np.linalg.inv(state.square("L")) ** 2).sum(axis=0)
        np.testing.assert_allclose(state.dQ[: state.size], exact, rtol=1e-2)


@engines
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("noise", [1e-2, 1e-10])
@pytest.mark.parametrize("forgetting", [1.0, 0.99, 0.3])
def test_a_tracker_stays_healthy(engine, kind, noise, forgetting):
    """With forgetting 0.3, the lazy scale of S is folded in every 192 samples."""
    X, Y = STREAMS[kind](1500 if engine == "python" else 10_000)
    recipe = ogp.KRLST(RBF(1.0), noise=noise, budget=30, forgetting=forgetting).recipe()
    runs = make_engine(engine, recipe, recipe.start(X.shape[1]))
    mean, variance, _ = runs.run(X, Y)
    assert np.isfinite(mean).all()
    assert_healthy(recipe, runs, variance)


@engines
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("model", [ogp.kafbox.SWKRLS, ogp.kafbox.FBKRLS])
def test_a_set_of_data_stays_healthy(engine, kind, model):
    X, Y = STREAMS[kind](1500 if engine == "python" else 10_000)
    recipe = model(RBF(1.0), noise=1e-8, budget=30).recipe()
    runs = make_engine(engine, recipe, recipe.start(X.shape[1]))
    mean, variance, _ = runs.run(X, Y)
    assert np.isfinite(mean).all()
    assert_healthy(recipe, runs, variance)


@engines
@pytest.mark.parametrize("noise", [1e-6, 1e-12, 1e-20])
def test_the_same_points_again_and_again(engine, noise):
    """Without forgetting the variance there sinks below what rounding can tell from zero."""
    rng = np.random.default_rng(0)
    C = rng.uniform(-1.0, 1.0, (12, 2))
    X = C[rng.integers(0, 12, 3000 if engine == "python" else 100_000)]
    y = np.sin(3.0 * X[:, :1])
    recipe = ogp.KRLST(RBF(1.0), noise=noise, budget=20).recipe()
    runs = make_engine(engine, recipe, recipe.start(2))
    mean, variance, _ = runs.run(X, y)
    assert np.abs(mean - y)[1000:].max() < 1e-4
    assert_healthy(recipe, runs, variance)
    if noise < 1e-15:  # what rounding made too sure of itself was given some doubt
        state = runs.state
        S = state.scale * state.square("S") + (1.0 - state.scale) * np.eye(state.size)
        assert np.linalg.eigvalsh(S)[0] > 1e-16


@engines
@pytest.mark.parametrize("model", [ogp.KRLST(RBF(0.5), budget=5), ogp.KLMS(RBF(0.5))])
def test_the_count_of_samples_ends_at_the_largest(engine, model):
    """One more would make it negative, and an index with it."""
    recipe = model.recipe()
    state = recipe.start(2)
    state.seen = MOST_SEEN - 5
    X, Y = independent(40)
    runs = make_engine(engine, recipe, state)
    mean, variance, _ = runs.run(X, Y)
    assert runs.seen == MOST_SEEN
    assert np.isfinite(mean).all()
    assert (variance > 0).all()


@needs_native
@pytest.mark.parametrize("forgetting", [1.0, 0.999, 0.99])
@pytest.mark.parametrize(
    ("kind", "noise", "budget"),
    [("independent", 1e-2, 50), ("chaotic", 1e-10, 20), ("chaotic", 1e-10, 50), ("chaotic", 1e-10, 100)],
)
@pytest.mark.slow
def test_a_million_steps(kind, noise, budget, forgetting):
    X, Y = STREAMS[kind](100_000)
    recipe = ogp.KRLST(RBF(1.0), noise=noise, budget=budget, forgetting=forgetting).recipe()
    engine = native(recipe, recipe.start(X.shape[1]))
    for _ in range(10):
        mean, variance, _ = engine.run(X, Y)
        assert np.isfinite(mean).all()
        assert_healthy(recipe, engine, variance)


def draw(length_scales: tuple[float, ...], X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw f(X) from the prior of an RBF kernel of variance one, but for 500 random features in place of all."""
    frequencies = rng.standard_normal((len(length_scales), 500)) / np.array(length_scales)[:, None]
    phases = rng.uniform(0.0, 2.0 * np.pi, 500)
    parts = [np.cos(rows @ frequencies + phases).sum(axis=1) for rows in np.array_split(X, 100)]
    return np.sqrt(2.0 / 500) * np.concatenate(parts)


@needs_native
@pytest.mark.parametrize("noise", [5.5e-4, 1e-3])
@pytest.mark.slow
def test_a_million_steps_of_a_sensor(noise):
    """A slow walk in two inputs, dense repetitions, nothing forgotten; the targets are drawn from the model itself."""
    rng = np.random.default_rng(0)
    scales = (0.359, 1.758)
    recipe = ogp.KRLST(0.432 * RBF(scales), noise=noise, budget=300).recipe()
    engine = native(recipe, recipe.start(2))
    X, _ = smooth(100_000)
    f = np.sqrt(0.432) * draw(scales, X, rng)
    inside = []
    for _ in range(10):
        y = f + np.sqrt(noise) * rng.standard_normal(len(f))
        mean, variance, _ = engine.run(X, y[:, None])
        assert np.isfinite(mean).all()
        assert_healthy(recipe, engine, variance)
        inside.append(np.abs(y - mean[:, 0]) < 1.959964 * np.sqrt(variance))
    assert np.mean(inside) == pytest.approx(0.95, abs=0.01)


@needs_native
@pytest.mark.slow
def test_time_and_memory_stay_flat_at_the_budget():
    resource = pytest.importorskip("resource")
    recipe = ogp.KRLST(RBF(0.5), noise=1e-2, budget=50, forgetting=0.999).recipe()
    engine = native(recipe, recipe.start(2))
    X, Y = independent(20_000)
    engine.learn(X, Y)
    seconds, memory = [], []
    for _ in range(12):
        start = time.process_time()
        engine.learn(X, Y)
        seconds.append(time.process_time() - start)
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    slope = np.polyfit(np.arange(12), seconds, 1)[0]
    assert slope * 12 < 0.5 * np.median(seconds)
    assert memory[-1] - memory[0] < 2048  # kilobytes
