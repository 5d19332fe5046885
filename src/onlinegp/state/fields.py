"""Fields of learners: the kind, shape and range of each stored value.

Shapes contain names::

    fields = {"seen": integer(), "weights": array("size", "outputs"), "variance": array("outputs", least=0.0)}

A name in a shape is an integer field, a varying length (`WithFields.lengths`), or an attribute of the learner, which is
a number such as `features` or has a length. A bound of a range is a number, the name of an attribute, or None.
"""

from __future__ import annotations

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

LARGEST_COUNT = 2**63 - 1  # of an int64
LARGEST_POSITION = 2**62  # of a row: the sum of two fits into an int64
LARGEST_NUMBER = float(np.finfo(np.float64).max)

Size = int | str
Bound = float | str | None


class Unencoded(ABC):
    """The value of a field of kind "model" that is not encoded as bytes yet, because that takes time."""

    @abstractmethod
    def to_bytes(self) -> bytes: ...


@dataclass(frozen=True)
class Field:
    """The description of a stored value, created by the functions below.

    Attributes
    ----------
    attribute : the attribute of the learner, such as "scale.total"; the name of the field if empty
    prefix : for an inner learner, the prefix of its names; its name and a dot if None
    """

    kind: str
    shape: tuple[Size, ...] = ()
    dtype: Any = np.float64
    least: Bound = None
    most: Bound = None
    positive: bool = False
    attribute: str = ""
    prefix: str | None = None

    @property
    def is_array(self) -> bool:
        return self.kind not in ("integer", "number", "text", "learner")

    def copied(self, value: Any) -> Any:
        """Return a copy of an array, or a plain number or text."""
        if isinstance(value, Unencoded):
            return np.frombuffer(value.to_bytes(), self.dtype)
        if self.is_array:
            return np.array(value, order="C")
        return value if self.kind == "text" else int(value) if self.kind == "integer" else float(value)

    def checked(self, name: str, value: Any, shape: tuple[int, ...], least: float | None, most: float | None) -> Any:
        """Check the type, shape and range of a stored value, and return it. Errors contain its name."""
        if self.kind == "text":
            if not isinstance(value, str):
                raise ValueError(f"{name} must be a text, got {reprlib.repr(value)}.")
            return value
        if not self.is_array:
            return self._number(name, value, least, most)
        if self.kind == "model" and isinstance(value, Unencoded):
            return value
        if not isinstance(value, np.ndarray) or value.shape != shape or value.dtype != self.dtype:
            found = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
            raise ValueError(f"{name} must be {np.dtype(self.dtype)} of shape {shape}, got {found}.")
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise ValueError(f"{name} holds a value that is not finite.")
        if value.size and (least is not None or most is not None or self.positive):
            for one in (value.min(), value.max()):
                self._in_range(name, one.item(), least, most)
        return value

    def _number(self, name: str, value: Any, least: float | None, most: float | None) -> Any:
        whole = self.kind == "integer"
        allowed = int if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, allowed) or not (whole or abs(value) <= LARGEST_NUMBER):
            what = "a whole number" if whole else "a finite number"
            raise ValueError(f"{name} must be {what}, got {reprlib.repr(value)}.")
        self._in_range(name, value, least, most)
        return value if whole else float(value)

    def _in_range(self, name: str, value: float, least: float | None, most: float | None) -> None:
        if self.positive and not value > 0:
            raise ValueError(f"{name} must be positive, got {reprlib.repr(value)}.")
        if least is not None and value < least:
            raise ValueError(f"{name} must be at least {least:g}, got {reprlib.repr(value)}.")
        if most is not None and value > most:
            known = f"the {self.most}, {most}" if isinstance(self.most, str) else repr(most)
            raise ValueError(f"{name} must be at most {known}, got {reprlib.repr(value)}.")


Fields = Mapping[str, Field]


def integer(*, least: Bound = 0, most: Bound = LARGEST_COUNT, attribute: str = "") -> Field:
    """An integer."""
    return Field("integer", least=least, most=most, attribute=attribute)


def number(*, least: Bound = 0.0, most: Bound = None, positive: bool = False, attribute: str = "") -> Field:
    """A finite number."""
    return Field("number", least=least, most=most, positive=positive, attribute=attribute)


def array(*shape: Size, least: Bound = None, most: Bound = None, positive: bool = False, attribute: str = "") -> Field:
    """An array of finite numbers."""
    return Field("array", shape, least=least, most=most, positive=positive, attribute=attribute)


def points(count: Size, *, attribute: str = "") -> Field:
    """Inputs, (count, features)."""
    return Field("points", (count, "features"), attribute=attribute)


def integers(*shape: Size, least: Bound = None, most: Bound = None, attribute: str = "") -> Field:
    """An array of integers."""
    return Field("integers", shape, np.int64, least=least, most=most, attribute=attribute)


def flags(*shape: Size, attribute: str = "") -> Field:
    """An array of true and false."""
    return Field("flags", shape, np.bool_, attribute=attribute)


def triangle(size: Size, *, dtype: Any = np.float64) -> Field:
    """The lower triangle of a square matrix, row by row, in an array of one dimension."""
    return Field("triangle", (size,), dtype)


def data(length: Size) -> Field:
    """Bytes, as an array."""
    return Field("data", (length,), np.uint8)


def text(*, attribute: str = "") -> Field:
    """A string."""
    return Field("text", attribute=attribute)


def model(*, attribute: str = "") -> Field:
    """The bytes of a model that was chosen while learning: description and record, see `onlinegp.state.record`."""
    return Field("model", ("",), np.uint8, attribute=attribute)


def learner(*, attribute: str = "", prefix: str | None = None) -> Field:
    """An inner learner, or a part that has fields."""
    return Field("learner", attribute=attribute, prefix=prefix)
