"""Alarms of one series: how unusual each row is, and the events."""

from __future__ import annotations

from math import log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.models.alarms.constants import STATISTICS, Constants
from onlinegp.models.alarms.events import C, Event, Journal
from onlinegp.models.alarms.tails import Tail
from onlinegp.models.alarms.watch import Watch
from onlinegp.state import Fields, Values, WithFields, learner, text

USUAL = Constants()
OFFSET_OF_SCORES = 0.24  # chosen as `offset` was, on simulated scores and targets


class Alarms(WithFields):
    """A watch over one series and the journal of its events.

    Parameters
    ----------
    rate : expected number of events that open per row, if all is well
    features : number of inputs, of which events name those that are unusual
    scores, season, daily, native : see `Watch`
    """

    def __init__(
        self,
        rate: float,
        *,
        features: int = 0,
        scores: bool = False,
        season: int | None = None,
        daily: bool = False,
        native: bool = True,
        output: int = 0,
    ) -> None:
        threshold = -log10(rate)
        offset = OFFSET_OF_SCORES if scores else USUAL.offset  # the largest of more statistics is larger
        rule = Constants(threshold=threshold, low=min(USUAL.low, 0.75 * threshold), offset=offset)
        self.rate, self.features = rate, features
        self.watch = Watch(scores=scores, season=season, daily=daily, native=native, rule=rule)
        self.journal = Journal(features, output, scores, rule)

    @property
    def fields(self) -> Fields:
        return {
            "watch": learner(),
            "inputs": learner(attribute="journal.inputs"),
            "events": text(attribute="journal.text"),
        }

    def check(self, values: Values) -> None:
        self.journal.read(values["events"])

    @property
    def events(self) -> list[Event]:
        """The latest events. An open event is the last one."""
        return self.journal.events

    def add(
        self, y: Array, v: Array | None = None, X: Array | None = None, bounds: tuple[Array, Array] | None = None
    ) -> tuple[Array, NDArray[Any]]:
        """Watch rows. Return the columns of `constants.COLUMNS`, and the events that opened or cleared at each row.

        Parameters
        ----------
        y : (n,), the target; NaN where it is missing
        v : (n,), its normal score by a model, if the watch is over scores
        X : (n, features)
        bounds : (n,) each, where a model expects y; by the watch's own predictions if None
        """
        before = self.watch.rows
        out = self.watch.add(y, y if v is None else v)
        low, high = bounds if bounds is not None else (out[:, C["low"]], out[:, C["high"]])
        rows = np.zeros((len(y), self.features)) if X is None else X
        return out, self.journal.add(out, y, low, high, rows, before)

    def forget_events(self) -> None:
        """Count events from one again. What is usual stays known."""
        self.watch.forget_events()
        self.journal.past, self.journal.open = [], None

    def confirm(self, number: int) -> None:
        """Forget the rows of a real event, so that the next event like it is found, too."""
        known = {event.number: event for event in self.events}
        if number not in known:
            latest = ", ".join(map(str, known)) or "none"
            raise ValueError(f"event must be one of the latest, got number {number}. There are: {latest}.")
        watch, event = self.watch, known[number]
        usual = watch.usual[(number - 1) % len(watch.usual)]
        for k in range(len(STATISTICS) if watch.scores else watch.statistics):
            tail = Tail(watch.values[k], watch.sizes[k], watch.laws[k], 0.0, watch.rule)
            tail.remove_above(float(usual[k]), event.rows)
