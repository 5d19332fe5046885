"""Dictionaries: rules that decide which samples become centers.

For each sample a dictionary returns NEW (the sample becomes a center), the slot of an existing center to use instead,
or IGNORE. For an existing slot, the belief `Prior` corrects the weight of this center only. A tracked belief corrects
all weights, because it projects the sample onto the centers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlinegp.checks import Array
from onlinegp.recipes.state import IGNORE, NEW, PROJECTED, Prediction, State


def nearest(state: State, x: Array) -> tuple[int, float]:
    """Return the slot of the nearest center and its squared Euclidean distance."""
    d2 = ((state.C - x) ** 2).sum(axis=1)
    slot = int(d2.argmin())
    return slot, float(d2[slot])


@dataclass(frozen=True)
class Growing:
    """Every sample becomes a center."""

    def place(self, state: State, x: Array, prediction: Prediction, e: Array) -> int:
        return NEW


@dataclass(frozen=True)
class Quantized:
    """Admit x only if it is farther than `radius` from every center; otherwise reuse the nearest center.

    Chen, Zhao, Zhu and Principe, "Quantized kernel least mean square algorithm", 2012. The distance is Euclidean, in
    the units of the inputs.
    """

    radius: float

    def place(self, state: State, x: Array, prediction: Prediction, e: Array) -> int:
        if state.size == 0:
            return NEW
        slot, d2 = nearest(state, x)
        return slot if d2 <= self.radius**2 else NEW


@dataclass(frozen=True)
class Coherence:
    """Admit x only if its coherence with every center is at most `threshold`; otherwise reuse the most coherent center.

    Coherence is |k(x, c)| / sqrt(k(x, x) k(c, c)). Richard, Bermudez and Honeine, "Online prediction of time series
    data with kernels", 2009.
    """

    threshold: float

    def place(self, state: State, x: Array, prediction: Prediction, e: Array) -> int:
        if state.size == 0:
            return NEW
        norms = np.sqrt(prediction.kxx * state.kcc[: state.size])
        coherence = np.abs(prediction.k) / np.where(norms > 0, norms, np.inf)
        slot = int(coherence.argmax())
        return NEW if coherence[slot] <= self.threshold else slot


@dataclass(frozen=True)
class ALD:
    """Admit x only if gamma2 = k(x, x) - k K^-1 k exceeds `threshold` times k(x, x): approximate linear dependence.

    Any other sample is projected onto the centers: it corrects all weights by its coordinates K^-1 k. This needs L with
    L L' = K. Tracked beliefs have L. For other beliefs, L is updated only for this, at O(m^2) per sample.

    Engel, Mannor and Meir, "The kernel recursive least-squares algorithm", 2004. Their threshold is absolute. Here it
    is relative to k(x, x), so that it does not depend on the unit of y. With KLMS: Pokharel, Liu and Principe, "Kernel
    least mean square algorithm with constrained growth", 2009.
    """

    threshold: float

    def place(self, state: State, x: Array, prediction: Prediction, e: Array) -> int:
        if prediction.gamma2 > self.threshold * prediction.kxx:
            return NEW
        return PROJECTED if state.S is None else 0


@dataclass(frozen=True)
class Novelty:
    """Admit x only if it is farther than `radius` from every center and its error exceeds `error`.

    Any other sample reuses the nearest center.

    Platt, "A resource-allocating network for function interpolation", 1991.
    """

    radius: float
    error: float

    def place(self, state: State, x: Array, prediction: Prediction, e: Array) -> int:
        if state.size == 0:
            return NEW
        slot, d2 = nearest(state, x)
        return NEW if d2 > self.radius**2 and np.abs(e).max() > self.error else slot


@dataclass(frozen=True)
class Surprise:
    """Admit x if its surprise is between two levels. Below, reuse the nearest center; above, ignore the sample.

    The surprise is the negative log density of y, (log(2 pi s) + e^2 / s) / 2. Below `redundant` a sample contains
    nothing new; above `abnormal` it is treated as an outlier. Liu, Park and Principe, "An information theoretic
    approach of designing sparse kernel adaptive filters", 2009.
    """

    redundant: float
    abnormal: float = np.inf

    def place(self, state: State, x: Array, prediction: Prediction, e: Array) -> int:
        surprise = 0.5 * (np.log(2 * np.pi * prediction.s) + float((e**2).mean()) / prediction.s)
        if surprise > self.abnormal:
            return IGNORE
        if state.size == 0 or surprise >= self.redundant:
            return NEW
        return nearest(state, x)[0]


Dictionary = Growing | Quantized | Coherence | ALD | Novelty | Surprise
