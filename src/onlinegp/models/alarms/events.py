"""Events of the detector: what is stored about an open event, and what is reported."""

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

CLEAR = 2.0  # rows with this evidence of a family determine the kind of the event
FEW = 3  # largest number of rows of a spike
SLOW = 15  # minimum number of rows from the beginning of a trend to its detection
FIRST = 10  # number of first rows whose mean is compared with later rows
EARLY = 30  # number of first rows whose means are reported
LARGER = 1.0  # a jump with a severity higher by this starts another event
SIDE = 0.6  # a level has at least this share of its deviations on one side
LARGEST = 1e300
RUNS = STUCK, MISSING


@dataclass(frozen=True)
class Event:
    """An alarm with its reason. Rows are counted from 0, in the order in which the detector saw them.

    Attributes
    ----------
    number : counts the events of the series, from 1
    kind : "spike", "level", "trend", "variance", "season broken", "stuck" or "missing"; it may change while the event
    is open
    since : first row of the deviation
    start, peak, end : rows where the event opened, had the largest evidence, and ended; end is None while it is open
    severity : -log10 of the rate of events with at least this evidence
    rows : the number of unusual rows
    statistic : the index of the largest statistic in `onlinegp.models.alarms.constants`
    observed, expected, low, high : the target at the peak, and its prediction. For a level or a trend these are means,
    unless a model did not expect the value at the peak
    factor : mean absolute error divided by its usual value
    unusual : indices of inputs that are unusual compared with their past, the most unusual first
    inputs : number of inputs
    output : index of the target
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
    """What is stored about an open event. In methods, `seen` is a target (NaN if missing) and its expected interval."""

    number: int
    since: int
    start: int
    last: int  # last unusual row
    odd: int  # last row whose own value is unusual
    level: float  # level of the target before the event
    level_low: float
    level_high: float
    error: float  # mean absolute error before the event
    unusual: list[float]  # evidence of each input
    toward: list[float]  # sums of deviations from the level and, with a model, from its predictions
    away: list[float]  # sums of absolute deviations
    peak: int = 0
    statistic: int = 0
    severity: float = 0.0
    observed: float | None = 0.0
    low: float = 0.0
    high: float = 0.0
    rows: int = 0  # number of unusual rows
    singles: int = 0  # number of rows whose own value is unusual
    known: int = 0  # number of first rows with a target, over which the next two are sums
    missed: float = 0.0  # sum of absolute errors
    means: list[float] = field(default_factory=lambda: [0.0] * 3)  # sums of `seen`
    sums: list[float] = field(default_factory=lambda: [0.0] * 4)  # sums of the evidence of each family
    tops: list[float] = field(default_factory=lambda: [0.0] * 4)  # largest evidence of each family
    early: float = 0.0  # mean deviation of the first rows
    late: float = 0.0  # mean deviation of recent rows

    @classmethod
    def opened(
        cls, row: Array, seen: tuple[float, float, float], t: int, built: int, inputs: int, sides: int
    ) -> OpenEvent:
        """Return an event that opens at row t and began at row `built`."""
        run, jumped = int(row[C["run"]]), row[C["single"]] >= CLEAR
        since = {STUCK: t - run, MISSING: t - run + 1}.get(int(row[C["statistic"]]), t if jumped else built)
        level, low, high = (float(row[C[name]]) for name in ("level", "level_low", "level_high"))
        zero, sums = [0.0] * inputs, [0.0] * sides
        error = (seen[2] - seen[1]) / (2.0 * WIDTH)
        return cls(int(row[C["event"]]), since, t, t, t, level, low, high, error, zero, sums, sums)

    def is_outdone(self, row: Array, threshold: float) -> bool:
        """Return whether a row starts another event, because of a much larger jump or a stuck value."""
        if row[C["statistic"]] in RUNS:
            return bool(row[C["score"]] >= threshold) and self.statistic not in RUNS
        return bool(row[C["score"]] > self.severity + LARGER and row[C["single"]] >= CLEAR)

    def add(self, row: Array, seen: tuple[float, float, float], t: int) -> None:
        """Add an unusual row to the event."""
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
        """The kind of the event so far.

        Up to three unusual rows (and the rows after them that have them as lags) are a spike if single values have more
        evidence than the level. Otherwise the family with the most evidence decides. A level is mostly on one side of
        the usual level, a variance is on both sides and needs more rows. A level that begins slowly or grows is a
        trend.
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
        """Return the event to report."""
        kind, rows, end = self.kind, self.rows, self.last
        observed, low, high = self.observed, self.low, self.high
        inside = observed is None or low <= observed <= high
        if kind in ("level", "trend") and self.known:
            means = [total / self.known for total in self.means]
            if STATISTICS[self.statistic].startswith("level") or len(self.toward) == 1:
                observed, low, high = means[0], self.level_low, self.level_high
            elif inside:  # the model adapts: the value at a jump says more than later means
                observed, low, high = means
        # The model expected the value, but it is far from the level
        elif inside and STATISTICS[self.statistic] == "value":
            low, high = self.level_low, self.level_high
        if kind == "spike":  # means over rows stay unusual for longer
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
