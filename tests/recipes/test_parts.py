"""Dictionaries, beliefs, forgetting and pruning, each by itself, and the recipes that make no sense."""

from __future__ import annotations

import numpy as np
import pytest

from models import stream
from onlinegp.kernels import RBF, Linear
from onlinegp.recipes.beliefs import Beta, Exact, Isotropic, LeastSquares, Posterior, Prior
from onlinegp.recipes.dictionaries import ALD, Coherence, Growing, Novelty, Quantized, Surprise
from onlinegp.recipes.forgetting import BackToPrior, Keep, Leak, UncertaintyInjection
from onlinegp.recipes.pruning import LeastError, LeastWeight, Oldest
from onlinegp.recipes.state import IGNORE, NEW, PROJECTED
from onlinegp.recipes.update import Recipe, learn, predict

K = RBF(0.7)


def run(recipe, X, y):
    state = recipe.start(X.shape[1])
    steps = [learn(recipe, state, x, np.array([target])) for x, target in zip(X, y, strict=True)]
    return state, steps


def test_quantized_centers_are_farther_apart_than_the_radius():
    state, steps = run(Recipe(K, Prior(0.5), dictionary=Quantized(0.5)), *stream(200))
    distance = np.linalg.norm(state.C[:, None] - state.C[None], axis=-1)
    assert distance[~np.eye(state.size, dtype=bool)].min() > 0.5
    X, _ = stream(200)
    for x, step in zip(X, steps, strict=True):
        if not step.admitted:  # the sample corrected a center within the radius
            assert np.linalg.norm(state.C[step.slot] - x) <= 0.5


def test_coherent_samples_are_kept_out_for_any_diagonal():
    kernel = 3.0 * RBF(0.7) + Linear()
    state, _ = run(Recipe(kernel, Isotropic(0.5, 0.01), dictionary=Coherence(0.8)), *stream(200))
    gram = kernel(state.C)
    coherence = np.abs(gram) / np.sqrt(np.outer(np.diag(gram), np.diag(gram)))
    assert coherence[~np.eye(state.size, dtype=bool)].max() <= 0.8


def test_ald_centers_are_not_in_each_others_span():
    state, _ = run(Recipe(K, LeastSquares(), dictionary=ALD(0.1)), *stream(200))
    for i in range(1, state.size):
        k = K.row(state.C[:i], state.C[i])
        assert 1.0 - k @ np.linalg.solve(K(state.C[:i]), k) > 0.1 - 1e-9


@pytest.mark.parametrize("belief", [Prior(0.5), Beta("auto", 0.05), Beta(0.1, 0.05), Isotropic(0.5, 0.01)])
def test_ald_decides_the_same_whatever_is_believed(belief):
    X, y = stream(200)
    state, _ = run(Recipe(K, belief, dictionary=ALD(0.1)), X, y)
    squares, _ = run(Recipe(K, LeastSquares(), dictionary=ALD(0.1)), X, y)
    np.testing.assert_array_equal(state.C, squares.C)
    L = state.square("L")
    np.testing.assert_allclose(L @ L.T, K(state.C), rtol=0, atol=1e-12)


@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_what_ald_does_not_admit_is_projected_onto_the_centers(beta):
    """alpha <- alpha + e / s (K^-1 k + beta k), by a dense solution."""
    X, y = stream(120)
    belief = Beta(beta, 0.05)
    state, steps = run(Recipe(K, belief, dictionary=ALD(0.3)), X, y)
    C, alpha = np.empty((0, 2)), np.empty(0)
    for x, target, step in zip(X, y, steps, strict=True):
        k = K.row(C, x)
        e, s = target - k @ alpha, 1.0 + beta * k @ k + 0.05
        q = np.linalg.solve(K(C), k)
        assert step.mean[0] == pytest.approx(k @ alpha, abs=1e-10)
        assert step.slot == (len(C) if step.admitted else PROJECTED)
        if 1.0 - k @ q > 0.3:
            C, alpha = np.vstack([C, x]), np.append(alpha + e / s * beta * k, e / s)
        else:
            alpha = alpha + e / s * (q + beta * k)
    np.testing.assert_array_equal(state.C, C)
    np.testing.assert_allclose(state.a[:, 0], alpha, rtol=0, atol=1e-9)


def test_novelty_asks_for_distance_and_error():
    rule = Novelty(radius=0.3, error=0.2)
    state, _ = run(Recipe(K, Prior(0.5), dictionary=Growing()), *stream(50))
    x = state.C[3]
    assert rule.place(state, x, None, np.array([9.0])) == 3
    far = np.array([50.0, 50.0])
    assert rule.place(state, far, None, np.array([0.1])) != NEW
    assert rule.place(state, far, None, np.array([0.3])) == NEW


def test_surprise_keeps_the_learnable_and_leaves_the_outliers():
    recipe = Recipe(K, Exact(0.01))
    state, _ = run(recipe, *stream(50))
    rule = Surprise(redundant=0.0, abnormal=50.0)
    seen = predict(recipe, state, state.C[0])
    assert rule.place(state, state.C[0], seen, np.zeros(1)) == 0
    assert rule.place(state, state.C[0], seen, np.array([100.0])) == IGNORE
    far = np.array([9.0, 9.0])
    assert rule.place(state, far, predict(recipe, state, far), np.array([0.5])) == NEW


