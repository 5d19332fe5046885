"""Convert numbers to text and back, with pyarrow or in pure Python, with the same results."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from onlinegp.checks import LARGEST, Array
from onlinegp.columns.encoders import MISSING

NOT_A_NUMBER = "is not a number"
MARKS = {mark: f"0123456789+-eE{mark}" for mark in ".,"}  # decimal mark: the characters of a number

THOUSANDS = {  # no number with thousands begins with 0
    ".": re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"),
    ",": re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?"),
}


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
    """Return pyarrow. Raise an error if it is not installed."""
    if arrow() is None:
        raise ValueError(f"{what} needs pyarrow, which is not installed. Install it with: pip install 'onlinegp[io]'")
    return arrow()


def number(text: str, decimal: str = ".") -> float:
    """Return the number in a text field. Return NaN for a missing value, and raise a ValueError for other texts.

    All readers follow this rule. Blanks and tabs around the field are ignored. The field is an element of MISSING, or
    digits with a sign, a decimal mark and an exponent, or infinity in words (which raises an error later). Unlike
    `float`, this function accepts no underscores, no digits of other scripts, and no other spelling of NaN.
    """
    text = text.strip(" \t")
    if text in MISSING:
        return np.nan
    if text.strip(MARKS[decimal]):  # not empty: the field has other characters
        if text.lower().lstrip("+-") in ("inf", "infinity"):
            return np.inf
        raise ValueError(text)
    return float(text.replace(",", "."))


def with_codes(read: Callable[[Any], float], codes: Sequence[str]) -> Callable[[Any], float]:
    """Return a reader of numbers that treats the texts `codes`, and equal numbers, as missing."""
    if not codes:
        return read
    texts, values = set(codes), code_values(codes)

    def coded(field: Any) -> float:
        value = np.nan if isinstance(field, str) and field.strip(" \t") in texts else read(field)
        return np.nan if value in values else value

    return coded


def code_values(codes: Sequence[str]) -> list[float]:
    """Return the codes that are numbers, so that -9999.0 also means missing if -9999 does."""
    return [number(code) for code in codes if code not in MISSING and is_number(code)]


def not_a_number(field: Any) -> str:
    """Return why a field is not a number, with a remedy if there is one."""
    if isinstance(field, str):
        for decimal, other in ((",", "."), (".", ",")):
            if other not in field and is_number(field, decimal):
                quoted = " in CSV; in JSON lines, write it without quotes" if decimal == "." else ""
                remedy = f"If it means {number(field, decimal):g}, add --decimal {decimal}{quoted}"
                if not has_thousands(field, other):
                    return f"{NOT_A_NUMBER}. {remedy}"
                return f"{NOT_A_NUMBER}. If it means {field.replace(decimal, '')}, remove the {decimal!r}. {remedy}"
            if has_thousands(field, other):
                return f"{NOT_A_NUMBER}. Remove the {decimal!r} between its thousands"
    return NOT_A_NUMBER


def has_thousands(field: str, decimal: str = ".") -> bool:
    """Whether a field is a number with its thousands set apart: 1,234 or 1,234.5, which may mean something else."""
    return THOUSANDS[decimal].fullmatch(field.strip(" \t")) is not None


def is_number(field: str, decimal: str = ".") -> bool:
    """Whether `number` accepts the field. Missing values are accepted, too."""
    try:
        number(field, decimal)
    except ValueError:
        return False
    return True


def complaint(value: float) -> str | None:
    """Return what is wrong with the value of a feature, or None."""
    if np.isnan(value):
        return "means that the value is missing. Train the model with --missing impute to use the mean instead"
    return outsized(value)


def outsized(value: float) -> str | None:
    """Return what is wrong with the size of a number, or None."""
    if np.isinf(value):
        return "infinity cannot be learned"
    return None if not abs(value) >= LARGEST else f"numbers must be below {LARGEST:g} in magnitude"


def texts(values: Array) -> Any:
    """Return, for each number, the shortest text that reads back as the same number. NaN becomes null.

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
    """Return the text of a number in the format of pyarrow: positional from 1e-6 to 1e10, else with an exponent."""
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
    """Return the text of rows: the prefix and the value of each column, then `end`. None becomes `missing`."""
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
    """Return the contiguous bytes of a string array."""
    offsets = np.frombuffer(rows.buffers()[1], dtype=np.int32)[rows.offset : rows.offset + len(rows) + 1]
    return rows.buffers()[2][int(offsets[0]) : int(offsets[-1])].to_pybytes()
