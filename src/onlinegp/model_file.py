"""Model files: versioned, compact, and safe to open from strangers.

Layout, little-endian: the magic, the version (u16), the length of the header (u32), the CRC-32 of all that follows
(u32), the header (JSON: class, parameters, scalars of the state), then the arrays of the state one after the
other, only the centres in use, of symmetric matrices the lower triangle. Nothing in a file is ever executed: classes
come from a fixed list, and whatever does not fit is refused.
"""

from __future__ import annotations

import json
import os
import struct
import tempfile
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from onlinegp import dictionaries, filters, forgetting
from onlinegp.filters.base import OnlineRegressor
from onlinegp.kernels import Kernel
from onlinegp.kernels.spec import from_spec, to_spec
from onlinegp.learn import Recipe
from onlinegp.state import MATRICES, State

MAGIC = b"onlinegp"
VERSION = 1
PREFIX = struct.Struct("<8sHII")

ESTIMATORS = {name: getattr(filters, name) for name in filters.__all__ if name != "OnlineRegressor"}
PARTS = {part.__name__: part for union in (dictionaries.Dictionary, forgetting.Forgetting) for part in union.__args__}
SCALARS = tuple(f.name for f in fields(State) if f.type in ("int", "float"))


class ModelFileError(ValueError):
    """A model file that cannot be read, with the reason."""


def save(model: OnlineRegressor, path: str | Path) -> None:
    """Write a model to a file: beside it first, then renamed, so that a crash leaves the old file or the new one."""
    path = Path(path)
    data = to_bytes(model)
    handle, temporary = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load(path: str | Path) -> OnlineRegressor:
    """Read a model from a file that `save` wrote."""
    try:
        return from_bytes(Path(path).read_bytes())
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


def to_bytes(model: OnlineRegressor) -> bytes:
    """Return a model as bytes."""
    trained = model.__sklearn_is_fitted__()
    params = model._learned_with if trained else model.get_params(deep=False)
    header: dict[str, Any] = {
        "estimator": type(model).__name__,
        "params": {name: _encode(name, value) for name, value in params.items()},
    }
    body = b""
    if trained:
        state = model._state
        header["state"] = {name: getattr(state, name) for name in SCALARS}
        header["features"], header["outputs"] = state.centers.shape[1], state.alpha.shape[1]
        header["single"] = model._flat
        header["names"] = [str(name) for name in getattr(model, "feature_names_in_", ())]
        body = b"".join(_packed(state, name).tobytes() for name in state.arrays())
    text = json.dumps(header).encode()
    checksum = zlib.crc32(text + body)
    return PREFIX.pack(MAGIC, VERSION, len(text), checksum) + text + body


def from_bytes(data: bytes) -> OnlineRegressor:
    """Return the model that `to_bytes` wrote, or raise a ModelFileError."""
    header, body = _open(data)
    try:
        model = ESTIMATORS[header["estimator"]](**{name: _decode(value) for name, value in header["params"].items()})
        recipe = model.recipe()
        if "state" in header:
            state = _state(recipe, header, body)
            model._adopt(recipe, state, single=bool(header["single"]))
            model._remember(_names(header))
    except ModelFileError:
        raise
    except MemoryError:
        raise ModelFileError("the file asks for more memory than there is.") from None
    except Exception as error:  # whatever a forged header can cause ends here
        reason = f"{type(error).__name__}: {error}"
        raise ModelFileError(f"the file does not describe a model ({reason}).") from None
    return model


