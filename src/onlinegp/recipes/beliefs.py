"""What a filter thinks of its posterior covariance.

With B = Q Sigma Q - Q (Q the inverse kernel matrix of the centers), every filter corrects its weights by

    alpha <- alpha + e / s * g,    g = q + B k,    v = k(x, x) + k . B k,    s = v + noise     (paper, eq. update_alpha)

where q holds the coordinates of x in the dictionary: the unit vector of its own slot if x was admitted, that of the
nearest center if it was quantized, Q k if it was projected. A belief is a choice of B:

    Prior          B = 0           the covariance stays the prior's                      O(m)
    Beta           B = beta I      Sigma = K (beta K + I)                                O(m)
    Isotropic      B = I - Q       Sigma = K K, so that g = k                            O(m)
    Posterior      B = -A          tracked, over centers that stand for all the data     O(m^2)
    Exact          B = -A          tracked, over centers that are the data               O(m^2)
    LeastSquares   B = Q P Q - Q   tracked, with a flat prior at the centers             O(m^2)

A belief predicts a sample (`predict`), steadies itself against rounding (`steady`), gives the gain g and the innovation
variance s (`gain`), follows the correction with what it tracks (`track`), and lets a center go (`drop`), whose cost it
can foretell (`significance`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.recipes.state import NEW, Prediction, State

REFINE_ABOVE = 1e-12  # a residual |K q - k| / kxx beyond it calls for a step of iterative refinement
LEAST_DOUBT = 1e-14  # over the jitter: the share of the prior variance that rounding cannot tell from none
PROBED_FOR = 16  # samples that check the same row of K, before the turn of the next: one row is cheap to keep
RESIDUAL_MEMORY = 0.98  # how slowly the running residual forgets: some hundred samples after the last alarm


def unit(m: int, slot: int) -> Array:
    """Return the unit vector of a slot; NEW is the slot after the last."""
    e = np.zeros(m + (slot == NEW))
    e[slot] = 1.0
    return e


def add_outer(S: Array, u: Array, c: float) -> None:
    """S <- S + c u u', symmetric to the last bit."""
    S += c * np.multiply.outer(u, u)


def extend_inverse(state: State, q: Array, gamma2: float) -> None:
    """Q <- [Q 0; 0 0] + p p' / gamma2,   p = [q; -1]        (paper, eq. q_update)."""
    Q = state.square("Q")
    Q[-1, :] = Q[:, -1] = 0.0
    add_outer(Q, np.append(q, -1.0), 1.0 / gamma2)


class _Belief:
    def steady(self, state: State, prediction: Prediction) -> Prediction:
        """Return the prediction as it is after whatever rounding calls for; as a rule, nothing."""
        return prediction


@dataclass(frozen=True)
class _Fixed(_Belief):
    """The parts that beliefs with a fixed covariance share: nothing to track, a leaving center is truncated."""

    tracks: ClassVar[tuple[str, ...]] = ()
    projects: ClassVar[bool] = False

    def track(self, state: State, prediction: Prediction, g: Array, s: float, admitted: bool) -> None:
        pass

    def significance(self, state: State, prediction: Prediction, s: float) -> Array:
        return np.ones(state.size + 1)

    def drop(self, state: State, j: int, kernel: Kernel) -> None:
        pass


@dataclass(frozen=True)
class Prior(_Fixed):
    """B = 0: the covariance stays the prior's, whatever was seen; all novelty goes into one weight (type I).

    The step is an innovation variance in disguise, step = 1 / (noise + k(x, x)) (paper, eq. update_alpha_subs1), so
    the variance of y is 1 / step. A step above 1 / k(x, x) matches no noise; the variance is then k(x, x).
    """

    step: float

    def predict(self, state: State, k: Array, kxx: float) -> Prediction:
        return Prediction(k, kxx, mean=k @ state.a, v=kxx, s=max(1.0 / self.step, kxx))

    def gain(self, state: State, prediction: Prediction, slot: int) -> tuple[Array, float]:
        return unit(state.size, slot), 1.0 / self.step

    def covariance(self, state: State, K: Array) -> Array:
        return K


