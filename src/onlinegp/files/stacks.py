"""Many dictionaries of arrays and numbers as one: the arrays of a name joined, its numbers in one array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onlinegp.files.container import Arrays, ModelFileError

NUMBER, LENGTHS = "number:", "rows:"  # beginnings of names that are not arrays of a member


def stacked(parts: list[dict[str, Any]]) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays that hold all parts; they must have the same names.

    Arrays are joined along their first axis, with the lengths beside them; numbers become an array of int64 or float64;
    anything else (strings) goes to the header as a list.
    """
    arrays: Arrays = {}
    texts: dict[str, list[Any]] = {}
    for name in parts[0] if parts else ():
        values = [part[name] for part in parts]
        if isinstance(values[0], np.ndarray):
            arrays[name] = np.concatenate(values)
            arrays[LENGTHS + name] = np.array([len(value) for value in values], dtype=np.int64)
        elif isinstance(values[0], int | float | np.generic) and not isinstance(values[0], bool):
            arrays[NUMBER + name] = np.array(values)
        else:
            texts[name] = values
    return {"texts": texts}, arrays


def unstacked(header: dict[str, Any], arrays: Arrays, count: int) -> Iterator[dict[str, Any]]:
    """Yield the parts again, one after the other; sizes that do not fit are refused before the first."""
    texts = header.get("texts", {})
    names = [name for name in arrays if not name.startswith((NUMBER, LENGTHS))]
    numbers = {name.removeprefix(NUMBER): arrays[name] for name in arrays if name.startswith(NUMBER)}
    ends = {}
    for name in names:
        lengths = arrays.get(LENGTHS + name)
        if lengths is None or lengths.dtype != np.int64 or lengths.shape != (count,) or (lengths < 0).any():
            raise ModelFileError(f"{name} does not say how many rows each model has.")
        ends[name] = np.append(0, np.cumsum(lengths))
        if ends[name][-1] != len(arrays[name]) or (np.diff(ends[name]) < 0).any():
            raise ModelFileError(f"{name} has {len(arrays[name])} rows, and the models {ends[name][-1]}.")
    for name, values in (*numbers.items(), *texts.items()):
        if len(values) != count:
            raise ModelFileError(f"there are {count} models, and {len(values)} values of {name}.")
    plain = {name: values.tolist() for name, values in numbers.items()}
    return (
        {name: arrays[name][ends[name][i] : ends[name][i + 1]] for name in names}
        | {name: values[i] for name, values in plain.items()}
        | {name: values[i] for name, values in texts.items()}
        for i in range(count)
    )