def _open(data: bytes) -> tuple[dict[str, Any], bytes]:
    if len(data) < PREFIX.size or data[: len(MAGIC)] != MAGIC:
        raise ModelFileError("this is not an onlinegp model file.")
    _, version, length, checksum = PREFIX.unpack_from(data)
    if version != VERSION:
        raise ModelFileError(
            f"the file has format version {version}, and this onlinegp reads version {VERSION}. "
            f"Upgrade onlinegp, or save the model again."
        )
    rest = data[PREFIX.size :]
    if zlib.crc32(rest) != checksum:
        raise ModelFileError("the file is damaged or cut short (its checksum does not match).")
    try:
        header = json.loads(rest[:length])
    except (ValueError, RecursionError):
        raise ModelFileError("the header is not valid JSON.") from None
    if not isinstance(header, dict):
        raise ModelFileError("the header is not an object.")
    return header, rest[length:]


def _names(header: dict[str, Any]) -> np.ndarray | None:
    names = header["names"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelFileError("the names of the columns are not names.")
    if names and len(names) != header["features"]:
        raise ModelFileError(f"{len(names)} names for {header['features']} columns.")
    return np.array(names, dtype=object) if names else None


def _packed(state: State, name: str) -> np.ndarray:
    buffer = getattr(state, name)
    if name in MATRICES:
        return state.square(name)[np.tril_indices(state.size)]
    return np.ascontiguousarray(buffer[: state.size])


def _state(recipe: Recipe, header: dict[str, Any], body: bytes) -> State:
    """Return the state in a file, of which nothing is believed before it was checked."""
    m, d, p = header["state"]["size"], header["features"], header["outputs"]
    if not (isinstance(m, int) and isinstance(d, int) and isinstance(p, int) and m >= 0 < d and p > 0):
        raise ModelFileError(f"impossible sizes: {m} centres, {d} features, {p} outputs.")
    if recipe.budget is not None and m > recipe.budget:
        raise ModelFileError(f"{m} centres exceed the budget of {recipe.budget}.")
    if 8 * m * (d + p) > len(body):
        raise ModelFileError("the arrays are shorter than the header says.")
    state = recipe.start(d, p)
    state.reserve(m, recipe.budget)
    for name in SCALARS:
        value = header["state"][name]
        kind = int if name in ("size", "seen") else (int, float)
        if isinstance(value, bool) or not isinstance(value, kind) or not 0 <= value < np.inf:
            raise ModelFileError(f"{name} must be a finite number of at least zero, got {value!r}.")
        setattr(state, name, value)
    for name, buffer in state.arrays().items():
        body = _unpack(state, name, buffer, body)
    if body:
        raise ModelFileError(f"{len(body)} bytes too many after the arrays.")
    return state


def _unpack(state: State, name: str, buffer: np.ndarray, body: bytes) -> bytes:
    m = state.size
    items = m * (m + 1) // 2 if name in MATRICES else m * int(np.prod(buffer.shape[1:]))
    if len(body) < 8 * items:
        raise ModelFileError("the arrays are shorter than the header says.")
    values = np.frombuffer(body[: 8 * items], dtype="<i8" if name == "born" else "<f8")
    if not np.isfinite(values).all():
        raise ModelFileError(f"{name} holds a value that is not finite.")
    if name in MATRICES:
        rows, columns = np.tril_indices(m)
        buffer[rows, columns] = buffer[columns, rows] = values
    else:
        buffer[:m] = values.reshape(m, *buffer.shape[1:])
    return body[8 * items :]


def _encode(name: str, value: Any) -> Any:
    if isinstance(value, Kernel):
        return {"kernel": to_spec(value)}
    if type(value) in PARTS.values():
        inner = {f.name: _encode(f.name, getattr(value, f.name)) for f in fields(value)}
        return {"part": type(value).__name__, "fields": inner}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ModelFileError(
        f"{name}={value!r} cannot be written to a model file: only numbers, strings and the library's own kernels "
        f"and parts can. Save its parameters yourself and rebuild the model."
    )


def _decode(value: Any) -> Any:
    if isinstance(value, dict) and "kernel" in value:
        return from_spec(value["kernel"])
    if isinstance(value, dict):
        return PARTS[value["part"]](**{name: _decode(v) for name, v in value["fields"].items()})
    return value
