"""Model files: versioned, compact, and safe to open from strangers.

Layout, little-endian: the magic, the version (u16), the length of the header (u32), the CRC-32 of all that follows
(u32), the header (JSON: class, parameters, scalars of the state), then the arrays of the state one after the
other, only the centers in use, of matrices the lower triangle. Nothing in a file is ever executed: classes
come from a fixed list, and whatever does not fit is refused.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from onlinegp import models
from onlinegp.files.atomic import write_atomically
from onlinegp.kernels import Kernel
from onlinegp.kernels.spec import from_spec, to_spec
from onlinegp.models.base import OnlineRegressor
from onlinegp.recipes import dictionaries, forgetting
from onlinegp.recipes.state import KINDS, MATRICES, State
from onlinegp.recipes.update import Recipe

MAGIC = b"onlinegp"
VERSION = 2
PREFIX = struct.Struct("<8sHII")

ESTIMATORS = {name: getattr(models, name) for name in models.__all__ if name != "OnlineRegressor"}
PARTS = {part.__name__: part for union in (dictionaries.Dictionary, forgetting.Forgetting) for part in union.__args__}
SCALARS = tuple(f.name for f in fields(State) if f.type in ("int", "float"))
INTEGERS = tuple(f.name for f in fields(State) if f.type == "int")


class ModelFileError(ValueError):
    """A model file that cannot be read, with the reason."""


def save(model: OnlineRegressor, path: str | Path) -> None:
    """Write a model to a file: beside it first, then renamed, so that a crash leaves the old file or the new one."""
    write_atomically(path, [to_bytes(model)])


def load(path: str | Path) -> OnlineRegressor:
    """Read a model from a file that `save` wrote."""
    try:
        return from_bytes(Path(path).read_bytes())
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


def to_bytes(model: OnlineRegressor, **entries: Any) -> bytes:
    """Return a model as bytes, with these entries more in the header."""
    header, body = describe(model) | entries, b""
    if model.__sklearn_is_fitted__():
        state = model._state
        header["state"] = {name: getattr(state, name) for name in SCALARS}
        header["features"], header["outputs"] = state.centers.shape[1], state.alpha.shape[1]
        header["single"] = model._flat
        header["names"] = [str(name) for name in getattr(model, "feature_names_in_", ())]
        body = contents(state)
    text = json.dumps(header).encode()
    return PREFIX.pack(MAGIC, VERSION, len(text), zlib.crc32(body, zlib.crc32(text))) + text + body


def from_bytes(data: bytes) -> OnlineRegressor:
    """Return the model that `to_bytes` wrote, or raise a ModelFileError."""
    header, body = opened(data)
    with as_model_file_error():
        model = rebuild(header)
        if "state" in header:
            recipe = model.recipe()
            state, rest = state_from(recipe, header["features"], header["outputs"], header["state"], body)
            if rest:
                raise ModelFileError(f"{len(rest)} bytes too many after the arrays.")
            model._adopt(recipe, state, single=bool(header["single"]))
            model._remember(_names(header))
    return model


def opened(data: bytes) -> tuple[dict[str, Any], memoryview]:
    """Return the header of a model file and what follows it, once the checksum is right."""
    if len(data) < PREFIX.size or data[: len(MAGIC)] != MAGIC:
        raise ModelFileError("this is not an onlinegp model file.")
    _, version, length, checksum = PREFIX.unpack_from(data)
    if version != VERSION:
        raise ModelFileError(
            f"the file has format version {version}, and this onlinegp reads version {VERSION}. "
            f"Upgrade onlinegp, or save the model again."
        )
    rest = memoryview(data)[PREFIX.size :]
    if zlib.crc32(rest) != checksum:
        raise ModelFileError("the file is damaged or cut short (its checksum does not match).")
    return header_from(rest[:length]), rest[length:]


def header_from(text: memoryview) -> dict[str, Any]:
    """Return the object that this JSON describes."""
    try:
        header = json.loads(bytes(text))
    except (ValueError, RecursionError):
        raise ModelFileError("the header is not valid JSON.") from None
    if not isinstance(header, dict):
        raise ModelFileError("the header is not an object.")
    return header


@contextmanager
def as_model_file_error() -> Iterator[None]:
    """Whatever a forged header can cause ends here, as a ModelFileError."""
    try:
        yield
    except ModelFileError:
        raise
    except MemoryError:
        raise ModelFileError("the file asks for more memory than there is.") from None
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelFileError(f"the file does not describe a model ({reason}).") from None


# Parameters


def describe(model: OnlineRegressor) -> dict[str, Any]:
    """Return the class and the parameters of a model, those that it learned with if it has."""
    params = model._learned_with if model.__sklearn_is_fitted__() else model.get_params(deep=False)
    encoded = {name: _encode(name, value) for name, value in params.items()}
    return {"estimator": type(model).__name__, "params": encoded}


def rebuild(header: dict[str, Any]) -> OnlineRegressor:
    """Return the model that `describe` described, before it learned anything."""
    return ESTIMATORS[header["estimator"]](**{name: _decode(value) for name, value in header["params"].items()})


def _names(header: dict[str, Any]) -> np.ndarray | None:
    names = header["names"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelFileError("the names of the columns are not names.")
    if names and len(names) != header["features"]:
        raise ModelFileError(f"{len(names)} names for {header['features']} columns.")
    return np.array(names, dtype=object) if names else None


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


# States


def contents(state: State) -> bytes:
    """Return the arrays of a state, only what is in use."""
    return b"".join(_packed(state, name).tobytes() for name in state.arrays())


def state_from(
    recipe: Recipe, features: int, outputs: int, scalars: dict[str, Any], body: memoryview
) -> tuple[State, memoryview]:
    """Return the state with these scalars and the arrays at the beginning of `body`, and what is left of it.

    Nothing is believed before it was checked.
    """
    m, d, p = scalars["size"], features, outputs
    if not (isinstance(m, int) and isinstance(d, int) and isinstance(p, int) and m >= 0 < d and p > 0):
        raise ModelFileError(f"impossible sizes: {m} centers, {d} features, {p} outputs.")
    if recipe.budget is not None and m > recipe.budget:
        raise ModelFileError(f"{m} centers exceed the budget of {recipe.budget}.")
    if 8 * m * (d + p) > len(body):
        raise ModelFileError("the arrays are shorter than the header says.")
    state = recipe.start(d, p)
    for name in SCALARS:
        value = scalars[name]
        kind = int if name in INTEGERS else (int, float)
        if isinstance(value, bool) or not isinstance(value, kind) or not 0 <= value < np.inf:
            raise ModelFileError(f"{name} must be a finite number of at least zero, got {value!r}.")
        setattr(state, name, value)
    if 8 * sum(_items(state, name) for name in state.arrays()) > len(body):
        raise ModelFileError("the arrays are shorter than the header says.")
    state.reserve(m, recipe.budget)
    for name in state.arrays():
        body = _unpack(state, name, body)
    return state, body


def _packed(state: State, name: str) -> np.ndarray:
    if name in MATRICES:
        return state.square(name)[_lower(state.size)]
    return np.ascontiguousarray(getattr(state, name)[: state.size])


def _unpack(state: State, name: str, body: memoryview) -> memoryview:
    m, items, buffer = state.size, _items(state, name), getattr(state, name)
    values = np.frombuffer(body[: 8 * items], dtype="<i8" if name == "born" else "<f8")
    if not np.isfinite(values).all():
        raise ModelFileError(f"{name} holds a value that is not finite.")
    if name in MATRICES:
        rows, columns = _lower(m)
        buffer[rows, columns] = values
        if KINDS[name] == "symmetric":
            buffer[columns, rows] = values
    else:
        buffer[:m] = values.reshape(m, *buffer.shape[1:])
    return body[8 * items :]


def _items(state: State, name: str) -> int:
    m = state.size
    return m * (m + 1) // 2 if name in MATRICES else m * math.prod(getattr(state, name).shape[1:])


def _lower(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of a lower triangle; small ones are kept, for fleets."""
    return _small_lower(m) if m <= 200 else np.tril_indices(m)


@lru_cache(maxsize=16)
def _small_lower(m: int) -> tuple[np.ndarray, np.ndarray]:
    return np.tril_indices(m)
