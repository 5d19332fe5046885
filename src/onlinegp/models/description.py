"""Convert the class and the parameters of a model to plain data, without code, and back."""

from __future__ import annotations

import reprlib
from dataclasses import fields
from typing import Any

import numpy as np

from onlinegp.files.container import ModelFileError
from onlinegp.kernels import Kernel
from onlinegp.kernels.spec import columns, from_spec, to_spec
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.registry import known_model
from onlinegp.recipes import dictionaries, forgetting, pruning

UNIONS = (dictionaries.Dictionary, forgetting.Forgetting, pruning.Pruning)
PARTS = {part.__name__: part for union in UNIONS for part in union.__args__}
LIBRARY = "onlinegp"
DEEPEST = 50  # how deep models in a file may be nested

# Parameters that were added later: files without them mean their defaults
ADDED = {"Robust": {"in_a_row"}}


def describe(model: OnlineRegressor, *, depth: int = 0) -> dict[str, Any]:
    """Return the class and the parameters of a model as plain data."""
    _not_too_deep(depth)
    cls = type(model)
    module = LIBRARY if cls.__module__.startswith(f"{LIBRARY}.") else cls.__module__
    params = {name: _encoded(name, value, depth) for name, value in model.learned_with.items()}
    return {"class": cls.__name__, "module": module, "params": params}


def rebuild(description: Any, *, depth: int = 0) -> OnlineRegressor:
    """Return the unfitted model of a description by `describe`. Its class must have been imported."""
    _not_too_deep(depth)
    if not isinstance(description, dict) or not isinstance(description.get("params"), dict):
        raise ModelFileError("a model must be an object with a class and parameters.")
    cls = known_model(description.get("class"), description.get("module"))
    if cls is None:
        raise ModelFileError(
            f"there is no model {reprlib.repr(description.get('class'))} in "
            f"{reprlib.repr(description.get('module'))}. "
            f"Import the module that defines it before you open the file."
        )
    params = {name: _decoded(value, depth) for name, value in description["params"].items()}
    later = ADDED.get(cls.__name__, set()) - params.keys()
    if odd := sorted(set(cls.parameter_names()) - later ^ params.keys()):
        what = "lacks" if odd[0] in cls.parameter_names() else "has the unknown parameter"
        raise ModelFileError(f"the description of {cls.__name__} {what} {odd[0]!r}.")
    return cls(**params)


def _not_too_deep(depth: int) -> None:
    if depth > DEEPEST:
        raise ModelFileError(f"models are nested more than {DEEPEST} deep, which files do not support. Nest fewer.")


def _encoded(name: str, value: Any, depth: int) -> Any:
    if isinstance(value, OnlineRegressor):
        return {"model": describe(value, depth=depth + 1)}
    if isinstance(value, Kernel):
        return {"kernel": to_spec(value)}
    if type(value) in PARTS.values():
        inner = {f.name: _encoded(f.name, getattr(value, f.name), depth) for f in fields(value)}
        return {"part": type(value).__name__, "fields": inner}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_encoded(name, item, depth) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return {"number": repr(value)}  # JSON has no infinity or NaN
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ModelFileError(
        f"{name}={value!r} cannot be written to a model file: only numbers, strings, models and the library's own "
        f"kernels and parts can. Save the parameters yourself and build the model again."
    )


def _decoded(value: Any, depth: int) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(item, depth) for item in value)
    if not isinstance(value, dict):
        return value
    if "model" in value:
        return rebuild(value["model"], depth=depth + 1)
    if "kernel" in value:
        return _kernel(value["kernel"])
    if "number" in value:
        return float(value["number"])
    return _part(value["part"], {name: _decoded(inner, depth) for name, inner in value["fields"].items()})


def _kernel(spec: Any) -> Kernel:
    kernel = from_spec(spec)
    with np.errstate(all="ignore"):
        kernel(np.zeros((1, columns(kernel))))  # raises an error for a kernel that is nested too deep
    return kernel


def _part(name: str, numbers: dict[str, Any]) -> Any:
    for key, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ModelFileError(f"{key} of {name} must be a number, got {reprlib.repr(number)}.")
        float(number)  # raises an error for integers that do not fit into a double
    return PARTS[name](**numbers)