def test_an_ignored_sample_changes_nothing_but_the_count():
    recipe = Recipe(K, Prior(0.5), dictionary=Surprise(redundant=0.0, abnormal=5.0))
    state, _ = run(recipe, *stream(50))
    alpha = state.a.copy()
    step = learn(recipe, state, np.zeros(2), np.array([1e3]))
    assert step.slot == IGNORE
    assert np.array_equal(state.a, alpha)


def test_the_oldest_leaves():
    X, y = stream(60)
    state, _ = run(Recipe(K, Prior(0.5), pruning=Oldest(10)), X, y)
    assert sorted(state.born[:10]) == list(range(50, 60))
    assert {tuple(c) for c in state.C} == {tuple(x) for x in X[-10:]}


def test_the_least_weight_leaves():
    X, y = stream(60)
    recipe = Recipe(K, Prior(0.5), pruning=LeastWeight(10))
    state, _ = run(recipe, X[:10], y[:10])
    weights = np.abs(state.a[:, 0]).copy()
    step = learn(recipe, state, X[11], np.array([50.0]))
    assert step.left == weights.argmin()
    refused = learn(recipe, state, X[12], predict(recipe, state, X[12]).mean)  # no error, no weight
    assert not refused.admitted
    assert refused.slot == IGNORE


def test_the_least_error_is_the_leave_one_out_error():
    """|alpha_i| / A_ii is what the others get wrong at i: the definition, by leaving each one out."""
    X, y = stream(15, seed=5)
    state, _ = run(Recipe(K, Exact(0.05), pruning=LeastError(15)), X, y)
    alpha = Exact(0.05).weights(state)
    errors = [
        abs(y[i] - K.row(rest, X[i]) @ np.linalg.solve(K(rest) + 0.05 * np.eye(14), np.delete(y, i)))
        for i in range(15)
        for rest in [np.delete(X, i, axis=0)]
    ]
    np.testing.assert_allclose(np.abs(alpha[:, 0]) / state.dQ[:15], errors, rtol=1e-8)
    assert LeastError(15).candidate(alpha, state.dQ[:15], state.born[:15]) == np.argmin(errors)


def test_leaking_weights():
    X, y = stream(3)
    state, _ = run(Recipe(K, Prior(0.5), forgetting=Leak(0.1)), X, y)
    assert state.alpha[0, 0] == pytest.approx(0.5 * y[0] * 0.9 * 0.9)


def test_the_lazy_scale_is_multiplied_in_before_it_underflows():
    recipe = Recipe(K, Posterior(0.01), dictionary=ALD(1e-5), forgetting=BackToPrior(0.5), pruning=LeastError(5))
    state, steps = run(recipe, *stream(2000))
    assert 1e-100 <= state.scale <= 1.0
    assert np.isfinite([step.variance for step in steps]).all()


def test_keep_returns_what_it_was_given():
    state, _ = run(Recipe(K, Prior(0.5)), *stream(5))
    seen = predict(Recipe(K, Prior(0.5)), state, np.zeros(2))
    assert Keep().forget(state, seen) is seen


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"belief": Prior(0.5), "dictionary": ALD(0.1), "pruning": Oldest(9)}, "ALD with the belief Prior"),
        ({"belief": Exact(0.1), "dictionary": ALD(0.1)}, "Exact keeps every sample"),
        ({"belief": Exact(0.1), "dictionary": Quantized(0.1)}, "Exact keeps every sample"),
        ({"belief": Prior(0.5), "forgetting": UncertaintyInjection(0.9)}, "UncertaintyInjection"),
        ({"belief": Exact(0.1), "forgetting": BackToPrior(0.9)}, "not defined"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        Recipe(K, **parts)


@pytest.mark.parametrize("belief", [Prior(0.5), Beta("auto", 0.05), Isotropic(0.5, 0.01), Posterior(0.05)])
@pytest.mark.parametrize(
    "dictionary", [Growing(), Quantized(0.3), Coherence(0.9), Novelty(0.2, 0.01), Surprise(-1.0, 1e3)]
)
@pytest.mark.parametrize("forgetting", [Keep(), Leak(0.01), BackToPrior(0.99)])
@pytest.mark.parametrize("pruning", [None, Oldest(12), LeastWeight(12), LeastError(12)])
def test_every_other_recipe_learns(belief, dictionary, forgetting, pruning):
    X, y = stream(80)
    recipe = Recipe(K, belief, dictionary=dictionary, forgetting=forgetting, pruning=pruning)
    state, steps = run(recipe, X, y)
    assert state.size <= (12 if pruning else 80)
    assert all(np.isfinite(step.mean).all() and step.variance > 0 for step in steps)
    if state.rowsum is not None:
        np.testing.assert_allclose(state.rowsum[: state.size], np.abs(K(state.C)).sum(axis=1), rtol=1e-9)


def test_a_sample_at_the_origin_of_a_linear_kernel():
    """k(x, x) = 0 there: nothing to admit, nothing to learn, nothing to divide by."""
    for belief in (Posterior(0.05), LeastSquares(), Prior(0.5), Beta("auto", 0.1), Isotropic(0.5, 0.01)):
        state, _ = run(Recipe(Linear(), belief, dictionary=ALD(1e-6)), np.zeros((3, 2)), np.ones(3))
        assert state.size == 0
    for belief in (Prior(0.5), Beta("auto", 0.1), Isotropic(0.5, 0.01), Exact(0.1)):
        state, _ = run(Recipe(Linear(), belief), np.zeros((3, 2)), np.ones(3))
        assert np.isfinite(state.a).all()
