"""Predict, then learn: the honest way to score an online model."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinegp import frames
from onlinegp.checks import Array
from onlinegp.metrics import interval, log_density
from onlinegp.models.base import OnlineRegressor

BLOCK = 1000  # rows between two looks at the progress bar


@dataclass(frozen=True)
class Trace:
    """One-step-ahead predictions along a stream: row i was predicted before it was learned.

    Attributes
    ----------
    mean, std : (n,) or (n, outputs), the prediction of y, noise included in std
    size : (n,), the number of centers after the row was learned
    y : (n,) or (n, outputs), what came
    """

    mean: Array
    std: Array
    size: NDArray[np.int64]
    y: Array
    origin: frames.Origin | None = field(default=None, repr=False, compare=False)  # the frame that X was

    def __len__(self) -> int:
        return len(self.mean)

    @cached_property
    def log_density(self) -> Array:
        """The log of the Gaussian density that each prediction gave to y, (n,) or (n, outputs)."""
        return log_density(self.y, self.mean, self.std)

    def output(self, i: int) -> Trace:
        """Return the trace of one of several outputs."""
        return Trace(self.mean[:, i], self.std[:, i], self.size, self.y[:, i], self.origin)

    def to_frame(self, *, level: float = 0.95, kind: str | None = None) -> Any:
        """Return a data frame with the columns mean, std, lower, upper, log_density and size.

        Parameters
        ----------
        level : float
            The probability of the interval from `lower` to `upper`.
        kind : {"pandas", "polars", "pyarrow"}, optional
            What to return; if None, what `run` was given (pandas keeps its index), and pandas for an array.

        Returns
        -------
        DataFrame or Table
            With several outputs, a number follows the name: mean_0, mean_1, ...
        """
        lower, upper = interval(self.mean, self.std, level)
        parts = {"mean": self.mean, "std": self.std, "lower": lower, "upper": upper, "log_density": self.log_density}
        columns = {name: values for part in parts for name, values in _split(part, parts[part])}
        where = self.origin or frames.Origin("pandas")
        if kind not in (None, where.kind):
            where = frames.Origin(str(kind))
        return frames.build({**columns, "size": self.size}, where)


def run(model: OnlineRegressor, X: ArrayLike, y: ArrayLike, *, progress: bool = False) -> Trace:
    """Predict each row of X, then learn it with its y, and return what was predicted.

    Parameters
    ----------
    model : estimator
        It goes on from where it is, and has learned all rows afterwards.
    X : array-like or data frame of shape (n, d)
    y : array-like, series or data frame of shape (n,) or (n, outputs)
    progress : bool
        Whether to draw a progress bar.

    Returns
    -------
    Trace
    """
    origin = frames.origin(X)
    engine, X, Y = model._ready(X, y)
    block = BLOCK if progress else len(X)
    starts = range(0, len(X), block)
    blocks = [engine.run(X[i : i + block], Y[i : i + block]) for i in _shown(starts, model, progress)]
    mean, variance, size = blocks[0] if len(blocks) == 1 else map(np.concatenate, zip(*blocks, strict=True))
    std = np.sqrt(variance)
    if model._flat:
        return Trace(mean[:, 0], std, size, Y[:, 0].copy(), origin)
    return Trace(mean, np.repeat(std[:, None], Y.shape[1], axis=1), size, Y.copy(), origin)


def _split(name: str, values: Array) -> list[tuple[str, Array]]:
    """Return one column, or one an output."""
    return [(name, values)] if values.ndim == 1 else [(f"{name}_{i}", column) for i, column in enumerate(values.T)]


def _shown(starts: range, model: OnlineRegressor, progress: bool):
    if not progress:
        return starts
    from tqdm import tqdm

    return tqdm(starts, desc=type(model).__name__, unit_scale=BLOCK, unit="row", leave=False)
