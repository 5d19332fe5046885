"""Both engines side by side, and the recipes to run through them."""

from __future__ import annotations

from itertools import product

import numpy as np

from engines import make_engine
from onlinegp.kernels import RBF, Constant, Kernel, Linear, Matern32, Periodic, RationalQuadratic
from onlinegp.recipes.beliefs import Beta, Exact, Isotropic, LeastSquares, Posterior, Prior, StateSpace
from onlinegp.recipes.dictionaries import ALD, Coherence, Growing, Novelty, Quantized, Surprise
from onlinegp.recipes.forgetting import BackToPrior, Keep, Leak, UncertaintyInjection
from onlinegp.recipes.pruning import LeastError, LeastWeight, Oldest
from onlinegp.recipes.state import KINDS, State
from onlinegp.recipes.update import Recipe, Step, learn

KERNELS: dict[str, Kernel] = {
    "RBF": RBF(0.9),
    "Matern32-ARD": Matern32([0.9, 1.1, 1.6, 1.3]),
    "composed": RBF(1.0) * Periodic(1.5, 3.0) + 0.1 * Linear() + Constant(0.2),
    "RationalQuadratic": RationalQuadratic(0.8, 1.3),
}
BELIEFS = {
    "Prior": Prior(0.4),
    "Beta": Beta(-0.001, 0.05),
    "BetaAuto": Beta("auto", 0.05),
    "Isotropic": Isotropic(0.5, 0.01),
    "Posterior": Posterior(0.02, 1e-3),
    "StateSpace": StateSpace(0.02, 1e-3, 0.999, 0.01, 0.99),
    "StateSpaceLimits": StateSpace(0.02, 1e-3, 1.0, 0.01, 0.9),
    "Exact": Exact(0.05),
    "LeastSquares": LeastSquares(),
}
DICTIONARIES = {
    "Growing": Growing(),
    "Quantized": Quantized(1.2),
    "Coherence": Coherence(0.5),
    "ALD": ALD(0.3),
    "Novelty": Novelty(0.9, 0.05),
    "Surprise": Surprise(-0.5, 200.0),
}
FORGETTING = {
    "Keep": Keep(),
    "Leak": Leak(0.01),
    "BackToPrior": BackToPrior(0.99),
    "Injection": UncertaintyInjection(0.999),
}
PRUNING = {
    "None": None,
    "Oldest": Oldest(18),
    "LeastWeight": LeastWeight(18),
    "LeastError": LeastError(18),
}
FEATURES = 4  # enough room for some hundred points: in fewer dimensions K is nearly singular, and digits go with it


def recipes(kernel: Kernel) -> dict[str, Recipe]:
    """Every combination of parts that makes sense, on this kernel."""
    found = {}
    for names in product(BELIEFS, DICTIONARIES, FORGETTING, PRUNING):
        belief, dictionary, forgetting, pruning = names
        parts = (BELIEFS[belief], DICTIONARIES[dictionary], FORGETTING[forgetting], PRUNING[pruning])
        try:
            found["-".join(names)] = Recipe(kernel, *parts, learn_power=forgetting == "BackToPrior")
        except ValueError:  # the recipe says why these parts do not go together
            continue
    return found


def stream(n: int, *, outputs: int = 1, features: int = FEATURES, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, features))
    signal = np.sin(1.5 * X[:, :1] + np.arange(outputs)) + 0.3 * X.mean(axis=1, keepdims=True)
    return X, signal + 0.1 * rng.standard_normal((n, outputs))


def native(recipe: Recipe, state: State, **options):
    return make_engine("native", recipe, state, **options)


def python_steps(recipe: Recipe, state: State, X: np.ndarray, Y: np.ndarray) -> list[Step]:
    return [learn(recipe, state, x, y) for x, y in zip(X, Y, strict=True)]


def assert_same_steps(steps: list[Step], trace: tuple, *, rtol: float = 1e-9) -> None:
    """The same decisions, then the same numbers."""
    mean, variance, _, slot, admitted, left = trace
    np.testing.assert_array_equal(admitted, [s.admitted for s in steps])
    np.testing.assert_array_equal(left, [s.left for s in steps])
    np.testing.assert_array_equal(slot, [s.slot for s in steps])
    means = np.array([s.mean for s in steps])
    np.testing.assert_allclose(mean, means, rtol=rtol, atol=rtol * np.abs(means).max(initial=1e-300))
    np.testing.assert_allclose(variance, [s.variance for s in steps], rtol=rtol)


def assert_same_state(one: State, two: State, *, rtol: float = 0.0) -> None:
    """Equal in all that is in use; to the last bit unless a tolerance is given."""
    for name, kind in KINDS.items():
        if kind == "integer":
            assert getattr(one, name) == getattr(two, name), name
        elif kind == "number":
            np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=rtol, err_msg=name)
    for name in one.arrays():
        mine, its = one.used(name), two.used(name)
        np.testing.assert_allclose(mine, its, rtol=rtol, atol=rtol * np.abs(mine).max(initial=1e-300), err_msg=name)
