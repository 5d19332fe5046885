"""One stream of many, without any engine: the state of a key as bytes in, as bytes out.

Whatever brings together the rows of a key can call `step`: a database, a queue, a cluster. All that it has to keep is
the bytes, some 22 KB for 50 centers of 4 inputs: two triangles, the centers and their weights, in float64.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlinegp import frames
from onlinegp.checks import check_Xy, no_features
from onlinegp.files.container import ModelFileError, as_model_file_error
from onlinegp.files.records import pack_record, unpack_record
from onlinegp.learner import Contents
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.health import BreakdownError
from onlinegp.models.saving import check_about
from onlinegp.trace import Trace

ABOUT = ("features", "outputs", "single")  # entries of a state beside what was learned, whose names have a dot before


def step(model: OnlineRegressor, state: bytes | None, X: ArrayLike, y: ArrayLike) -> tuple[bytes, Trace]:
    """Predict each row of one key, then learn it, in order, and return the new state with what was predicted.

    Rows at once or in parts, here or elsewhere: the predictions and the states are the same, bit for bit. Columns are
    taken in the order in which they come.

    Parameters
    ----------
    model : estimator
        What every key starts from, and must be the same in every call; what it has learned itself does not matter.
    state : bytes or None
        What the last call for this key returned; None if there was none.
    X, y : array-like of shape (n, d), and (n,) or (n, outputs)
        The rows of the key, in order.

    Returns
    -------
    state : bytes
    trace : Trace
        The predictions, each made before its row was learned.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> from onlinegp.keyed import step
    >>> model = ogp.KRLST(budget=50)
    >>> state, trace = step(model, None, np.zeros((2, 3)), [1.0, 1.0])
    >>> state, trace = step(model, state, np.zeros((1, 3)), [1.0])
    >>> trace.mean.round(1)
    array([1.])
    """
    contents = None if state is None else unpacked(state)
    values, _ = frames.read(X, None, owner="the model")
    y = frames.target(y)
    if values is None and model.features_optional:
        values = no_features(y)
    values, y = check_Xy(values, y, width=None if contents is None else contents["features"], owner="the model")
    single, outputs = y.ndim == 1, 1 if y.ndim == 1 else y.shape[1]
    if contents is not None and (single, outputs) != (contents["single"], contents["outputs"]):
        expected = "(n,)" if contents["single"] else f"(n, {contents['outputs']})"
        raise ValueError(f"y must have shape {expected} as before, got {y.shape}.")
    learner = model.start(values.shape[1], outputs)
    if contents is not None:
        with as_model_file_error():
            learner.load(contents["learned"])
    Y = y.reshape(len(y), outputs)
    said, size = learner.run(values, Y)
    if not (np.isfinite(said.mean).all() and np.isfinite(said.std).all()):
        raise BreakdownError(f"{model!r} broke down: its prediction is not finite. {model.remedy}")
    trace = Trace(said, Y.copy(), size)
    new = packed({"features": learner.features, "outputs": outputs, "single": single}, learner.dump())
    return new, trace.output(0) if single else trace


def restored(model: OnlineRegressor, state: bytes, names: tuple[str, ...] = ()) -> OnlineRegressor:
    """Return the model of a key as an estimator of its own, which can be saved.

    Parameters
    ----------
    model : estimator
        What `step` was called with.
    state : bytes
        What it returned.
    names : tuple of str
        Of the columns, if they are known.
    """
    contents = unpacked(state) | {"names": list(names), "largest": 0.0}
    with as_model_file_error():
        return copy.deepcopy(model).unfitted().restore(contents)


def packed(about: dict[str, Any], learned: Contents) -> bytes:
    """Return the state of a key: features, outputs and single, and what a learner has learned."""
    return pack_record({name: about[name] for name in ABOUT} | {f".{name}": value for name, value in learned.items()})


def unpacked(state: bytes) -> Contents:
    """Return features, outputs, single and learned of a state, or raise a ModelFileError."""
    contents = unpack_record(state)
    learned = {name[1:]: value for name, value in contents.items() if name.startswith(".")}
    about = {name: value for name, value in contents.items() if not name.startswith(".")}
    if about.keys() != set(ABOUT):
        raise ModelFileError(f"the state must say {', '.join(ABOUT)}, and no more beside what was learned.")
    arrays = {name: value for name, value in learned.items() if isinstance(value, np.ndarray)}
    check_about(about | {"names": [], "largest": 0.0}, arrays)
    return about | {"learned": learned}
