"""Model files: versioned, compact, and safe to open even if they come from an unknown source.

A file contains the class of a model, its parameters, and a record of what the model has learned. The schema of the
record is in the header. Errors name entries that do not fit.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from onlinegp.files import container
from onlinegp.files.atomic import write_atomically
from onlinegp.files.container import ModelFileError, as_model_file_error
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.description import describe, rebuild
from onlinegp.models.registry import LIBRARY, known_model
from onlinegp.state import Contents, Schema, check_sizes, learner_from_bytes, learner_to_bytes, schema_of

ABOUT = ("features", "outputs", "single", "names")
RECORD = "record"  # name of the array with what was learned


def save(model: OnlineRegressor, path: str | Path) -> None:
    """Write a model to a file in one step: a crash leaves either the old file or the new file."""
    write_atomically(path, [to_bytes(model)])


def load(path: str | Path) -> OnlineRegressor:
    """Read a model from a file that `save` wrote."""
    if not isinstance(path, (str, PathLike)):
        raise TypeError(f"path must name a file, got {type(path).__name__}. Use from_bytes(data) for bytes.")
    try:
        return from_bytes(Path(path).read_bytes())
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


def to_bytes(model: OnlineRegressor, *, extra: dict[str, Any] | None = None) -> bytes:
    """Return a model and additional JSON-compatible data as bytes."""
    contents = model.dump()
    if contents is None:
        model.check()
    header: dict[str, Any] = {"kind": "model", "model": describe(model)} | ({"extra": extra} if extra else {})
    arrays: dict[str, np.ndarray] = {}
    if contents is not None:
        schema = schema_of(model.learner)
        header |= {"names": contents["names"], "schema": json.loads(schema.text)}
        arrays[RECORD] = np.frombuffer(learner_to_bytes(schema, contents), dtype=np.uint8)
    if (encoding := model.encoding()) is not None:
        header["columns"] = encoding.dump()
    return container.to_bytes(header, arrays)


def from_bytes(data: bytes) -> OnlineRegressor:
    """Return the model in a file of `to_bytes` or of a command. Raise a ModelFileError if the file is not valid.

    If a command encoded the columns of its table, the model is returned inside `Columns`.
    """
    model, extra = with_extra(data)
    with as_model_file_error():
        return _for_tables(model, extra)


def _for_tables(model: OnlineRegressor, extra: dict[str, Any]) -> OnlineRegressor:
    """Return a model that takes rows of the table that the command read."""
    table = extra.get("stream", {}).get("columns", {})
    names, contents = table.get("features", []), model.dump()
    if contents is None or not names or model.encoding() is not None:
        return model
    if table["learned"] is None:
        contents["names"] = names
        check_about(contents, contents["features"])
        model.feature_names_in_ = np.array(names, dtype=object)
        return model
    kinds = {column.get("kind") for column in table["learned"]}
    how = {name: table[name] for name in ("date_format", "missing", "na_values")}
    outer_class: Any = known_model("Columns", LIBRARY)
    outer: OnlineRegressor = outer_class(
        model.unfitted(), categories="ordinal" if "ordinal" in kinds else "onehot", **how
    )
    return outer.load(contents).adopt_encoding(table["learned"])


def with_extra(data: bytes) -> tuple[OnlineRegressor, dict[str, Any]]:
    """Return the model and the additional data in a file of `to_bytes`. Raise a ModelFileError if it is not valid."""
    header, arrays = container.from_bytes(data)
    if header.get("kind") != "model":
        what = reprlib.repr(header.get("kind"))
        raise ModelFileError(f"the file holds a {what}, not a model. Use Fleet.load for a fleet.")
    only(header, "kind", "model", "names", "schema", "columns", "extra")
    only(arrays, RECORD)
    extra = header.get("extra", {})
    if not isinstance(extra, dict):
        raise ModelFileError("the additional data of the model is not an object.")
    with as_model_file_error():
        model = rebuild(header["model"])
        if RECORD in arrays:
            model.load(_learned(header, arrays[RECORD]))
        elif "schema" in header or "names" in header:
            raise ModelFileError("the file has a schema, but no record of what was learned.")
        else:
            model.check()
        if "columns" in header:
            model.adopt_encoding(header["columns"])
    return model, extra


def _learned(header: dict[str, Any], record: np.ndarray) -> Contents:
    """Return the contents of the model in a file."""
    if record.dtype != np.uint8 or record.ndim != 1:
        raise ModelFileError("the record of what was learned must be bytes.")
    contents = learner_from_bytes(Schema.parse(header.get("schema")), record.tobytes())
    contents["names"] = header.get("names")
    check_about(contents, len(record) // 8)
    return contents


def check_about(header: dict[str, Any], proven: int = 0) -> None:
    """Raise an error if features, outputs or names are missing in a header or make no sense.

    `proven` is the number of values in the file. Unusually large sizes must not exceed it.
    """
    check_sizes(header, proven)
    names = header.get("names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelFileError("the names of the columns must be a list of strings.")
    if names and len(names) != header["features"]:
        raise ModelFileError(f"{len(names)} names for {header['features']} columns.")


def only(header: Mapping[str, Any], *names: str) -> None:
    """Raise an error if a header or arrays have other entries than `names`."""
    if odd := sorted(header.keys() - set(names)):
        raise ModelFileError(f"the file has the unknown entry {odd[0]!r}.")
