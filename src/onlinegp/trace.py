"""What `run` returns: the predictions along a stream, each made before its row was learned."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from onlinegp import frames
from onlinegp.checks import Array
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
