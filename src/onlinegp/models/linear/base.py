"""Base class and helpers of the linear models: their weights, the intercept, and checks."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.compiled import readable
from onlinegp.models.base import OnlineRegressor


class LinearRegressor(OnlineRegressor):
    """Base class of the models that are linear in their inputs.

    Their learners have the weights `w`, (weights, outputs). The last weight is the intercept, if there is one.

    Parameters
    ----------
    intercept : bool
        Whether to add a constant term.
    engine : {"auto", "native", "python"}
        The engine: compiled, pure Python, or the best available.
    """

    shared: ClassVar[dict[str, str]] = {"engine": "auto"}

    intercept: bool
    engine: str = "auto"

    def check(self) -> None:
        self.start(1, 1)

    @property
    def coef_(self) -> Array:
        """The means of the weights, (d,) or (outputs, d)."""
        learner = readable(self._working)
        w = np.array(learner.w.T[:, : learner.features], dtype=np.float64)
        return w[0] if self._single else w

    @property
    def intercept_(self) -> Array | float:
        """The mean of the intercept, a number or (outputs,); zero without an intercept."""
        learner = readable(self._working)
        w = np.array(learner.w.T, dtype=np.float64)
        b = w[:, -1] if w.shape[1] > learner.features else np.zeros(len(w))
        return float(b[0]) if self._single else b


def with_intercept(intercept: bool) -> bool:
    """Return `intercept`. Raise a TypeError if it is not a bool."""
    if not isinstance(intercept, bool | np.bool_):
        raise TypeError(f"intercept must be True or False, got {intercept!r}.")
    return bool(intercept)


def with_constant(X: Array, intercept: bool) -> Array:
    """Return X, with a column of ones appended if there is an intercept."""
    return np.column_stack([X, np.ones(len(X))]) if intercept else X


def check_upper(name: str, R: Array, *, singular: bool = True) -> None:
    """Raise an error unless a stored matrix is upper triangular with a positive (or zero, if `singular`) diagonal."""
    diagonal = np.diag(R)
    if np.any(diagonal < 0.0) or (not singular and not diagonal.all()) or not np.array_equal(R, np.triu(R)):
        what = "a diagonal of zero or more" if singular else "a positive diagonal"
        raise ValueError(f"{name} must be an upper triangular matrix with {what}.")
