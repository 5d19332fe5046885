"""What people write: each filter in NumPy, naively (arrays reallocated at every sample, as KAFBOX does) and tuned
(preallocated, BLAS, no temporary that can be avoided). They predict the same numbers as onlinegp, which a test checks.

Each function takes the stream and returns its one-step predictions.
"""

from __future__ import annotations

import numpy as np

# Naive: readable, reallocating, and as KAFBOX and its ports are used: `evaluate(x)` predicts, `train(x, y)` learns,
# and each computes the kernel row it needs


def gauss(C, x):
    return np.exp(-0.5 * ((C - x) ** 2).sum(axis=1))


def evaluate(C, alpha, x):
    return gauss(C, x) @ alpha


def klms_naive(X, y, *, step):
    C, alpha, out = np.empty((0, X.shape[1])), np.empty(0), np.empty(len(y))
    for t, x in enumerate(X):
        out[t] = evaluate(C, alpha, x)
        e = y[t] - evaluate(C, alpha, x)  # train starts here
        C, alpha = np.vstack([C, x]), np.append(alpha, step * e)
    return out


def knlms_naive(X, y, *, step, epsilon):
    C, alpha, out = np.empty((0, X.shape[1])), np.empty(0), np.empty(len(y))
    for t, x in enumerate(X):
        out[t] = evaluate(C, alpha, x)
        C, alpha = np.vstack([C, x]), np.append(alpha, 0.0)
        k = gauss(C, x)
        alpha = alpha + step * (y[t] - k @ alpha) / (epsilon + k @ k) * k
    return out


def beta_naive(X, y, *, beta, noise):
    C, alpha, out = np.empty((0, X.shape[1])), np.empty(0), np.empty(len(y))
    for t, x in enumerate(X):
        out[t] = evaluate(C, alpha, x)
        k = gauss(C, x)
        gain = (y[t] - k @ alpha) / (noise + 1.0 + beta * (k @ k))
        C, alpha = np.vstack([C, x]), np.append(alpha + gain * beta * k, gain)
    return out


def qklms_naive(X, y, *, step, radius):
    C, alpha, out = X[:1], np.array([step * y[0]]), np.zeros(len(y))
    for t, x in enumerate(X[1:], start=1):
        out[t] = evaluate(C, alpha, x)
        e = y[t] - evaluate(C, alpha, x)
        distance = np.sqrt(((C - x) ** 2).sum(axis=1))
        j = distance.argmin()
        if distance[j] <= radius:
            alpha = alpha.copy()
            alpha[j] += step * e
        else:
            C, alpha = np.vstack([C, x]), np.append(alpha, step * e)
    return out


def krlst_naive(X, y, *, noise, budget, forgetting, jitter=1e-12):
    """The classical variables mu, Sigma, Q, with K cached."""
    out = np.zeros(len(y))
    C, mu, Sigma, Q, K = X[:0], np.empty(0), np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0))
    for t, x in enumerate(X):
        k, m = gauss(C, x), len(mu)
        out[t] = k @ (Q @ mu)
        if forgetting < 1:
            Sigma, mu = forgetting * Sigma + (1 - forgetting) * K, np.sqrt(forgetting) * mu
        q = Q @ k
        h = Sigma @ q
        gamma2 = max(1 + jitter - k @ q, 0.0)
        sf2 = gamma2 + q @ h
        sy2, e = noise + sf2, y[t] - q @ mu
        old = Q
        p = np.append(q, -1.0)
        Q = np.pad(Q, (0, 1)) + np.outer(p, p) / gamma2
        hs = np.append(h, sf2)
        mu = np.append(mu, q @ mu) + e / sy2 * hs
        Sigma = np.block([[Sigma, h[:, None]], [h[None], np.array([[sf2]])]]) - np.outer(hs, hs) / sy2
        K = np.block([[K, k[:, None]], [k[None], np.array([[1 + jitter]])]])
        C = np.vstack([C, x])
        if m + 1 > budget:
            r = np.abs((Q @ mu) / np.diag(Q)).argmin()
            keep = np.delete(np.arange(m + 1), r)
            z = Q[keep, r]
            Q = old if r == m else Q[np.ix_(keep, keep)] - np.outer(z, z) / Q[r, r]
            mu, Sigma, K, C = mu[keep], Sigma[np.ix_(keep, keep)], K[np.ix_(keep, keep)], C[keep]
    return out


# Tuned: preallocated, |c - x|^2 expanded so that BLAS does the work


class Rows:
    """Kernel rows of a growing dictionary, without a temporary that grows."""

    def __init__(self, capacity, d):
        self.C, self.norms, self.k = np.empty((capacity, d)), np.empty(capacity), np.empty(capacity)
        self.m = 0

    def row(self, x):
        C, k = self.C[: self.m], self.k[: self.m]
        np.dot(C, x, out=k)
        k -= self.norms[: self.m]
        k -= 0.5 * (x @ x)
        np.minimum(k, 0.0, out=k)
        return np.exp(k, out=k)

    def put(self, j, x):
        self.C[j], self.norms[j] = x, 0.5 * (x @ x)

    def push(self, x):
        self.put(self.m, x)
        self.m += 1


