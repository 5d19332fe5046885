"""The interface of all predictive distributions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, probability
from onlinegp.sparkline import sparkline

SMALLEST = 1e-300  # smallest probability for a normal quantile
MOST_STEPS = 2200  # iterations, more than bisection needs between any two doubles
SMALL = 1e-3  # below this, probabilities have a small relative error; above, a small absolute error
EPS = float(np.finfo(np.float64).eps)
WIDE = "Use 0.95 for 95% intervals, and 0.99 or 0.999 for wide ones."


class Predictions(ABC):
    """The predictive distributions of y, one per row, noise included.

    Each subclass is a frozen dataclass. Its fields are arrays whose first axis is the row, numbers that apply to all
    rows, and tuples of other predictions of the same rows. Missing predictions are NaN.

    Attributes
    ----------
    mean, std : (n,) or (n, outputs)
    """

    mean: Array
    std: Array

    @abstractmethod
    def log_density(self, y: ArrayLike) -> Array:
        """Return the log density at y, in the shape of the mean."""

    @abstractmethod
    def cdf(self, y: ArrayLike) -> Array:
        """Return the probability of a value of at most y. It is uniform on [0, 1] if the predictions are right."""

    @abstractmethod
    def quantile(self, p: float) -> Array:
        """Return the value that y exceeds with probability 1 - p, 0 < p < 1."""

    @abstractmethod
    def survival(self, y: ArrayLike) -> Array:
        """Return the probability of a value above y, to full precision (1 - cdf would round to 0 below 1e-16)."""

    def pit(self, y: ArrayLike) -> Array:
        """Return p for which y is the quantile. |2 p - 1| is the level of the central interval with an end at y."""
        return self.cdf(y)

    def tail(self, y: ArrayLike) -> Array:
        """Return the two-sided tail probability of y: the probability of a value that is at least as extreme."""
        return 2.0 * np.minimum(self.cdf(y), self.survival(y))

    def z(self, y: ArrayLike) -> Array:
        """Return how extreme y is, in standard deviations of a normal. It is N(0, 1) if the predictions are right.

        For a normal prediction this is (y - mean) / std. For any other distribution it is the value with the same cdf
        under N(0, 1), limited to +-37.
        """
        from scipy.special import ndtri

        below, above = self.cdf(y), self.survival(y)
        return np.where(below > above, -1.0, 1.0) * ndtri(np.maximum(np.minimum(below, above), SMALLEST))

    @abstractmethod
    def affine(self, center: Array | float, scale: Array | float) -> Predictions:
        """Return the distributions of center + scale y, for positive scales."""

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the ends of the central interval that contains y with probability `level`."""
        level = probability(WIDE, level=level)
        low, high = self.quantile(0.5 * (1.0 - level)), self.quantile(0.5 * (1.0 + level))
        return low, np.maximum(low, high)  # rounding may exchange them

    def _values(self, y: ArrayLike) -> Array:
        """Check that y is a number or has the shape of the mean. (n, 1) and (n,) would broadcast to (n, n)."""
        y = np.asarray(y, dtype=np.float64)
        if y.ndim and y.shape != self.shape:
            raise ValueError(
                f"y must be a number or have the shape of the predictions, {self.shape}, got {y.shape}. Reshape y."
            )
        return y

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the mean, (n,) or (n, outputs)."""
        return self.mean.shape

    def __len__(self) -> int:
        return len(self.mean)

    def summary_line(self) -> str:
        """Return a line with the number of rows, and the ranges of means and standard deviations."""
        rows = f"{len(self)} {'row' if len(self) == 1 else 'rows'}"
        outputs = "" if self.mean.ndim == 1 else f" of {self.shape[1]} outputs"
        ranges = [f", {name} {_range(values)}" for name, values in (("mean", self.mean), ("std", self.std))]
        return rows + outputs + "".join(ranges if len(self) else [])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.summary_line()})"

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self) -> str:
        """Return HTML for a notebook: the summary, and a small picture of the first output."""
        picture = ""
        if len(self) > 1:
            one = self if self.mean.ndim == 1 else self.output(0)
            picture = sparkline(None, one.mean, *one.interval(0.95))
        return f"<div><strong>{type(self).__name__}</strong>: {self.summary_line()}</div>{picture}"

    def plot(self, y: ArrayLike | None = None, *, level: float = 0.95, ax: Any = None) -> Any:
        """Draw means and intervals by row, and the values y if given. See `onlinegp.plots.predictions`."""
        from onlinegp import plots

        return plots.predictions(self, y, level=level, ax=ax)

    def rows(self, which: Any) -> Self:
        """Return the predictions of some rows, selected by a slice, a mask or indices."""
        return self.map_arrays(lambda array: array[which])

    def output(self, i: int) -> Self:
        """Return the predictions of one of several outputs, as arrays of shape (n,)."""
        return self.map_arrays(lambda array: array[:, i])

    @staticmethod
    def joined(parts: Sequence[Predictions]) -> Predictions:
        """Concatenate predictions. Different kinds become mixtures with one member per kind."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        for one in {type(part): part for part in parts}.values():
            parts = [one.including(part) for part in parts]
        if len({part.kind() for part in parts}) > 1:
            from onlinegp.predictions.mixture import joined_kinds

            return joined_kinds(parts)
        first = parts[0]
        names = [field.name for field in fields(first)]  # type: ignore[arg-type]
        values = {name: _joined([getattr(part, name) for part in parts], parts) for name in names}
        return replace(first, **values)  # type: ignore[type-var]

    def including(self, other: Predictions) -> Predictions:
        """Convert other predictions to this kind if possible, so that both can be joined."""
        return other

    def kind(self) -> Any:
        """Return a key. Predictions with the same key can be joined field by field."""
        return type(self)

    def map_arrays(self, change: Callable[[Array], Array]) -> Self:
        changed = {field.name: _changed(getattr(self, field.name), change) for field in fields(self)}  # type: ignore[arg-type]
        return replace(self, **changed)  # type: ignore[type-var]


