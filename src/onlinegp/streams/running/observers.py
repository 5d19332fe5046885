"""Observers of a run: the rows that they receive, and how checkpoints store them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.files.container import ModelFileError
from onlinegp.predictions import Predictions
from onlinegp.state import Field, Fields, WithFields
from onlinegp.streams.running.predict_then_learn import Predicted

OBSERVERS = ("score", "curves", "weights", "flags", "surprises", "scenes")  # names, in the order of a checkpoint


@dataclass(frozen=True)
class Rows:
    """Consecutive rows of a stream and their predictions.

    Attributes
    ----------
    pit : the probability integral transform, the predicted probability of a target up to y
    size : the number of centers after each row
    scored : whether a row counts in the scores
    before : the number of rows of the stream before these rows
    odd : whether the target of a row is not plausible
    weights, members : the weights of the members of a mixture in each prediction, and their names, if they are known
    keys : the copied columns, by name
    """

    y: Array
    mean: Array
    std: Array
    lower: Array
    upper: Array
    density: Array
    pit: Array
    size: NDArray[Any]
    scored: NDArray[np.bool_]
    odd: NDArray[np.bool_]
    weights: Array  # (n, members)
    predictions: Predictions
    before: int = 0
    keys: Mapping[str, Any] = field(default_factory=dict)
    members: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        y: Array,
        predicted: Predicted,
        *,
        level: float,
        before: int = 0,
        unscored: int = 0,
        odd: NDArray[np.bool_] | None = None,
        keys: Mapping[str, Any] | None = None,
        weights: tuple[tuple[str, ...], Array] | None = None,
    ) -> Rows:
        """Compute the columns of the output; NaN if the target or the prediction is missing.

        The first `unscored` rows do not count.
        """
        p, odd = predicted.predictions, np.zeros(len(y), dtype=bool) if odd is None else odd
        scored = ~(np.isnan(y) | np.isnan(p.mean)) & predicted.known & (np.arange(len(y)) >= unscored)
        members, shares = weights or ((), np.empty((len(y), 0)))
        columns = (
            y,
            p.mean,
            p.std,
            *p.interval(level),
            p.log_density(y),
            p.pit(y),
            predicted.size,
            scored,
            odd,
            shares,
        )
        return cls(*columns, p, before, keys or {}, members)

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Join consecutive rows with the same members."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        names = [one.name for one in fields(cls) if isinstance(getattr(first, one.name), np.ndarray)]
        return cls(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names},
            predictions=Predictions.joined([part.predictions for part in parts]),
            before=first.before,
            keys={name: list(chain(*(part.keys[name] for part in parts))) for name in first.keys},
            members=first.members,
        )

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def z(self) -> Array:
        """The distance of y from the mean, in standard deviations."""
        return self.predictions.z(self.y)

    @cached_property
    def tail(self) -> Array:
        """The two-sided tail probability of y."""
        return self.predictions.tail(self.y)


class Observer(WithFields):
    """Base class of observers. `add` receives the rows of a run in order; checkpoints store the fields."""

    @abstractmethod
    def add(self, rows: Rows) -> Any:
        """Receive the next rows."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values. NaN becomes null."""
        return {name: _plain(value) for name, value in self.dump().items()}

    def from_json(self, entry: Any) -> None:
        """Load an entry of a file. If it is not valid, raise a ModelFileError and change nothing."""
        known = _known(self)
        try:
            if not isinstance(entry, dict):
                raise ValueError("it must be an object")
            self.load({name: _array(name, value, known.get(name)) for name, value in entry.items()})
        except (ValueError, OverflowError) as error:
            name = type(self).__name__.lower()
            raise ModelFileError(f"the entry 'stream' is not valid: {name}: {error}") from None


@dataclass(frozen=True)
class _Gaps(Field):
    def checked(self, name: str, value: Any, shape: tuple[int, ...], least: Any, most: Any) -> Any:
        super().checked(name, np.nan_to_num(value, nan=0.0, posinf=np.inf, neginf=-np.inf), shape, least, most)
        return value


@dataclass(frozen=True)
class _Texts(Field):
    def copied(self, value: Any) -> Any:
        return list(value)

    def checked(self, name: str, value: Any, shape: tuple[int, ...], least: Any, most: Any) -> Any:
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value) or len(value) > most:
            raise ValueError(f"{name} must be a list of at most {most} texts.")
        return value


def array_with_gaps(*shape: int | str) -> Field:
    """Declare an array of numbers that are finite or missing (NaN)."""
    return _Gaps("array", shape)


def texts(most: int) -> Field:
    """Declare a list of at most `most` texts."""
    return _Texts("text", most=most)


def _plain(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    return (np.where(np.isnan(value), None, value) if value.dtype.kind == "f" else value).tolist()  # type: ignore[call-overload]


def _known(observer: WithFields, prefix: str = "") -> Fields:
    """Return all fields, including the fields of parts, by their names in a dump."""
    known: dict[str, Field] = {}
    for name, one in observer.fields.items():
        inside = _known(observer.children()[name], f"{prefix}{name}.") if one.kind == "learner" else {}
        known |= inside or {prefix + name: one}
    return known


def _array(name: str, value: Any, field: Field | None) -> Any:
    """Convert a list to the array of its field. Other values are returned unchanged."""
    if field is None or not field.is_array:
        return value
    cells = np.array(value, dtype=object)  # lists of different lengths stay lists, and raise an error later
    allowed = {int} if field.dtype is np.int64 else {int, float, type(None)}
    if not isinstance(value, list) or not {type(cell) for cell in cells.flat} <= allowed:
        raise ValueError(f"{name} must be a list of numbers")
    if any(cell != cell for cell in cells.flat):
        raise ValueError(f"{name} must be a list of numbers, null where one is missing")
    found = cells.astype(field.dtype)
    return found.reshape([n if isinstance(n, int) else 0 for n in field.shape]) if value == [] else found