@dataclass(frozen=True)
class Beta(_Fixed):
    """B = beta I: Sigma = K (beta K + I) (paper, eq. pcov_simple), so v = k(x, x) + beta |k|^2.

    Sigma is positive semidefinite if and only if beta >= -1 / lambda_max(K). With beta="auto" it is the most negative
    value that a bound on lambda_max proves safe, beta = -1 / (R + noise), where R is the largest sum of |k| over a row
    of the kernel matrix of the centers and x together; so v >= 0 too.
    """

    beta: float | str
    noise: float

    @property
    def tracks(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("rowsum",) if self.beta == "auto" else ()

    def value(self, bound: float) -> float:
        return -1.0 / (bound + self.noise) if self.beta == "auto" else float(self.beta)

    def bound(self, state: State, k: Array, kxx: float) -> float:
        """Return R, the running maximum of the row sums, with x as one more row."""
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
        g = unit(state.size, slot)
        g[: state.size] += prediction.beta * prediction.k
        return g, prediction.s

    def track(self, state: State, prediction: Prediction, g: Array, s: float, admitted: bool) -> None:
        if admitted and state.rowsum is not None:
            state.bound = self.bound(state, prediction.k, prediction.kxx)
            state.rowsum[: len(prediction.k)] += np.abs(prediction.k)
            state.rowsum[len(prediction.k)] = np.abs(prediction.k).sum() + prediction.kxx

    def drop(self, state: State, j: int, kernel: Kernel) -> None:
        if state.rowsum is not None:
            state.rowsum[: state.size] -= np.abs(kernel.row(state.C, state.C[j]))

    def covariance(self, state: State, K: Array) -> Array:
        return K @ (self.value(state.bound) * K + np.eye(len(K)))


@dataclass(frozen=True)
class Isotropic(_Fixed):
    """B = I - Q, so that g = k: novelty is spread over all weights (type II).

    The innovation variance that the step implies is (epsilon + |k|^2) / step, x counted in k where it was admitted
    (paper, eq. knlms_update). The variance of f is that of the paper's beta = 1, k(x, x) + |k|^2 (eq. pred_cov_beta1):
    it grows with the data.
    """

    step: float
    epsilon: float

    def predict(self, state: State, k: Array, kxx: float) -> Prediction:
        k2 = float(k @ k)
        s = (self.epsilon + k2 + kxx**2) / self.step
        return Prediction(k, kxx, mean=k @ state.a, v=kxx + k2, s=max(s, kxx + k2))

    def gain(self, state: State, prediction: Prediction, slot: int) -> tuple[Array, float]:
        g = np.append(prediction.k, prediction.kxx) if slot == NEW else prediction.k
        return g, (self.epsilon + float(g @ g)) / self.step

    def covariance(self, state: State, K: Array) -> Array:
        return K @ K


@dataclass(frozen=True)
class Posterior(_Belief):
    """B = -A with A = Q - Q Sigma Q and Q tracked: the online GP over a dictionary that stands for all the data.

    A center that leaves is projected onto the others: with T = [I, -Q_rj / Q_jj], alpha <- T alpha, A <- T A T',
    Q <- T Q T', so the posterior of f at the remaining centers stays as it was.

    K carries `jitter` times k(x, x) on its diagonal. Where the running residual of K q = k says that Q has lost
    accuracy, q is refined by one step, q <- q + Q (k - K q); v >= gamma2 >= 0 always, as Sigma is positive definite.
    """

    noise: float
    jitter: float = 1e-6
    tracks: ClassVar[tuple[str, ...]] = ("A", "Q", "K")
    projects: ClassVar[bool] = True

    def predict(self, state: State, k: Array, kxx: float) -> Prediction:
        kxx *= 1.0 + self.jitter
        w = state.scale * (state.square("A") @ k)
        q = state.square("Q") @ k
        gamma2, v = kxx - float(k @ q), kxx - float(k @ w)
        residual = self.residual(state, k, kxx, q)
        if max(residual, state.residual) > REFINE_ABOVE or not 0.0 <= gamma2 <= v:
            q = q + state.square("Q") @ (k - state.square("K") @ q)
            gamma2 = kxx - float(k @ q)
        gamma2 = max(gamma2, 0.0)
        v = max(v, gamma2)
        return Prediction(k, kxx, k @ state.a, v, v + self.noise, w, q, gamma2, residual=residual)

    def residual(self, state: State, k: Array, kxx: float, q: Array) -> float:
        """Return |K q - k| / kxx in one row, another one every PROBED_FOR samples."""
        if state.size == 0 or kxx == 0.0:
            return 0.0
        row = state.seen // PROBED_FOR % state.size
        return abs(float(state.square("K")[row] @ q) - float(k[row])) / kxx

    def steady(self, state: State, prediction: Prediction) -> Prediction:
        """Return to the prior what rounding has made too sure of itself.

        S = Q - A is positive definite, but a difference: with little noise and no forgetting, k S k sinks below the
        rounding errors of its parts, and what is negative then grows without end. Where k S k is less than a share
        LEAST_DOUBT / jitter of k Q k, some 1e-8, A shrinks by the factor that restores it; elsewhere nothing changes.
        """
        kAk, kQk = float(prediction.k @ prediction.w), float(prediction.k @ prediction.q)
        missing = LEAST_DOUBT / self.jitter * kQk - float(prediction.k @ (prediction.q - prediction.w))
        if not missing > 0.0:
            return prediction
        kept = 1.0 - min(missing / kAk, 0.5)
        state.scale *= kept
        v = max(prediction.kxx - kept * kAk, prediction.gamma2)
        return replace(prediction, w=kept * prediction.w, v=v, s=v + self.noise)

    def gain(self, state: State, prediction: Prediction, slot: int) -> tuple[Array, float]:
        return (np.append(-prediction.w, 1.0) if slot == NEW else prediction.q - prediction.w), prediction.s

    def track(self, state: State, prediction: Prediction, g: Array, s: float, admitted: bool) -> None:
        state.residual = max(prediction.residual, RESIDUAL_MEMORY * state.residual)
        A = state.square("A")
        if admitted:
            A[-1, :] = A[:, -1] = 0.0
            extend_inverse(state, prediction.q, prediction.gamma2)
            K = state.square("K")
            K[-1, :] = K[:, -1] = np.append(prediction.k, prediction.kxx)
        add_outer(A, g, 1.0 / (s * state.scale))

    def significance(self, state: State, prediction: Prediction, s: float) -> Array:
        """Return the diagonal of Q as it is with x admitted."""
        return np.append(state.square("Q").diagonal() + prediction.q**2 / prediction.gamma2, 1.0 / prediction.gamma2)

    def drop(self, state: State, j: int, kernel: Kernel) -> None:
        A, Q = state.square("A"), state.square("Q")
        z = Q[:, j] / Q[j, j]
        # T A T' = A - z b' - b z'   with   b = A_rj - A_jj z / 2
        b = A[:, j] - 0.5 * A[j, j] * z
        zb = np.multiply.outer(z, b)
        A -= zb + zb.T
        add_outer(Q, z, -float(Q[j, j]))
        state.a[:] -= np.outer(z, state.a[j])

    def covariance(self, state: State, K: Array) -> Array:
        K = state.square("K")
        return K - state.scale * (K @ state.square("A") @ K)


@dataclass(frozen=True)
class Exact(_Belief):
    """B = -A with A = (K + noise I)^-1 tracked: the online GP whose centers are the data themselves.

    It needs no inverse of K, so duplicates do no harm. A center that leaves takes its datum along: what remains is the
    GP on the remaining data, alpha <- T alpha and A <- T A T' with T = [I, -A_rj / A_jj].
    """

    noise: float
    tracks: ClassVar[tuple[str, ...]] = ("A",)
    projects: ClassVar[bool] = False

    def predict(self, state: State, k: Array, kxx: float) -> Prediction:
        w = state.scale * (state.square("A") @ k)
        v = max(kxx - float(k @ w), 0.0)
        return Prediction(k, kxx, k @ state.a, v, v + self.noise, w)

    def gain(self, state: State, prediction: Prediction, slot: int) -> tuple[Array, float]:
        return np.append(-prediction.w, 1.0), prediction.s

    def track(self, state: State, prediction: Prediction, g: Array, s: float, admitted: bool) -> None:
        A = state.square("A")
        A[-1, :] = A[:, -1] = 0.0
        add_outer(A, g, 1.0 / (s * state.scale))

    def significance(self, state: State, prediction: Prediction, s: float) -> Array:
        """Return the diagonal of A as it is with x admitted."""
        A_ii = state.scale * state.square("A").diagonal()
        return np.append(A_ii + prediction.w**2 / s, 1.0 / s)

    def drop(self, state: State, j: int, kernel: Kernel) -> None:
        A = state.square("A")
        z = A[:, j] / A[j, j]
        add_outer(A, z, -float(A[j, j]))
        state.a[:] -= np.outer(z, state.a[j])

    def covariance(self, state: State, K: Array) -> Array:
        return K - state.scale * (K @ state.square("A") @ K)


@dataclass(frozen=True)
class LeastSquares(_Belief):
    """Sigma = P (noise 1): recursive least squares on f at the centers, the online GP in the limit of a flat prior.

    An admitted point is interpolated, with the noise as its variance: mu <- [mu; y], P <- diag(P, 1), hence
    g = [-q; 1] / gamma2 and s = 1. Any other is taken to be where its projection is: g = Q P q, s = 1 + q . P q.
    Engel, Mannor and Meir, "The kernel recursive least-squares algorithm", 2004.
    """

    tracks: ClassVar[tuple[str, ...]] = ("Q", "P")
    projects: ClassVar[bool] = True

    def predict(self, state: State, k: Array, kxx: float) -> Prediction:
        q = state.square("Q") @ k
        w = state.square("P") @ q
        gamma2 = max(kxx - float(k @ q), 0.0)
        v = gamma2 + max(float(q @ w), 0.0)
        return Prediction(k, kxx, k @ state.a, v, v + 1.0, w, q, gamma2)

    def gain(self, state: State, prediction: Prediction, slot: int) -> tuple[Array, float]:
        if slot == NEW:
            return np.append(-prediction.q, 1.0) / prediction.gamma2, 1.0
        return state.square("Q") @ prediction.w, 1.0 + prediction.v - prediction.gamma2

    def track(self, state: State, prediction: Prediction, g: Array, s: float, admitted: bool) -> None:
        P = state.square("P")
        if admitted:
            extend_inverse(state, prediction.q, prediction.gamma2)
            P[-1, :] = P[:, -1] = 0.0
            P[-1, -1] = 1.0
        else:
            add_outer(P, prediction.w, -1.0 / s)

    def significance(self, state: State, prediction: Prediction, s: float) -> Array:
        """Return the diagonal of Q as it is with x admitted."""
        return np.append(state.square("Q").diagonal() + prediction.q**2 / prediction.gamma2, 1.0 / prediction.gamma2)

    def drop(self, state: State, j: int, kernel: Kernel) -> None:
        Q = state.square("Q")
        z = Q[:, j] / Q[j, j]
        add_outer(Q, z, -float(Q[j, j]))
        state.a[:] -= np.outer(z, state.a[j])

    def covariance(self, state: State, K: Array) -> Array:
        return state.square("P")


Belief = Prior | Beta | Isotropic | Posterior | Exact | LeastSquares
