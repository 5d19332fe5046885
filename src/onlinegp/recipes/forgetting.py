"""Forgetting rules: how the influence of old samples decreases.

A rule changes the state at the start of a learning step and returns the updated prediction. The model returns the
prediction before forgetting, and learns from the error after forgetting.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from onlinegp.recipes.state import Prediction, State

SMALLEST_SCALE = 1e-100  # if `scale` is smaller, it is multiplied into S
LARGEST_INFLATION = 1e4  # largest variance after uncertainty injection, relative to the prior variance


def toward_prior(state: State, factor: float) -> None:
    """Move the covariance toward the prior, S <- factor S + (1 - factor) I, by changing only `state.scale`."""
    state.scale *= factor
    if state.scale < SMALLEST_SCALE:
        S = state.square("S")
        S *= state.scale
        S[np.diag_indices(state.size)] += 1.0 - state.scale
        state.scale = 1.0


@dataclass(frozen=True)
class Keep:
    """Forget nothing."""

    factor = 1.0

    def forget(self, state: State, prediction: Prediction) -> Prediction:
        return prediction


@dataclass(frozen=True)
class Leak:
    """Shrink the weights by the factor 1 - rate, then correct the shrunken weights.

    This is a gradient step on a ridge penalty on f. Kivinen, Smola and Williamson, "Online learning with kernels",
    2004, use the error before shrinking. This library and KAFBOX use the error after shrinking; the difference is rate
    times the mean.
    """

    rate: float
    factor = 1.0

    def forget(self, state: State, prediction: Prediction) -> Prediction:
        state.alpha[: state.size] *= 1.0 - self.rate
        return replace(prediction, mean=(1.0 - self.rate) * prediction.mean)


@dataclass(frozen=True)
class BackToPrior:
    """Move the posterior back to the prior: Sigma <- lambda Sigma + (1 - lambda) K, mu <- sqrt(lambda) mu.

    In whitened coordinates, S <- lambda S + (1 - lambda) I and b <- sqrt(lambda) b, so that S changes only by the
    factor `scale`. A belief with a fixed covariance forgets only the mean. Van Vaerenbergh, Lazaro-Gredilla and
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
    """Increase the variance, Sigma <- Sigma / lambda, as in recursive least squares. The mean stays.

    Without new data near a center, its variance would grow without bound. So there is no injection while it would raise
    an S_ii above 1e4 times its prior value, which is 1.
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
