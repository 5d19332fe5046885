"""Run the model of one key inside another system: a database, a queue, a cluster.

`step` takes the state of a key as bytes and returns the new state as bytes. The other system stores only these bytes:
23.7 KB for 50 centers of 4 inputs (two triangles, the centers and their weights in float64), or 7.6 KB in compact form.
"""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import ArrayLike

from onlinegp import frames
from onlinegp.checks import check_Xy, no_features
from onlinegp.files.container import as_model_file_error
from onlinegp.fleet.members import known_before, start_members
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.breakdown import check_events
from onlinegp.state import about_of
from onlinegp.trace import Trace


def step(
    model: OnlineRegressor,
    state: bytes | bytearray | memoryview | None,
    X: ArrayLike,
    y: ArrayLike,
    *,
    compact: bool = False,
) -> tuple[bytes, Trace]:
    """Predict each row of one key, then learn it. Return the new state and the predictions.

    A call with all rows, and several calls with a part of the rows each, give the same predictions and states to the
    last bit, on machines of the same kind. Columns are used in the given order.

    Parameters
    ----------
    model : estimator
        The initial model of each key, which must be the same in all calls. What this object has learned is ignored.
    state : bytes or None
        The result of the previous call for this key; None for the first call.
    X, y : array-like of shape (n, d), and (n,) or (n, outputs)
        The rows of the key, in order.
    compact : bool
        Whether to omit what can be computed from the centers, and to store the covariance as a factor in float32: 7.6
        KB instead of 23.7 KB for 50 centers of 4 inputs. Predictions then depend on how rows are divided into calls, by
        about 1e-7 standard deviations; the same calls give the same bits.

    Returns
    -------
    state : bytes
    trace : Trace
        The predictions, each made before its row was learned.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> from onlinegp.fleet import step
    >>> model = ogp.KRLST(budget=50)
    >>> state, trace = step(model, None, np.zeros((2, 3)), [1.0, 1.0])
    >>> state, trace = step(model, state, np.zeros((1, 3)), [1.0])
    >>> trace.mean.round(1)
    array([1.])
    """
    if not isinstance(model, OnlineRegressor):
        raise TypeError(f"model must be an estimator such as onlinegp.KRLST(budget=50), got {model!r}.")
    if state is not None:
        state = checked_state(state)
    about = None if state is None else about_of(state)
    values, _ = frames.read(X, None, owner="the model")
    y = frames.target(y)
    if values is None and model.features_optional:
        values = no_features(y)
    values, y = check_Xy(values, y, width=None if about is None else about["features"], owner="the model")
    single, outputs = y.ndim == 1, 1 if y.ndim == 1 else y.shape[1]
    if about is not None and (single, outputs) != (about["single"], about["outputs"]):
        expected = "(n,)" if about["single"] else f"(n, {about['outputs']})"
        raise ValueError(f"y must have shape {expected} as before, got {y.shape}.")
    members, only = start_members(model, values.shape[1], outputs), np.zeros(1, dtype=np.int64)
    members.grow(1)
    if state is not None:
        members.from_bytes(only, [state], single)
    Y, which = y.reshape(len(y), outputs), np.zeros(len(y), dtype=np.int64)
    scored = known_before(members, which, model.delay)
    predicted, size = members.run(which, values, Y, 1)
    trace = Trace(
        check_events(model, predicted, which, Y, members.largest, lambda i: repr(model)), Y.copy(), size, scored
    )
    (new,) = members.to_bytes(only, single, compact)
    return new, trace.output(0) if single else trace


def from_bytes(
    model: OnlineRegressor, state: bytes | bytearray | memoryview, names: tuple[str, ...] = ()
) -> OnlineRegressor:
    """Return the model of a key as an estimator, which can be saved.

    Parameters
    ----------
    model : estimator
        The model in the calls of `step`.
    state : bytes
        A state from `step`.
    names : tuple of str
        The names of the columns, if known.
    """
    state = checked_state(state)
    about = about_of(state)
    members, only = start_members(model, about["features"], about["outputs"]), np.zeros(1, dtype=np.int64)
    members.grow(1)
    members.from_bytes(only, [state], about["single"])
    contents = about | {"names": list(names), "largest": float(members.largest[0])}
    with as_model_file_error():
        return copy.deepcopy(model).unfitted().load(contents | {"learned": members.dump(0)})


def checked_state(state: bytes | bytearray | memoryview) -> bytes:
    """Return a state as bytes. Databases use several types for bytes."""
    if not isinstance(state, bytes | bytearray | memoryview):
        raise TypeError(f"state must be bytes from step, or None, got a {type(state).__name__}.")
    return bytes(state)
