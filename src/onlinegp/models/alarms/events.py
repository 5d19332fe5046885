"""Events that open, escalate and clear, with what is known about each. They are stored as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.models.alarms.constants import (
    COLUMNS,
    EVENTS,
    FAMILY,
    LEVEL,
    MISSING,
    SEASONAL,
    SINGLE,
    STATISTICS,
    STUCK,
    WIDTH,
    Constants,
)
from onlinegp.models.alarms.inputs import Inputs, unusual
from onlinegp.models.alarms.stored_events import check_like, check_open, check_past

ODD = 1.25  # evidence from which an event builds up
PAUSE = 3  # rows without it that do not end a build-up
CLEAR = 2.0  # evidence of a family from which a row counts for the kind
SLOW = 15  # rows in which a trend builds up, at least
FIRST = 10  # rows of an event that tell where it begins
EARLY = 30  # rows of an event whose means tell what came
LARGER = 1.0  # severity by which a jump outdoes what an event was so far
AGES = (4, 19, 49)  # rows of an event at which inputs are looked at again
SIDE = 0.6  # of the deviations of a level that are on one side
LARGEST = 1e300
RUNS = STUCK, MISSING
C = {name: k for k, name in enumerate(COLUMNS)}


@dataclass(frozen=True)
class Event:
    """An alarm with its reason. Rows are counted from 0, in the order in which the detector saw them.

    Attributes
    ----------
    number : 1 for the first of its series
    kind : "spike", "level", "trend", "variance", "season broken", "stuck" or "missing"; it may change while it is open
    since : row from which it builds up
    start, peak, end : rows where it opened, where its evidence was largest, and last seen; end is None while it is open
    severity : -log10 of the rate at which events of this evidence open
    rows : how many rows show it; of a spike, those that are odd by themselves
    statistic : the leading one, as in `onlinegp.models.alarms.constants`
    observed, expected, low, high : of the target at the peak. Means for a level or a trend if there is no model, or if
        the value at the peak is no surprise to it.
    factor : how many times as large as usual errors are
    unusual : inputs that are unusual by their own past, by number, the worst first
    inputs : number of inputs
    output : which target, if there are several
    """

    number: int
    kind: str
    since: int
    start: int
    peak: int
    end: int | None
    severity: float
    rows: int
    statistic: str
    observed: float | None
    expected: float
    low: float
    high: float
    factor: float
    unusual: tuple[int, ...] = ()
    inputs: int = 0
    output: int = 0

    @property
    def reason(self) -> str:
        """The event in one sentence."""
        from onlinegp.models.alarms.reasons import sentence

        return sentence(self)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "unusual": list(self.unusual)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Event:
        return cls(**{**values, "unusual": tuple(values["unusual"])})


class Journal:
    """Follows the event that is open, and keeps the latest ones.

    Parameters
    ----------
    bounded : whether rows come with bounds of a model, so that a level is compared with these
    rule : of the watch; it tells the evidence from which a row shows the event, and the score at which one opens
    """

    def __init__(self, features: int, output: int, bounded: bool, rule: Constants) -> None:
        self.output, self.bounded, self.rule = output, bounded, rule
        self.inputs = Inputs(features)
        self.past: list[Event] = []
        self.open: dict[str, Any] | None = None
        self.built = [0, -PAUSE - 1]  # rows where a build-up began and was last seen

    @property
    def events(self) -> list[Event]:
        """The latest events. An open event is the last one."""
        return self.past + ([] if self.open is None else [self._event(None)])

    def add(self, out: Array, y: Array, low: Array, high: Array, X: Array, before: int) -> NDArray[Any]:
        """Take judged rows, of which the first has number `before`; return a tuple of events for rows where any change.

        (n,), None for most rows; an event that clears comes before one that opens.
        """
        changes = np.full(len(out), None, dtype=object)
        numbers = out[:, C["event"]]
        for i in np.flatnonzero((out[:, C["evidence"]] >= ODD) | (numbers > 0) | _ends(numbers, self.open)).tolist():
            self._build_up(out[i], before + i)
            found = []
            if self.open is not None and numbers[i] != self.open["number"]:
                found.append(self._close())
            if numbers[i] > 0:
                opens = self.open is None
                self._follow(out[i], (float(y[i]), float(low[i]), float(high[i])), X, i, before)
                found += [self._event(None)] if opens else []
            changes[i] = tuple(found) or None
        self.inputs.add(X)
        return changes

    def _build_up(self, row: Array, t: int) -> None:
        if row[C["evidence"]] >= ODD:
            self.built = [t if t - self.built[1] > PAUSE + 1 else self.built[0], t]

    def _follow(self, row: Array, seen: tuple[float, float, float], X: Array, i: int, before: int) -> None:
        """Add a row to the open event, or to a new one."""
        t, opens = before + i, self.open is None
        if self.open is None:
            self.open = self._start(row, seen, t)
        event, evidence = self.open, row[C["evidence"]]
        if not opens and self._turns(event, row):  # what came before was less
            self.open = event = event | self._start(row, seen, t) | {"start": event["start"]}
        if evidence >= self.rule.low:
            families = row[C["single"] : C["single"] + 4]
            event["rows"], event["last"] = event["rows"] + 1, t
            if families[SINGLE] >= CLEAR:
                event["singles"], event["odd"] = event["singles"] + 1, t
            event["sums"] = [a + b for a, b in zip(event["sums"], families.tolist(), strict=True)]
            event["tops"] = [max(a, b) for a, b in zip(event["tops"], families.tolist(), strict=True)]
            self._lean(event, seen)
            if seen[0] == seen[0] and event["known"] < EARLY:
                event["known"] += 1
                event["missed"] += abs(seen[0] - 0.5 * (seen[1] + seen[2]))
                event["means"] = [a + b for a, b in zip(event["means"], seen, strict=True)]
        if opens or row[C["score"]] > event["severity"]:
            self._top(event, row, seen, t)
        if event["peak"] == t or t - event["start"] in AGES:
            for j, odd in self.inputs.look(X, i, t - event["since"] + 1).items():
                event["unusual"][str(j)] = max(odd, event["unusual"].get(str(j), 0.0))

    def _turns(self, event: dict[str, Any], row: Array) -> bool:
        """Return whether a row makes the open event another one: by a far larger jump, or as the value is stuck."""
        if row[C["statistic"]] in RUNS:
            return bool(row[C["score"]] >= self.rule.threshold) and event["statistic"] not in RUNS
        return bool(row[C["score"]] > event["severity"] + LARGER and row[C["single"]] >= CLEAR)

    def _lean(self, event: dict[str, Any], seen: tuple[float, float, float]) -> None:
        """Record whether the target stays on one side of its prediction, and whether the difference grows."""
        if seen[0] != seen[0]:
            return
        off = seen[0] - event["level"]
        expected = 0.5 * (seen[1] + seen[2])
        if event["rows"] <= EARLY:
            offs = [off, seen[0] - expected] if self.bounded else [off]
            event["toward"] = [a + b for a, b in zip(event["toward"], offs, strict=False)]
            event["away"] = [a + abs(b) for a, b in zip(event["away"], offs, strict=False)]
        if self.bounded:
            off = seen[0] - expected
        event["late"] += max(0.05, 1.0 / event["rows"]) * (off - event["late"])
        if event["rows"] <= FIRST:
            event["early"] = event["late"]

    def _start(self, row: Array, seen: tuple[float, float, float], t: int) -> dict[str, Any]:
        run = int(row[C["run"]])
        jumped = row[C["single"]] >= CLEAR
        since = {STUCK: t - run, MISSING: t - run + 1}.get(int(row[C["statistic"]]), t if jumped else self.built[0])
        usual = {name: float(row[C[name]]) for name in ("level", "level_low", "level_high")}
        counts = dict.fromkeys(("rows", "known", "singles"), 0)
        sums = {
            "missed": 0.0,
            "means": [0.0] * 3,
            "sums": [0.0] * 4,
            "tops": [0.0] * 4,
            "severity": 0.0,
            "last": t,
            "odd": t,
        }
        sums |= {"early": 0.0, "late": 0.0, "toward": [0.0] * (1 + self.bounded), "away": [0.0] * (1 + self.bounded)}
        sums["error"] = (seen[2] - seen[1]) / (2.0 * WIDTH)
        return {"unusual": {}, "number": int(row[C["event"]]), "since": since, "start": t, **usual, **counts, **sums}

    def _top(self, event: dict[str, Any], row: Array, seen: tuple[float, float, float], t: int) -> None:
        """Record the row with the largest evidence so far."""
        y, low, high = seen
        event.update(
            severity=float(max(row[C["score"]], row[C["evidence"]])),
            peak=t,
            statistic=int(row[C["statistic"]]),
            observed=y if y == y else None,
            low=low,
            high=high,
        )

    def _close(self) -> Event:
        event = self._event(self.open["last"])  # type: ignore[index]
        self.past, self.open = [*self.past, event][-EVENTS:], None
        return event

    def _event(self, end: int | None) -> Event:
        """Return the open event as known so far."""
        e = self.open
        assert e is not None
        kind = kind_of(e)
        observed, low, high = e["observed"], e["low"], e["high"]
        if kind in ("level", "trend") and e["known"]:
            means = [total / e["known"] for total in e["means"]]
            if STATISTICS[e["statistic"]].startswith("level") or not self.bounded:
                observed, low, high = means[0], e["level_low"], e["level_high"]
            elif observed is None or low <= observed <= high:  # a model follows: at a jump, the peak tells more
                observed, low, high = means
        rows = e["rows"]
        if kind == "spike":  # averages show it for longer
            rows, end = max(e["singles"], 1), None if end is None else e["odd"]
        usual = e["error"] if e["error"] > 0.0 else 1.0
        return Event(
            number=e["number"],
            kind=kind,
            since=e["since"],
            start=e["start"],
            peak=e["peak"],
            end=end,
            severity=round(e["severity"], 3),
            rows=rows,
            statistic=STATISTICS[e["statistic"]],
            observed=observed,
            expected=0.5 * (low + high),
            low=low,
            high=high,
            factor=min(e["missed"] / max(e["known"], 1) / usual, LARGEST),
            unusual=unusual({int(j): odd for j, odd in e["unusual"].items()}),
            inputs=self.inputs.features,
            output=self.output,
        )

    @property
    def text(self) -> str:
        """The open event and past events, as JSON."""
        past = [event.to_dict() for event in self.past]
        return json.dumps({"open": self.open, "past": past, "built": self.built})

    @text.setter
    def text(self, text: str) -> None:
        self.open, self.past, self.built = self.read(text)

    def read(self, text: str) -> tuple[dict[str, Any] | None, list[Event], list[int]]:
        """Return what `text` wrote: the event that is open, past ones, and the rows of a build-up."""
        row, seen, features = np.zeros(len(COLUMNS)), (0.0, 0.0, 0.0), self.inputs.features
        example = self._start(row, seen, 0)
        self._top(example, row, seen, 0)
        try:
            known = json.loads(text)
            check_open(known["open"], example, features)
            check_past(known["past"], Event, features)
            check_like("built", known["built"], self.built)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"the events of a detector cannot be read: {error}.") from None
        return known["open"], [Event.from_dict(event) for event in known["past"]], known["built"]


def kind_of(event: dict[str, Any]) -> str:
    """Return the kind of an event by what its rows show.

    One to three odd rows, more odd by themselves than their level, are a spike. Else the family with the most evidence
    wins. A level is on one side of what was usual, unlike a variance; one that builds up slowly or grows is a trend.
    """
    if event["statistic"] in RUNS:
        return STATISTICS[event["statistic"]]
    single, shifted, seasonal, spreading = event["tops"]
    if event["singles"] <= 3 and single >= max(shifted, 0.9 * seasonal) and FAMILY[event["statistic"]] != SEASONAL:
        return "spike"
    _, shifted, seasonal, spreading = event["sums"]
    if seasonal > max(shifted, spreading):
        return "season broken"
    one_sided = any(abs(toward) > SIDE * away for toward, away in zip(event["toward"], event["away"], strict=True))
    if shifted == 0.0 or not one_sided:
        return "variance"
    slow = event["start"] - event["since"] >= SLOW and event["tops"][SINGLE] < event["tops"][LEVEL]
    grows = event["rows"] > 3 * FIRST and abs(event["late"]) > 1.7 * abs(event["early"])
    return "trend" if slow or grows else "level"


def _ends(numbers: Array, event: dict[str, Any] | None) -> NDArray[np.bool_]:
    """Return which rows are the first after an event."""
    before = np.concatenate([[0.0 if event is None else event["number"]], numbers[:-1]])
    return (before > 0) & (numbers != before)
