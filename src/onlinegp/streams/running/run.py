"""One run over a stream: predict, write, learn, score, and now and then a checkpoint of it all."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
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
from onlinegp.streams.errors import BadData, BrokeDown, CheckpointError, Stopped
from onlinegp.streams.reading.source import Block, Source
from onlinegp.streams.running.checkpoint import Checkpoints, pack
from onlinegp.streams.running.column_encoding import Encoder
from onlinegp.streams.running.flag_commands import Commands
from onlinegp.streams.running.flags import Flags, Surprises
from onlinegp.streams.running.hints import Hints
from onlinegp.streams.running.member_weights import Weights
from onlinegp.streams.running.observers import OBSERVERS, Observer, Rows
from onlinegp.streams.running.plausible import CodeWatch, PlausibleRange
from onlinegp.streams.running.predict_then_learn import Said, advance
from onlinegp.streams.running.rejects import Rejects
from onlinegp.streams.running.scenes import Scenes
from onlinegp.streams.running.score import Curves, Score
from onlinegp.streams.running.stop_signals import Stopper
from onlinegp.streams.running.warm_up import WarmUp
from onlinegp.streams.writing.sinks import Sink

PIECE = 0.2  # seconds of work between two looks at signals
FIRST_PIECE = 32  # rows, before it is known how long one takes; never fewer, as a piece has a cost of its own


@dataclass(frozen=True)
class Every:
    """When a checkpoint is due: after so many rows, or so many seconds."""

    rows: int | None = 10_000
    seconds: float | None = None

    def due(self, rows: int, seconds: float) -> bool:
        return (self.rows is not None and rows >= self.rows) or (self.seconds is not None and seconds >= self.seconds)


@dataclass
class Job:
    """A source, what to do with it, and how far it has come.

    `prepare` makes the model from the tuning rows, when `warm_up` has seen enough of them. Unless it is to `learn`, the
    model only predicts. With `ahead` it goes row by row, and each row is written with the prediction of the next one.
    The `encoder` makes the model's inputs of the features.
    """

    source: Source
    sink: Sink
    encoder: Encoder
    level: float = 0.95
    model: OnlineRegressor | None = None
    learn: bool = True
    warm_up: WarmUp | None = None
    prepare: Callable[[Any], OnlineRegressor] | None = None
    rejects: Rejects = field(default_factory=lambda: Rejects(None))
    checkpoints: Checkpoints | None = None
    every: Every = field(default_factory=Every)
    settings: dict[str, Any] = field(default_factory=dict)
    curves: Curves | None = None
    weights: Weights | None = None
    flags: Flags | None = None
    surprises: Surprises | None = None
    scenes: Scenes | None = None
    commands: Commands | None = None  # to run for each event that opens
    ahead: bool = False
    screen: bool = False  # whether targets that are not plausible are not learned
    hints: Hints | None = None
    codes: CodeWatch = field(default_factory=CodeWatch)
    watch: Callable[[Job], None] = lambda job: None  # called after each block

    def __post_init__(self) -> None:
        self.rows = self.saved_rows = self.start_rows = 0
        self.score = Score(self.level)
        self.position = self.source.position
        self.began = self._saved_at = monotonic()
        self.idle = 0.0  # seconds of tuning
        self._stopper = Stopper()
        self._piece, self._tuning_due = FIRST_PIECE, False
        self._written: list[Rows] = []  # not collected yet
        self._range, self._odd = PlausibleRange(), np.zeros(0, dtype=bool)
        self._left: list[str] = []  # events whose command had not ended when the checkpoint was made

    @property
    def observers(self) -> dict[str, Observer]:
        """What watches the rows, by name."""
        found = {name: getattr(self, name) for name in OBSERVERS}
        return {name: one for name, one in found.items() if one is not None}

    def run(self) -> None:
        """Go through the source to its end, or raise what ended it; then `rows` tells how far it came."""
        with self._stopper as stopper, closing(_ahead(self.source)) as blocks:
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
                    self._collect()
                    self.save_checkpoint()
                if self.commands is not None:
                    self.commands.kill()
                raise

    def take(self, block: Block, position: dict[str, int]) -> None:
        """Work on a block in pieces that take about PIECE seconds each, so that a signal waits for one of them only."""
        done, start = 0, self.position
        self._look_for_codes(block)
        while True:
            rows, self._tuning_due = self._piece_rows(block, done)
            began = monotonic()
            self.work(block.part(done, done + rows))
            self._adapt(rows, monotonic() - began)
            done += rows
            if done >= len(block):
                break
            self.position = start | {"behind": start.get("behind", 0) + done}
            self.watch(self)
            self._stopper.check()
        self.position = position
        self._collect()
        if self.every.due(self.rows - self.saved_rows, monotonic() - self._saved_at):
            self.save_checkpoint()
        self.watch(self)

    def _look_for_codes(self, block: Block) -> None:
        columns = self.source.columns
        numbers = [j for j, kind in enumerate(columns.kinds_of_features) if kind == "number"]
        values = [block.X[:, j].astype(np.float64) for j in numbers]
        target = [] if columns.target is None else [block.y]
        self.codes.look(columns.numbers, [*values, *target])

    def _piece_rows(self, block: Block, done: int) -> tuple[int, bool]:
        """Return how many rows to work on next, and whether a tuning is due: then it is the one row before that."""
        rows = self._whole_stretch(block, done)
        if self.model is None or not innermost(self.model).tunes_itself or not self.learn:
            return rows, False
        fitted = self.model.__sklearn_is_fitted__()
        left = getattr(self.model.learner, "until_tuning", np.inf) if fitted else 1
        due = np.flatnonzero(~np.isnan(block.y[done : done + rows]))[int(min(left, rows + 1)) - 1 :]
        return up_to(int(due[0])) if len(due) else (rows, False)

    def _whole_stretch(self, block: Block, done: int) -> int:
        """Return the rows of a piece; those without a target are predicted together, which their last bits show."""
        left = np.isnan(block.y[done:]) if self.learn else np.ones(len(block) - done, dtype=bool)
        rows = min(self._piece, len(left))
        return rows + int(np.argmin(np.append(left[rows:], False))) if rows and left[rows - 1] else rows

    def _adapt(self, rows: int, seconds: float) -> None:
        """Let pieces grow while they are quick, and shrink when they are slow; what was tuned has another cost."""
        if self._tuning_due:
            self._piece = FIRST_PIECE
        elif seconds < PIECE / 2.0:
            self._piece = max(self._piece, 2 * rows)
        elif seconds > PIECE:
            self._piece = max(FIRST_PIECE, rows // 2)

    def work(self, block: Block) -> None:
        """Predict, write and learn some rows."""
        for part in [block.part(i, i + 1) for i in range(len(block))] if self.ahead else [block]:
            self._rows(part)
        self.rejects.write(block.rejected)
        if block.error is not None:
            raise BadData(block.error.message(self.source.path))

    def _rows(self, block: Block) -> None:
        start, self._odd = 0, self.range.add(block.y)
        y = np.where(self._odd, np.nan, block.y) if self.screen else block.y  # to learn from
        if self.warm_up is not None and self.model is None:
            said = self.warm_up.advance(block.X, y)
            start = len(said)
            try:
                if self.warm_up.done:
                    self.tune()  # first, as the model may be asked what comes next
            finally:
                self._emit(block, 0, said, tuning=True)
        if start < len(block):
            self._predict(block, start, y[start:])

    @property
    def range(self) -> PlausibleRange:
        """What is plausible, which goes on with the flags."""
        return self._range if self.flags is None else self.flags.range

    def _predict(self, block: Block, start: int, y: Array) -> None:
        """Predict and learn the rows of a block from `start` on; if the model breaks down, write those before that."""
        assert self.model is not None
        X, odd = self.encoder(block.X[start:]), block.y[start:] if self.screen else None
        before = deepcopy(self.model) if self._tuning_due else None
        try:
            with self._stopper.at_once() if self._tuning_due or not self.learn else nullcontext():
                said = advance(self.model, X, y, learn=self.learn, seen=odd)
        except Stopped:  # within a tuning: the row was not learned
            self.model = before or self.model
            raise
        except BrokeDown as error:
            self._emit(block, start, error.said)
            raise BrokeDown(error.model, error.reason, where=self._row(self.rows + 1)) from None
        self._emit(block, start, said)
        if self.hints is not None:
            self.hints.add(self._written[-1], X)

    def _emit(self, block: Block, start: int, said: Said, *, tuning: bool = False) -> None:
        if not len(said):
            return
        part = slice(start, start + len(said))
        keys = [key[part] for key in block.keys]
        rows = Rows.of(
            block.y[part],
            said,
            level=self.level,
            before=self.rows,
            tuning=tuning,
            odd=self._odd[part],
            keys=dict(zip(self.source.columns.keys, keys, strict=True)),
            model=self.model,
        )
        opened: list[str] = []
        columns: list[Any] = [rows.y, rows.mean, rows.std, rows.lower, rows.upper, rows.density]
        if self.flags is not None:
            flagged, opened = self.flags.add(rows)
            columns += flagged
        if self.ahead:
            said_next = self._next()
            columns += [said_next.mean, said_next.std, *said_next.interval(self.level)]
        self.sink.write(keys, columns)
        self._written.append(rows)
        if self.commands is not None:
            self.commands.start_all(opened)
        self.rows += len(rows)

    def _collect(self) -> None:
        """Keep what is to be known of the rows that were written since the last call, a block or what is done of it.

        They are added up together, so that the figures do not depend on the pieces, which the clock decides.
        """
        for _, pieces in groupby(self._written, lambda piece: piece.tuning):
            rows = Rows.joined(list(pieces))
            for name, observer in self.observers.items():
                if name != "flags":  # which were added when they were written
                    observer.add(rows)
        self._written = []

    def _next(self) -> Predictions:
        """Return what is predicted of the row that comes next."""
        if self.model is not None:
            return self.model.predict_distribution(None)  # type: ignore[arg-type]
        assert self.warm_up is not None
        return self.warm_up.next()

    def _row(self, number: int) -> str:
        return f" at row {number} of {self.source.path}"

    def tune(self) -> None:
        assert self.warm_up is not None
        assert self.prepare is not None
        before = monotonic()
        with self._stopper.at_once():  # nothing to lose here: no need to wait for the end of it
            self.model = self.prepare(self._tuning_rows())
        self.idle += monotonic() - before

    def _tuning_rows(self) -> Any:
        """Return what to tune on: inputs and targets by its method `data`."""
        return self.warm_up

    def _finish(self) -> None:
        if self.model is None and self.warm_up is not None and self.warm_up.varied:
            self.tune()  # the input was shorter than the tuning: there is a model, but nothing was scored
        if self.commands is not None:
            with self._stopper.at_once():  # a signal need not wait for them: the checkpoint keeps those that are left
                self.commands.finish()
        self.save_checkpoint()

    def close(self) -> None:
        """Close all that the job has open, once the commands for events are done."""
        if self.commands is not None:
            self.commands.finish()
        for part in (self.source, self.sink, self.rejects, self.flags, self.checkpoints):
            if part is not None:
                part.close()

    # Checkpoints

    def save_checkpoint(self) -> None:
        """Make output and state safe on disk, in that order. Before the model exists there is nothing to save."""
        if self.checkpoints is None or self.model is None:
            return
        self._sync()
        self.checkpoints.write(self.model_file(self._place()))
        self._saved()

    def _sync(self) -> None:
        for part in (self.sink, self.rejects, self.flags):
            if part is not None:
                part.sync()

    def _saved(self) -> None:
        self.saved_rows, self._saved_at = self.rows, monotonic()

    def more(self) -> dict[str, Any]:
        """Return figures of this kind of run, beside those that all have."""
        return {}

    def model_file(self, place: dict[str, Any] | None = None) -> bytes:
        """Return the model with what it needs to be used on another stream, and the place in this one if it is given.

        Raises
        ------
        BrokeDown
            If the last row broke the model.
        """
        assert self.model is not None
        stream = {"columns": self.encoder.dump(), "level": self.level, "settings": self.settings}
        try:
            return pack(self.model, stream | (place or {}))
        except BreakdownError as error:
            raise BrokeDown(innermost(self.model), error.reason, where=self._row(self.rows)) from None

    def _place(self) -> dict[str, Any]:
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
        """Go on from a checkpoint; source, sink and rejects stand where it says."""
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


def up_to(due: int) -> tuple[int, bool]:
    """Return the rows before the one behind which a tuning is due, or that one alone, and whether it is."""
    return (due, False) if due else (1, True)


def _ahead(source: Source) -> Generator[tuple[Block, dict[str, int]], None, None]:
    """Yield blocks, each with the place after it; from a file, the next one is read while this one is worked on."""
    blocks = iter(source)

    def step() -> tuple[Block, dict[str, int]] | None:
        block = next(blocks, None)
        return None if block is None else (block, source.position)

    if source.live:
        while pair := step():
            yield pair
        return
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(step)
        while pair := coming.result():
            coming = reader.submit(step)
            yield pair
