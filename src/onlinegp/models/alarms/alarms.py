"""The alarms of one series: rate each row, and collect unusual rows into events."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from math import log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.models.alarms.constants import COLUMNS, EVENTS, KINDS, STATISTICS, C, Constants
from onlinegp.models.alarms.events import FIRST, Event, OpenEvent
from onlinegp.models.alarms.inputs import Inputs
from onlinegp.models.alarms.stored_events import check_like
from onlinegp.models.alarms.tails import Tail
from onlinegp.models.alarms.watch import Watch
from onlinegp.state import Fields, Values, WithFields, learner, text

USUAL = Constants()
OFFSET_OF_SCORES = 0.24  # calibrated on simulated scores and targets, like `offset`
ODD = 1.25  # evidence of a row that may belong to the beginning of an event
PAUSE = 3  # number of rows with less evidence that the beginning of an event may contain
AGES = (4, 19, 49)  # check the inputs again at these rows of an event
EXAMPLE = Event(1, KINDS[0], 0, 0, 0, 0, 0.0, 0, STATISTICS[0], 0.0, 0.0, 0.0, 0.0, 0.0).to_dict()


class Alarms(WithFields):
    """The alarms of one series: the open event, and the last events.

    Parameters
    ----------
    rate : expected number of events per row on a stream without faults
    features : number of inputs; events name the unusual inputs
    scores, season, daily, native : see `Watch`
    output : the index of the target
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
        offset = OFFSET_OF_SCORES if scores else USUAL.offset  # with more statistics, the largest of them is larger
        self.rule = Constants(threshold=threshold, low=min(USUAL.low, 0.75 * threshold), offset=offset)
        self.features, self.output, self.sides = features, output, 1 + scores
        self.watch = Watch(scores=scores, season=season, daily=daily, native=native, rule=self.rule)
        self.inputs = Inputs(features)
        self.past: list[Event] = []
        self.open: OpenEvent | None = None
        self.built = [0, -PAUSE - 1]  # first and last row of the possible beginning of an event

    @property
    def fields(self) -> Fields:
        return {"watch": learner(), "inputs": learner(), "events": text(attribute="text")}

    def check(self, values: Values) -> None:
        self._read(values["events"])

    @property
    def text(self) -> str:
        """The open event and past events, as JSON."""
        known = None if self.open is None else asdict(self.open)
        return json.dumps({"open": known, "past": [event.to_dict() for event in self.past], "built": self.built})

    @text.setter
    def text(self, text: str) -> None:
        known = self._read(text)
        self.open = None if known["open"] is None else OpenEvent(**known["open"])
        self.past, self.built = [Event.from_dict(event) for event in known["past"]], known["built"]

    def _read(self, text: str) -> dict[str, Any]:
        """Parse and check `text`."""
        empty = OpenEvent.opened(np.zeros(len(COLUMNS)), (0.0, 0.0, 0.0), 0, 0, self.features, self.sides)
        try:
            known: dict[str, Any] = json.loads(text)
            if known["open"] is not None:
                check_like("open", known["open"], asdict(empty))
            for event in known["past"]:
                check_like("past", event, EXAMPLE | {"unusual": [0] * len(event["unusual"])})
                if event["inputs"] != self.features or not set(event["unusual"]) <= set(range(self.features)):
                    raise ValueError(f"unusual must be numbers of the {self.features} inputs")
            if len(known["past"]) > EVENTS:
                raise ValueError(f"past must hold at most {EVENTS} events")
            check_like("built", known["built"], self.built)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"the events of a detector cannot be read: {error}.") from None
        return known

    @property
    def events(self) -> list[Event]:
        """The latest events. An open event is the last one."""
        return self.past + ([] if self.open is None else [self.open.known_so_far(self.output, ended=False)])

    def add(
        self, y: Array, v: Array | None = None, X: Array | None = None, bounds: tuple[Array, Array] | None = None
    ) -> tuple[Array, NDArray[Any]]:
        """Watch rows. Return the columns of `constants.COLUMNS`, and the events that opened or cleared at each row.

        The events of a row are a tuple, or None for most rows. Events that clear come first.

        Parameters
        ----------
        y : (n,), the target; NaN where it is missing
        v : (n,), the normal score of y in the predictions of a model, if there is a model
        X : (n, features)
        bounds : (n,) each, the interval in which a model expects y; if None, the interval of the detector itself
        """
        before = self.watch.rows
        out = self.watch.add(y, y if v is None else v)
        low, high = bounds if bounds is not None else (out[:, C["low"]], out[:, C["high"]])
        X = np.zeros((len(y), self.features)) if X is None else X
        changes = np.full(len(out), None, dtype=object)
        numbers = out[:, C["event"]]
        previous = np.concatenate([[0.0 if self.open is None else self.open.number], numbers[:-1]])
        for i in np.flatnonzero((out[:, C["evidence"]] >= ODD) | (numbers > 0) | (previous > 0)).tolist():
            t, found = before + i, []
            if out[i, C["evidence"]] >= ODD:
                self.built = [t if t - self.built[1] > PAUSE + 1 else self.built[0], t]
            if self.open is not None and numbers[i] != self.open.number:
                found.append(self.open.known_so_far(self.output, ended=True))
                self.past, self.open = [*self.past, *found][-EVENTS:], None
            if numbers[i] > 0:
                opens = self.open is None
                event = self._follow(out[i], (float(y[i]), float(low[i]), float(high[i])), t)
                if event.peak == t or t - event.start in AGES:
                    odd = self.inputs.look(X, i, t - event.since + 1)
                    event.unusual = [max(old, new) for old, new in zip(event.unusual, odd, strict=True)]
                found += [event.known_so_far(self.output, ended=False)] if opens else []
            changes[i] = tuple(found) or None
        self.inputs.add(X)
        return out, changes

    def _follow(self, row: Array, seen: tuple[float, float, float], t: int) -> OpenEvent:
        """Add a row to the open event, or to a new one."""
        event = self.open
        if event is None or event.is_outdone(row, self.rule.threshold):
            new = OpenEvent.opened(row, seen, t, self.built[0], self.features, self.sides)
            if event is not None:
                near = t - event.start <= FIRST  # the same fault, which was small at first
                new = replace(new, start=event.start, since=min(event.since, new.since) if near else new.since)
            self.open = event = new
        if row[C["evidence"]] >= self.rule.low:
            event.add(row, seen, t)
        if row[C["score"]] > event.severity or event.severity == 0.0:
            event.top(row, seen, t)
        return event

    def forget_events(self) -> None:
        """Count events from one again. What was learned about the stream is kept."""
        self.watch.forget_events()
        self.past, self.open = [], None

    def confirm(self, number: int) -> None:
        """Forget the rows of a real event, so that a similar event is found again."""
        known = {event.number: event for event in self.events}
        if number not in known:
            latest = ", ".join(map(str, known)) or "none"
            raise ValueError(f"event must be one of the latest events, {latest}, got {number}.")
        watch, event = self.watch, known[number]
        usual = watch.usual[(number - 1) % len(watch.usual)]
        for k in range(len(STATISTICS) if watch.scores else watch.statistics):
            tail = Tail(watch.values[k], watch.sizes[k], watch.laws[k], 0.0, watch.rule)
            tail.remove_above(float(usual[k]), event.rows)
