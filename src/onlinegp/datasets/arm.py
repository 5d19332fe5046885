"""A simulated robot arm, which can replace the data set KIN40K."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, count, non_negative

LARGEST_ANGLE = 2 * np.pi / 3  # joints turn this far in both directions
TARGET = np.array([0.1, 0.1, 0.1])  # a tenth of the summed link lengths along each axis
REFERENCE = 10_000  # poses that set the scale of y


def robot_arm(
    n: int,
    *,
    links: int = 8,
    noise: float = 0.005,
    seed: int | np.random.Generator = 0,
) -> tuple[Array, Array]:
    """Simulate a robot arm: predict the distance of the hand from a point, given the joint angles.

    All joints are revolute, with angles uniform within +-120 degrees. Inputs and target are scaled as in KIN40K: the
    angles to unit variance, the distance to zero mean and unit variance over a fixed reference set of poses, so that
    all seeds sample the same function. With eight links the task is as difficult as KIN40K: an exact Gaussian process
    with a squared exponential kernel, trained on 5,000 points, reaches a test error of about -15 dB of the variance,
    with similar length scales.

    Parameters
    ----------
    n : int
        Number of rows.
    links : int, default 8
        Number of links, and of inputs.
    noise : float, default 0.005
        Variance of the noise added to the scaled distance.
    seed : int or numpy.random.Generator, default 0

    Returns
    -------
    X : ndarray of shape (n, links)
    y : ndarray of shape (n,)
    """
    n, links, noise = count(n=n), count(links=links), non_negative(noise=noise)
    rng = np.random.default_rng(seed)
    X = _poses(rng, n, links)
    reference = _distance(_poses(np.random.default_rng(0), REFERENCE, links))
    y = (_distance(X) - reference.mean()) / reference.std()
    return X, y + np.sqrt(noise) * rng.standard_normal(n)


def hand(theta: ArrayLike) -> Array:
    """Return the position of the hand, (n, 3), for joint angles `theta`, (n, links).

    Denavit-Hartenberg: link i turns by theta_i about z, moves by d along z and by a along x, and twists by
    +90 or -90 degrees about x, in turn. Here a = d = 1 / links::

        p_i = Rz(theta_i) (Rx(twist_i) p_{i+1} + (a, 0, d)),      from the hand, p = 0, to the base
    """
    theta = np.asarray(theta, dtype=np.float64)
    n, links = theta.shape
    x, y, z = np.zeros((3, n))
    for i in reversed(range(links)):
        twist = 1.0 if i % 2 == 0 else -1.0  # the sine; the cosine is zero
        x, y, z = x + 1 / links, -twist * z, twist * y + 1 / links
        c, s = np.cos(theta[:, i]), np.sin(theta[:, i])
        x, y = c * x - s * y, s * x + c * y
    return np.stack([x, y, z], axis=1)


def _poses(rng: np.random.Generator, n: int, links: int) -> Array:
    return rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), (n, links))  # unit variance


def _distance(X: Array) -> Array:
    theta = X * LARGEST_ANGLE / np.sqrt(3.0)
    return np.linalg.norm(hand(theta) - TARGET, axis=1)
