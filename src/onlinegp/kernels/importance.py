"""How much each input matters to a kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels.base import Kernel

MOST_POINTS = 200


@dataclass(frozen=True)
class KernelInUse:
    """A kernel inside a model: its weight in the model, its number of inputs, and whether inputs are standardized."""

    weight: float
    kernel: Kernel
    inputs: int
    standardized: bool = False

    def importance(self, points: Array | None) -> Array | None:
        """Return the importance of each input, (d,). Without points, None unless the inputs are standardized."""
        if self.standardized:
            points = np.random.default_rng(0).standard_normal((64, self.inputs))
            return importance(self.kernel, points, np.ones(self.inputs))
        return None if points is None else importance(self.kernel, points, points.std(axis=0))


def mean_importance(used: list[KernelInUse], points: Array | None, owner: str) -> Array:
    """Return the mean importance of each input, (d,), over the kernels of a model. `points` are its centers, if any."""
    found = [one.importance(points) for one in used]
    if not used or any(one is None for one in found):
        why = "it does not store the spread of its inputs" if used else "it has no kernel yet"
        raise AttributeError(f"{owner} has no importance_: {why}. Use Auto(), Tuned(model) or Scaled(model).")
    return np.average(np.array(found), axis=0, weights=[one.weight for one in used])


def importance(kernel: Kernel, X: Array, steps: Array) -> Array:
    """Return the importance of each input, (d,): how much f decorrelates if only this input moves by its step.

        c_j = mean over the points x of 1 - k(x, z) / sqrt(k(x, x) k(z, z)),    z = x + step_j e_j

    The shares are c_j / sum_j c_j: 0 for an input that does not matter. For a squared exponential kernel,
    c_j = 1 - exp(-step_j^2 / (2 length_j^2)).
    """
    X = X[:: max(1, len(X) // MOST_POINTS)]
    own, found = kernel.diag(X), np.empty(X.shape[1])
    for j, step in enumerate(steps):
        Z = X.copy()
        Z[:, j] += step
        together = np.array([kernel.row(x[None, :], z)[0] for x, z in zip(X, Z, strict=True)])
        alone = np.sqrt(own * kernel.diag(Z))
        found[j] = np.mean(1.0 - np.divide(together, alone, out=np.ones_like(alone), where=alone > 0.0))
    found = np.maximum(found, 0.0)
    return found / (found.sum() or 1.0)
