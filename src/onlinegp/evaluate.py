"""Run a model over a stream: predict each row, then learn it, to score the model on unseen data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlinegp import frames
from onlinegp.checks import Array
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import innermost
from onlinegp.predictions.student import normal_quantile
from onlinegp.trace import LEVEL, Trace

FIRST_ROWS = 100  # number of rows for fitting an unfitted step of a pipeline
SETTLED = 200  # errors and intervals are checked after this number of rows, on at least the same number
FAR_OFF = 0.85  # warn about 95% intervals with less coverage
LIMIT = normal_quantile(0.5 + 0.5 * LEVEL)  # of |z| inside the interval: unlike a tail, a normal z needs no SciPy
WORSE = 5.0  # times the variance of y; the error of `Persistence` on a stationary series is at most 4 times


def run(model: Any, X: ArrayLike, y: ArrayLike, *, delay: int = 0, progress: bool | None = None) -> Trace:
    """Predict each row of X, then learn it with its y, and return the predictions.

    Parameters
    ----------
    model : estimator, or scikit-learn pipeline that ends with an estimator
        The model continues from its current state and learns all rows. Unfitted steps of a pipeline are fitted on the
        first 100 rows of X.
    X : array-like or data frame of shape (n, d), or list of n dicts
    y : array-like, series or data frame of shape (n,) or (n, outputs)
    delay : int
        For late targets: row i is learned just before row i + delay is predicted, as in River's progressive validation.
        0 and 1 mean that each target is known before the next row. At the end all rows are learned. The spread of the
        predictions follows the errors known so far in this run, as in ``Lagged(model, lags=0, horizon=delay)``. To
        continue with corrected predictions after the run, use that model.
    progress : bool, optional
        Whether to show a progress bar. None shows it on a terminal or in a notebook if the run takes longer
        than a second.

    Returns
    -------
    Trace

    Warns
    -----
    UserWarning
        If after 200 rows the squared error is more than five times the variance of y, or if the 95% intervals of a
        model with a noise parameter hold less than 85% of the targets.
    """
    if isinstance(model, OnlineRegressor):
        return _with_fair_warning(model, model.run(X, y, delay=delay, progress=progress))
    if isinstance(model, type):
        raise TypeError(f"model must be an estimator, got the class {model.__name__}. Pass {model.__name__}().")
    steps = getattr(model, "steps", None)
    last = steps[-1][1] if isinstance(steps, list) and steps else None  # River's pipelines have a dict of steps
    if not isinstance(last, OnlineRegressor):
        later = any(isinstance(value, OnlineRegressor) for value in (X, y))
        raise TypeError(
            "model must be an onlinegp estimator, or a pipeline of scikit-learn whose last step is one, got "
            f"{type(model).__name__}. "
            + ("The model comes first: run(model, X, y)." if later else "Try onlinegp.KRLST().")
        )
    for _, step in model.steps[:-1]:
        if step not in (None, "passthrough"):
            X = _transformed(step, X)
    return _with_fair_warning(last, last.run(X, y, delay=delay, progress=progress))


def _with_fair_warning(model: OnlineRegressor, trace: Trace) -> Trace:
    """Return the trace, after a warning if the model fails on these data: large errors, or intervals far too narrow."""
    rows = trace.scored & (np.arange(len(trace)) >= SETTLED)
    inside = innermost(model)
    if inside.tunes_itself or np.sum(rows) < SETTLED:
        return trace
    name = type(inside).__name__
    tuned = f"Use onlinegp.Tuned({name}()), which"
    worse = _times_the_variance(trace.y[rows], trace.mean[rows])
    keeps = (
        " If the relation of X and y changes, set forgetting=0.999."
        if getattr(inside, "forgetting", None) == 1.0
        else ""
    )
    if worse > WORSE:
        warnings.warn(
            f"The squared error of {name} after the first {SETTLED} rows is {worse:,.0f} times the variance of y: "
            f"the mean of y would be a better prediction. Its parameters do not fit the data, or the scales of X and y."
            f" {tuned} scales the data and tunes them.",
            stacklevel=3,
        )
    elif hasattr(inside, "noise") and (covered := float(np.mean(np.abs(trace.z[rows]) <= LIMIT))) < FAR_OFF:
        warnings.warn(
            f"{LEVEL:.0%} intervals of {name}(noise={inside.noise!r}) hold only {covered:.0%} of the targets after the "
            f"first {SETTLED} rows: its parameters do not fit the data. {tuned} tunes them, or "
            f"onlinegp.Calibrated(model), which corrects the intervals.{keeps}",
            stacklevel=3,
        )
    return trace


def _times_the_variance(y: Array, mean: Array) -> float:
    """Return the mean squared error divided by the variance of y, of the worst output; 0 if y is constant."""
    variance = np.var(y, axis=0)
    return float(np.max(np.mean((y - mean) ** 2, axis=0) / np.where(variance > 0.0, variance, np.inf)))


def _transformed(step: Any, X: Any) -> Any:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(step)
    except NotFittedError:
        step.fit(X[:FIRST_ROWS] if not frames.is_frame(X) else X.head(FIRST_ROWS))
    return step.transform(X)
