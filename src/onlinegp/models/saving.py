"""Model files: versioned, compact, and safe to open even if they come from an unknown source.

A file contains the class of a model, its parameters and what it has learned: named arrays and numbers, in safetensors
format. An entry that does not fit is refused by name.
"""

from __future__ import annotations

import reprlib
from pathlib import Path
from typing import Any

import numpy as np

from onlinegp.checks import LARGEST
from onlinegp.files.atomic import write_atomically
from onlinegp.files.container import ModelFileError, as_model_file_error, pack, unpack
from onlinegp.files.records import check_sizes
from onlinegp.learner import Contents
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.description import describe, rebuild

ABOUT = ("features", "outputs", "single", "names", "largest")


def save(model: OnlineRegressor, path: str | Path) -> None:
    """Write a model to a file. It is written under another name and renamed: a crash leaves the old file or the new."""
    write_atomically(path, [to_bytes(model)])


def load(path: str | Path) -> OnlineRegressor:
    """Read a model from a file that `save` wrote."""
    try:
        return from_bytes(Path(path).read_bytes())
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


def to_bytes(model: OnlineRegressor, *, extra: dict[str, Any] | None = None) -> bytes:
    """Return a model as bytes, with additional JSON-compatible data."""
    contents = model.dump()
    if contents is None:
        model.check()
    header: dict[str, Any] = {"kind": "model", "model": describe(model)} | ({"extra": extra} if extra else {})
    arrays: dict[str, np.ndarray] = {}
    if contents is not None:
        header["learned"], arrays = split(contents)
    return pack(header, arrays)


def from_bytes(data: bytes) -> OnlineRegressor:
    """Return the model that `to_bytes` wrote, or raise a ModelFileError."""
    return with_extra(data)[0]


def with_extra(data: bytes) -> tuple[OnlineRegressor, dict[str, Any]]:
    """Return the model and the additional data that `to_bytes` wrote, or raise a ModelFileError."""
    header, arrays = unpack(data)
    if header.get("kind") != "model":
        what = reprlib.repr(header.get("kind"))
        raise ModelFileError(f"the file holds a {what}, not a model. Use Fleet.load for a fleet.")
    only(header, "kind", "model", "learned", "extra")
    extra = header.get("extra", {})
    if not isinstance(extra, dict):
        raise ModelFileError("the additional data of the model is not an object.")
    with as_model_file_error():
        model = rebuild(header["model"])
        if "learned" in header:
            model.restore(joined(header["learned"], arrays))
        elif arrays:
            raise ModelFileError(f"the file has the array {min(arrays)!r}, but its model has learned nothing.")
        else:
            model.check()
    return model, extra


# Learned contents: numbers and strings in the header, arrays separately


def split(contents: Contents) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Split a model's contents into a part for JSON, and the arrays."""
    learned = contents["learned"]
    arrays = {name: value for name, value in learned.items() if isinstance(value, np.ndarray)}
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(
                f"{name} has a value that is not finite: the model has broken down. Start from scratch."
            )
    numbers = {name: _plain(name, value) for name, value in learned.items() if name not in arrays}
    return {**contents, "learned": numbers}, arrays


def joined(header: Any, arrays: dict[str, np.ndarray]) -> Contents:
    """Join the two parts of a model's contents. Sizes that the arrays do not confirm are refused."""
    if not isinstance(header, dict) or not isinstance(header.get("learned"), dict):
        raise ModelFileError("what was learned is not an object.")
    only(header, *ABOUT, "learned")
    check_about(header, arrays)
    if twice := header["learned"].keys() & arrays.keys():
        raise ModelFileError(f"the entry {min(twice)!r} appears twice.")
    return {**header, "learned": {**header["learned"], **arrays}}


def check_about(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Check the entries of a header about features and outputs."""
    check_sizes(header, sum(array.nbytes for array in arrays.values()) // 8)
    names, largest = header.get("names"), header.get("largest")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelFileError("the names of the columns must be a list of strings.")
    if names and len(names) != header["features"]:
        raise ModelFileError(f"{len(names)} names for {header['features']} columns.")
    if isinstance(largest, bool) or not isinstance(largest, int | float) or not 0.0 <= largest <= LARGEST:
        raise ModelFileError(f"largest must be a number of at least zero, got {reprlib.repr(largest)}.")


def only(header: dict[str, Any], *names: str) -> None:
    """Refuse a header with entries other than these."""
    if odd := sorted(header.keys() - set(names)):
        raise ModelFileError(f"the file has the unknown entry {odd[0]!r}.")


def _plain(name: str, value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not np.isfinite(value):
        raise ModelFileError(f"{name} is not finite: the model has broken down. Start from scratch.")
    return value
