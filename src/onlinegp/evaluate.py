"""Run a model over a stream: predict each row, then learn it, to score the model on unseen data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlinegp import frames
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import innermost
from onlinegp.trace import LEVEL, Trace

FIRST_ROWS = 100  # number of rows for fitting an unfitted step of a pipeline
SETTLED = 200  # intervals are checked after this number of rows, on at least the same number
FAR_OFF = 0.85  # warn about 95% intervals with less coverage


def run(model: Any, X: ArrayLike, y: ArrayLike, *, delay: int = 0, progress: bool | None = None) -> Trace:
    """Predict each row of X, then learn it with its y, and return the predictions.

    Parameters
    ----------
    model : estimator, or scikit-learn pipeline whose last step is one
        The model continues from its current state and learns all rows. Unfitted steps of a pipeline are fitted on the
        first 100 rows of X.
    X : array-like or data frame of shape (n, d), or list of n dicts
    y : array-like, series or data frame of shape (n,) or (n, outputs)
    delay : int
        For late targets: row i is learned just before row i + delay is predicted, as in River's progressive validation.
        0 and 1 mean that each target is known before the next row. At the end all rows are learned.
    progress : bool, optional
        Whether to show a progress bar. None shows it on a terminal or in a notebook if the run takes longer
        than a second.

    Returns
    -------
    Trace

    Warns
    -----
    UserWarning
        If the 95% intervals of a model with a noise parameter contain less than 85% of the targets after 200 rows.
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
    """Return the trace. Warn if its intervals are far too narrow because the noise does not fit."""
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
