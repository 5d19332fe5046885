"""The models of a run over a stream with keys: one model per key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.fleet import Fleet
from onlinegp.fleet.order import newer as newer_than
from onlinegp.fleet.sqlite_file import Key, Store
from onlinegp.models.alarms.detector import Detector
from onlinegp.models.alarms.watched import Watched
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.breakdown import BreakdownError
from onlinegp.models.combined.base import innermost
from onlinegp.models.combined.scaled import MIN_SCALE_ROWS
from onlinegp.predictions import Predictions
from onlinegp.streams.errors import Stopped, StreamBreakdownError
from onlinegp.streams.reading.source import Block
from onlinegp.streams.running.first_rows import in_units_of_keys, of_frequent_keys, with_lags
from onlinegp.streams.running.key_rules import KeyRules, LateRow, selected
from onlinegp.streams.running.one_model import Models, up_to
from onlinegp.streams.running.predict_then_learn import Predicted, stretches
from onlinegp.streams.running.requested_model import Requested, described
from onlinegp.streams.running.run import Job


@dataclass(kw_only=True)
class ModelPerKey(Models):
    """One model per key. Each key starts with a copy of `job.model`, or of the model from `job.begin`.

    Parameters
    ----------
    rules : KeyRules
        The columns of key and order, and the rules for bad rows.
    lags, horizon : int
        Lags and horizon of the models, for the tuning.
    make_fleet : callable
        Returns a fleet of copies of a model.
    store, resumable : Store or None, bool
        The store, if any, and whether it also stores the positions in input and output.
    """

    rules: KeyRules
    lags: int = 0
    horizon: int = 1
    make_fleet: Callable[[OnlineRegressor], Fleet] = Fleet
    store: Store | None = None
    resumable: bool = False
    fleet: Fleet | None = None
    dropped: int = 0
    _half: bool = False  # whether a signal has interrupted learning some rows
    _early: list[tuple[Key, Any]] = field(default_factory=list)  # key and order of the rows before there is a fleet
    _last: dict[Key, Any] = field(default_factory=dict)  # the last order of each key before there is a fleet

    def figures(self) -> dict[str, Any]:
        return {"keys": 0 if self.fleet is None else len(self.fleet), "late": self.dropped}

    # Rows

    def piece(self, job: Job, block: Block, done: int, rows: int) -> tuple[int, bool]:
        if self.fleet is None and job.model is not None:
            self._start_fleet(job)
        if job.settings.get("compact"):  # compact fleets round after each call, so pieces must not depend on the clock
            return len(block) - done, False
        if self.fleet is None or not innermost(self.fleet.model).tunes_itself:
            return rows, False
        keys = self.rules.keys(block)[done : done + rows]
        left = self.fleet.until_tuning(keys)
        for i, key in enumerate(keys):
            left[key] -= not np.isnan(block.y[done + i])
            if left[key] <= 0:
                return up_to(i)
        return rows, False

    def keys(self, block: Block) -> list[Any]:
        return self.rules.keys(block)

    def accepted(self, job: Job, block: Block) -> Block:
        if job.tuning_due:  # save before a tuning, because an interrupted tuning is not saved
            job.collect()
            job.save_checkpoint()
        rules = self.rules
        keys, places = rules.keys(block), rules.places(block)
        newer = partial(newer_than, self._last) if self.fleet is None else self.fleet.newer
        wrong = rules.wrong(block, keys, places, job.rows + job.rejects.count, newer)
        fatal = next((i for i, row in sorted(wrong.items()) if rules.stops(row)), len(keys))
        kept = np.array([i < fatal and i not in wrong for i in range(len(keys))], dtype=bool)
        if self.fleet is None:
            self._early += [(key, place) for key, place, keep in zip(keys, places, kept, strict=True) if keep]
        out = [wrong[i] for i in sorted(wrong) if i < fatal]
        job.rejects.write(out)
        self.dropped += sum(type(row) is LateRow for row in out)
        block.error = wrong.get(fatal, block.error)
        return block if kept.all() else selected(block, kept)

    # Models

    def tuned_on(self, asked: Requested, job: Job, say: Callable[[str], None]) -> Callable[..., OnlineRegressor]:
        """Return a function that tunes the model of all keys on the first rows X, y."""

        def begin(X: Array, y: Array) -> OnlineRegressor:
            assert job.first is not None
            keys = self._first_keys(job, y)
            used = of_frequent_keys(keys, job.first.rows)
            if (all_rows := len(y)) > len(used):
                X, y, keys = X[used], y[used], [keys[i] for i in used]
                say(
                    f"most keys have few rows: tuning on {len(y):,} rows of {len(set(keys)):,} keys, after {all_rows:,}"
                )
            if len(keys) < MIN_SCALE_ROWS * len(set(keys)):
                say("too few rows of each key to compare them: if keys differ in level or scale, use a larger --tune N")
            apart = None if self.lags else in_units_of_keys(X, y, keys)
            if apart is None:
                model = asked.tuned(*with_lags(X, y, self.lags, self.horizon, keys))
            else:
                model = asked.tuned(*apart, learn_scale=True)
                say("keys differ in level or scale, so each key learns its scale from its first rows")
            say("model: " + "; ".join(described(innermost(model))))
            return model

        return begin

    def taught(self, job: Job, model: OnlineRegressor, X: Array, y: Array) -> OnlineRegressor:
        job.model = model
        self._start_fleet(job)
        with self._cut_off(job):
            self._predict_rows(model, self._first_keys(job, y), X, y)
        self._early, self._last = [], {}
        return model

    def _first_keys(self, job: Job, y: Array) -> list[Key]:
        """Return the keys of the collected first rows."""
        assert job.first is not None
        return [key for key, _ in self._early[job.first.seen - len(y) : job.first.seen]]

    def _start_fleet(self, job: Job) -> None:
        """Create the fleet, and pass it the order of the rows so far."""
        assert job.model is not None
        self.fleet = self.make_fleet(job.model)
        self.fleet.begin(len(job.encoder.names))
        if self.resumable:
            self.fleet.keep_beside(partial(self._beside, job))
        elif self.store is not None:
            self.fleet.keep_beside(job.stream)
        if self.rules.order is not None and self._early:
            self.fleet.newer([key for key, _ in self._early], [place for _, place in self._early])

    def predict(self, job: Job, block: Block, start: int, X: Array, y: Array) -> Predicted:
        assert job.model is not None
        if self.fleet is None:
            self._start_fleet(job)
        with self._cut_off(job) if job.tuning_due else nullcontext():
            return self._predict_rows(job.model, self.rules.keys(block)[start:], X, y)

    @contextmanager
    def _cut_off(self, job: Job) -> Iterator[None]:
        """Stop at once on a signal, and save nothing afterwards, because some models may not have learned a row."""
        try:
            with job.stopper.at_once():
                yield
        except Stopped:
            self._half = True
            raise

    def _predict_rows(self, model: OnlineRegressor, keys: list[Key], X: Array, y: Array) -> Predicted:
        """Predict rows, and learn the rows with a target."""
        assert self.fleet is not None
        predicted = []
        try:
            with np.errstate(all="ignore"):
                for part, missing in stretches(np.isnan(y)):
                    if missing:
                        predictions = self._without_target(model, keys[part], X[part])
                        nothing = np.zeros(len(predictions), dtype=np.int64)
                        predicted.append(Predicted(predictions, nothing, nothing == 1))
                    else:
                        trace = self.fleet.run(keys[part], _features(X[part]), y[part])
                        predicted.append(Predicted(trace.predictions, trace.size, trace.scored))
        except BreakdownError as error:
            raise StreamBreakdownError(innermost(model), str(error)) from None
        return Predicted.joined(predicted)

    def _without_target(self, model: OnlineRegressor, keys: list[Key], X: Array) -> Predictions:
        """Predict rows without a target. A new key uses the initial model."""
        assert self.fleet is not None
        known = np.array([key in self.fleet for key in keys])
        parts, order = [], []
        for which in (known, ~known):
            rows = np.flatnonzero(which)
            if not len(rows):
                continue
            order.append(rows)
            old = which is known
            some = [keys[i] for i in rows]
            parts.append(self.fleet.skip(some, _features(X[rows])) if old else _prior(model, X[rows]))
        return Predictions.joined(parts).rows(np.argsort(np.concatenate(order)))

    # Checkpoints. The store writes models and position in the same transaction

    def save(self, job: Job) -> bool:
        if self.fleet is None or self._half:
            return False
        self.fleet.commit()
        return True

    def _beside(self, job: Job) -> dict[str, Any]:
        """Write the output to disk and return the position. Called when models are committed."""
        job.sync()
        place = job.place()
        place["rejects"] |= {"late": self.dropped}
        return job.stream() | place

    def resume(self, job: Job, stream: dict[str, Any]) -> None:
        self.dropped = int(stream["rejects"].get("late", 0))
        self._start_fleet(job)

    def close(self) -> None:
        if self.store is not None:
            self.store.close()


def _prior(model: OnlineRegressor, X: Array) -> Predictions:
    predictions = model.unfitted().predict_distribution(X)
    return Watched.unseen(predictions) if isinstance(model, Detector) else predictions


def _features(X: Array) -> Any:
    """Return the features, or None if the model has only lags."""
    return X if X.shape[1] else None
