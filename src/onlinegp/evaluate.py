"""Run a model along a stream: predict each row, then learn it. This scores a model on data it has not seen."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlinegp import frames
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import innermost
from onlinegp.trace import LEVEL, Trace

FIRST_ROWS = 100  # the rows that an unfitted step of a pipeline is fitted on
SETTLED = 200  # the rows after which intervals should hold, and as many are judged
FAR_OFF = 0.85  # of 95% intervals: three times as many targets are outside as should be


def run(model: Any, X: ArrayLike, y: ArrayLike, *, delay: int = 0, progress: bool | None = None) -> Trace:
    """Predict each row of X, then learn it with its y, and return the predictions.

    Parameters
    ----------
    model : estimator, or scikit-learn pipeline whose last step is one
        It continues from its current state and learns all rows. Steps of a pipeline that are not fitted yet are fitted
        on the first 100 rows of X.
    X : array-like or data frame of shape (n, d), or list of n dicts
    y : array-like, series or data frame of shape (n,) or (n, outputs)
    delay : int
        For targets that come late: row i is learned just before row i + delay is predicted, as in River's progressive
        validation. 0 and 1 mean that each target is known before the next row. At the end all rows are learned.
    progress : bool, optional
        Whether to show a progress bar. None shows it on a terminal or in a notebook if the run takes longer
        than a second.

    Returns
    -------
    Trace

    Warns
    -----
    UserWarning
        If the 95% intervals of a model with a noise parameter hold less than 85% of the targets after 200 rows.
    """
    if isinstance(model, OnlineRegressor):
        return _with_fair_warning(model, model.run(X, y, delay=delay, progress=progress))
    if isinstance(model, type):
        raise TypeError(f"model must be an estimator, got the class {model.__name__}. Pass {model.__name__}().")
    last = model.steps[-1][1] if hasattr(model, "steps") and len(model.steps) else None
    if not isinstance(last, OnlineRegressor):
        raise TypeError(
            f"model must be an onlinegp estimator, or a pipeline whose last step is one, got {model!r}. "
            f"Try onlinegp.KRLST()."
        )
    for _, step in model.steps[:-1]:
        if step not in (None, "passthrough"):
            X = _transformed(step, X)
    return _with_fair_warning(last, last.run(X, y, delay=delay, progress=progress))


def _with_fair_warning(model: OnlineRegressor, trace: Trace) -> Trace:
    """Return the trace, after a warning if its intervals are far too narrow because the noise does not fit."""
    inside = innermost(model)
    if model.tunes_itself or not hasattr(inside, "noise") or np.sum(trace.scored[SETTLED:]) < SETTLED:
        return trace
    covered = float(np.mean(trace.tail[SETTLED:][trace.scored[SETTLED:]] >= 1.0 - LEVEL))
    if covered < FAR_OFF:
        name = type(inside).__name__
        warnings.warn(
            f"{LEVEL:.0%} intervals of {name}(noise={inside.noise!r}) hold only {covered:.0%} of the targets after the "
            f"first {SETTLED} rows: its parameters do not fit the data. Use onlinegp.Tuned({name}()), which "
            f"tunes them, or onlinegp.Calibrated(model), which corrects the intervals.",
            stacklevel=3,
        )
    return trace


def _transformed(step: Any, X: Any) -> Any:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(step)
    except NotFittedError:
        step.fit(X[:FIRST_ROWS] if not frames.is_frame(X) else X.head(FIRST_ROWS))
    return step.transform(X)
