"""The Python engine of the detector. It works row by row and defines the results of the compiled engine."""

from __future__ import annotations

from math import isnan, log10
from types import SimpleNamespace
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.models.alarms.constants import (
    COUNTS,
    CUT_ERROR,
    EVENTS,
    FAMILY,
    LEVEL_WIDTH,
    MISSING,
    MOST_ERROR,
    NUMBERS,
    RECENT,
    SEASON,
    STUCK,
    SUDDEN,
    WIDTH,
)
from onlinegp.models.alarms.predictors import Predictor, far_lags, near_lags
from onlinegp.models.alarms.tails import LARGEST, Tail

EARLY = 20  # number of first rows without clipping of errors


class Readable:
    """Compute the rows of a `Watch`. Its numbers and counts are attributes of `s` until `store` writes them back."""

    def __init__(self, watch: Any) -> None:
        self.w, self.c = watch, watch.rule
        numbers, counts = watch.numbers.tolist(), watch.counts.tolist()
        self.s: Any = SimpleNamespace(
            **dict(zip(NUMBERS, numbers, strict=True)), **dict(zip(COUNTS, counts, strict=True))
        )
        least = [2.0 if k in (STUCK, MISSING) else 0.05 if k == watch.statistics else 0.0 for k in range(watch.lists)]
        self.tails = [
            Tail(watch.values[k], watch.sizes[k], watch.laws[k], least[k], self.c) for k in range(watch.lists)
        ]
        self._predictors()

    def store(self) -> None:
        """Write the numbers back."""
        self.w.numbers[:] = [getattr(self.s, name) for name in NUMBERS]
        self.w.counts[:] = [getattr(self.s, name) for name in COUNTS]

    def _predictors(self) -> None:
        w, season = self.w, self.s.season
        self.near = Predictor(w.near_P, w.near_w, near_lags(season), 0, self.c.forgetting)
        self.far = Predictor(w.far_P, w.far_w, far_lags(season, w.daily), season, self.c.forgetting)

    def row(self, y: float, v: float, out: Array) -> None:
        """Check and learn a row. Write the results to `out`."""
        s = self.s
        if isnan(y):
            self._missing(out)
            return
        if s.known == 0:
            s.origin = s.last = y
            self.restart()
        if s.unit == 0.0:
            s.unit = abs(y - s.origin)
        # Relative to the first value, in units of the first change, so that float32 can hold it
        y = _bounded((y - s.origin) / s.unit) if s.unit > 0.0 else 0.0
        v = _bounded(v) if self.w.scores else y
        self._measure(y, v, out)
        s.known += 1
        self._remember(v)

    def _remember(self, v: float) -> None:
        s = self.s
        self.w.recent[s.rows % RECENT] = np.float32(v)
        s.rows += 1
        s.recent = min(s.recent + 1, RECENT)

    def _follow(self, name: str, rate: float, value: float) -> float:
        """Update a running mean and return it. For the first rows it is a plain mean."""
        old = getattr(self.s, name)
        new: float = old + max(rate, 1.0 / (self.s.known + 1.0)) * (value - old)
        setattr(self.s, name, new)
        return new

    def restart(self) -> None:
        """Restart both predictors on the recent rows with the lags of the season, and empty the seasonal tails."""
        s, c = self.s, self.c
        self._predictors()
        self.near.start(c.ridge_near, 1.0)
        self.far.start(c.ridge_far, 0.0)
        s.season_20, s.ready = 0.0, max(s.rows, s.season) + int(c.burn) if self.far.lags else 0
        for k in range(SEASON, SEASON + 3):
            self.w.sizes[k], self.w.laws[k] = 0, 0.0
        spread, level, recent = s.score_spread, s.score_level, self.w.recent
        if spread <= 0.0:
            return
        for t in range(s.rows - s.recent + 1, s.rows):
            reach = t - (s.rows - s.recent)
            z = (float(recent[t % RECENT]) - level) / spread
            error = z - self.near.predict(recent, t, reach, level, spread)
            self.near.learn(error, c.clip * s.mean_error / spread)
            if self.far.lags and reach > s.season:
                error = z - self.far.predict(recent, t, reach, level, spread)
                self.far.learn(error, c.clip * max(s.far_error, s.mean_error) / spread)

    def _measure(self, y: float, v: float, out: Array) -> None:
        s, c, recent = self.s, self.c, self.w.recent
        if s.known == 0:
            s.level, s.score_level = y, v
        dv = v - s.score_level
        # 1. Predict (v - slow level) / spread
        expected, spread = self.expect(out)
        seasonal = bool(self.far.lags) and s.recent > s.season
        e = dv / spread - expected
        f = dv / spread - self.far.predict(recent, s.rows, s.recent, s.score_level, spread) if seasonal else 0.0
        # 2. Measure
        a = max(abs(e) * spread - 0.001 * s.score_spread, 0.0)
        unit = max(s.mean_error, 0.1 * s.long_error)
        z = min(a / unit, MOST_ERROR) if unit > 0.0 else (0.0 if a == 0.0 else CUT_ERROR)
        changed = y != s.last or s.known == 0
        # A run of equal values counts once, when it ends
        ended = {STUCK: float(s.same) if changed else 0.0, MISSING: float(s.gone)}
        s.same = 0 if changed else s.same + 1
        x = self._statistics(y - s.level, dv, f * spread, z)
        # 3. to 5. Calibrate, pool, open
        self._judge(x, out)
        # Learn
        if s.known >= c.burn:
            for k in range(self.w.statistics):
                if (s.ready and s.rows >= s.ready) or not SEASON <= k < SEASON + 3:
                    self.tails[k].learn(ended.get(k, x[k]))
        self._learn(e, f, a, unit, spread, seasonal, y, v)
        s.last, s.gone = y, 0

    def _statistics(self, d: float, dv: float, f: float, z: float) -> list[float]:
        follow, cut = self._follow, min(z, CUT_ERROR)
        of_level = [abs(d), *_both(follow("level_20", 0.05, d)), *_both(follow("level_100", 0.01, d))]
        of_score = [abs(dv), *_both(follow("score_20", 0.05, dv)), *_both(follow("score_100", 0.01, dv))]
        of_season = [abs(f), *_both(follow("season_20", 0.05, f))]
        of_error = [z, follow("error_5", 0.2, cut), follow("error_20", 0.05, cut), follow("error_100", 0.01, cut)]
        all_of_y = [*of_level, *of_season, *of_error, float(self.s.same), 0.0]
        return all_of_y + of_score if self.w.scores else all_of_y

    def expect(self, out: Array) -> tuple[float, float]:
        """Write the prediction of the next row to `out`. Return the prediction in spreads, and the spread."""
        s = self.s
        spread = max(s.score_spread, 1e-9)
        expected = self.near.predict(self.w.recent, s.rows, s.recent, s.score_level, spread)
        if s.known > 0:
            predicted, width = s.score_level + spread * expected, WIDTH * s.mean_error
            shown = predicted, predicted - width, predicted + width
            out[4:7] = shown if self.w.scores else [self._from_units(value) for value in shown]
            width = LEVEL_WIDTH * s.spread
            out[7:10] = [self._from_units(value) for value in (s.level, s.level - width, s.level + width)]
        return expected, spread

    def _from_units(self, value: float) -> float:
        s = self.s
        return float(s.origin + (s.unit if s.unit > 0.0 else 1.0) * value)

    def _judge(self, x: list[float], out: Array) -> None:
        """Combine the evidence of all statistics x, calibrate it, and open an event if it is large enough."""
        s, c = self.s, self.c
        evidence = [0.0] * len(x)
        for k in range(len(x)):
            ready = s.known >= c.burn
            # Without a useful season, these statistics would count the same evidence twice
            if SEASON <= k < SEASON + 3:
                ready = s.ready and s.rows >= s.ready and s.far_error < c.helps * s.score_spread
            ready = ready and (k != STUCK or s.unit > 0.0)  # a value that has never changed is not stuck
            evidence[k] = self.tails[k].evidence(x[k], c.nearly) if ready else 0.0
        pooled = [(evidence[k], -k) for k in range(len(x)) if FAMILY[k] >= 0]
        four = sorted(pooled, reverse=True)[:4]
        best, leading = four[0][0], -four[0][1] if four[0][0] > 0.0 else 0
        if best > 0.0:
            total = ((four[0][0] + four[1][0]) + four[2][0]) + four[3][0]
            age = max(s.known, 1) / c.young
            young = log10(1.0 + 1.0 / (age * age * age))  # tails have few values, and the predictors still learn
            offset = c.offset - (0.0 if leading in SUDDEN else c.lasting)
            best = max(offset - young + (1.0 - c.pooled) * best + c.pooled * total / 4.0, 0.0)
        for k in (STUCK, MISSING):
            if evidence[k] - c.stuck_offset > best:
                best, leading = evidence[k] - c.stuck_offset, k
        for family in range(4):
            out[10 + family] = max(value for value, k in pooled if FAMILY[-k] == family)
        self._finish(best, leading, evidence[0], x, out)
        out[15] = s.same

    def _finish(self, best: float, leading: int, odd: float, x: list[float] | None, out: Array) -> None:
        """Calibrate the evidence, and open an event if it is large enough. x is None if the value is missing."""
        s = self.s
        if s.known < self.c.silent:
            best = 0.0
        else:
            out[0] = self.tails[-1].evidence(best, 1.0)
            if x is not None:
                self.tails[-1].learn(best)
        out[2], out[3] = best, leading
        own = leading in (STUCK, MISSING)
        back = s.open and s.own and not own and odd == 0.0  # a usual value after stuck or missing values
        score = self._top("peak", "held", best, not own, False) + self._top("stuck_peak", "stuck_held", best, own, True)
        out[1] = 0.0 if back else score
        self._follow_event(best, out[1], own, x)
        out[14] = s.events if s.open else 0

    def _top(self, peak: str, held: str, best: float, mine: bool, own: bool) -> float:
        """Return the score: the evidence if it exceeds the peak, else 0. Stuck and missing rows have their own peak."""
        s, c = self.s, self.c
        r, h = getattr(s, peak), getattr(s, held)
        free = r <= 1.0 or (own and r < c.threshold)  # so that a run whose evidence grows slowly can open an event
        if mine and best > r + (0.0 if free else c.margin):
            setattr(s, peak, best)
            return best
        if s.open:
            setattr(s, held, min(h + 1, int(c.hold)))
        elif h > 0:
            setattr(s, held, min(h, int(c.hold)) - 1)  # a file may contain a larger count
        else:
            setattr(s, peak, r * c.fade)
        return 0.0

    def _follow_event(self, best: float, score: float, own: bool, x: list[float] | None) -> None:
        """Open an event, or clear the open event after 20 calm rows.

        A new level after a stuck or missing value opens another event. A value that gets stuck during an event does
        not. When an event clears, only n^(1/4) of its n values stay in each tail.
        """
        s, c = self.s, self.c
        if s.open:
            s.calm = 0 if best >= c.low else s.calm + 1
            s.open = int(s.calm < c.quiet)
            usual = self.w.usual[(s.events - 1) % EVENTS]
            for k, value in enumerate(x if x is not None and not s.open else ()):
                if FAMILY[k] >= 0 and value <= usual[k]:
                    self.tails[k].thin(usual[k])
            if not s.open or own or not s.own:
                return
        if score >= c.threshold:
            self.w.usual[s.events % EVENTS] = [tail.largest() for tail in self.tails]
            s.events, s.open, s.calm, s.own = s.events + 1, 1, 0, int(own)

    def _learn(
        self, e: float, f: float, a: float, unit: float, spread: float, seasonal: bool, y: float, v: float
    ) -> None:
        """Update the predictors and the running means with the row."""
        s, c = self.s, self.c
        limit = c.clip * unit
        early = s.known <= EARLY or limit <= 0.0
        if s.known > 3:
            self.near.learn(e, 3.0 if early else limit / spread)
        if seasonal:
            self.far.learn(f, c.clip * s.far_error / spread if s.far_error > 0.0 else 3.0)
        far = abs(f) * spread if seasonal else abs(v - s.score_level)
        self._follow("far_error", 0.005, far if early or s.far_error <= 0.0 else min(far, c.clip * s.far_error))
        a = a if early else min(a, 1.25 * limit)
        self._follow("mean_error", c.error_rate, a)
        self._follow("long_error", c.long_rate, a)
        self._follow("spread", c.slow, abs(y - s.level))
        self._follow("level", c.slow, y)
        self._follow("score_spread", c.slow, abs(v - s.score_level))
        self._follow("score_level", c.slow, v)

    def _missing(self, out: Array) -> None:
        """Process a row without a value. Its prediction becomes the value for lags; nothing else learns."""
        s, c = self.s, self.c
        if s.known == 0:
            return
        s.gone += 1
        expected, spread = self.expect(out)
        evidence = self.tails[MISSING].evidence(float(s.gone), c.nearly) if s.known >= c.silent else 0.0
        self._finish(max(evidence - c.stuck_offset, 0.0), MISSING, 0.0, None, out)
        out[15] = s.gone
        self._remember(_bounded(s.score_level + spread * expected))


def _bounded(value: float) -> float:
    return min(max(value, -LARGEST), LARGEST)


def _both(value: float) -> tuple[float, float]:
    return max(value, 0.0), max(-value, 0.0)
