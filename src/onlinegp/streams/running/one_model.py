"""The models of a run: the common interface, and a run with one model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.models.alarms.detector import Detector
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import innermost
from onlinegp.streams.errors import Stopped, StreamBreakdownError
from onlinegp.streams.reading.source import Block
from onlinegp.streams.running.predict_then_learn import Predicted, advance

if TYPE_CHECKING:
    from onlinegp.streams.running.run import Job


class Models(ABC):
    """The models of a run: one model, or a model per key."""

    @abstractmethod
    def piece(self, job: Job, block: Block, done: int, rows: int) -> tuple[int, bool]:
        """Return how many of the next `rows` rows to process, and whether a tuning is due: then it is one row."""

    def keys(self, block: Block) -> list[Any] | None:
        """Return the key of each row, or nothing without keys."""
        return None

    def accepted(self, job: Job, block: Block) -> Block:
        """Return the valid rows of a block. An error in the block ends the run after these rows."""
        return block

    @abstractmethod
    def predict(self, job: Job, block: Block, start: int, X: Array, y: Array) -> Predicted:
        """Predict and learn the rows of a block from `start` on, with inputs X and targets y."""

    @abstractmethod
    def taught(self, job: Job, model: OnlineRegressor, X: Array, y: Array) -> OnlineRegressor:
        """Return a new model after it has learned the first rows, which were predicted without it."""

    @abstractmethod
    def save(self, job: Job) -> bool:
        """Save the models and the position in the stream. Return whether there was something to save."""

    def resume(self, job: Job, stream: dict[str, Any]) -> None:  # noqa: B027 (the model is the checkpoint's)
        """Continue from a checkpoint."""

    def figures(self) -> dict[str, Any]:
        """Return figures for the summary that only this kind of run has."""
        return {}

    def close(self) -> None:  # noqa: B027 (nothing to close, as a rule)
        """Close the files of the models."""


class OneModel(Models):
    """One model for all rows, `job.model`."""

    def piece(self, job: Job, block: Block, done: int, rows: int) -> tuple[int, bool]:
        if job.model is None or not innermost(job.model).tunes_itself or not job.learn:
            return rows, False
        fitted = job.model.__sklearn_is_fitted__()
        left = getattr(job.model.learner, "until_tuning", np.inf) if fitted else 1
        due = np.flatnonzero(~np.isnan(block.y[done : done + rows]))[int(min(left, rows + 1)) - 1 :]
        return up_to(int(due[0])) if len(due) else (rows, False)

    def predict(self, job: Job, block: Block, start: int, X: Array, y: Array) -> Predicted:
        assert job.model is not None
        before = job.model.dump() if job.tuning_due else None
        try:
            with job.stopper.at_once() if job.tuning_due or not job.learn else nullcontext():
                return advance(job.model, X, y, learn=job.learn, seen=block.y[start:] if job.screen else None)
        except Stopped:  # a signal during a tuning: the row was not learned
            if job.tuning_due:
                job.model = job.model.unfitted() if before is None else job.model.load(before)
            raise
        except StreamBreakdownError as error:
            where = job.where(job.rows + len(error.predicted) + 1)
            raise StreamBreakdownError(error.model, error.reason, where=where, predicted=error.predicted) from None

    def taught(self, job: Job, model: OnlineRegressor, X: Array, y: Array) -> OnlineRegressor:
        try:
            advance(model, X, y)
        except StreamBreakdownError as error:
            where = f" on row {len(error.predicted) + 1} of the first {len(y)}"
            raise StreamBreakdownError(error.model, error.reason, where=where) from None
        if isinstance(model, Detector):
            model.forget_events()  # events in the first rows were not reported
        return model

    def save(self, job: Job) -> bool:
        if job.checkpoints is None or job.model is None:
            return False
        job.sync()
        job.checkpoints.write(job.model_file(job.place()))
        return True


def up_to(due: int) -> tuple[int, bool]:
    """Return (number of rows, whether a tuning is due) for a tuning after row `due`, which is processed alone."""
    return (due, False) if due else (1, True)
