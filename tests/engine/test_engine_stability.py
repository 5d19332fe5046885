"""Long streams: nothing drifts, nothing grows, and refinement runs where it is needed and only there."""

import time

import numpy as np
import pytest
from pairs import assert_same_state, native, python_steps

import onlinegp as ogp
from onlinegp.engine import available
from onlinegp.kernels import RBF, Linear, Matern32
from onlinegp.recipes.beliefs import REFINE_ABOVE

pytestmark = pytest.mark.skipif(not available(), reason="the compiled engine was not built")


def smooth(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A slow walk through the inputs: neighbors in time are neighbors in space."""
    rng = np.random.default_rng(seed)
    t = np.arange(n) * 0.01
    X = np.column_stack([np.sin(t), np.cos(1.618 * t)])
    return X, (np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n))[:, None]


def independent(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2))
    return X, (np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n))[:, None]


STREAMS = {"smooth": smooth, "independent": independent}


def tracker(length_scale: float = 0.5, **options):
    recipe = ogp.KRLST(RBF(length_scale), noise=1e-2, budget=options.pop("budget", 50), **options).recipe()
    return recipe, native(recipe, recipe.start(2))


def inverse_error(state) -> float:
    return float(np.abs(state.square("Q") @ state.square("K") - np.eye(state.size)).max())


def smallest_eigenvalue(recipe, state) -> float:
    return float(np.linalg.eigvalsh(recipe.belief.covariance(state, state.square("K"))).min())


@pytest.mark.parametrize(("length_scale", "jitter", "alarmed"), [(0.25, 1e-3, False), (3.0, 1e-8, True)])
def test_refinement_runs_only_where_it_is_needed(length_scale, jitter, alarmed):
    _recipe, engine = tracker(length_scale, jitter=jitter, forgetting=0.999)
    X, Y = independent(3000)
    alarms = 0
    for i in range(0, 3000, 50):
        engine.learn(X[i : i + 50], Y[i : i + 50])
        alarms += engine.state.residual > REFINE_ABOVE
    assert alarms > 30 if alarmed else alarms == 0


@pytest.mark.parametrize(("length_scale", "jitter"), [(0.25, 1e-3), (3.0, 1e-8)])
def test_both_engines_raise_the_same_alarms(length_scale, jitter):
    recipe, engine = tracker(length_scale, jitter=jitter, forgetting=0.999)
    X, Y = independent(400)
    state = recipe.start(2)
    for i in range(0, 400, 50):
        engine.learn(X[i : i + 50], Y[i : i + 50])
        python_steps(recipe, state, X[i : i + 50], Y[i : i + 50])
        assert (engine.state.residual > REFINE_ABOVE) == (state.residual > REFINE_ABOVE)


def test_refinement_keeps_the_inverse():
    """At condition numbers past 1e10 the plain recursion loses Q; the refined one does not lose the variance."""
    recipe, engine = tracker(3.0, jitter=1e-8, forgetting=0.999)
    mean, variance, _ = engine.run(*independent(20_000))
    assert np.isfinite(mean).all()
    assert (variance >= recipe.belief.noise).all()


@pytest.mark.parametrize("kernel", [RBF(3.0), Matern32([3.0, 5.0]), RBF(3.0) + 0.1 * Linear()])
@pytest.mark.parametrize("split", [7, 33, 250])
def test_a_kernel_matrix_that_is_kept_equals_one_made_anew(kernel, split):
    """Refinement keeps K from its first time on; a state that was exported starts without. To the last bit the same."""
    recipe = ogp.KRLST(kernel, noise=1e-2, budget=50, jitter=1e-8, forgetting=0.999).recipe()
    X, Y = independent(400)
    kept = native(recipe, recipe.start(2))
    kept.learn(X[:split], Y[:split])
    state = kept.state
    anew = native(recipe, state)
    assert split < 30 or state.residual > REFINE_ABOVE
    for one, other in zip(kept.run(X[split:], Y[split:]), anew.run(X[split:], Y[split:]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert_same_state(kept.state, anew.state)
    fresh = native(recipe, kept.state)
    for one, many in zip(kept.predict(X, threads=1), fresh.predict(X, threads=4), strict=True):
        np.testing.assert_array_equal(one, many)


@pytest.mark.parametrize("forgetting", [1.0, 0.999, 0.99])
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.slow
def test_a_million_steps(kind, forgetting):
    recipe, engine = tracker(forgetting=forgetting)
    errors, block = [], 100_000
    for i in range(10):
        X, Y = STREAMS[kind](block, seed=i)
        mean, variance, _ = engine.run(X, Y)
        assert np.isfinite(mean).all()
        assert np.isfinite(variance).all()
        state = engine.state
        assert smallest_eigenvalue(recipe, state) > 0.0
        errors.append(inverse_error(state))
    assert max(errors) < 1e-4
    assert np.median(errors[5:]) < 10 * np.median(errors[:5])  # not growing


@pytest.mark.slow
def test_nearly_singular_for_200_000_steps():
    recipe, engine = tracker(3.0, jitter=1e-8)
    for i in range(10):
        mean, variance, _ = engine.run(*independent(20_000, seed=i))
        assert np.isfinite(mean).all()
        assert (variance >= recipe.belief.noise).all()
    assert np.isfinite(engine.state.square("Q")).all()


@pytest.mark.slow
def test_time_and_memory_stay_flat_at_the_budget():
    resource = pytest.importorskip("resource")
    _recipe, engine = tracker(forgetting=0.999)
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
