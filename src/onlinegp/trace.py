"""The result of `run`: the predictions along a stream, each made before its row was learned."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onlinegp import frames
from onlinegp.checks import Array, fraction
from onlinegp.learner import Sizes
from onlinegp.predictions import Predictions
from onlinegp.sparkline import sparkline

if TYPE_CHECKING:
    from onlinegp.plots import Band

LEVEL = 0.95  # level of the intervals in the summary
LOW_COVERAGE = 0.5  # warn about a lower coverage
ADVICE = (
    "Most targets are outside their intervals. Use onlinegp.Tuned(model), which finds scales, kernel and noise, or "
    "model.scaled() if only the units do not fit, or another kernel, noise or step."
)


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """One-step-ahead predictions along a stream: row i was predicted before it was learned.

    Attributes
    ----------
    predictions : the predictive distributions of y, noise included
    y : (n,) or (n, outputs), the values that were then learned
    size : (n,), the number of centers after the row was learned
    scored : (n,), whether the prediction counts in `summary`: False before the model has learned any data
    """

    predictions: Predictions
    y: Array
    size: Sizes
    scored: NDArray[np.bool_]
    origin: frames.Origin | None = field(default=None)  # kind and index of X, if X was a frame

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
        """The log density of each y under its prediction, (n,) or (n, outputs)."""
        return self.predictions.log_density(self.y)

    @cached_property
    def z(self) -> Array:
        """How far each y is from its prediction, in standard deviations: N(0, 1) if the predictions are right."""
        return self.predictions.z(self.y)

    @cached_property
    def tail(self) -> Array:
        """The two-sided tail probability of each y: uniform on [0, 1] if the predictions are right."""
        return self.predictions.tail(self.y)

    def flags(self, rate: float = 0.001) -> NDArray[np.bool_]:
        """Return which y are surprising: the tail probability is below `rate`, the expected share of false alarms.

        See also :func:`onlinegp.metrics.drifts`, which detects changes over many rows.
        """
        return self.tail < fraction(rate=rate)

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the ends of the intervals that contain y with probability `level`."""
        return self.predictions.interval(level)

    def summary(self) -> dict[str, float]:
        """Return the main figures: rows, scored, rmse, log_density, coverage of the 95% intervals, and size at the end.

        Rows that were predicted before the model had learned any data are not scored. With several outputs, errors,
        densities and coverage are averages over the outputs. They are NaN if no row was scored.
        """
        if not len(self):
            return {"rows": 0, "scored": 0}
        lower, upper = self.interval(LEVEL)

        def mean(values: NDArray[Any]) -> float:
            return float(np.mean(values[self.scored])) if self.scored.any() else np.nan

        return {
            "rows": len(self),
            "scored": int(self.scored.sum()),
            "rmse": mean((self.y - self.mean) ** 2) ** 0.5,
            "log_density": mean(self.log_density),
            "coverage": mean((lower <= self.y) & (self.y <= upper)),
            "size": int(self.size[-1]),
        }

    def summary_line(self) -> str:
        """Return the summary as a line of text."""
        return self._summary_lines()[0]

    def _summary_lines(self) -> list[str]:
        """Return the summary as text, and advice if the intervals are bad."""
        told = self.summary()
        if not told["rows"]:
            return ["no rows"]
        columns = 0 if self.y.ndim == 1 else self.y.shape[1]
        outputs = f" of {columns} output{'s' if columns > 1 else ''}" if columns else ""
        skipped = told["rows"] - told["scored"]
        if not told["scored"]:
            return [f"{told['rows']} rows{outputs}, none scored: the model had not learned any data"]
        outputs += f", {skipped} not scored" if skipped else ""
        figures = (
            f"{told['rows']} rows{outputs}, RMSE {told['rmse']:.4g}, log density {told['log_density']:.3f}, "
            f"{LEVEL:.0%} intervals cover {told['coverage']:.1%}, {told['size']} centers"
        )
        return [figures, *([ADVICE] if told["coverage"] < LOW_COVERAGE else [])]

    def __repr__(self) -> str:
        figures, *advice = self._summary_lines()
        return "\n".join([f"Trace({figures})", *advice])

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the summary, and a small picture of the first output."""
        lines = [
            f"<div><strong>Trace</strong>: {self._summary_lines()[0]}</div>",
            *(f"<div>{one}</div>" for one in self._summary_lines()[1:]),
        ]
        if len(self):
            one = self if self.y.ndim == 1 else self.output(0)
            lines.append(sparkline(one.y, one.mean, *one.interval(LEVEL)))
        return "".join(lines)

    def plot(self, *, rows: slice | None = None, level: float = LEVEL, ax: Any = None) -> Band:
        """Draw predictions, intervals and data of the last 200 rows, or of a slice. See `onlinegp.plots.stream`."""
        from onlinegp import plots

        return plots.stream(self.y, self, rows=rows, level=level, ax=ax)

    def output(self, i: int) -> Trace:
        """Return the trace of one of several outputs."""
        return Trace(self.predictions.output(i), self.y[:, i], self.size, self.scored, self.origin)

    def first(self, rows: int) -> Trace:
        """Return the trace of the first rows."""
        part = slice(0, rows)
        origin = (
            None
            if self.origin is None or self.origin.index is None
            else replace(self.origin, index=self.origin.index[part])
        )
        return Trace(
            self.predictions.rows(part), self.y[part], self.size[part], self.scored[part], origin or self.origin
        )

    def last(self, rows: int) -> Trace:
        """Return the trace of the last rows (a copy, if these are not all rows)."""
        if len(self) <= rows:
            return self
        which = np.arange(len(self) - rows, len(self))
        return Trace(self.predictions.rows(which), self.y[which], self.size[which], self.scored[which])

    def to_frame(self, *, level: float = 0.95, kind: str | None = None) -> Any:
        """Return a data frame with the columns mean, std, lower, upper, log_density and size.

        Parameters
        ----------
        level : float
            The probability of the interval from `lower` to `upper`.
        kind : {"pandas", "polars", "pyarrow"}, optional
            The kind of frame to return. If None, the kind of X in `run` (with the index of pandas), or pandas for an
            array.

        Returns
        -------
        DataFrame or Table
            With several outputs, names end in a number: mean_0, mean_1, ...
        """
        lower, upper = self.interval(level)
        parts = {"mean": self.mean, "std": self.std, "lower": lower, "upper": upper, "log_density": self.log_density}
        columns = {name: values for part in parts for name, values in _split(part, parts[part])}
        where = self.origin or frames.Origin("pandas")
        if kind not in (None, where.kind):
            where = frames.Origin(str(kind))
        return frames.build({**columns, "size": self.size}, where)


def _split(name: str, values: Array) -> list[tuple[str, Array]]:
    """Return one column, or one column per output."""
    return [(name, values)] if values.ndim == 1 else [(f"{name}_{i}", column) for i, column in enumerate(values.T)]
