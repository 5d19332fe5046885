"""The algorithms as the papers have them, row by row and without anything kept up: slow and obvious. One output."""

from __future__ import annotations

import numpy as np


def kap(X, y, kernel, *, step, window, coherence, epsilon):
    """Richard, Bermudez and Honeine 2009: affine projection over a dictionary of incoherent samples."""
    C, a, mean = X[:0], np.zeros(0), np.zeros(len(X))
    for t in range(len(X)):
        k, norm = kernel(X[t : t + 1], C)[0], np.sqrt(kernel.diag(X[t : t + 1])[0] * kernel.diag(C))
        mean[t] = k @ a
        if (np.abs(k) <= coherence * norm).all():
            C, a = np.vstack([C, X[t]]), np.append(a, 0.0)
        rows = slice(max(0, t - window + 1), t + 1)
        H = kernel(X[rows], C)
        a = a + step * H.T @ np.linalg.solve(epsilon * np.eye(len(H)) + H @ H.T, y[rows] - H @ a)
    return mean, C, a


def recent(X, y, kernel, correction, *, window, keep=1.0, radius=np.inf, budget=None):
    """Every sample a center; weights of the last rows are corrected, f is projected onto a ball, the oldest leaves."""
    first, a, mean = 0, np.zeros(0), np.zeros(len(X))
    for t in range(len(X)):
        mean[t] = kernel(X[t : t + 1], X[first:t])[0] @ a
        rows = slice(max(0, t - window + 1), t + 1)
        z = correction(kernel(X[rows]), y[rows] - kernel(X[rows], X[first:t]) @ a)
        a = np.append(keep * a, 0.0)
        a[len(a) - len(z) :] += z
        norm = np.sqrt(a @ kernel(X[first : t + 1]) @ a)
        a *= radius / norm if norm > radius else 1.0
        if budget is not None and len(a) > budget:
            first, a = first + 1, a[1:]
    return mean, X[first:], a


def lkapa(X, y, kernel, *, step, leak, window, budget=None):
    """Liu and Principe 2008, KAPA-3."""
    return recent(X, y, kernel, lambda K, e: step * e, window=window, keep=1 - step * leak, budget=budget)


def nlkapa(X, y, kernel, *, step, leak, epsilon, window, budget=None):
    """Liu and Principe 2008, KAPA-4."""

    def newton(K, e):
        return step * np.linalg.solve(K + epsilon * np.eye(len(K)), e)

    return recent(X, y, kernel, newton, window=window, keep=1 - step * leak, budget=budget)


LOSSES = {  # and their derivatives by f, for an error e = y - f
    "squared": lambda e, b: (e**2, -2 * e),
    "absolute": lambda e, b: (np.abs(e), -np.sign(e)),
    "huber": lambda e, b: (
        np.where(np.abs(e) <= b, e**2 / (2 * b), np.abs(e) - b / 2),
        np.where(np.abs(e) <= b, -e / b, -np.sign(e)),
    ),
}


def kapsm(X, y, kernel, *, step, loss, window, budget, bend=2.0, radius=10.0):
    """Slavakis, Theodoridis and Yamada 2008: minus the mean of L / |L'|^2 L', and nothing where there is no loss."""

    def subgradient(K, e):
        L, derivative = LOSSES[loss](e, bend)
        square = derivative**2 * K.diagonal()
        return -step / len(e) * np.divide(L * derivative, square, out=np.zeros(len(e)), where=square > 0)

    return recent(X, y, kernel, subgradient, window=window, radius=radius, budget=budget)


def solved(A, b):
    """Return A^-1 b for a positive definite A, by elimination, in whatever precision they have."""
    rest, x = A.copy(), b.copy()
    for j in range(len(A)):
        share = rest[j + 1 :, j] / rest[j, j]
        rest[j + 1 :] -= np.multiply.outer(share, rest[j])
        x[j + 1 :] -= share * x[j]
    for j in reversed(range(len(A))):
        x[j] = (x[j] - rest[j, j + 1 :] @ x[j + 1 :]) / rest[j, j]
    return x


def phypass(X, y, kernel, **parameters):
    """Takizawa and Yukawa 2015: projections onto hyperslabs, each along the span of a few centers, extrapolated."""
    mean, C, a = phypass_of(kernel(X), y, **parameters)
    return mean, X[C], a


def phypass_of(K, y, *, step, window, selected, coherence, width=0.0):
    """PHYPASS, from the kernel matrix of all rows, in its precision; centers are rows."""
    C, a, mean, norm = np.zeros(0, dtype=int), np.zeros_like(y), np.zeros_like(y), np.sqrt(K.diagonal())
    for t in range(len(y)):
        mean[t] = K[t, C] @ a[C]
        if (np.abs(K[t, C]) <= coherence * norm[t] * norm[C]).all():
            C = np.append(C, t)
        squares, total = 0.0, np.zeros_like(y)
        for i in range(max(0, t - window + 1), t + 1):
            near = C[np.argsort(-np.abs(K[i, C]) / norm[C], kind="stable")[:selected]]
            along = solved(K[np.ix_(near, near)], K[i, near])
            e, d = y[i] - K[i, C] @ a[C], K[i, near] @ along
            b = np.sign(e) * max(abs(e) - width, 0.0) / d
            squares += b**2 * d
            total[near] += b * along
        some = np.flatnonzero(total)
        length = total[some] @ K[np.ix_(some, some)] @ total[some]
        if length > 0:
            a += step * squares / length * total
    return mean, C, a[C]


def l2s(X, y, *, length_scales, step, coherence, epsilon, selected, novelty=1e-2, width=0.0, first_product=None):
    """Ohnishi and Yukawa 2017. `first_product` stands in for <g, g> of the first Gaussian while it is alone."""
    d = X.shape[1]

    def g(s, c):  # the normal density of variance s
        return np.exp(-np.sum(c**2, axis=-1) / (2 * s)) / (2 * np.pi * s) ** (d / 2)

    C, S, w, mean = X[:0], np.zeros(0), np.zeros(0), np.zeros(len(X))
    for t, x in enumerate(X):
        mean[t] = g(S, C - x) @ w
        for q, scale in enumerate(length_scales):
            s = scale**2
            near = g(S + s, C - x) / np.sqrt(g(2 * S, np.zeros(d)) * g(2 * s, np.zeros(d)))
            if (near < coherence).all() and (q == 0 or (y[t] - mean[t]) ** 2 > novelty * mean[t] ** 2):
                C, S, w = np.vstack([C, x]), np.append(S, s), np.append(w, 0.0)
                break
        k = g(S, C - x)
        best = np.argsort(-k / np.sqrt(g(2 * S, np.zeros(d))), kind="stable")[:selected]
        G = g(S[best, None] + S[best], C[best, None] - C[best])
        if len(C) == 1 and first_product is not None:
            G[0, 0] = first_product(G[0, 0])
        z = np.linalg.solve(0.999 * G + 0.001 * np.eye(len(best)), k[best])
        e = y[t] - k @ w
        w[best] += step / (epsilon + k[best] @ z) * np.sign(e) * max(abs(e) - width, 0.0) * z
    return mean, C, w
