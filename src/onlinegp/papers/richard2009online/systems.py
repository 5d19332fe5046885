"""The two simulated systems of the paper: inputs, noisy targets and the targets without noise."""

from __future__ import annotations

import numpy as np

from onlinegp.checks import Array


def autoregression(n: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return a nonlinear autoregression without input, observed with noise of standard deviation 0.1.

    d[t] = (0.8 - 0.5 exp(-d[t-1]^2)) d[t-1] - (0.3 + 0.9 exp(-d[t-1]^2)) d[t-2] + 0.1 sin(pi d[t-1])

    T. J. Dodd, V. Kadirkamanathan and R. F. Harrison, "Function estimation in Hilbert space using sequential
    projections", 2003.
    """
    d = [0.1, 0.1]
    for _ in range(n):
        a, b = d[-1], d[-2]
        bump = float(np.exp(-(a**2)))
        d.append((0.8 - 0.5 * bump) * a - (0.3 + 0.9 * bump) * b + 0.1 * float(np.sin(np.pi * a)))
    clean = np.array(d)
    seen = clean + 0.1 * rng.standard_normal(n + 2)
    return np.column_stack([seen[1:-1], seen[:-2]]), seen[2:], clean[2:]


def squared_state(n: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return inputs u and d[t] = v[t]^2 with v[t] = 1.1 exp(-|v[t-1]|) + u[t], in noise of variance 1."""
    u, v, clean = 0.25 * rng.standard_normal(n), 0.5, np.empty(n)
    for t in range(n):
        v = 1.1 * float(np.exp(-abs(v))) + u[t]
        clean[t] = v * v
    return u[:, None], clean + rng.standard_normal(n), clean
