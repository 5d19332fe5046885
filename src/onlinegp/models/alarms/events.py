"""Events that open, escalate and clear, with what is known about each."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from onlinegp.checks import Array
from onlinegp.models.alarms.constants import (
    FAMILY,
    MISSING,
    NEAR,
    SEASONAL,
    SINGLE,
    STATISTICS,
    STUCK,
    WIDTH,
    C,
)
from onlinegp.models.alarms.inputs import unusual

CLEAR = 2.0  # evidence of a family from which a row counts for the kind
FEW = 3  # rows of a spike, which cannot tell a level from a variance
SLOW = 15  # rows in which a trend builds up, at least
FIRST = 10  # rows of an event that tell where it begins
EARLY = 30  # rows of an event whose means tell what came
LARGER = 1.0  # severity by which a jump outdoes what an event was so far
SIDE = 0.6  # of the deviations of a level that are on one side
LARGEST = 1e300
RUNS = STUCK, MISSING


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


@dataclass
class OpenEvent:
    """What is known about an event that is open. `seen` is a target, NaN if missing, and the bounds expected of it."""

    number: int
    since: int
    start: int
    last: int  # row that shows it
    odd: int  # last row that is odd by itself
    level: float  # of the target before it
    level_low: float
    level_high: float
    error: float  # mean absolute one before it
    unusual: list[float]  # evidence of each input
    toward: list[float]  # sums of deviations from the level and, with a model, from its predictions
    away: list[float]  # the same of absolute deviations
    peak: int = 0
    statistic: int = 0
    severity: float = 0.0
    observed: float | None = 0.0
    low: float = 0.0
    high: float = 0.0
    rows: int = 0  # that show it
    singles: int = 0  # rows that are odd by themselves
    known: int = 0  # the first rows with a target, of which the next two are sums
    missed: float = 0.0  # absolute errors
    means: list[float] = field(default_factory=lambda: [0.0] * 3)  # what was seen
    sums: list[float] = field(default_factory=lambda: [0.0] * 4)  # evidence of each family
    tops: list[float] = field(default_factory=lambda: [0.0] * 4)  # its largest
    early: float = 0.0  # mean deviation of the first rows
    late: float = 0.0  # and of recent ones

    @classmethod
    def opened(
        cls, row: Array, seen: tuple[float, float, float], t: int, built: int, inputs: int, sides: int
    ) -> OpenEvent:
        """Return an event that opens at row t, and builds up since row `built`."""
        run, jumped = int(row[C["run"]]), row[C["single"]] >= CLEAR
        since = {STUCK: t - run, MISSING: t - run + 1}.get(int(row[C["statistic"]]), t if jumped else built)
        level, low, high = (float(row[C[name]]) for name in ("level", "level_low", "level_high"))
        zero, sums = [0.0] * inputs, [0.0] * sides
        error = (seen[2] - seen[1]) / (2.0 * WIDTH)
        return cls(int(row[C["event"]]), since, t, t, t, level, low, high, error, zero, sums, sums)

    def is_outdone(self, row: Array, threshold: float) -> bool:
        """Return whether a row makes this another event: by a far larger jump, or as the value is stuck."""
        if row[C["statistic"]] in RUNS:
            return bool(row[C["score"]] >= threshold) and self.statistic not in RUNS
        return bool(row[C["score"]] > self.severity + LARGER and row[C["single"]] >= CLEAR)

    def add(self, row: Array, seen: tuple[float, float, float], t: int) -> None:
        """Add a row that shows the event."""
        families = row[C["single"] : C["single"] + 4].tolist()
        self.rows, self.last = self.rows + 1, t
        if families[SINGLE] >= CLEAR:
            self.singles, self.odd = self.singles + 1, t
        self.sums = [a + b for a, b in zip(self.sums, families, strict=True)]
        self.tops = [max(a, b) for a, b in zip(self.tops, families, strict=True)]
        y, low, high = seen
        if y != y:
            return
        off = [y - self.level, y - 0.5 * (low + high)]
        if self.known < EARLY:
            self.known += 1
            self.missed += abs(off[1])
            self.means = [a + b for a, b in zip(self.means, seen, strict=True)]
        off = off[: len(self.toward)]
        if self.rows <= EARLY:
            self.toward = [a + b for a, b in zip(self.toward, off, strict=True)]
            self.away = [a + abs(b) for a, b in zip(self.away, off, strict=True)]
        self.late += max(0.05, 1.0 / self.rows) * (off[-1] - self.late)
        if self.rows <= FIRST:
            self.early = self.late

    def top(self, row: Array, seen: tuple[float, float, float], t: int) -> None:
        """Record the row with the largest evidence so far."""
        self.peak, self.statistic = t, int(row[C["statistic"]])
        self.severity = float(max(row[C["score"]], row[C["evidence"]]))
        self.observed, self.low, self.high = seen[0] if seen[0] == seen[0] else None, *seen[1:]

    @property
    def kind(self) -> str:
        """The kind of the event by what its rows show.

        One to three odd rows, or those that one of them reaches by lags, are a spike if they are more odd by themselves
        than their level. Else the family with the most evidence wins. A level is on one side of what was usual, unlike
        a variance, which a few rows cannot tell; one that builds up slowly or grows is a trend.
        """
        if self.statistic in RUNS:
            return STATISTICS[self.statistic]
        single, shifted, seasonal, _ = self.tops
        short = self.singles <= FEW or self.odd - max(self.start, self.since) <= NEAR
        if short and single >= max(shifted, 0.9 * seasonal) and FAMILY[self.statistic] < SEASONAL:
            return "spike"
        slow = self.start - self.since >= SLOW and single < shifted
        _, shifted, seasonal, spreading = self.sums
        if seasonal > max(shifted, spreading):
            return "season broken"
        one_sided = any(abs(toward) > SIDE * away for toward, away in zip(self.toward, self.away, strict=True))
        if shifted == 0.0 or not one_sided or (self.rows <= FEW and spreading > shifted):
            return "variance"
        grows = self.rows > 3 * FIRST and abs(self.late) > 1.7 * abs(self.early)
        return "trend" if slow or grows else "level"

    def known_so_far(self, output: int, *, ended: bool) -> Event:
        """Return what is known about the event."""
        kind, rows, end = self.kind, self.rows, self.last
        observed, low, high = self.observed, self.low, self.high
        inside = observed is None or low <= observed <= high
        if kind in ("level", "trend") and self.known:
            means = [total / self.known for total in self.means]
            if STATISTICS[self.statistic].startswith("level") or len(self.toward) == 1:
                observed, low, high = means[0], self.level_low, self.level_high
            elif inside:  # a model follows: at a jump, the peak tells more
                observed, low, high = means
        elif inside and STATISTICS[self.statistic] == "value":  # it was expected, but is far from the level
            low, high = self.level_low, self.level_high
        if kind == "spike":  # averages show it for longer
            rows, end = max(self.singles, 1), self.odd
        usual = self.error if self.error > 0.0 else 1.0
        return Event(
            number=self.number,
            kind=kind,
            since=self.since,
            start=self.start,
            peak=self.peak,
            end=end if ended else None,
            severity=round(self.severity, 3),
            rows=rows,
            statistic=STATISTICS[self.statistic],
            observed=observed,
            expected=0.5 * (low + high),
            low=low,
            high=high,
            factor=min(self.missed / max(self.known, 1) / usual, LARGEST),
            unusual=unusual(self.unusual),
            inputs=len(self.unusual),
            output=output,
        )
