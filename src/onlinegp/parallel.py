"""Fit a model to a large data set in several processes, for models that can be merged."""

from __future__ import annotations

import copy
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, check_Xy, count
from onlinegp.engine import thread_count
from onlinegp.models.linear.additive import AdditiveRegressor, ready_to_merge
from onlinegp.processes import in_parallel

Model = TypeVar("Model", bound=AdditiveRegressor)


def fit_parallel(
    model: Model, X: ArrayLike, y: ArrayLike, *, n_jobs: int | None = None, parts: int | None = None
) -> Model:
    """Return a copy of the model that has learned all rows. Processes learn parts of the rows, then models are merged.

    If joblib is installed, it runs the parts, in local processes or on the backend of ``joblib.parallel_config``.

    Parameters
    ----------
    model : estimator
        A model that can be merged: LinearRLS, RandomFeatureGP.
    X, y : array-like of shape (n, d), and (n,) or (n, outputs)
    n_jobs : int, optional
        The number of processes; the number of cores if None.
    parts : int, optional
        The number of parts; `n_jobs` if None. It changes the result only by rounding errors.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = ogp.parallel.fit_parallel(ogp.LinearRLS(), X, X @ [1.0, -1.0], n_jobs=1, parts=4)
    >>> model.coef_.round(2).tolist()
    [1.0, -1.0]
    """
    model = ready_to_merge(model)
    X, y = check_Xy(X, y)
    jobs = thread_count() if n_jobs is None else count("Use None for one process per core.", n_jobs=n_jobs)
    split = jobs if parts is None else count("Use None for one part per process.", parts=parts)
    pieces = [rows for rows in np.array_split(np.arange(len(X)), split) if len(rows)]
    tasks = [(model, X[rows[0] : rows[-1] + 1], y[rows[0] : rows[-1] + 1]) for rows in pieces]
    fitted = in_parallel(_fit, tasks, 1 if len(tasks) == 1 else jobs)
    whole = fitted[0]
    for part in fitted[1:]:
        whole.merge(part)
    return whole


def _fit(model: Model, X: Array, y: Array) -> Model:
    return copy.deepcopy(model).fit(X, y)
