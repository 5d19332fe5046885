"""Every recipe on both engines: the same decisions, then the same numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import (
    BELIEFS,
    FEATURES,
    KERNELS,
    assert_same_state,
    assert_same_steps,
    native,
    python_steps,
    recipes,
    stream,
)

import onlinegp as ogp
from onlinegp.engine import available
from onlinegp.kernels import RBF, Constant, Linear, Matern32
from onlinegp.recipes.beliefs import Beta, Exact, LeastSquares, Posterior
from onlinegp.recipes.dictionaries import ALD, Growing, Novelty, Quantized, Surprise
from onlinegp.recipes.forgetting import BackToPrior
from onlinegp.recipes.pruning import LeastError, LeastWeight, Oldest
from onlinegp.recipes.update import Recipe

pytestmark = pytest.mark.skipif(not available(), reason="the compiled engine was not built")

TOLERANCE = 1e-9
ENGINES = ("python", "native")


def compare(kernel: str, belief: str, rows: int) -> None:
    X, Y = stream(rows)
    names = [name for name in recipes(KERNELS["RBF"]) if name.startswith(belief + "-")]
    made = recipes(KERNELS[kernel])
    for name in names:
        recipe = made[name]
        trace = native(recipe, recipe.start(FEATURES)).decisions(X, Y)
        try:
            assert_same_steps(python_steps(recipe, recipe.start(FEATURES), X, Y), trace, rtol=TOLERANCE)
        except AssertionError as error:
            raise AssertionError(f"{name} on {kernel}: {error}") from None


@pytest.mark.parametrize("belief", BELIEFS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_recipe(kernel, belief):
    compare(kernel, belief, 200 if kernel == "RBF" else 70)


@pytest.mark.slow
@pytest.mark.parametrize("belief", BELIEFS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_recipe_over_500_steps(kernel, belief):
    compare(kernel, belief, 500)


@pytest.mark.parametrize("kernel", [RBF(0.9), 2.0 * RBF(0.3), Matern32(1.5), RBF(0.02), RBF([0.9, 1.0])])
@pytest.mark.parametrize("dictionary", ["Quantized", "Novelty", "Surprise"])
def test_the_nearest_of_equally_near_centers(dictionary, kernel):
    """Points on a grid: ties, repetitions, distances equal to the radius, and kernels that tell them apart or not."""
    rng = np.random.default_rng(0)
    X = 0.25 * rng.integers(-8, 9, (600, 2))
    X[::7] += 1e-9 * rng.standard_normal((86, 2))
    Y = np.sin(3 * X[:, :1]) + 0.1 * rng.standard_normal((600, 1))
    parts = {"Quantized": Quantized(0.5), "Novelty": Novelty(0.5, 0.1), "Surprise": Surprise(1.4, 200.0)}
    recipe = Recipe(kernel, Beta(0.0, 0.05), parts[dictionary])
    steps = python_steps(recipe, recipe.start(2), X, Y)
    assert 20 < sum(step.admitted for step in steps) < 500
    assert_same_steps(steps, native(recipe, recipe.start(2)).decisions(X, Y), rtol=TOLERANCE)


def tied_stream(rng, n, features):
    """Inputs and outputs on coarse grids: duplicates, opposites, and centers that matter equally little.

    No output is zero: where all that is kept are zeros, every score is rounding, and has nothing to be compared with.
    """
    X = 0.5 * rng.integers(-2, 3, (n, features))
    outputs = [rng.choice([-1.0, 1.0], (n, 1)), np.ones((n, 1)), np.where(X[:, :1] < 0, -1.0, 2.0)]
    return X, outputs[rng.integers(3)]


TIED_KERNELS = {"Linear": Linear(), "affine": Linear() + Constant(1.0), "RBF": RBF(1.0), "Matern32": Matern32(0.5)}
TIED_BELIEFS = BELIEFS | {"Exact-1": Exact(1.0), "Posterior-1": Posterior(1.0, 1e-12), "Beta-0": Beta(0.0, 1.0)}


def compare_ties(belief, pruning, streams):
    """Where centers matter equally little, both engines let the oldest go: the same decisions."""
    kept = 0
    for seed in range(streams):
        rng = np.random.default_rng(seed)
        kernel, budget, features = list(TIED_KERNELS)[seed % 4], int(rng.integers(1, 7)), int(rng.integers(1, 4))
        least_squares = isinstance(TIED_BELIEFS[belief], LeastSquares)  # of dependent centers only rounding is left
        dictionary = ALD(0.01) if least_squares else Growing()
        recipe = Recipe(TIED_KERNELS[kernel], TIED_BELIEFS[belief], dictionary, pruning=pruning(budget))
        X, Y = tied_stream(rng, 40, features)
        steps = python_steps(recipe, recipe.start(features), X, Y)
        trace = native(recipe, recipe.start(features)).decisions(X, Y)
        try:
            assert_same_steps(steps, trace, rtol=1e-7)
        except AssertionError as error:
            raise AssertionError(f"{belief}, {kernel}, {pruning.__name__}({budget}), seed {seed}: {error}") from None
        kept += sum(step.left >= 0 for step in steps)
    assert kept > streams


@pytest.mark.parametrize("pruning", [Oldest, LeastWeight, LeastError])
@pytest.mark.parametrize("belief", TIED_BELIEFS)
def test_ties_in_pruning_are_broken_alike(belief, pruning):
    compare_ties(belief, pruning, 20)


@pytest.mark.slow
@pytest.mark.parametrize("pruning", [Oldest, LeastWeight, LeastError])
@pytest.mark.parametrize("belief", TIED_BELIEFS)
def test_ties_in_pruning_are_broken_alike_on_many_streams(belief, pruning):
    compare_ties(belief, pruning, 400)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize(
    "model", [ogp.kafbox.FBKLMS(coherence=1.0, budget=4), ogp.kafbox.QKLMSFB(radius=0.1, budget=4)]
)
def test_ties_in_pruning_outside_the_recipes(model, seed):
    X, Y = tied_stream(np.random.default_rng(seed), 60, 2)
    traces = [ogp.run(type(model)(**model.get_params(deep=False) | {"engine": name}), X, Y[:, 0]) for name in ENGINES]
    np.testing.assert_array_equal(traces[0].size, traces[1].size)
    np.testing.assert_allclose(traces[0].mean, traces[1].mean, rtol=1e-9, atol=1e-9)


def test_of_equal_scores_the_oldest_is_removed():
    alpha, born = np.array([[3.0], [1.0], [1.0 + 1e-15], [2.0]]), np.array([0, 7, 5, 9])
    assert LeastWeight(3).candidate(alpha, np.ones(4), born) == 2
    assert LeastError(3).candidate(alpha, np.array([3.0, 1.0, 1.0, 3.0]), born) == 3
    assert LeastError(3).candidate(alpha, np.array([3.0, 1.0, 1.0, 2.0]), born) == 0


@pytest.mark.parametrize("budget", [*range(1, 18), 23, 31, 39, 40, 41, 55])
@pytest.mark.parametrize("model", [ogp.KRLST, ogp.kafbox.FBKRLS, ogp.kafbox.SWKRLS])
def test_triangles_of_every_size(model, budget):
    """Removals in triangles that fill their blocks of rows and columns, or end within one."""
    recipe = model(RBF(1.0), noise=0.01, budget=budget).recipe()
    X, Y = stream(budget + 60)
    trace = native(recipe, recipe.start(FEATURES)).decisions(X, Y)
    assert_same_steps(python_steps(recipe, recipe.start(FEATURES), X, Y), trace, rtol=TOLERANCE)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from(sorted(KERNELS)), st.integers(0, 60), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_one_step_from_any_state(data, kernel, before, outputs, seed):
    """Whatever the state, one more sample changes it in the same way: each part on random states."""
    made = recipes(KERNELS[kernel])
    recipe = made[data.draw(st.sampled_from(sorted(made)))]
    X, Y = stream(before + 1, outputs=outputs, seed=seed)
    state = recipe.start(FEATURES, outputs)
    python_steps(recipe, state, X[:-1], Y[:-1])
    engine = native(recipe, state)
    assert_same_state(engine.state, state)
    trace = engine.decisions(X[-1:], Y[-1:])
    assert_same_steps(python_steps(recipe, state, X[-1:], Y[-1:]), trace)
    assert_same_state(engine.state, state, rtol=1e-8)


@pytest.mark.parametrize("name", ["Prior-Growing-Keep-None", "Posterior-ALD-BackToPrior-LeastError"])
@pytest.mark.parametrize("outputs", [2, 5])
def test_many_outputs(name, outputs):
    recipe = recipes(KERNELS["RBF"])[name]
    X, Y = stream(200, outputs=outputs)
    state = recipe.start(FEATURES, outputs)
    trace = native(recipe, recipe.start(FEATURES, outputs)).decisions(X, Y)
    assert_same_steps(python_steps(recipe, state, X, Y), trace)


@pytest.mark.parametrize("pruning", [LeastError, Oldest])
def test_any_number_of_centers(pruning):
    for budget in range(1, 35):  # tiles of 2, 4, 8 and 16, with every remainder; centers leave from anywhere in them
        recipe = Recipe(RBF(0.9), Posterior(0.02, 1e-3), forgetting=BackToPrior(0.99), pruning=pruning(budget))
        X, Y = stream(3 * budget + 10, seed=budget)
        state, engine = recipe.start(FEATURES), native(recipe, recipe.start(FEATURES))
        trace = engine.decisions(X, Y)
        steps = python_steps(recipe, state, X, Y)
        assert any(s.left >= 0 for s in steps)
        assert_same_steps(steps, trace, rtol=TOLERANCE)
        assert_same_state(engine.state, state, rtol=TOLERANCE)


@pytest.mark.parametrize("features", [1, 3, 8, 17])
def test_any_number_of_features(features):
    X, Y = stream(150, features=features)
    for name in ("Isotropic-Coherence-Keep-None", "Posterior-Growing-Keep-LeastError", "Beta-Quantized-Keep-None"):
        recipe = recipes(KERNELS["RBF"])[name]
        trace = native(recipe, recipe.start(features)).decisions(X, Y)
        assert_same_steps(python_steps(recipe, recipe.start(features), X, Y), trace)


def test_predictions_equal_a_look_at_every_row():
    X, Y = stream(300, outputs=2)
    rng = np.random.default_rng(1)
    new = rng.uniform(-3, 3, (101, FEATURES))
    for kernel in KERNELS.values():
        for name, recipe in recipes(kernel).items():
            if "-Keep-" not in name:
                continue
            for outputs in (1, 2):
                engine = native(recipe, recipe.start(FEATURES, outputs))
                engine.learn(X, Y[:, :outputs])
                mean, variance = engine.predict(new)
                rows = [engine.predict(x[None, :]) for x in new]
                scale = np.abs(mean).max()
                np.testing.assert_allclose(mean, np.concatenate([r[0] for r in rows]), rtol=1e-9, atol=1e-11 * scale)
                np.testing.assert_allclose(variance, np.concatenate([r[1] for r in rows]), rtol=1e-9)
