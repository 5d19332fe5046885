"""Detect changes of a stream, and keep the last rows, which models that start again learn first."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import floor

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.plan import Constant
from onlinegp.learner import Learner
from onlinegp.models.error_tracking import LEAST, keep_of
from onlinegp.state import Fields, Values, WithFields, array, integers, points

CLIP, ALARM = 3.0, 20.0  # nats: the limit per row, and the evidence that counts as a change
WORSE = 1.0  # nats: smaller drops of the log density are no evidence
HALF_LIFE = 300.0  # rows, for the mean of the usual log density
KEEP = keep_of(HALF_LIFE)
LIMIT = 1e3  # nats: log densities are clipped to +-LIMIT
REST = 100  # rows after a start without tests
EARLIEST = 250  # rows: a change is dated back at most this far
LOG = 1250  # number of stored rows
KINDS = ("relation", "inputs", "target")
NEW = 0.5  # inputs or target changed if log(spread) changed by more, or the center by more than 2 NEW spreads


class ChangeDetector(WithFields):
    """Detects changes by two of Page's tests.

    The first test asks whether a member with a short memory predicts better than the fresh members, which learn all
    rows since the last change:

        S <- max(0, S + clip(log p_window - log p_fresh, -3, 3))

    where log p_fresh is the log density of the best fresh member. The second test asks whether the fresh members are
    much worse than usual. It detects changes after which no member predicts well:

        D <- max(0, D + clip(usual - log p_fresh - 1, -3, 3)),      usual: a fading mean of log p_fresh while D is zero

    A change is detected when S or D exceeds 20 nats. Its start is the row after this statistic was last zero. There are
    no tests in the first 100 rows after a start.

    Page, "Continuous inspection schemes", Biometrika, 1954.

    Attributes
    ----------
    fresh : a function for each fresh member, by name, that returns a new learner
    window : the name of the member with a short memory
    pauses : `pause` of the mixture is called after these numbers of rows since a start
    state : S, rows since it was zero, D, rows since it was zero, sum and weight of the usual density, rows since the
        last start, rows learned; (8,)
    log_x, log_y : the latest rows, (LOG, features) and (LOG, outputs); row i is at i modulo LOG
    rows : the rows where changes began, (changes,)
    kinds : what changed, as indices into KINDS, (changes,)
    """

    lengths = {"changes": None}

    def __init__(
        self,
        fresh: dict[str, Callable[[], Learner]],
        window: str,
        features: int,
        outputs: int,
        pauses: tuple[int, ...] = (),
    ) -> None:
        self.fresh, self.window, self.features, self.outputs = fresh, window, features, outputs
        self.pauses = pauses
        self.state = np.zeros(8)
        self.log_x, self.log_y = np.zeros((LOG, features)), np.zeros((LOG, outputs))
        self.rows, self.kinds = np.zeros((2, 0), dtype=np.int64)

    @cached_property
    def fields(self) -> Fields:
        return {
            "state": array(8),
            "log_x": points(LOG),
            "log_y": array(LOG, "outputs"),
            "rows": integers("changes", least=0),
            "kinds": integers("changes", least=0, most=len(KINDS) - 1),
        }

    def check(self, values: Values) -> None:
        better, since, worse, others, _, weight, age, seen = values["state"].tolist()
        rows = max(since, others, age, *values["rows"].tolist())
        if not (
            min(better, since, worse, others, weight, age) >= 0.0
            and max(better, worse) <= ALARM + CLIP
            and rows <= seen
        ):
            raise ValueError(f"the state of the changes does not fit {seen:g} rows, got {values['state']!r}.")

    @property
    def numbers(self) -> dict[str, Constant]:
        """The constants for the compiled twin."""
        rule = CLIP, ALARM, WORSE, KEEP, LIMIT, float(REST), float(LOG), LEAST
        return {"change": rule, "pauses": (*map(float, self.pauses), np.inf)}

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays that the compiled twin changes."""
        return {"change state": self.state, "change log_x": self.log_x, "change log_y": self.log_y}

    @property
    def detected(self) -> bool:
        return bool(max(self.state[0], self.state[2]) > ALARM)

    @property
    def age(self) -> int:
        """Rows since the last start."""
        return int(self.state[6])

    @property
    def until_next(self) -> int:
        """The number of rows, at least one, in which no change can be detected and no pause is due."""
        better, _, worse, _, _, _, age, _ = self.state.tolist()
        change = max(REST - age, 0.0) + max(1.0, floor((ALARM - max(better, worse)) / CLIP))
        pause = min((one - age for one in self.pauses if one > age), default=change)
        return int(min(change, pause))

    def follow(self, fresh: Array, window: Array, X: Array, Y: Array) -> None:
        """Update the tests with the log densities of rows, (n, fresh) and (n,), and store the rows."""
        *tests, age, seen = self.state.tolist()
        better, since, worse, others, total, weight = tests
        at = np.arange(int(seen), int(seen) + len(X)) % LOG
        self.log_x[at], self.log_y[at] = X, Y
        for each, one in zip(fresh.tolist(), window.tolist(), strict=True):
            best = max(_bounded(other) for other in each)
            if age >= REST:
                better = max(0.0, better + _clipped(_bounded(one) - best))
                worse = max(0.0, worse + _clipped(total / weight - best - WORSE))
                since = since + 1.0 if better > 0.0 else 0.0
                others = others + 1.0 if worse > 0.0 else 0.0
            if worse == 0.0:
                total, weight = KEEP * total + min(max(best, -LIMIT), LIMIT), KEEP * weight + 1.0
            age, seen = age + 1.0, seen + 1.0
        self.state[:] = better, since, worse, others, total, weight, age, seen

    def latest(self, rows: int) -> tuple[Array, Array]:
        """Return up to `rows` of the last stored rows."""
        seen = int(self.state[7])
        at = np.arange(seen - min(rows, LOG, seen), seen) % LOG
        return self.log_x[at], self.log_y[at]

    @property
    def since_change(self) -> int:
        """The number of rows since the last change began."""
        return int(self.state[7]) - int(self.rows[-1]) if len(self.rows) else int(self.state[7])

    def onset(self) -> int:
        """Return the number of rows since the start of the change that was just detected."""
        since = self.state[1] if self.state[0] > ALARM else self.state[3]
        return min(int(since), EARLIEST)

    def started(self, rows: int) -> None:
        """Restart the tests after the fresh members have learned only these last rows."""
        self.rows = np.append(self.rows, int(self.state[7]) - rows)
        self.kinds = np.append(self.kinds, KINDS.index("relation"))
        self.state[:7] = 0.0

    def look(self) -> None:
        """Classify the last change, from stored rows before and after it."""
        rows = self.since_change
        X, Y = self.latest(LOG)
        if len(self.rows) and rows <= LOG - REST and len(X) > rows:
            kind = kind_of_change((X[:-rows], Y[:-rows]), (X[-rows:], Y[-rows:]))
            self.kinds[-1] = KINDS.index(kind)

    def changes(self) -> list[tuple[int, str]]:
        """Return the detected changes: the row where each began, and its kind."""
        return [(row, KINDS[kind]) for row, kind in zip(self.rows.tolist(), self.kinds.tolist(), strict=True)]


def _clipped(gain: float) -> float:
    return min(max(gain, -CLIP), CLIP)


def _bounded(density: float) -> float:
    return min(density, -LEAST) if density > LEAST else LEAST


def kind_of_change(before: tuple[Array, Array], after: tuple[Array, Array]) -> str:
    """Return "inputs" or "target" if their center or spread changed, otherwise "relation"."""
    for kind, old, new in (("inputs", before[0], after[0]), ("target", before[1], after[1])):
        spread, now = old.std(axis=0), new.std(axis=0)
        usual = (spread > 0) & (now > 0)
        ratio = np.abs(np.log(now[usual] / spread[usual]))
        shift = np.abs(new.mean(axis=0) - old.mean(axis=0))[usual] / np.sqrt(spread[usual] * now[usual])
        if np.any(ratio > NEW) or np.any(shift > 2 * NEW):
            return kind
    return "relation"
