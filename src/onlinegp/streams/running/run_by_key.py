"""Run over a stream with many keys: a model for each key, and predictions in the order of the input."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import date, time
from decimal import Decimal
from functools import partial
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.fleet import Fleet
from onlinegp.fleet.order import instant, newer
from onlinegp.fleet.sqlite import TYPES
from onlinegp.fleet.sqlite_file import Key, Store
from onlinegp.models.alarms.detector import Detector
from onlinegp.models.alarms.watched import Watched
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.breakdown import BreakdownError
from onlinegp.models.combined.base import innermost
from onlinegp.predictions import Predictions
from onlinegp.streams.errors import BadRow, BrokeDown, Stopped, short
from onlinegp.streams.number_text import number
from onlinegp.streams.reading.source import Block
from onlinegp.streams.running.first_rows import with_lags
from onlinegp.streams.running.predict_then_learn import Predicted, stretches
from onlinegp.streams.running.requested import Requested, described
from onlinegp.streams.running.run import Job, up_to

WHOLE = re.compile(r"[+-]?[0-9]+")


class LateRow(BadRow):
    """A row that is not newer than the last row of its key; its `line` is the number of the row."""

    remedy = "Sort the rows of each key, or leave late ones out with --late drop"

    def message(self, path: str) -> str:
        where = f"{path}, row {self.line} of the data: {self.column}"
        return f"{where} {short(self.value)!r} {self.reason}. {self.remedy}."


class PlacelessRow(LateRow):
    """A row whose value in the --order column is missing or cannot be compared."""

    remedy = (
        "Correct the row, give the format of times with --date-format, leave such rows out with --on-bad-row skip, or "
        "leave --order out"
    )


class KeylessRow(LateRow):
    """A row without a key, or with a key of another type than the others."""

    remedy = "Correct the row, or leave such rows out with --on-bad-row skip"


@dataclass
class KeyedJob(Job):
    """A job with one model per key. Every key starts with a copy of `model`, or of what `begin` returns.

    Parameters
    ----------
    by, order : str, str or None
        The columns of the key and of the order of the rows of a key. Both are copied to the output.
    late : {"stop", "drop"}
        What to do with a row that is not newer than the last row of its key. Dropped rows go to the rejects.
    lags, horizon : int
        Lags and horizon of the models, for tuning.
    make_fleet : callable
        Returns a fleet of copies of a model.
    store, resumable : Store or None, bool
        The store, if any, and whether it also keeps the positions in input and output.
    key_type : type, optional
        The type of the keys, str or int: 0 and "0" are different keys. If None, the first row decides.
    """

    by: str = ""
    order: str | None = None
    late: str = "stop"
    lags: int = 0
    horizon: int = 1
    make_fleet: Callable[[OnlineRegressor], Fleet] = Fleet
    store: Store | None = None
    resumable: bool = False
    key_type: type[Key] | None = None
    fleet: Fleet | None = None
    dropped: int = 0
    _half: bool = False  # whether a signal interrupted the current rows
    _early: list[tuple[Key, Any]] = field(default_factory=list)  # key and order of each row before there is a fleet
    _last: dict[Key, Any] = field(default_factory=dict)  # the last order of each key, until then

    def more(self) -> dict[str, Any]:
        return {"keys": 0 if self.fleet is None else len(self.fleet), "late": self.dropped}

    # Rows

    def take(self, block: Block, position: dict[str, int]) -> None:
        if self.fleet is None and self.model is not None:
            self._start_fleet()
        super().take(block, position)

    def _piece_rows(self, block: Block, done: int) -> tuple[int, bool]:
        if self.settings.get("compact"):  # it rounds after each call, so pieces must not depend on the clock
            return len(block) - done, False
        rows = self._whole_stretch(block, done)
        if self.fleet is None or not innermost(self.fleet.model).tunes_itself:
            return rows, False
        keys = self._column(block, self.by)[done : done + rows]
        left = self.fleet.until_tuning(keys)
        for i, key in enumerate(keys):
            left[key] -= not np.isnan(block.y[done + i])
            if left[key] <= 0:
                return up_to(i)
        return rows, False

    def work(self, block: Block) -> None:
        if self._tuning_due:  # an interrupted tuning is not saved, so save before it
            self._collect()
            self.save_checkpoint()
        keys = self._column(block, self.by)
        places = [None] * len(keys) if self.order is None else self._places(block)
        wrong = self._wrong(block, keys, places)
        fatal = next((i for i, row in sorted(wrong.items()) if self._stops(row)), len(keys))
        kept = np.array([i < fatal and i not in wrong for i in range(len(keys))], dtype=bool)
        if self.fleet is None:
            self._early += [(key, place) for key, place, keep in zip(keys, places, kept, strict=True) if keep]
        out = [wrong[i] for i in sorted(wrong) if i < fatal]
        self.rejects.write(out)
        self.dropped += sum(type(row) is LateRow for row in out)
        block.error = wrong.get(fatal, block.error)
        super().work(block if kept.all() else _some(block, kept))

    def _stops(self, row: BadRow) -> bool:
        """Whether a bad row ends the run."""
        return self.late == "stop" if type(row) is LateRow else not self.source.skip_bad

    def _wrong(self, block: Block, keys: list[Key], places: list[Any]) -> dict[int, BadRow]:
        """Return the bad rows by number: without a key, without an order, or not newer than the last of their key."""
        before = self.rows + self.rejects.count
        keyless = {i: why for i, key in enumerate(keys) if (why := self._without_key(key))}
        wrong: dict[int, BadRow] = {
            i: KeylessRow(before + i + 1, self.by, _text(keys[i]), why, _text(keys[i])) for i, why in keyless.items()
        }
        if self.order is None:
            return wrong
        known = [i for i, place in enumerate(places) if place is not None and i not in keyless]
        numeric_order = self.source.numeric[str(self.order)]
        some, theirs = [keys[i] for i in known], [places[i] for i in known]
        fresh = newer(self._last, some, theirs) if self.fleet is None else self.fleet.newer(some, theirs)
        found: dict[int, tuple[type[LateRow], str]] = {
            i: (LateRow, f"is not newer than the last of the key {short(str(keys[i]))!r}")
            for i, new in zip(known, fresh, strict=True)
            if not new
        }
        kind = "numbers of 64 bits" if numeric_order else "texts, or of times by ISO 8601 to the nanosecond"
        found |= {
            i: (PlacelessRow, f"cannot be compared in an order of {kind}") for i, p in enumerate(places) if p is None
        }
        values = self._column(block, self.order)
        return wrong | {
            i: row(before + i + 1, str(self.order), _text(values[i]), reason, f"{keys[i]},{_text(values[i])}")
            for i, (row, reason) in found.items()
            if i not in keyless
        }

    def _without_key(self, key: Any) -> str:
        """Return why a value cannot be a key of this run, or "" if it can."""
        if key is None or key != key or (key == "" and self.source.empty_is_missing):
            return "is missing, so the row belongs to no model"
        kind: type[Key] = type(key)
        if kind not in TYPES or (kind is int and not -(1 << 63) <= key < 1 << 63):
            return "cannot be a key: keys are strings, or whole numbers of 64 bits"
        self.key_type = self.key_type or kind
        return "" if kind is self.key_type else f"is not a key like those before, which are {TYPES[self.key_type]}"

    def _places(self, block: Block) -> list[Any]:
        """Return the values of the order column: numbers or texts, None if missing or not valid."""
        numeric = self.source.numeric[str(self.order)]
        read = partial(number, decimal=self.source.decimal)
        format = self.source.columns.date_format
        return [
            _number(value, read) if numeric else _moment(value, format) for value in self._column(block, self.order)
        ]

    def _column(self, block: Block, name: str | None) -> list[Any]:
        """Return a column that is copied to the output."""
        column = block.keys[self.source.columns.keys.index(str(name))]
        return column if isinstance(column, list) else column.to_pylist()

    # Models

    def tuned_on(self, asked: Requested, say: Callable[[str], None]) -> Callable[[Array, Array], OnlineRegressor]:
        """Return a function that makes the model of all keys, tuned on their first rows."""

        def begin(X: Array, y: Array) -> OnlineRegressor:
            model = asked.tuned(*with_lags(X, y, self.lags, self.horizon, self._first_keys(y)))
            say("model: " + "; ".join(described(innermost(model))))
            return model

        return begin

    def _taught(self, model: OnlineRegressor, X: Array, y: Array) -> OnlineRegressor:
        self.model = model
        self._start_fleet()
        with self._cut_off():
            self._predict_rows(self._first_keys(y), X, y)
        self._early, self._last = [], {}
        return model

    def _first_keys(self, y: Array) -> list[Key]:
        """Return the keys of the first rows that were kept."""
        assert self.first is not None
        return [key for key, _ in self._early[self.first.seen - len(y) : self.first.seen]]

    def _start_fleet(self) -> None:
        """Make the fleet, and tell it the order of the rows so far."""
        assert self.model is not None
        self.fleet = self.make_fleet(self.model)
        self.fleet.begin(len(self.encoder.names))
        if self.resumable:
            self.fleet.keep_beside(self._beside)
        elif self.store is not None:
            self.fleet.keep_beside(self._stream)
        if self.order is not None and self._early:
            self.fleet.newer([key for key, _ in self._early], [place for _, place in self._early])

    def _predict(self, block: Block, start: int, y: Array) -> None:
        if self.fleet is None:
            self._start_fleet()
        X = self.encoder(block.X[start:])
        with self._cut_off() if self._tuning_due else nullcontext():
            predicted = self._predict_rows(self._column(block, self.by)[start:], X, y)
        self._emit(block, start, predicted)

    @contextmanager
    def _cut_off(self) -> Iterator[None]:
        """Stop at once on a signal, and save nothing after it: some models may have learned a row and others not."""
        try:
            with self._stopper.at_once():
                yield
        except Stopped:
            self._half = True
            raise

    def _predict_rows(self, keys: list[Key], X: Array, y: Array) -> Predicted:
        """Predict rows, and learn those that have a target."""
        assert self.fleet is not None
        predicted = []
        try:
            with np.errstate(all="ignore"):
                for part, missing in stretches(np.isnan(y)):
                    if missing:
                        predictions = self._without_target(keys[part], X[part])
                        nothing = np.zeros(len(predictions), dtype=np.int64)
                        predicted.append(Predicted(predictions, nothing, nothing == 1))
                    else:
                        trace = self.fleet.run(keys[part], _features(X[part]), y[part])
                        predicted.append(Predicted(trace.predictions, trace.size, trace.scored))
        except BreakdownError as error:
            assert self.model is not None
            raise BrokeDown(innermost(self.model), str(error)) from None
        return Predicted.joined(predicted)

    def _without_target(self, keys: list[Key], X: Array) -> Predictions:
        """Predict rows without a target. A key that was never learned uses the model that keys start with."""
        assert self.fleet is not None
        assert self.model is not None
        known = np.array([key in self.fleet for key in keys])
        parts, order = [], []
        for which in (known, ~known):
            rows = np.flatnonzero(which)
            if not len(rows):
                continue
            order.append(rows)
            old = which is known
            some = [keys[i] for i in rows]
            parts.append(self.fleet.skip(some, _features(X[rows])) if old else self._prior(X[rows]))
        return Predictions.joined(parts).rows(np.argsort(np.concatenate(order)))

    def _prior(self, X: Array) -> Predictions:
        assert self.model is not None
        predictions = self.model.unfitted().predict_distribution(X)
        return Watched.unseen(predictions) if isinstance(self.model, Detector) else predictions

    # Checkpoints: the store keeps the position in the same transaction as the models

    def save_checkpoint(self) -> None:
        if self.fleet is not None and not self._half:
            self.fleet.commit()
            self._saved()

    def _beside(self) -> dict[str, Any]:
        """Write the output to disk and return the position; called when the models are committed."""
        self._sync()
        place = self._place()
        place["rejects"] |= {"late": self.dropped}
        return self._stream() | place

    def _stream(self) -> dict[str, Any]:
        return {"columns": self.encoder.dump(), "level": self.level, "settings": self.settings}

    def resume(self, model: OnlineRegressor, stream: dict[str, Any]) -> None:
        super().resume(model, stream)
        self.dropped = int(stream["rejects"].get("late", 0))
        self._start_fleet()

    def close(self) -> None:
        try:
            super().close()
        finally:
            if self.store is not None:
                self.store.close()


def _features(X: Array) -> Any:
    """Return the features, or None if the model has lags only."""
    return X if X.shape[1] else None


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _number(value: Any, read: Callable[[str], float]) -> float | None:
    """Return a number, whole numbers exactly; None if it is not a number, or a whole number of more than 64 bits."""
    if isinstance(value, str):
        text = value.strip(" \t")
        try:
            value = int(text) if WHOLE.fullmatch(text) else read(text)
        except ValueError:
            return None
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        value = int(value)
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 63 else None
    return float(value) if isinstance(value, float | Decimal) and isfinite(value) else None


def _moment(value: Any, format: str | None) -> str | None:
    """Return a text, with a time converted to UTC; None for other values."""
    if isinstance(value, str):
        return instant(value, format)
    return instant(value.isoformat()) if isinstance(value, date | time) else None


def _some(block: Block, which: NDArray[np.bool_]) -> Block:
    """Return the rows of a block that a mask selects."""

    def kept(column: Any) -> Any:
        return [value for value, keep in zip(column, which, strict=True) if keep] if isinstance(column, list) else (
            column.take(np.flatnonzero(which)))  # fmt: skip

    return Block(block.X[which], block.y[which], [kept(column) for column in block.keys], block.rejected, block.error)
