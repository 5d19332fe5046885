"""A fixed random basis that approximates a stationary kernel: orthogonal random features.

k(x, z) = E[cos(w'(x - z))] with w drawn from the kernel's spectral density, so with D draws

    k(x, z) ~ phi(x)'phi(z),   phi(x) = [cos(W x); sin(W x)] / sqrt(D),   and phi(x)'phi(x) = 1

For RBF the vectors w are normal; for Matern nu they follow Student's t with 2 nu degrees of freedom. Blocks of d
vectors are orthogonal to each other, with the lengths of independent vectors, which at least halves the error. (Rahimi
and Recht, "Random features for large-scale kernel machines", 2007; Yu et al., "Orthogonal random features", 2016.)
"""

from __future__ import annotations

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import RBF, Kernel, Matern12, Matern32, Matern52, Scaled
from onlinegp.kernels.base import per_dimension

LANES = 8  # compiled learners compute cosines in groups of this size
DEGREES = {RBF: None, Matern12: 1.0, Matern32: 3.0, Matern52: 5.0}  # 2 nu; None for the normal distribution


def parts_of(kernel: Kernel) -> tuple[float, Kernel]:
    """Return the variance and the shape of a kernel. Raise an error if the kernel has no random basis."""
    variance = 1.0
    shape = kernel
    while isinstance(shape, Scaled):
        variance, shape = variance * float(shape.variance), shape.kernel
    if type(shape) not in DEGREES:
        names = ", ".join(cls.__name__ for cls in DEGREES)
        raise ValueError(f"kernel must be {names}, or a multiple of such a kernel, got {kernel!r}.")
    return variance, shape


def check_width(kernel: Kernel, features: int) -> None:
    """Raise an error if a kernel cannot take inputs with `features` columns."""
    if features < 1:
        raise ValueError("X must have at least one column for a random basis, got none.")
    per_dimension(features, length_scale=kernel.length_scale)  # type: ignore[attr-defined]


def frequencies(kernel: Kernel, d: int, count: int, rng: np.random.Generator) -> Array:
    """Return W (count, d) for the shape of a kernel, orthogonal in blocks of d."""
    W = np.concatenate([_block(d, min(d, count - i), rng) for i in range(0, count, max(d, 1))])
    degrees = DEGREES[type(kernel)]  # type: ignore[index]
    if degrees is not None:  # Student's t: a normal vector divided by sqrt(chi2 / degrees)
        W /= np.sqrt(rng.chisquare(degrees, count) / degrees)[:, None]
    scales = per_dimension(d, length_scale=kernel.length_scale)  # type: ignore[attr-defined]
    return np.ascontiguousarray(W / scales)


def _block(d: int, count: int, rng: np.random.Generator) -> Array:
    """Return orthogonal vectors in random directions, (count, d), with the lengths of normal vectors."""
    Q, R = np.linalg.qr(rng.standard_normal((d, count)))
    directions = (Q * np.sign(np.diag(R))).T  # all directions are equally likely
    return directions * np.sqrt(rng.chisquare(d, count))[:, None]


def padded(count: int) -> int:
    """Return the next multiple of LANES."""
    return -(-count // LANES) * LANES


def turns(W: Array, b: Array) -> Array:
    """Return T (d + 1, D) with cos(W x + b) = sin(pi T'[x; 1]), padded with zeros to a multiple of LANES."""
    count, d = W.shape
    T = np.zeros((d + 1, padded(count)))
    T[:-1, :count], T[-1, :count] = W.T / np.pi, b / np.pi + 0.5
    return T


def basis(W: Array, X: Array) -> Array:
    """Return phi (n, 2 D) for the rows of X (n, d). A row has the same bits in any block."""
    angles = np.einsum("nd,kd->nk", X, W)
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(len(W))
