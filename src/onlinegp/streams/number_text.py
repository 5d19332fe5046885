"""Numbers to text and back: by pyarrow if it is installed, otherwise in Python, with the same result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from onlinegp.checks import LARGEST, Array
from onlinegp.columns.encoders import MISSING

MARKS = {mark: f"0123456789+-eE{mark}" for mark in ".,"}  # the characters of a number, by its decimal mark


@cache
def arrow() -> Any:
    """Return pyarrow, or None if it is not installed."""
    try:
        import pyarrow
        import pyarrow.compute
    except ImportError:
        return None
    return pyarrow


def need_arrow(what: str) -> Any:
    """Return pyarrow, or raise an error that says how to install it."""
    if arrow() is None:
        raise ValueError(f"{what} needs pyarrow, which is not installed. Install it with: pip install 'onlinegp[io]'")
    return arrow()


def number(text: str, decimal: str = ".") -> float:
    """Return the number in a text field, NaN if it is missing, or raise a ValueError.

    All readers follow this rule. Blanks and tabs around the field are ignored. The field is one of MISSING, or digits
    with a sign, a decimal mark and an exponent, or infinity in words (which is refused later, by its value). `float`
    accepts more; this does not: no underscores, no digits of other scripts, no other spelling of NaN.
    """
    text = text.strip(" \t")
    if text in MISSING:
        return np.nan
    if text.strip(MARKS[decimal]):  # empty if every character is one of these
        if text.lower().lstrip("+-") in ("inf", "infinity"):
            return np.inf
        raise ValueError(text)
    return float(text.replace(",", "."))


def with_codes(read: Callable[[Any], float], codes: Sequence[str]) -> Callable[[Any], float]:
    """Return a reader of numbers that treats these texts, and numbers of these values, as missing."""
    if not codes:
        return read
    texts, values = set(codes), code_values(codes)

    def coded(field: Any) -> float:
        value = np.nan if isinstance(field, str) and field.strip(" \t") in texts else read(field)
        return np.nan if value in values else value

    return coded


def code_values(codes: Sequence[str]) -> list[float]:
    """Return the codes that are numbers: if -9999 means missing, so does -9999.0."""
    return [number(code) for code in codes if code not in MISSING and is_number(code)]


def not_a_number(field: Any) -> str:
    """Return why a field is not a number, with a remedy if one is known."""
    if isinstance(field, str):
        for decimal, other in ((",", "."), (".", ",")):
            if other not in field and is_number(field, decimal):
                quoted = " in CSV; in JSON lines, write it without quotes" if decimal == "." else ""
                return f"is not a number. If it means {number(field, decimal):g}, add --decimal {decimal}{quoted}"
    return "is not a number"


def is_number(field: str, decimal: str = ".") -> bool:
    """Whether `number` accepts the field; a missing value counts."""
    try:
        number(field, decimal)
    except ValueError:
        return False
    return True


def complaint(value: float) -> str | None:
    """Return what is wrong with a feature's value, or None."""
    if np.isnan(value):
        return "means that the value is missing. Make the model with --missing impute to use the mean instead"
    return outsized(value)


def outsized(value: float) -> str | None:
    """Return what is wrong with a number that is not missing, or None."""
    if np.isinf(value):
        return "infinity cannot be learned"
    return None if not abs(value) >= LARGEST else f"numbers must be below {LARGEST:g} in magnitude"


def texts(values: Array) -> Any:
    """Return the shortest text of each number that reads back as the same number; NaN becomes null.

    The result is a pyarrow array of strings, or a list of strings and Nones.
    """
    if (pa := arrow()) is not None:
        return pa.compute.cast(floats(values), pa.string())
    return [text(value) for value in values.tolist()]


def floats(values: Array) -> Any:
    """Return numbers as a pyarrow array with NaN as null. Uses buffers, because `pyarrow.array` imports pandas."""
    pa, values = arrow(), np.ascontiguousarray(values)
    valid = np.packbits(~np.isnan(values), bitorder="little")
    return pa.Array.from_buffers(pa.float64(), len(values), [pa.py_buffer(valid), pa.py_buffer(values)])


def text(value: float) -> str | None:
    """Return one number as pyarrow writes it: positional from 1e-6 to 1e10, otherwise with an exponent."""
    if value != value:
        return None
    if value in (np.inf, -np.inf):
        return repr(value)
    size = abs(value)
    if 1e-4 <= size < 1e10 or value == 0.0:
        return repr(value).removesuffix(".0")
    if 1e-6 <= size < 1e10:
        return np.format_float_positional(value, trim="-")
    return np.format_float_scientific(value, trim="-", exp_digits=1)


def joined(columns: Sequence[Any], prefixes: Sequence[str], end: str, missing: str) -> bytes:
    """Return rows of text: each column's value after its prefix, then `end`; None becomes `missing`."""
    pa = arrow()
    if pa is None or any(isinstance(column, list) for column in columns):
        lists = [column if isinstance(column, list) else column.to_pylist() for column in columns]
        rows = zip(*([missing if value is None else value for value in column] for column in lists), strict=True)
        template = "".join(f"{prefix.replace('%', '%%')}%s" for prefix in prefixes) + end.replace("%", "%%")
        return "".join([template % row for row in rows]).encode()
    pieces = [
        piece for pair in zip(prefixes, columns, strict=True) for piece in pair if not isinstance(piece, str) or piece
    ]
    rows = pa.compute.binary_join_element_wise(*pieces, end, "", null_handling="replace", null_replacement=missing)
    return b"" if len(rows) == 0 else _bytes(rows)


def _bytes(rows: Any) -> bytes:
    """Return the text of a string array, which is contiguous in memory."""
    offsets = np.frombuffer(rows.buffers()[1], dtype=np.int32)[rows.offset : rows.offset + len(rows) + 1]
    return rows.buffers()[2][int(offsets[0]) : int(offsets[-1])].to_pybytes()