def klms_tuned(X, y, *, step):
    rows, alpha, out = Rows(len(X), X.shape[1]), np.empty(len(X)), np.empty(len(y))
    for t, x in enumerate(X):
        out[t] = rows.row(x) @ alpha[:t]
        alpha[t] = step * (y[t] - out[t])
        rows.push(x)
    return out


def knlms_tuned(X, y, *, step, epsilon):
    rows, alpha, out = Rows(len(X), X.shape[1]), np.zeros(len(X)), np.empty(len(y))
    for t, x in enumerate(X):
        k = rows.row(x)
        out[t] = k @ alpha[:t]
        gain = step * (y[t] - out[t]) / (epsilon + k @ k + 1.0)
        k *= gain
        alpha[:t] += k
        alpha[t] = gain
        rows.push(x)
    return out


def beta_tuned(X, y, *, beta, noise):
    rows, alpha, out = Rows(len(X), X.shape[1]), np.zeros(len(X)), np.empty(len(y))
    for t, x in enumerate(X):
        k = rows.row(x)
        out[t] = k @ alpha[:t]
        gain = (y[t] - out[t]) / (noise + 1.0 + beta * (k @ k))
        k *= gain * beta
        alpha[:t] += k
        alpha[t] = gain
        rows.push(x)
    return out


def qklms_tuned(X, y, *, step, radius):
    rows, alpha, out = Rows(len(X), X.shape[1]), np.zeros(len(X)), np.zeros(len(y))
    nearest = np.exp(-0.5 * radius**2)
    for t, x in enumerate(X):
        k = rows.row(x)
        out[t] = k @ alpha[: rows.m]
        change = step * (y[t] - out[t])
        j = int(k.argmax()) if rows.m else -1
        if j >= 0 and k[j] >= nearest:
            alpha[j] += change
        else:
            alpha[rows.m] = change
            rows.push(x)
    return out


def krlst_tuned(X, y, *, noise, budget, forgetting, jitter=1e-12):
    """The variables a, A, Q with slots replaced in place and symmetric rank-one updates of BLAS."""
    from scipy.linalg.blas import dsymv, dsyr, dsyr2

    M, out = budget, np.zeros(len(y))
    rows = Rows(M, X.shape[1])
    A, Q = np.zeros((M, M), order="F"), np.zeros((M, M), order="F")
    a, scale, root = np.zeros(M), 1.0, np.sqrt(forgetting)
    for t, x in enumerate(X):
        m = rows.m
        k = np.zeros(M)
        k[:m] = rows.row(x)
        w, q = scale * dsymv(1.0, A, k, lower=1), dsymv(1.0, Q, k, lower=1)
        out[t] = k @ a
        a *= root
        scale *= forgetting
        w *= forgetting
        gamma2 = max(1 + jitter - k @ q, 0.0)
        s = noise + max(1 + jitter - k @ w, gamma2)
        change = (y[t] - root * out[t]) / s
        if m < M:
            g, p = -w, q
            g[m], p[m] = 1.0, -1.0
            A = dsyr(1.0 / (s * scale), g, a=A, lower=1, overwrite_a=1)
            Q = dsyr(1.0 / gamma2, p, a=Q, lower=1, overwrite_a=1)
            a += change * g
            rows.push(x)
            continue
        d = Q.diagonal() + q**2 / gamma2
        after = a - change * w
        j = int((np.abs(after) / d).argmin())
        if np.abs(change) * gamma2 <= np.abs(after[j]) / d[j]:
            g = q - w
            A = dsyr(1.0 / (s * scale), g, a=A, lower=1, overwrite_a=1)
            a += change * g
            continue
        # admit x, drop j, put x in its slot: A += g g'/s - z b' - b z', Q += p p'/gamma2 - Q_jj z z'
        cQ, cA = np.append(Q[j, :j], Q[j:, j]), scale * np.append(A[j, :j], A[j:, j])
        g, p = -w, q
        Qj, Aj = cQ + p * (p[j] / gamma2), cA + g * (g[j] / s)
        Qjj, Ajj = Qj[j], Aj[j]
        z = Qj / Qjj
        zn = -p[j] / gamma2 / Qjj
        b, bn = Aj - 0.5 * Ajj * z, g[j] / s - 0.5 * Ajj * zn
        aj = after[j]
        Q[j, : j + 1] = Q[j:, j] = A[j, : j + 1] = A[j:, j] = 0.0
        g[j], p[j], z[j], b[j] = 1.0, -1.0, zn, bn
        A = dsyr(1.0 / (s * scale), g, a=A, lower=1, overwrite_a=1)
        A = dsyr2(-1.0 / scale, z, b, a=A, lower=1, overwrite_a=1)
        Q = dsyr(1.0 / gamma2, p, a=Q, lower=1, overwrite_a=1)
        Q = dsyr(-Qjj, z, a=Q, lower=1, overwrite_a=1)
        a = after - aj * z
        a[j] = change - aj * zn
        rows.put(j, x)
    return out