def quantile_between(predictions: Predictions, p: float, y: Array, low: Array, high: Array) -> Array:
    """Solve cdf(value) = p, each between low and high, by Newton's method from y.

    Bisection replaces a step that leaves the bracket, or that follows a step that did not halve the error.
    """
    y = np.clip(y, low, high)
    active = low < high  # false for NaN
    part, x, low, high = predictions.rows(active), y[active], low[active], high[active]
    before = np.full(x.shape, np.inf)
    for _ in range(MOST_STEPS):
        if not len(x):
            break
        excess = part.cdf(x) - p
        low, high = np.where(excess < 0.0, x, low), np.where(excess < 0.0, high, x)
        with np.errstate(all="ignore"):
            new = x - excess / np.exp(part.log_density(x))
        bad = ~((new > low) & (new < high)) | (np.abs(excess) > 0.5 * before)
        new = np.where(bad, 0.5 * (low + high), new)
        going = np.abs(excess) > 2.0 * EPS * (4.0 * p if p < SMALL else 1.0)
        new = np.where(going, new, x)
        going &= (np.abs(new - x) > 4.0 * EPS * np.abs(x)) & (high - low > 4.0 * EPS * np.abs(x))
        y[active] = new
        active[active] = going
        part = part if going.all() else part.rows(going)
        x, low, high, before = new[going], low[going], high[going], np.abs(excess[going])
    return y


def _range(values: Array) -> str:
    known = values[np.isfinite(values)]
    if not len(known):
        return "not finite"
    low, high = f"{known.min():.4g}", f"{known.max():.4g}"
    return low if low == high else f"{low} to {high}"


def _changed(value: Any, change: Callable[[Array], Array]) -> Any:
    """Apply `change` to the arrays of a field. Numbers apply to all rows and stay."""
    if isinstance(value, Predictions):
        return value.map_arrays(change)
    if isinstance(value, tuple):
        return tuple(_changed(member, change) for member in value)
    return change(value) if isinstance(value, np.ndarray) else value


def _joined(values: list[Any], parts: Sequence[Predictions]) -> Any:
    """Concatenate a field of predictions of one kind. A number stays a number if it is equal in all parts."""
    if isinstance(values[0], Predictions):
        return Predictions.joined(values)
    if isinstance(values[0], tuple):
        return tuple(_joined(list(members), parts) for members in zip(*values, strict=True))
    if not any(isinstance(value, np.ndarray) for value in values) and len(set(values)) == 1:
        return values[0]
    full = [
        np.broadcast_to(value, part.mean.shape) if np.ndim(value) == 0 else value
        for value, part in zip(values, parts, strict=True)
    ]
    return np.concatenate(full)
