"""The state of the detector, shared by the Python engine and the compiled engine."""

from __future__ import annotations

import numpy as np

from onlinegp.checks import Array
from onlinegp.models.alarms.constants import (
    COLUMNS,
    COUNTS,
    EVENTS,
    FIRST_LOOK,
    KEPT,
    KEPT_OF_SCORES,
    NUMBERS,
    RECENT,
    SCORE,
    STATISTICS,
    C,
    Constants,
    K,
    N,
)
from onlinegp.models.alarms.predictors import MOST_FAR, MOST_NEAR, find_season
from onlinegp.models.alarms.readable import Readable
from onlinegp.models.alarms.scales import find_shift, from_scale, to_scale
from onlinegp.models.alarms.tails import LARGEST
from onlinegp.native_module import native
from onlinegp.state import Fields, Values, WithFields, array, integers
from onlinegp.state.fields import LARGEST_POSITION, Field

OF_EVENTS = ("events", "open", "calm", "own")
EXPECTED = slice(C["expected"], C["level_high"] + 1)


class Watch(WithFields):
    """The state of the detector on one series, in arrays that the Python and the compiled engine share.

    Row t = 1, 2, ... uses only earlier rows. Running means have the rate max(rate, 1 / (t + 1)). y is the target. v is
    the predicted series: y itself, or the normal score of y in the predictions of a model. For both, d = value - slow
    level. Without a model, log(y + shift) replaces y after 256 to 2,048 rows if it is more likely (`scales`).

    1. Two predictors of v (`predictors`): near, with error e, and far, which uses only the season, with error f.
    2. Statistics, all >= 0 (`constants.STATISTICS`): value |d|; the mean of d over 20 and 100 rows, up and down; season
       |f|; the mean of f over 20 rows, up and down; error z; the mean of min(z, 10) over 5, 20 and 100 rows; rows since
       the value changed; rows since the last value. Here a = max(|e| - .001 spread, 0), and z = a / max(mean of a, .1
       long mean of a), at most 100.
    3. A learned tail for each (`tails`), s = -log10 p.
    4. Evidence of the row: E = .43 + .6 s(1) + .4 (s(1) + s(2) + s(3) + s(4)) / 4 over the four largest, .2 less if
       s(1) belongs to a mean, which can grow in later rows. If the evidence of stuck or missing, minus .5, is larger, E
       is this evidence. Statistics of the season count only while errors f are below 95% of the spread. In a short
       history, log10(1 + (500 / rows)^3) is subtracted, because tails and predictors are uncertain. The column `tail`
       is the tail of E.
    5. Score: E if E > R + .2 (R > 1; else E > R), then R = E; otherwise 0. R stays while an event is open, and then for
       the same number of rows, at most 200, because a new level returns in seasonal lags. Then R is multiplied by .99
       with each row. Stuck and missing values have their own R, which any larger E exceeds until R reaches the
       threshold; while their event is open, usual rows have the score 0. An event opens when the score reaches the
       threshold, and clears after 20 rows with E < 1.8. A value that gets stuck in an event belongs to this event; a
       new level after a stuck or missing value is another event. A new level becomes usual because its rows enter the
       tails. After a fault has cleared, only n^(1/4) of its n values stay in the tails.

    Parameters
    ----------
    scores : whether v is the normal score of y
    season : number of rows of the season; 0 for no season; None to search at rows 256, 512, 1024, ...
    daily : whether the season is a day
    native : whether to use the compiled engine
    """

    def __init__(
        self, *, scores: bool, season: int | None, daily: bool, native: bool, rule: Constants | None = None
    ) -> None:
        self.scores, self.daily, self.native, self.rule = scores, daily, native, rule or Constants()
        self.season = season
        self.statistics = len(STATISTICS) if scores else SCORE
        self.lists = self.statistics + 1  # one more for the tail of the evidence
        self.kept = KEPT_OF_SCORES if scores else KEPT
        self.numbers, self.counts = np.zeros(len(NUMBERS)), np.zeros(len(COUNTS), dtype=np.int64)
        self.recent = np.zeros(RECENT, dtype=np.float32)
        self.values = np.zeros((self.lists, 2, self.kept), dtype=np.float32)
        self.sizes, self.laws = np.zeros((self.lists, 2, 2), dtype=np.int64), np.zeros((self.lists, 5))
        self.near_P, self.near_w = np.zeros((MOST_NEAR, MOST_NEAR)), np.zeros(MOST_NEAR)
        self.far_P, self.far_w = np.zeros((MOST_FAR, MOST_FAR)), np.zeros(MOST_FAR)
        self.usual = np.zeros(
            (EVENTS, self.lists), dtype=np.float32
        )  # the largest value of each statistic before each of the last events
        self.counts[K["season"]], self.counts[K["look"]] = season or 0, FIRST_LOOK

    @property
    def fields(self) -> Fields:
        return {
            "numbers": array(len(NUMBERS)),
            "counts": integers(len(COUNTS), least=0, most=LARGEST_POSITION),
            "recent": Field("array", (RECENT,), np.float32),
            "values": Field("array", ("lists", 2, "kept"), np.float32, least=0.0),
            "sizes": integers("lists", 2, 2, least=0, most=LARGEST_POSITION),
            "laws": array("lists", 5, least=0.0),
            "near_P": array(MOST_NEAR, MOST_NEAR),
            "near_w": array(MOST_NEAR),
            "far_P": array(MOST_FAR, MOST_FAR),
            "far_w": array(MOST_FAR),
            "usual": Field("array", (EVENTS, "lists"), np.float32),
        }

    def check(self, values: Values) -> None:
        counts = dict(zip(COUNTS, values["counts"].tolist(), strict=True))
        opened = counts["open"] <= min(counts["events"], 1)
        if max(counts["recent"], counts["season"]) > RECENT or counts["known"] > counts["rows"] or not opened:
            raise ValueError(f"the counts of the detector contradict each other: {counts}.")
        shift = values["numbers"][N["shift"]]
        if shift < 0.0:
            raise ValueError(f"numbers of the detector must have a shift of at least 0, got {shift}.")
        size, rows = values["sizes"][:, :, 0], values["sizes"][:, :, 1]
        if (size > np.minimum(rows, self.kept)).any() or ((size == 0) & (rows > 0)).any():
            raise ValueError(
                "sizes must be at most the number of rows and of kept values, and positive after the first row."
            )

    @property
    def rows(self) -> int:
        return int(self.counts[0])

    def add(self, y: Array, v: Array) -> Array:
        """Check and learn rows; NaN is a missing value. Return the results for each row, (n, `constants.COLUMNS`)."""
        out = np.zeros((len(y), len(COLUMNS)))
        start, restart = 0, False
        while start < len(y):
            end = start + self._rows_before_a_look(y[start:])
            self._judge(y[start:end], v[start:end], out[start:end], restart)
            restart = end < len(y) and self._look()
            start = end
        return out

    def _rows_before_a_look(self, y: Array) -> int:
        """Return the number of rows before the next search for season and scale. The row after them has a value."""
        look = int(self.counts[K["look"]])
        at = max(look - self.rows, 0) if look else len(y)
        known = np.flatnonzero(~np.isnan(y[at:]))
        return at + int(known[0]) if len(known) else len(y)

    def _judge(self, y: Array, v: Array, out: Array, restart: bool) -> None:
        """Write the results of rows to `out`. With `restart`, first restart the predictors on the recent rows."""
        shift = self.numbers[N["shift"]]
        y = np.ascontiguousarray(to_scale(y, shift), dtype=np.float64)
        v = np.ascontiguousarray(v, dtype=np.float64) if self.scores else y
        if self.native:
            arrays = [getattr(self, name) for name in self.fields]
            native().watch(*arrays, np.array(self.rule), self.scores, self.daily, restart, y, v, out)
        else:
            engine = Readable(self)
            if restart:
                engine.restart()
            for i in range(len(y)):
                engine.row(float(y[i]), float(v[i]), out[i])
            engine.store()
        if shift > 0.0:
            out[:, EXPECTED] = from_scale(out[:, EXPECTED], shift)

    def _look(self) -> bool:
        """Look for a better scale and for a season. Return whether there is a new season."""
        self.counts[K["look"]] *= 2
        rows, known, recent, before = (self.counts[K[name]] for name in ("rows", "known", "recent", "season"))
        if not self.scores and known == recent == rows:  # all rows are stored and can be learned again
            self._look_for_scale()
        season = find_season(self._past()) if self.season is None else 0
        if season == 0 or abs(season - before) <= 1:
            return False
        self.counts[K["season"]] = season
        return True

    def _look_for_scale(self) -> None:
        """If all rows are more likely on another scale, learn them again on this scale. Events do not change."""
        numbers, counts = self.numbers, self.counts
        past = from_scale(numbers[N["origin"]] + (numbers[N["unit"]] or 1.0) * self._past(), numbers[N["shift"]])
        shift = find_shift(past)
        if (shift > 0.0) == (numbers[N["shift"]] > 0.0):
            return
        kept = [K[name] for name in ("look", "season", *OF_EVENTS)]
        before = counts[kept]
        numbers[:], counts[:], self.sizes[:], self.laws[:] = 0.0, 0, 0, 0.0
        numbers[N["shift"]], counts[kept[:2]] = shift, before[:2]
        self._judge(past, past, np.zeros((len(past), len(COLUMNS))), False)
        counts[kept], self.usual[:] = before, LARGEST

    def _past(self) -> Array:
        """Return the recent rows in the units of the detector."""
        back = np.arange(self.counts[K["recent"]], 0, -1)
        return self.recent[(self.rows - back) % RECENT].astype(np.float64)

    def begin_series(self) -> None:
        """Start a new series: lags do not use earlier rows."""
        self.counts[K["recent"]] = 0

    def forget_events(self) -> None:
        """Count events from one again."""
        self.counts[[K[name] for name in OF_EVENTS]] = 0

    def next(self) -> Array:
        """Return the columns that predict the next row."""
        out = np.zeros(len(COLUMNS))
        Readable(self).expect(out)
        out[EXPECTED] = from_scale(out[EXPECTED], self.numbers[N["shift"]])
        return out
