"""The update that all recipes share. A recipe chooses its parts.

    forget, predict the row, admit or not, gain, correct, prune

The paper is Van Vaerenbergh, Fernandez-Bes and Elvira, "On the relationship between online Gaussian process regression
and kernel least mean squares algorithms", MLSP 2016; equations are cited by number. The update is its equation 11. The
parts of a recipe: `dictionaries` decide which samples become centers, `beliefs` represent the posterior covariance,
`forgetting` decreases the influence of old samples, `pruning` decides which center is removed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.recipes.beliefs import Belief, Exact, LeastSquares, Posterior, StateSpace
from onlinegp.recipes.dictionaries import ALD, Dictionary, Growing
from onlinegp.recipes.forgetting import BackToPrior, Forgetting, Keep, UncertaintyInjection
from onlinegp.recipes.linear_algebra import solve
from onlinegp.recipes.pruning import LeastError, Pruning
from onlinegp.recipes.state import IGNORE, MOST_SEEN, NEW, Prediction, State, Step

FIRST_CAPACITY = 16
TINIEST = 1e-290  # lower limit of the learned power, in case all errors are zero


@dataclass(frozen=True)
class Recipe:
    """An algorithm: kernel, dictionary, belief, forgetting and pruning.

    With `learn_power`, a common factor of all variances is learned from the innovations: the (fading) mean of e^2 / s.
    """

    kernel: Kernel
    belief: Belief
    dictionary: Dictionary = field(default_factory=Growing)
    forgetting: Forgetting = field(default_factory=Keep)
    pruning: Pruning | None = None
    learn_power: bool = False

    def __post_init__(self) -> None:
        belief = type(self.belief).__name__
        if self.spans and self.pruning is not None:
            raise ValueError(
                f"ALD with the belief {belief} cannot remove centers, got the pruning {self.pruning}. "
                f"Use Coherence or Quantized instead of ALD, or the belief Posterior."
            )
        if isinstance(self.belief, Exact) and not isinstance(self.dictionary, Growing):
            raise ValueError(
                f"the belief Exact keeps every sample as a center, got the dictionary {self.dictionary}. "
                f"Use Growing, or the belief Posterior."
            )
        if isinstance(self.forgetting, UncertaintyInjection) and not isinstance(self.belief, Posterior):
            raise ValueError(
                f"UncertaintyInjection needs a tracked covariance, which the belief {belief} does not have. "
                f"Use BackToPrior or Leak, or the belief Posterior."
            )
        if isinstance(self.forgetting, BackToPrior) and isinstance(self.belief, (Exact, LeastSquares)):
            raise ValueError(f"BackToPrior with the belief {belief} is not defined. Use the belief Posterior, or Keep.")

        if isinstance(self.belief, StateSpace) and (self.learn_power or not isinstance(self.forgetting, Keep)):
            raise ValueError(
                "the belief StateSpace has its own forgetting and its own power. Use Keep and learn_power=False."
            )
        if isinstance(self.belief, StateSpace) and not isinstance(self.dictionary, Growing | ALD):
            raise ValueError(
                f"the belief StateSpace changes with every sample, but {self.dictionary} may ignore samples. "
                f"Use Growing or ALD."
            )

    @property
    def budget(self) -> int | None:
        return None if self.pruning is None else self.pruning.budget

    @property
    def tracks(self) -> tuple[str, ...]:
        """The names of the arrays that the state keeps in addition to centers and weights."""
        scores = "L" in self.belief.tracks and isinstance(self.pruning, LeastError)
        return self.belief.tracks + (("dQ",) if scores else ()) + (("L",) if self.spans else ())

    @property
    def spans(self) -> bool:
        """Whether L is tracked only for the dictionary."""
        return isinstance(self.dictionary, ALD) and "L" not in self.belief.tracks

    def start(self, features: int, outputs: int = 1) -> State:
        """Return the state before the first sample: the prior."""
        return State.empty(features, outputs, FIRST_CAPACITY, tracks=self.tracks)


def predict(recipe: Recipe, state: State, x: Array) -> Prediction:
    """Return the prediction for the input x, (d,)."""
    k = recipe.kernel.row(state.C, x)
    kxx = float(recipe.kernel.diag(x[None, :])[0])
    prediction = recipe.belief.predict(state, k, kxx)
    if recipe.spans:
        prediction.t = solve(state.square("L"), k)
        prediction.gamma2 = max(kxx - float(prediction.t @ prediction.t), 0.0)
    return prediction


def learn(recipe: Recipe, state: State, x: Array, y: Array) -> Step:
    """Learn a sample, x (d,) and y (p,), in place. Return the result."""
    before = predict(recipe, state, x)
    variance = state.power * before.s
    now = recipe.forgetting.forget(state, before)
    e = y - now.mean

    slot = recipe.dictionary.place(state, x, now, e)
    if slot == NEW and recipe.belief.expresses(now):
        slot = 0
    left = NEW
    if slot == NEW and state.size == recipe.budget:
        left = center_to_remove(recipe, state, now, e)
        if left == state.size:  # x itself is removed: project it onto the centers, or ignore it
            slot, left = (0 if recipe.belief.projects else IGNORE), NEW

    if slot != IGNORE:
        g, s = recipe.belief.gain(state, now, slot)
        if slot == NEW:
            state.push(x, now.kxx, recipe.budget)
        state.a[:] += np.multiply.outer(g, e / s)
        recipe.belief.track(state, now, g, s, slot == NEW)
    admitted = slot == NEW
    if admitted:
        slot = state.size - 1 if left == NEW else recipe.belief.drop(state, left, recipe.kernel)

    if recipe.learn_power:
        fade = recipe.forgetting.factor * state.evidence
        state.evidence = fade + 1.0
        power = state.power + (float((e**2).mean()) / now.s - state.power) / state.evidence
        state.power = max(power, TINIEST)
    state.seen = min(state.seen + 1, MOST_SEEN)
    return Step(before.mean, variance, e, slot, admitted, left)


def center_to_remove(recipe: Recipe, state: State, now: Prediction, e: Array) -> int:
    """Return the slot to remove from a full dictionary when x is admitted. The slot after the last center means x."""
    assert recipe.pruning is not None
    alpha, d = recipe.belief.candidates(state, now, e)
    born = np.append(state.born[: state.size], state.seen)
    return recipe.pruning.candidate(alpha, d, born)
