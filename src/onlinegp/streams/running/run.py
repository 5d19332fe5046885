"""The loop of a run: predict, learn, write and score every row of a stream, and write checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from time import monotonic
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.files.container import ModelFileError
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.breakdown import BreakdownError
from onlinegp.models.combined.base import innermost
from onlinegp.predictions import Predictions
from onlinegp.streams.errors import BadData, CheckpointError, Stopped, StreamBreakdownError
from onlinegp.streams.reading.source import Block, Source, read_ahead
from onlinegp.streams.running.checkpoint import Checkpoints, to_bytes
from onlinegp.streams.running.column_encoding import Encoder
from onlinegp.streams.running.event_scenes import Scenes
from onlinegp.streams.running.first_rows import FirstRows
from onlinegp.streams.running.flag_commands import Commands
from onlinegp.streams.running.flags import Flags
from onlinegp.streams.running.hints import Hints
from onlinegp.streams.running.member_weights import Weights, member_weights
from onlinegp.streams.running.observers import OBSERVERS, Observer, Rows
from onlinegp.streams.running.one_model import Models, OneModel
from onlinegp.streams.running.plausible import CodeWatch, PlausibleRange
from onlinegp.streams.running.predict_then_learn import Predicted
from onlinegp.streams.running.rejects import Rejects
from onlinegp.streams.running.score import Curves, Score
from onlinegp.streams.running.stop_signals import Stopper
from onlinegp.streams.running.surprises import Surprises
from onlinegp.streams.writing.sinks import Sink

PIECE = 0.2  # seconds of work between two checks for a signal
FIRST_PIECE = 32  # number of rows in the first piece, and the minimum, because each piece has a fixed cost


@dataclass(frozen=True)
class Every:
    """How often to write a checkpoint: after a number of rows or seconds."""

    rows: int | None = 10_000
    seconds: float | None = None

    def due(self, rows: int, seconds: float) -> bool:
        return (self.rows is not None and rows >= self.rows) or (self.seconds is not None and seconds >= self.seconds)


@dataclass
class Job:
    """A run over a source, with its options and its progress.

    `models` is one model, or a model per key. If the first rows are needed to encode columns or to tune the model of
    all keys, `first` collects them, and then `begin` makes the model. Without `learn`, the model only predicts. With
    `ahead`, the run processes one row at a time and writes each row with the prediction of the next row. The `encoder`
    converts features to inputs of the model. The first `unscored` rows are not scored.
    """

    source: Source
    sink: Sink
    encoder: Encoder
    level: float = 0.95
    model: OnlineRegressor | None = None
    learn: bool = True
    first: FirstRows | None = None
    begin: Callable[[Array, Array], OnlineRegressor] | None = None
    models: Models = field(default_factory=OneModel)
    unscored: int = 0
    rejects: Rejects = field(default_factory=lambda: Rejects(None))
    checkpoints: Checkpoints | None = None
    every: Every = field(default_factory=Every)
    settings: dict[str, Any] = field(default_factory=dict)
    curves: Curves | None = None
    weights: Weights | None = None
    flags: Flags | None = None
    surprises: Surprises | None = None
    scenes: Scenes | None = None
    commands: Commands | None = None  # the command for each event that opens
    ahead: bool = False
    screen: bool = False  # whether to learn only plausible targets
    hints: Hints | None = None
    codes: CodeWatch = field(default_factory=CodeWatch)
    watch: Callable[[Job], None] = lambda job: None  # called after each block

    def __post_init__(self) -> None:
        self.rows = self.saved_rows = self.start_rows = 0
        self.score = Score(self.level)
        self.later = Score(self.level)  # of the rows after the first rows, in a run from the start
        self.position = self.source.position
        self.began = self._saved_at = monotonic()
        self.idle = 0.0  # seconds of tuning
        self.stopper = Stopper()
        self._piece, self.tuning_due = FIRST_PIECE, False
        self._written: list[Rows] = []  # rows that most observers have not received yet
        self._range, self._odd = PlausibleRange(), np.zeros(0, dtype=bool)
        self._left: list[str] = []  # events with commands that had not ended at the last checkpoint

    @property
    def observers(self) -> dict[str, Observer]:
        """The observers of the rows, by name."""
        found = {name: getattr(self, name) for name in OBSERVERS}
        return {name: one for name, one in found.items() if one is not None}

    def run(self) -> None:
        """Run to the end of the source, or raise the error that ended the run. `rows` counts the finished rows."""
        with self.stopper as stopper, closing(read_ahead(self.source)) as blocks:
            try:
                if self.commands is not None:
                    self.commands.start_all(self._left)
                while True:
                    with stopper.at_once():
                        block, position = next(blocks, (None, {}))
                    if block is None:
                        break
                    self.take(block, position)
                self._finish()
            except (Stopped, KeyboardInterrupt) as stopped:
                if isinstance(stopped, Stopped):
                    self.collect()
                    self.save_checkpoint()
                if self.commands is not None:
                    self.commands.kill()
                raise

    def take(self, block: Block, position: dict[str, int]) -> None:
        """Process a block in pieces of about PIECE seconds. A signal waits for the end of a piece."""
        done, start = 0, self.position
        self._look_for_codes(block)
        while True:
            rows, self.tuning_due = self.models.piece(self, block, done, self._whole_stretch(block, done))
            began = monotonic()
            self.work(block.part(done, done + rows))
            took = monotonic() - began
            self._adapt(rows, took)
            self.idle += took if self.tuning_due else 0.0
            done += rows
            if done >= len(block):
                break
            self.position = start | {"behind": start.get("behind", 0) + done}
            self.watch(self)
            self.stopper.check()
        self.position = position
        self.collect()
        if self.every.due(self.rows - self.saved_rows, monotonic() - self._saved_at):
            self.save_checkpoint()
        self.watch(self)

    def _look_for_codes(self, block: Block) -> None:
        columns = self.source.columns
        numbers = [j for j, kind in enumerate(columns.kinds_of_features) if kind == "number"]
        values = [block.X[:, j].astype(np.float64) for j in numbers]
        target = [] if columns.target is None else [block.y]
        self.codes.look(columns.numbers, [*values, *target])

    def _whole_stretch(self, block: Block, done: int) -> int:
        """Return the number of rows in a piece. Rows without a target stay together, for reproducible bits."""
        left = np.isnan(block.y[done:]) if self.learn else np.ones(len(block) - done, dtype=bool)
        rows = min(self._piece, len(left))
        return rows + int(np.argmin(np.append(left[rows:], False))) if rows and left[rows - 1] else rows

    def _adapt(self, rows: int, seconds: float) -> None:
        """Adapt the size of pieces to their speed. Start again after a tuning."""
        if self.tuning_due:
            self._piece = FIRST_PIECE
        elif seconds < PIECE / 2.0:
            self._piece = max(self._piece, 2 * rows)
        elif seconds > PIECE:
            self._piece = max(FIRST_PIECE, rows // 2)

    def work(self, block: Block) -> None:
        """Predict, write and learn the rows of a block."""
        block = self.models.accepted(self, block)
        for part in [block.part(i, i + 1) for i in range(len(block))] if self.ahead else [block]:
            self._rows(part)
        self.rejects.write(block.rejected)
        if block.error is not None:
            raise BadData(block.error.message(self.source.path))

    def _rows(self, block: Block) -> None:
        start, self._odd = 0, self.range.add(block.y)
        y = np.where(self._odd, np.nan, block.y) if self.screen else block.y  # the targets to learn
        if self.model is None:
            assert self.first is not None
            predicted = self.first.add(block.X, y, self.models.keys(block))
            start = len(predicted)
            try:
                if self.first.done:
                    self.begin_model()  # at the start, because --ahead needs the model
            finally:
                self._emit(block, 0, predicted)
        if start < len(block):
            self._predict(block, start, y[start:])

    @property
    def range(self) -> PlausibleRange:
        """The range of plausible targets. Checkpoints store it with the flags."""
        return self._range if self.flags is None else self.flags.range

    def _predict(self, block: Block, start: int, y: Array) -> None:
        """Predict and learn the rows of a block from `start` on. If the model diverges, first write the rows before."""
        X = self.encoder(block.X[start:])
        try:
            predicted = self.models.predict(self, block, start, X, y)
        except StreamBreakdownError as error:
            self._emit(block, start, error.predicted)
            raise
        self._emit(block, start, predicted)
        if self.hints is not None:
            self.hints.add(self._written[-1], X)

    def _emit(self, block: Block, start: int, predicted: Predicted) -> None:
        if not len(predicted):
            return
        part = slice(start, start + len(predicted))
        keys = [key[part] for key in block.keys]
        rows = Rows.of(
            block.y[part],
            predicted,
            level=self.level,
            before=self.rows,
            unscored=max(0, self.unscored - self.rows),
            odd=self._odd[part],
            keys=dict(zip(self.source.columns.keys, keys, strict=True)),
            weights=None
            if self.weights is None or self.model is None
            else member_weights(self.model, predicted.predictions),
        )
        opened: list[str] = []
        columns: list[Any] = [rows.y, rows.mean, rows.std, rows.lower, rows.upper, rows.density]
        if self.flags is not None:
            flagged, opened = self.flags.add(rows)
            columns += flagged
        if self.ahead:
            following = self._next()
            columns += [following.mean, following.std, *following.interval(self.level)]
        self.sink.write(keys, columns)
        self._written.append(rows)
        if self.commands is not None:
            self.commands.start_all(opened)
        self.rows += len(rows)

    def collect(self) -> None:
        """Pass the rows since the last call to the observers, in one call.

        The size of pieces depends on the clock, but so the scores do not.
        """
        for _, pieces in groupby(self._written, lambda piece: piece.members):
            rows = Rows.joined(list(pieces))
            for name, observer in self.observers.items():
                if name != "flags":  # flags have received the rows when they were written
                    observer.add(rows)
            if self.first is not None and self.start_rows == 0:
                later = rows.before + np.arange(len(rows)) >= self.first.seen
                self.later.add(replace(rows, scored=rows.scored & later))
        self._written = []

    def _next(self) -> Predictions:
        """Predict the next row."""
        if self.model is not None:
            return self.model.predict_distribution(None)  # type: ignore[arg-type]
        assert self.first is not None
        return self.first.next()

    def where(self, number: int) -> str:
        """Describe the place of a row for messages."""
        return f" at row {number} of {self.source.path}"

    def begin_model(self) -> None:
        """Make a model from the first rows, and let it learn these rows."""
        assert self.first is not None
        assert self.begin is not None
        before = monotonic()
        with self.stopper.at_once():  # nothing is lost if a signal arrives here
            X, y = self.first.encoded()
            self.model = self.models.taught(self, self.begin(X, y), X, y)
        self.idle += monotonic() - before

    def _finish(self) -> None:
        if self.model is None and self.first is not None and self.first.varies:
            self.begin_model()
        if self.commands is not None:
            with self.stopper.at_once():  # stop at once: the checkpoint contains the commands that are left
                self.commands.finish()
        self.save_checkpoint()

    def close(self) -> None:
        """Wait for the commands of events, then close all files."""
        if self.commands is not None:
            self.commands.finish()
        try:
            for part in (self.source, self.sink, self.rejects, self.flags, self.checkpoints):
                if part is not None:
                    part.close()
        finally:
            self.models.close()

    # Checkpoints

    def save_checkpoint(self) -> None:
        """Write output and state to disk, in this order. Without a model, do nothing."""
        if self.models.save(self):
            self.saved_rows, self._saved_at = self.rows, monotonic()

    def sync(self) -> None:
        """Write the output to disk."""
        for part in (self.sink, self.rejects, self.flags):
            if part is not None:
                part.sync()

    def model_file(self, place: dict[str, Any] | None = None) -> bytes:
        """Return a model file for use on other streams or, with `place`, a checkpoint of this stream.

        Raises
        ------
        StreamBreakdownError
            If the model diverged at the last row.
        """
        assert self.model is not None
        try:
            return to_bytes(self.model, self.stream() | (place or {}))
        except BreakdownError as error:
            raise StreamBreakdownError(innermost(self.model), error.reason, where=self.where(self.rows)) from None

    def stream(self) -> dict[str, Any]:
        """Return the entry "stream" of a model file."""
        return {"columns": self.encoder.dump(), "level": self.level, "settings": self.settings}

    def place(self) -> dict[str, Any]:
        """Return the additional items of a checkpoint."""
        length = getattr(getattr(self.sink, "file", None), "length", 0)
        return {
            "position": self.position,
            "output": length,
            "rejects": {"count": self.rejects.count, "length": self.rejects.length},
            "rows": self.rows,
            **dict.fromkeys(OBSERVERS),
            **{name: observer.to_json() for name, observer in self.observers.items()},
            "commands": [] if self.commands is None else self.commands.unfinished(),
        }

    def resume(self, model: OnlineRegressor, stream: dict[str, Any]) -> None:
        """Continue from a checkpoint. Source, sink and rejects are already at their positions."""
        self.model = model
        self.encoder.load(stream)
        self.rows = self.saved_rows = self.start_rows = stream["rows"]
        try:
            for name, observer in self.observers.items():
                if stream[name] is not None:
                    observer.from_json(stream[name])
        except ModelFileError as error:
            raise CheckpointError(f"the checkpoint cannot be used: {error}") from None
        self._left = stream["commands"]
        self.models.resume(self, stream)
