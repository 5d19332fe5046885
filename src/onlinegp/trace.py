"""What `run` returns: the predictions along a stream, each made before its row was learned."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp import frames
from onlinegp.checks import Array, fraction
from onlinegp.learner import Sizes
from onlinegp.predictions import Predictions


@dataclass(frozen=True, eq=False)
class Trace:
    """One-step-ahead predictions along a stream: row i was predicted before it was learned.

    Attributes
    ----------
    predictions : the predictive distributions of y, noise included
    y : (n,) or (n, outputs), the values that were then learned
    size : (n,), the number of centers after the row was learned
    """

    predictions: Predictions
    y: Array
    size: Sizes
    origin: frames.Origin | None = field(default=None, repr=False)  # the frame that X was

    def __len__(self) -> int:
        return len(self.y)

    @property
    def mean(self) -> Array:
        """The predicted means, (n,) or (n, outputs)."""
        return self.predictions.mean

    @property
    def std(self) -> Array:
        """The predicted standard deviations of y, (n,) or (n, outputs)."""
        return self.predictions.std

    @cached_property
    def log_density(self) -> Array:
        """The log of the density that each prediction gave to y, (n,) or (n, outputs)."""
        return self.predictions.log_density(self.y)

    @cached_property
    def z(self) -> Array:
        """How far out each y was, in standard deviations: N(0, 1) if the predictions are right."""
        return self.predictions.z(self.y)

    @cached_property
    def tail(self) -> Array:
        """The two-sided tail probability of each y under its prediction: uniform on [0, 1] if those are right."""
        return self.predictions.tail(self.y)

    def flags(self, rate: float = 0.001) -> NDArray[np.bool_]:
        """Return which y were surprising: those with a tail probability below `rate`, the share of false alarms.

        See also :func:`onlinegp.metrics.drifts`, which finds changes that no single row shows.
        """
        return self.tail < fraction(rate=rate)

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the ends of the intervals that hold y with probability `level`."""
        return self.predictions.interval(level)

    def output(self, i: int) -> Trace:
        """Return the trace of one of several outputs."""
        return Trace(self.predictions.output(i), self.y[:, i], self.size, self.origin)

    def first(self, rows: int) -> Trace:
        """Return the beginning of the trace."""
        part = slice(0, rows)
        origin = (
            None
            if self.origin is None or self.origin.index is None
            else replace(self.origin, index=self.origin.index[part])
        )
        return Trace(self.predictions.rows(part), self.y[part], self.size[part], origin or self.origin)

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
        lower, upper = self.interval(level)
        parts = {"mean": self.mean, "std": self.std, "lower": lower, "upper": upper, "log_density": self.log_density}
        columns = {name: values for part in parts for name, values in _split(part, parts[part])}
        where = self.origin or frames.Origin("pandas")
        if kind not in (None, where.kind):
            where = frames.Origin(str(kind))
        return frames.build({**columns, "size": self.size}, where)


def _split(name: str, values: Array) -> list[tuple[str, Array]]:
    """Return one column, or one for each output."""
    return [(name, values)] if values.ndim == 1 else [(f"{name}_{i}", column) for i, column in enumerate(values.T)]
