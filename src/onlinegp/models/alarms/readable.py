"""The readable engine of the detector, row by row: the definition of what `Watch` describes."""

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

EARLY = 20  # rows in which no error is cut


class Readable:
    """The rows of `Watch`, one by one; numbers and counts are attributes of `s` meanwhile."""

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
        """Take a row, and fill in what is returned of it."""
        s = self.s
        if isnan(y):
            self._missing(out)
            return
        if s.known == 0:
            s.origin = s.last = y
            self.restart()
        y = self._in_units(y)
        v = min(max(v, -LARGEST), LARGEST) if self.w.scores else y
        self._measure(y, v, out)
        s.rows += 1
        s.known += 1
        s.recent = min(s.recent + 1, RECENT)

    def _in_units(self, y: float) -> float:
        """Return y relative to the first value, in units of the first change, so that float32 can hold it."""
        s = self.s
        if s.unit == 0.0:
            s.unit = abs(y - s.origin)
        return min(max((y - s.origin) / s.unit, -LARGEST), LARGEST) if s.unit > 0.0 else 0.0

    def _from_units(self, value: float) -> float:
        s = self.s
        return float(s.origin + (s.unit if s.unit > 0.0 else 1.0) * value)

    def restart(self) -> None:
        """Start both predictors from scratch, with the lags of the season, on the recent rows; empty its lists."""
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
        g = 1.0 / (s.known + 1.0)
        d, dv = y - s.level, v - s.score_level
        if s.known == 0:
            s.level, s.score_level, d, dv = y, v, 0.0, 0.0
        # 1. Predict, in spreads from the slow level
        spread = max(s.score_spread, 1e-9)
        seasonal = bool(self.far.lags) and s.recent > s.season
        expected = self.near.predict(recent, s.rows, s.recent, s.score_level, spread)
        self._fill(out, expected, spread)
        e = dv / spread - expected
        f = dv / spread - self.far.predict(recent, s.rows, s.recent, s.score_level, spread) if seasonal else 0.0
        # 2. Measure
        a = max(abs(e) * spread - 0.001 * s.score_spread, 0.0)
        unit = max(s.mean_error, 0.1 * s.long_error)
        z = min(a / unit, MOST_ERROR) if unit > 0.0 else (0.0 if a == 0.0 else CUT_ERROR)
        x, ended = self._statistics(y, d, dv, f * spread, z, g)
        # 3. to 5. Calibrate, pool, open
        self._judge(x, out)
        # Learn
        if s.known >= c.burn:
            for k in range(self.w.statistics):
                if (s.ready and s.rows >= s.ready) or not SEASON <= k < SEASON + 3:
                    self.tails[k].learn(ended.get(k, x[k]))
        self._learn(e, f, a, unit, spread, seasonal, d, dv, g)
        recent[s.rows % RECENT] = np.float32(v)
        s.last, s.gone = y, 0

    def _statistics(
        self, y: float, d: float, dv: float, f: float, z: float, g: float
    ) -> tuple[list[float], dict[int, float]]:
        """Return the statistics, and what the lists learn in their place: a run of rows once, when it ends."""
        s = self.s
        s.level_20 += max(0.05, g) * (d - s.level_20)
        s.level_100 += max(0.01, g) * (d - s.level_100)
        s.score_20 += max(0.05, g) * (dv - s.score_20)
        s.score_100 += max(0.01, g) * (dv - s.score_100)
        s.season_20 += max(0.05, g) * (f - s.season_20)
        cut = min(z, CUT_ERROR)
        s.error_5 += max(0.2, g) * (cut - s.error_5)
        s.error_20 += max(0.05, g) * (cut - s.error_20)
        s.error_100 += max(0.01, g) * (cut - s.error_100)
        changed = y != s.last or s.known == 0
        ended = {STUCK: float(s.same) if changed else 0.0, MISSING: float(s.gone)}
        s.same = 0 if changed else s.same + 1
        x = [abs(d), *_both(s.level_20), *_both(s.level_100), abs(f), *_both(s.season_20)]
        x += [z, s.error_5, s.error_20, s.error_100, float(s.same), 0.0]
        return x + ([abs(dv), *_both(s.score_20), *_both(s.score_100)] if self.w.scores else []), ended

    def expect(self, out: Array) -> tuple[float, float]:
        """Fill in what is expected of the next row; return it in spreads, and the spread."""
        s = self.s
        spread = max(s.score_spread, 1e-9)
        expected = self.near.predict(self.w.recent, s.rows, s.recent, s.score_level, spread)
        self._fill(out, expected, spread)
        return expected, spread

    def _fill(self, out: Array, expected: float, spread: float) -> None:
        """Fill in what the row is judged by."""
        s = self.s
        predicted, width = s.score_level + spread * expected, WIDTH * s.mean_error
        shown = predicted, predicted - width, predicted + width
        out[4:7] = shown if self.w.scores else [self._from_units(value) for value in shown]
        width = LEVEL_WIDTH * s.spread
        out[7:10] = [self._from_units(value) for value in (s.level, s.level - width, s.level + width)]
        if s.known == 0:  # nothing is known before the first value
            out[4:10] = 0.0

    def _judge(self, x: list[float], out: Array) -> None:
        """Pool the evidence of all statistics; calibrate it; see if it opens an event."""
        s, c = self.s, self.c
        evidence = [0.0] * len(x)
        for k in range(len(x)):
            ready = s.known >= c.burn
            if SEASON <= k < SEASON + 3:  # a season that tells nothing would count the same evidence twice
                ready = s.ready and s.rows >= s.ready and s.far_error < c.helps * s.score_spread
            ready = ready and (k != STUCK or s.unit > 0.0)  # what never changed is not stuck
            evidence[k] = self.tails[k].evidence(x[k], c.nearly) if ready else 0.0
        pooled = [(evidence[k], -k) for k in range(len(x)) if FAMILY[k] >= 0]
        four = sorted(pooled, reverse=True)[:4]
        best, leading = four[0][0], -four[0][1] if four[0][0] > 0.0 else 0
        if best > 0.0:
            total = ((four[0][0] + four[1][0]) + four[2][0]) + four[3][0]
            age = max(s.known, 1) / c.young
            young = log10(1.0 + 1.0 / (age * age * age))  # lists are short, and the predictors still learn
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
        """Calibrate the evidence; see if it opens an event. x is None if there is no value."""
        s = self.s
        if s.known < self.c.silent:
            best = 0.0
        else:
            out[0] = self.tails[-1].evidence(best, 1.0)
            if x is not None:
                self.tails[-1].learn(best)
        out[2], out[3] = best, leading
        own = leading in (STUCK, MISSING)
        back = s.open and s.own and not own and odd == 0.0  # from stuck or missing to what is usual
        score = self._open(best, own)
        out[1] = 0.0 if back else score
        out[14] = self._event(best, out[1], own, x)

    def _open(self, best: float, own: bool) -> float:
        """Return the score; a stuck or missing sensor has a peak of its own."""
        s, c, score = self.s, self.c, 0.0
        for peak, held, mine in (("peak", "held", not own), ("stuck_peak", "stuck_held", own)):
            r = getattr(s, peak)
            free = r <= 1.0 or (own and r < c.threshold)  # a run of rows grows slowly, and opens one event
            if mine and best > r + (0.0 if free else c.margin):
                score = best
                setattr(s, peak, best)
            elif s.open:
                setattr(s, held, min(getattr(s, held) + 1, int(c.hold)))
            elif getattr(s, held) > 0:
                setattr(s, held, min(getattr(s, held), int(c.hold)) - 1)  # files of 0.2 have counts of another kind
            else:
                setattr(s, peak, r * c.fade)
        return score

    def _event(self, best: float, score: float, own: bool, x: list[float] | None) -> int:
        """Open an event, or clear it after 20 calm rows; return its number, 0 if none is open.

        What comes after a value that was stuck or missing is another event, but not the other way around. What has
        passed was a fault rather than a habit: of its values only the fourth root of their number stays.
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
                return s.events if s.open else 0
        if score >= c.threshold:
            self.w.usual[s.events % EVENTS] = [tail.largest() for tail in self.tails]
            s.events, s.open, s.calm, s.own = s.events + 1, 1, 0, int(own)
        return s.events if s.open else 0

    def _learn(
        self, e: float, f: float, a: float, unit: float, spread: float, seasonal: bool, d: float, dv: float, g: float
    ) -> None:
        """Let the predictors and the running means learn the row."""
        s, c = self.s, self.c
        limit = c.clip * unit
        early = s.known <= EARLY or limit <= 0.0
        if s.known > 3:
            self.near.learn(e, 3.0 if early else limit / spread)
        if seasonal:
            self.far.learn(f, c.clip * s.far_error / spread if s.far_error > 0.0 else 3.0)
        far = abs(f) * spread if seasonal else abs(dv)
        if not (early or s.far_error <= 0.0):
            far = min(far, c.clip * s.far_error)
        s.far_error += max(0.005, g) * (far - s.far_error)
        a = a if early else min(a, 1.25 * limit)
        s.mean_error += max(c.error_rate, g) * (a - s.mean_error)
        s.long_error += max(c.long_rate, g) * (a - s.long_error)
        s.spread += max(c.slow, g) * (abs(d) - s.spread)
        s.level += max(c.slow, g) * d
        s.score_spread += max(c.slow, g) * (abs(dv) - s.score_spread)
        s.score_level += max(c.slow, g) * dv

    def _missing(self, out: Array) -> None:
        """Take a row without a value: lags find the prediction in its place, and nothing else learns."""
        s, c = self.s, self.c
        if s.known == 0:
            return
        s.gone += 1
        expected, spread = self.expect(out)
        evidence = self.tails[MISSING].evidence(float(s.gone), c.nearly) if s.known >= c.silent else 0.0
        self._finish(max(evidence - c.stuck_offset, 0.0), MISSING, 0.0, None, out)
        out[15] = s.gone
        value = s.score_level + spread * expected
        self.w.recent[s.rows % RECENT] = np.float32(min(max(value, -LARGEST), LARGEST))
        s.rows += 1
        s.recent = min(s.recent + 1, RECENT)


def _both(value: float) -> tuple[float, float]:
    return max(value, 0.0), max(-value, 0.0)
