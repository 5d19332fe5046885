"""Beliefs: how a filter represents its posterior covariance.

With B = Q Sigma Q - Q (Q the inverse kernel matrix of the centers), every filter corrects its weights by

    alpha <- alpha + e / s * g,    g = q + B k,    v = k(x, x) + k . B k,    s = v + noise     (paper, eq. 11)

where q contains the coordinates of x in the dictionary: the unit vector of x if x was admitted, the unit vector of the
nearest center if x was quantized, Q k if x was projected. A belief is a choice of B:

    Prior          B = 0           the covariance stays the prior covariance             O(m)
    Beta           B = beta I      Sigma = K (beta K + I)                                O(m)
    Isotropic      B = I           Sigma = K K + K, with g = k in place of q + k         O(m)
    Posterior      tracked; the centers represent all the data                           O(m^2)
    StateSpace     the same for a function that changes from sample to sample            O(m^2)
    Exact          tracked; the centers are the data                                     O(m^2)
    LeastSquares   tracked, with a flat prior at the centers                             O(m^2)

The tracked beliefs use whitened coordinates and never compute an inverse. `BeliefBase` lists the methods of a belief.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.recipes.forgetting import toward_prior
from onlinegp.recipes.linear_algebra import BeliefBase, coordinates, solve, turned, unit
from onlinegp.recipes.state import NEW, Prediction, State

LEAST_DOUBT = 1e-15  # smallest variance relative to the prior variance, because of rounding
SMALLEST_NOVELTY = 1e-12  # smallest gamma2 of a new center, relative to its prior variance
WORTH_A_CENTER = 1e-3  # smallest gamma2 for which x becomes a center, relative to the noise
LEAST_POWER, MOST_POWER = 1e-4, 1e4  # limits of the prior variance of a state, relative to its first value
RENEWED_EVERY = 16  # number of corrections between two entries of dQ that are computed from scratch


@dataclass(frozen=True)
class Prior(BeliefBase):
    """The belief of KLMS: the covariance always stays the prior covariance, B = 0. A correction changes one weight.

    The step is the inverse of the innovation variance, step = 1 / (noise + k(x, x)) (paper, eq. 16), so the
    variance of y is 1 / step. No noise corresponds to a step above 1 / k(x, x); then the variance is k(x, x).
    """

    step: float

    def predict(self, state: State, k: Array, kxx: float) -> Prediction:
        return Prediction(k, kxx, mean=k @ state.a, v=kxx, s=max(1.0 / self.step, kxx))

    def gain(self, state: State, prediction: Prediction, slot: int) -> tuple[Array, float]:
        return coordinates(state, prediction, slot), 1.0 / self.step

    def covariance(self, state: State, K: Array) -> Array:
        return K


@dataclass(frozen=True)
class Beta(BeliefBase):
    """The belief of beta-KLMS: B = beta I, so Sigma = K (beta K + I) (paper, eq. 12) and v = k(x, x) + beta |k|^2.

    Sigma is positive semidefinite if and only if beta >= -1 / lambda_max(K). beta="auto" is the most negative value
    that is safe according to a bound on lambda_max, beta = -1 / (R + noise). R is the largest row sum of |k| in the
    kernel matrix of the centers and x. This also makes v >= 0.
    """

    beta: float | str
    noise: float

    @property
    def tracks(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("rowsum",) if self.beta == "auto" else ()

    def value(self, bound: float) -> float:
        return -1.0 / (bound + self.noise) if self.beta == "auto" else float(self.beta)

    def bound(self, state: State, k: Array, kxx: float) -> float:
        """Return R, the running maximum of the row sums, with x as an additional row."""
        if state.rowsum is None:
            return 0.0
        k = np.abs(k)
        rows = float((state.rowsum[: len(k)] + k).max(initial=0.0))
        return max(state.bound, rows, float(k.sum()) + kxx)

    def predict(self, state: State, k: Array, kxx: float) -> Prediction:
        beta = self.value(self.bound(state, k, kxx))
        v = max(kxx + beta * float(k @ k), 0.0)
        return Prediction(k, kxx, mean=k @ state.a, v=v, s=v + self.noise, beta=beta)

    def gain(self, state: State, prediction: Prediction, slot: int) -> tuple[Array, float]:
        g = coordinates(state, prediction, slot)
        g[: state.size] += prediction.beta * prediction.k
        return g, prediction.s

    def track(self, state: State, prediction: Prediction, g: Array, s: float, admitted: bool) -> None:
        super().track(state, prediction, g, s, admitted)
        if admitted and state.rowsum is not None:
            state.bound = self.bound(state, prediction.k, prediction.kxx)
            state.rowsum[: len(prediction.k)] += np.abs(prediction.k)
            state.rowsum[len(prediction.k)] = np.abs(prediction.k).sum() + prediction.kxx

    def drop(self, state: State, j: int, kernel: Kernel) -> int:
        if state.rowsum is not None:
            state.rowsum[: state.size] -= np.abs(kernel.row(state.C, state.C[j]))
        return state.move_last_to(j)

    def covariance(self, state: State, K: Array) -> Array:
        return K @ (self.value(state.bound) * K + np.eye(len(K)))


@dataclass(frozen=True)
class Isotropic(BeliefBase):
    """The belief of KNLMS: B = I (beta = 1 in the paper) with the gain g = k. A correction changes all weights.

    So Sigma = K K + K (paper, eq. 20), and v = k(x, x) + |k|^2 (eq. 21), which grows with the data. The gain equals
    q + k if x is admitted and k(x, x) = 1; otherwise KNLMS differs from beta = 1. The step implies the innovation
    variance (epsilon + |k|^2) / step, where k includes k(x, x) if x was admitted (eq. 10).
    """

    step: float
    epsilon: float

    def predict(self, state: State, k: Array, kxx: float) -> Prediction:
        k2 = float(k @ k)
        s = (self.epsilon + k2 + kxx * kxx) / self.step
        return Prediction(k, kxx, mean=k @ state.a, v=kxx + k2, s=max(s, kxx + k2))

    def gain(self, state: State, prediction: Prediction, slot: int) -> tuple[Array, float]:
        g = np.append(prediction.k, prediction.kxx) if slot == NEW else prediction.k
        return g, (self.epsilon + float(g @ g)) / self.step

    def covariance(self, state: State, K: Array) -> Array:
        return K @ K + K


class _Tracked(BeliefBase):
    """Base class of the tracked beliefs: f at the centers is L u, with L lower triangular and u ~ N(b, S).

    With t = L^-1 k the mean is t . b. A new center adds the row [t, sqrt(gamma2)] to L. Removing center j removes the
    direction n = L^-1 e_j, to which all rows of L except row j are orthogonal. With a basis E of the remaining space,
    L <- L E without row j, b <- E' b, S <- E' S E. All transformations are orthogonal, so L L' equals K up to the last
    digits. The kernel weights are alpha = L^-T b, and dQ is the diagonal of (L L')^-1 = L^-T L^-1.
    """

    def track(self, state: State, prediction: Prediction, g: Array, s: float, admitted: bool) -> None:
        """Append the row of an admitted x to L, update dQ, and compute one entry of dQ from scratch, in turn."""
        L, m = state.square("L"), state.size
        L[-1] = np.append(prediction.t, sqrt(prediction.gamma2))
        if state.dQ is not None:
            state.dQ[:m] = self._dQ(state.dQ, L[:-1, :-1], prediction)
            if state.seen % RENEWED_EVERY == 0:
                i = state.seen // RENEWED_EVERY % m
                state.dQ[i] = (solve(L[i:, i:], unit(m - i, 0)) ** 2).sum()

    def _dQ(self, dQ: Array, L: Array, prediction: Prediction) -> Array:
        """Return dQ after x is admitted: dQ + q^2 / gamma2 with q = L^-T t, and 1 / gamma2 for x itself."""
        q = solve(L, prediction.t, transposed=True)
        return np.append(dQ[: len(q)] + q**2 / prediction.gamma2, 1.0 / prediction.gamma2)

    def candidates(self, state: State, prediction: Prediction, e: Array) -> tuple[Array, Array]:
        """Return alpha and dQ after admitting x, by back substitution of b + g e / s."""
        (b, d), L = super().candidates(state, prediction, e), state.square("L")
        last = b[-1:] / sqrt(prediction.gamma2)
        others = solve(L, b[:-1] - np.outer(prediction.t, last), transposed=True)
        return np.concatenate([others, last]), d if state.dQ is None else self._dQ(state.dQ, L, prediction)

    def drop(self, state: State, j: int, kernel: Kernel) -> int:
        L, last = state.square("L"), state.size - 1
        n = solve(L, unit(len(L), j))
        if state.dQ is not None:  # Q_ii - Q_ij^2 / Q_jj
            state.dQ[: len(L)] -= solve(L, n / np.linalg.norm(n), transposed=True) ** 2
        if state.S is not None:
            S = turned(turned(state.square("S"), n, j).T, n, j)
            state.S[:last, :last] = 0.5 * (S + S.T)  # exactly symmetric
        state.b[:last] = turned(state.b.T, n, j).T
        L[:last, :last] = np.tril(turned(np.delete(L, j, axis=0), n, j))  # above the diagonal are only rounding errors
        state.close_gap(j)
        return last - 1

    def weights(self, state: State) -> Array:
        return solve(state.square("L"), state.b, transposed=True)


class _Projected(_Tracked):
    """Base class of tracked beliefs in which the centers represent all data.

    L L' = K, with `jitter` times k(x, x) added on the diagonal. With h = S t the variance of f is v = gamma2 + t . h,
    where gamma2 = kxx - t . t. The stored S represents the matrix scale S + (1 - scale) I.
    """

    noise: float
    jitter: float = 0.0
    tracks: ClassVar[tuple[str, ...]] = ("L", "S")
    projects: ClassVar[bool] = True

    def predict(self, state: State, k: Array, kxx: float) -> Prediction:
        kxx *= 1.0 + self.jitter
        t = solve(state.square("L"), k)
        h = state.scale * (state.square("S") @ t) + (1.0 - state.scale) * t
        t2 = float(t @ t)
        gamma2 = max(kxx - t2, 0.0)
        v = gamma2 + max(float(t @ h), LEAST_DOUBT * t2)
        return Prediction(k, kxx, t @ state.b, v, v + self.noise, t, h, gamma2)

    def gain(self, state: State, prediction: Prediction, slot: int) -> tuple[Array, float]:
        return np.append(prediction.h, sqrt(prediction.gamma2)) if slot == NEW else prediction.h, prediction.s

    def shrink(self, state: State, prediction: Prediction, g: Array, s: float, admitted: bool) -> None:
        """Track the posterior covariance, S <- S - g g' / s. Before, an admitted x gets a 1 on the diagonal of S."""
        if admitted:
            super().track(state, prediction, g, s, admitted)
            state.border("S", 0.0, 1.0)
        state.square("S")[:] -= np.multiply.outer(g, g) / (s * state.scale)
        if not prediction.t @ prediction.h > LEAST_DOUBT * (prediction.t @ prediction.t):
            state.scale *= 1.0 - LEAST_DOUBT  # rounding errors made the variance too small

    def worth(self, prediction: Prediction) -> float:
        """Return the smallest gamma2 for which x becomes a center."""
        return 0.0

    def expresses(self, prediction: Prediction) -> bool:
        share = max(SMALLEST_NOVELTY, 4.0 * self.jitter)  # for an exact duplicate, gamma2 is twice the jitter
        return prediction.gamma2 <= max(share * prediction.kxx, self.worth(prediction))

    def covariance(self, state: State, K: Array) -> Array:
        L, S = state.square("L"), state.square("S")
        Sigma = L @ (state.scale * S + (1.0 - state.scale) * np.eye(len(S))) @ L.T
        return 0.5 * (Sigma + Sigma.T)


@dataclass(frozen=True)
class Posterior(_Projected):
    """The online GP in which the centers represent all data. S is the posterior covariance of u.

    S starts as I and only shrinks: b <- b + h e / s, S <- S - h h' / s. If x is admitted, h gets the additional
    entry sqrt(gamma2), and S gets 1 on its diagonal.
    """

    noise: float
    jitter: float = 1e-12

    def worth(self, prediction: Prediction) -> float:
        return WORTH_A_CENTER * self.noise

    def track(self, state: State, prediction: Prediction, g: Array, s: float, admitted: bool) -> None:
        self.shrink(state, prediction, g, s, admitted)


@dataclass(frozen=True)
class StateSpace(_Projected):
    """The posterior of a changing function: with each sample f fades and drifts, and older samples lose weight.

        f <- transition f + d,   d ~ GP(0, drift noise k);   a sample n steps ago has the noise noise / forgetting^n

    In units of the noise of the next sample, mu <- transition mu and Sigma <- (transition^2 Sigma + drift noise K)
    / forgetting. The prior covariance follows the same rule: it is power K, with power = 1 before any data. In units of
    the prior, S <- w S + (1 - w) I with w = transition^2 power / (transition^2 power + drift noise), so that S changes
    only by the factor `scale`, and the noise is noise / power.

    If transition^2 > forgetting, the power would grow without bound and the prior would vanish. If f fades and does
    not drift, the power would vanish. The power is kept between 1e-4 and 1e4; at these limits only the drift forgets.

    Liu, Park, Wang and Principe, "Extended kernel recursive least squares algorithm", 2009.
    """

    noise: float
    jitter: float = 1e-12
    transition: float = 1.0
    drift: float = 0.0
    forgetting: float = 1.0

    def predict(self, state: State, k: Array, kxx: float) -> Prediction:
        prediction = super().predict(state, k, kxx)
        prediction.s = prediction.v + self.noise / state.power
        return prediction

    def worth(self, prediction: Prediction) -> float:
        return WORTH_A_CENTER * (prediction.s - prediction.v)

    def track(self, state: State, prediction: Prediction, g: Array, s: float, admitted: bool) -> None:
        self.shrink(state, prediction, g, s, admitted)
        kept = self.transition**2 * state.power
        power = kept + self.drift * self.noise
        state.power = min(max(power / self.forgetting, LEAST_POWER), MOST_POWER)
        toward_prior(state, kept / power)
        state.b[:] *= self.transition


@dataclass(frozen=True)
class Exact(_Tracked):
    """The online GP in which the centers are the data: L L' = K + noise I and b = L^-1 y, without S.

    Here gamma2 = s = kxx - t . t + noise. Removing a center removes its sample: what remains is the GP on the other
    samples.
    """

    noise: float
    tracks: ClassVar[tuple[str, ...]] = ("L",)

    def predict(self, state: State, k: Array, kxx: float) -> Prediction:
        t = solve(state.square("L"), k)
        v = max(kxx - float(t @ t), LEAST_DOUBT * kxx)
        return Prediction(k, kxx, t @ state.b, v, v + self.noise, t, gamma2=v + self.noise)

    def gain(self, state: State, prediction: Prediction, slot: int) -> tuple[Array, float]:
        return sqrt(prediction.s) * unit(state.size, NEW), prediction.s

    def covariance(self, state: State, K: Array) -> Array:
        # Sigma = noise K (K + noise I)^-1: without a subtraction, variances cannot be negative
        w, U = np.linalg.eigh(K)
        w = np.maximum(w, 0.0)
        R = U * np.sqrt(self.noise * w / (w + self.noise))
        return R @ R.T


@dataclass(frozen=True)
class LeastSquares(_Projected):
    """Recursive least squares on f at the centers (noise 1): the online GP in the limit of a flat prior.

    An admitted x is interpolated with the variance of the noise: f(x) ~ N(y, 1), independent of the other centers. Any
    other x is replaced by its projection onto the centers, with h = S t and s = 1 + t . h. Engel, Mannor and Meir, "The
    kernel recursive least-squares algorithm", 2004. Unlike the paper, this class adds a jitter to K, so that a lower
    threshold of ALD gives more centers and a smaller error in spite of rounding.
    """

    jitter: float = 1e-12
    noise: ClassVar[float] = 1.0  # type: ignore[misc]

    def gain(self, state: State, prediction: Prediction, slot: int) -> tuple[Array, float]:
        if slot == NEW:
            return unit(state.size, NEW) / sqrt(prediction.gamma2), 1.0
        return prediction.h, 1.0 + prediction.v - prediction.gamma2

    def track(self, state: State, prediction: Prediction, g: Array, s: float, admitted: bool) -> None:
        h, gamma2 = prediction.h, prediction.gamma2
        if admitted:  # the new entry of u is (f(x) - t . u) / sqrt(gamma2)
            super().track(state, prediction, g, s, admitted)
            state.border("S", -h / sqrt(gamma2), (1.0 + float(prediction.t @ h)) / gamma2)
        else:
            state.square("S")[:] -= np.multiply.outer(h, h) / s


Belief = Prior | Beta | Isotropic | Posterior | StateSpace | Exact | LeastSquares
