"""The base class of models that tune themselves."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

import scipy.special  # noqa: F401  for quantiles of Student's t: 0.1 s, for which no row should wait

from onlinegp.auto.composed import Chooser
from onlinegp.auto.learner import FEWEST, MOST, AutoLearner
from onlinegp.checks import count, non_negative
from onlinegp.kernels.importance import KernelInUse
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import innermost_learner
from onlinegp.native_module import native

native()  # loaded now, so that no row waits for it
EARLIEST = 80  # rows of the first tuning; by then the background process has started

REMEDY = "Look for impossible values, or for a column in other units, and start again with fit."


class SelfTuning(OnlineRegressor):
    """Base class of `Auto` and `Tuned`: tune repeatedly on the first rows, until there are `rows` rows."""

    rows: int
    earliest: int | None
    tuning_delay: float

    tunes_itself: ClassVar[bool] = True

    @abstractmethod
    def _chooser(self) -> Chooser:
        """Return the chooser of the model. Raise an error if a parameter is invalid."""

    def start(self, features: int, outputs: int) -> Learner:
        return AutoLearner(self._chooser(), features, outputs, *self._timing())

    def _timing(self) -> tuple[int, int, float]:
        """Return rows, earliest and tuning_delay. Raise an error if one is invalid."""
        rows = count("1000 is plenty.", rows=self.rows)
        earliest = (
            min(EARLIEST, rows) if self.earliest is None else count("80 is a good start.", earliest=self.earliest)
        )
        if not FEWEST <= earliest <= rows <= MOST:
            raise ValueError(
                f"earliest and rows must be {FEWEST} <= earliest <= rows <= {MOST}, got {earliest} and {rows}. "
                f"Tuning on more rows takes long and gains little."
            )
        delay = non_negative("Use 0.0 to wait for each tuning.", tuning_delay=self.tuning_delay)
        if delay > 1.0:
            raise ValueError(
                f"tuning_delay must be at most 1, got {delay:g}: the next tuning comes when the rows have doubled."
            )
        return rows, earliest, delay

    @property
    def chosen_(self) -> OnlineRegressor | None:
        """The unfitted tuned model, or None before the first tuning."""
        chosen = self._auto.chosen
        return None if chosen is None else chosen.unfitted()

    def kernels_in_use(self, learner: Learner) -> list[KernelInUse]:
        auto = innermost_learner(learner)
        assert isinstance(auto, AutoLearner)
        return [
            replace(one, weight=member.weight * one.weight, standardized=True)
            for member in auto.members()
            for one in member.model.kernels_in_use(auto)
        ]

    @property
    def unexplained_(self) -> float:
        """The share of the variance that was not predicted in the second half of the rows of the last tuning."""
        return self._auto.unexplained

    @property
    def _auto(self) -> AutoLearner:
        learner = innermost_learner(self._working)
        assert isinstance(learner, AutoLearner)
        return learner
