"""How the past fades.

A rule changes the state at the start of a learning step and returns the prediction as it is afterwards. The
prediction that is reported is the one made before; the error that is learned from is the one after.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from onlinegp.recipes.state import Prediction, State

SMALLEST_SCALE = 1e-100  # below it, the lazy share of S is multiplied in
LARGEST_INFLATION = 1e4  # of the prior variance, by uncertainty injection: twelve digits are left to the others


def toward_prior(state: State, factor: float) -> None:
    """S <- factor S + (1 - factor) I, by the lazy scalar."""
    state.scale *= factor
    if state.scale < SMALLEST_SCALE:
        S = state.square("S")
        S *= state.scale
        S[np.diag_indices(state.size)] += 1.0 - state.scale
        state.scale = 1.0


@dataclass(frozen=True)
class Keep:
    """The past does not fade."""

    factor = 1.0

    def forget(self, state: State, prediction: Prediction) -> Prediction:
        return prediction


@dataclass(frozen=True)
class Leak:
    """Shrink the weights by the factor 1 - rate, then correct what is left.

    This is the gradient of a ridge penalty on f. Kivinen, Smola and Williamson, "Online learning with kernels", 2004,
    take the error before the shrinkage; here, as in KAFBOX, it is the one after, which changes it by rate times the
    mean.
    """

    rate: float
    factor = 1.0

    def forget(self, state: State, prediction: Prediction) -> Prediction:
        state.alpha[: state.size] *= 1.0 - self.rate
        return replace(prediction, mean=(1.0 - self.rate) * prediction.mean)


@dataclass(frozen=True)
class BackToPrior:
    """Sigma <- lambda Sigma + (1 - lambda) K and mu <- sqrt(lambda) mu: what is not confirmed returns to the prior.

    In the variables of the tracked posterior, S <- lambda S + (1 - lambda) I and b <- sqrt(lambda) b, so that one lazy
    scalar does it. A belief with a fixed covariance forgets its mean only. Van Vaerenbergh, Lazaro-Gredilla and
    Santamaria, "Kernel recursive least-squares tracker for time-varying regression", 2012.
    """

    factor: float

    def forget(self, state: State, prediction: Prediction) -> Prediction:
        root = sqrt(self.factor)
        state.alpha[: state.size] *= root
        if state.S is None:
            return replace(prediction, mean=root * prediction.mean)
        toward_prior(state, self.factor)
        v = prediction.kxx - self.factor * (prediction.kxx - prediction.v)
        return replace(
            prediction,
            mean=root * prediction.mean,
            h=self.factor * prediction.h + (1.0 - self.factor) * prediction.t,
            v=v,
            s=prediction.s + (v - prediction.v),
        )


@dataclass(frozen=True)
class UncertaintyInjection:
    """Sigma <- Sigma / lambda: the mean stays, confidence in it decays without end, as in recursive least squares.

    Where nothing confirms a center its variance would grow without bound; the injection pauses where one of the S_ii
    would exceed the prior's, which is 1, by a factor of 1e4.
    """

    factor: float

    def forget(self, state: State, prediction: Prediction) -> Prediction:
        S, scale, inverse = state.square("S"), state.scale, 1.0 / self.factor
        if (inverse * S.diagonal() > LARGEST_INFLATION).any():
            return prediction
        S *= inverse  # scale S + (1 - scale) I, divided by lambda, is of the same form
        S[np.diag_indices(state.size)] += (1.0 - scale) / scale * (inverse - 1.0)
        v = prediction.gamma2 + inverse * (prediction.v - prediction.gamma2)
        return replace(prediction, h=inverse * prediction.h, v=v, s=prediction.s + (v - prediction.v))


Forgetting = Keep | Leak | BackToPrior | UncertaintyInjection
