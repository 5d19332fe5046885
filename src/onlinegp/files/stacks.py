"""Many dictionaries of arrays and numbers as one: the values of a name one after the other, and their shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onlinegp.files.container import Arrays, ModelFileError

SHAPES, NUMBERS = "shapes:", "numbers:"  # beginnings of names; a name of one's own has no colon


def stacked(parts: list[dict[str, Any]]) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays that hold all parts.

    They must have the same names, and the arrays of a name the same type and number of dimensions. Numbers become an
    array of int64 or float64; anything else (strings) goes to the header as a list.
    """
    names = parts[0].keys() if parts else set()
    odd = next((name for part in parts for name in part.keys() ^ names), None)
    odd = odd or next((name for name in names if ":" in name), None)
    if odd is not None:
        raise ModelFileError(f"{odd!r} cannot be saved: all models must have the same entries, without a colon.")
    arrays: Arrays = {}
    texts: dict[str, list[Any]] = {}
    for name in names:
        values = [part[name] for part in parts]
        if isinstance(values[0], np.ndarray):
            arrays[name], arrays[SHAPES + name] = _joined(name, values)
        elif (numbers := np.array(values)).dtype in (np.int64, np.float64):
            arrays[NUMBERS + name] = _finite(name, numbers)
        else:
            texts[name] = values
    return {"texts": texts}, arrays


def unstacked(header: dict[str, Any], arrays: Arrays, count: int) -> Iterator[dict[str, Any]]:
    """Yield the parts again, one after the other; sizes that do not fit are refused before the first."""
    texts = header["texts"]
    numbers = {name.removeprefix(NUMBERS): arrays[name].tolist() for name in arrays if name.startswith(NUMBERS)}
    for name, values in (*numbers.items(), *texts.items()):
        if not isinstance(values, list) or len(values) != count:
            raise ModelFileError(f"there are {count} models, and not as many values of {name}.")
    split = {name: _split(name, arrays, count) for name in arrays if ":" not in name}
    return (
        {name: each[i] for name, each in numbers.items()}
        | {name: each[i] for name, each in texts.items()}
        | {name: next(each) for name, each in split.items()}
        for i in range(count)
    )


def _joined(name: str, values: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return all entries, one array after the other, and the shapes, one a row."""
    kinds = {(value.dtype, value.ndim) if isinstance(value, np.ndarray) else type(value) for value in values}
    if len(kinds) > 1:
        raise ModelFileError(f"{name} cannot be saved: it must have one type and one number of dimensions.")
    shapes = np.array([value.shape for value in values], dtype=np.int64)
    return _finite(name, np.concatenate([value.reshape(-1) for value in values])), shapes


def _split(name: str, arrays: Arrays, count: int) -> Iterator[np.ndarray]:
    """Yield the arrays of a name."""
    flat, shapes = arrays[name], arrays.get(SHAPES + name)
    if shapes is None or shapes.dtype != np.int64 or shapes.ndim != 2 or len(shapes) != count or (shapes < 0).any():
        raise ModelFileError(f"{name} does not say which shape it has for each model.")
    sizes = np.prod(shapes, axis=1, dtype=np.float64)  # exact wherever the sum fits, and it cannot overflow
    if flat.ndim != 1 or sizes.sum() != len(flat):
        raise ModelFileError(f"{name} has {flat.size} entries, and the models {sizes.sum():.0f}.")
    ends = np.cumsum(sizes, dtype=np.int64).tolist()
    starts = [0, *ends][:count]
    return (flat[a:b].reshape(shape) for a, b, shape in zip(starts, ends, shapes.tolist(), strict=True))


def _finite(name: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ModelFileError(
            f"{name} holds a value that is not finite: a model has broken down. Start it from scratch."
        )
    return values
