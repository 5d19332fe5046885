"""Predict, then learn: the honest way to score an online model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinegp.checks import Array, check_Xy
from onlinegp.filters.base import OnlineRegressor
from onlinegp.metrics import log_density

BLOCK = 1000  # rows between two looks at the progress bar


@dataclass(frozen=True)
class Trace:
    """One-step-ahead predictions along a stream: row i was predicted before it was learned.

    Attributes
    ----------
    mean, std : (n,) or (n, outputs), the prediction of y, noise included in std
    size : (n,), the number of centres after the row was learned
    log_density : (n,) or (n, outputs), the log of the Gaussian density that the prediction gave to y
    """

    mean: Array
    std: Array
    size: NDArray[np.int64]
    log_density: Array

    def __len__(self) -> int:
        return len(self.mean)


def run(model: OnlineRegressor, X: ArrayLike, y: ArrayLike, *, progress: bool = False) -> Trace:
    """Predict each row of X, then learn it with its y, and return what was predicted.

    Parameters
    ----------
    model : estimator
        It goes on from where it is, and has learned all rows afterwards.
    X : array-like of shape (n, d)
    y : array-like of shape (n,) or (n, outputs)
    progress : bool
        Whether to draw a progress bar.

    Returns
    -------
    Trace
    """
    X, y = check_Xy(X, y, width=model._width)
    starts = range(0, len(X), BLOCK)
    blocks = [model.run(X[i : i + BLOCK], y[i : i + BLOCK]) for i in _shown(starts, model, progress)]
    mean, variance, size = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    std = np.sqrt(variance)
    if y.ndim == 1:
        mean = mean[:, 0]
    else:
        std = np.repeat(std[:, None], y.shape[1], axis=1)
    return Trace(mean, std, size, log_density(y, mean, std))


def _shown(starts: range, model: OnlineRegressor, progress: bool):
    if not progress:
        return starts
    from tqdm import tqdm

    return tqdm(starts, desc=type(model).__name__, unit_scale=BLOCK, unit="row", leave=False)
