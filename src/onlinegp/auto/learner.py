"""What `Auto` runs: running mean and spread at first, then what was composed from the rows so far."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

import numpy as np
from numpy.typing import NDArray

from onlinegp.auto.members import RETUNED, Parts, Progress, with_member
from onlinegp.checks import Array
from onlinegp.engine.compiled import compiled, outer
from onlinegp.learner import Learner, Sizes
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined import Mixture, Scaled
from onlinegp.models.combined.base import innermost, innermost_learner
from onlinegp.models.combined.mixture import MixtureLearner
from onlinegp.models.combined.standardize import like_so_far, moments
from onlinegp.models.description import describe, rebuild
from onlinegp.predictions import Gaussian, Predictions
from onlinegp.progress import ShareBar
from onlinegp.state import (
    Values,
    WithFields,
    array,
    described_from_bytes,
    described_to_bytes,
    integer,
    model,
    number,
    points,
)

FEWEST, MOST = 5, 10_000  # rows to tune on
STRETCH = tuple(f"model.{name}" for name in ("log_scale", "rows", "more", "fewer"))  # of Conformal, inside Scaled
WIDER = 8.0  # over the rows tuned on: by how much intervals are wider at first
PAUSES = (150, 900)  # rows after a change at which a member is tuned on those since then
_TUNING: ContextVar[Progress | None] = ContextVar("tuning", default=None)  # is told how far a tuning has come


@contextmanager
def watched(progress: Progress) -> Iterator[None]:
    """Call `progress` with the share of a tuning that is done, in the block."""
    token = _TUNING.set(progress)
    try:
        yield
    finally:
        _TUNING.reset(token)


class AutoLearner(WithFields):
    """The rows to tune on, as long as they are needed, and the learner that was composed from them, if there is one.

    As long as the target is constant there is nothing to tune on: where a tuning is due, rows are counted anew.
    """

    fields = {
        "seen": integer(),
        "constant": integer(),
        "unexplained": number(),
        "x": points("kept", attribute="_X"),
        "y": array("kept", "outputs", attribute="_Y"),
        "chosen": model(attribute="_chosen"),
    }
    lengths = {"kept": None}

    def __init__(self, parts: Parts, features: int, outputs: int, rows: int, earliest: int) -> None:
        self.features, self.outputs, self.rows = features, outputs, rows
        self.due = sorted({rows, *(earliest * 2**k for k in range(rows.bit_length()) if earliest * 2**k < rows)})
        self._seen, self._done, self._at = 0, False, 0  # rows; whether nothing is tuned any more, and inner.seen then
        self.constant = 0  # rows that are not counted: the target did not vary in them
        self.chosen: Scaled | None = None
        self.inner: Learner | None = None
        self.unexplained = 1.0  # share of the variance, in the second half of the rows tuned on
        self._parts = parts
        self._X, self._Y = np.empty((0, features)), np.empty((0, outputs))  # the latest, at most `rows`

    @property
    def size(self) -> int:
        return 0 if self.inner is None else self.inner.size

    @property
    def seen(self) -> int:
        return self._seen + (self.inner.seen - self._at if self._done and self.inner is not None else 0)

    @property
    def atomic(self) -> bool:
        """Whether the next call is one of what was composed, and is learned by all layers or by none."""
        return self._done and getattr(self.inner, "atomic", False)

    @property
    def together(self) -> int:
        """The rows to the last tuning: of those that are learned in one call, only the latest tuning counts."""
        return max(0, self.rows - self._counted())

    def weights(self) -> dict[str, float]:
        """Return the weights of the members now, by name; empty before there are some."""
        if self.inner is None:
            return {}
        mixture = self._mixture(outer(self.inner))
        return dict(zip(mixture.members, mixture.weights().tolist(), strict=True))

    def changes(self) -> list[tuple[int, str]]:
        """Return the rows where changes began, and their kinds."""
        mixture = None if self.inner is None else self._mixture(outer(self.inner))
        if mixture is None or mixture.detector is None:
            return []
        before = self.seen - mixture.seen  # rows that were not kept for the last tuning
        return [(before + row, kind) for row, kind in mixture.detector.changes()]

    def members(self) -> list[tuple[str, float, OnlineRegressor]]:
        """Return the members: name, weight now, and the model without what is around it."""
        if self.chosen is None:
            return []
        mixture, weights = innermost(self.chosen), self.weights()
        assert isinstance(mixture, Mixture)
        return [(name, weights[name], innermost(model)) for name, model in mixture.named()]

    @property
    def until_tuning(self) -> float:
        """How many more rows it learns up to the next tuning; infinity if there is none."""
        return np.inf if self._final() else self._together(self.rows)

    def learn(self, X: Array, Y: Array) -> None:
        start = 0
        while start < len(X):
            part = slice(start, start + self._together(len(X) - start))
            replaced = self._counted() + len(X) - start >= self._next_but_one()  # by a later tuning, within these rows
            if self.inner is not None and self._counted() + part.stop - part.start not in self.due:
                self.inner.learn(X[part], Y[part])
            self._take(X[part], Y[part], tune=not replaced)
            start = part.stop

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        said, sizes, start = [], [], 0
        while start < len(X):
            part = slice(start, start + self._together(len(X) - start))
            predictions, size = self._run(X[part], Y[part])
            self._take(X[part], Y[part])
            size[-1] = self.size
            said.append(predictions)
            sizes.append(size)
            start = part.stop
        return Predictions.joined(said), np.concatenate(sizes)

    def predict(self, X: Array) -> Predictions:
        return self._so_far(len(X), self._Y) if self.inner is None else self.inner.predict(X)

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        return self._so_far(len(X), self._Y) if self.inner is None else self.inner.skip(X, Y)

    def begin_series(self) -> None:
        if self.inner is not None:
            self.inner.begin_series()

    def learn_one(self, x: object, y: object) -> bool | None:
        return self.inner.learn_one(x, y) if self._done and self.inner is not None else None

    def predict_one(self, x: object) -> tuple[float, float] | None:
        return None if self.inner is None else self.inner.predict_one(x)

    # Rows that go together

    def _counted(self) -> int:
        return self.seen - self.constant

    def _final(self) -> bool:
        return self._done or self._counted() >= self.rows

    def _together(self, n: int) -> int:
        """Return for how many of n rows nothing changes, up to a tuning behind the last of them; at least one."""
        return n if self._final() else min(n, next(d for d in self.due if d > self._counted()) - self._counted())

    def _run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        if self.inner is not None:
            said, size = self.inner.run(X, Y)
            return said, size.copy()
        before = np.concatenate([self._Y, Y])
        parts = [self._so_far(1, before[: len(self._Y) + i]) for i in range(len(Y))]
        return Predictions.joined(parts), np.zeros(len(X), dtype=np.int64)

    def _so_far(self, rows: int, Y: Array) -> Predictions:
        shape = rows, self.outputs
        return like_so_far(Gaussian(np.zeros(shape), np.ones(shape)), Y)

    def _take(self, X: Array, Y: Array, *, tune: bool = True) -> None:
        """Count rows that were learned, keep them while they are needed, and tune if that is due."""
        if self._done:
            return
        before = self._X, self._Y, self._seen
        try:
            self._X = np.concatenate([self._X, X])[-self.rows :]
            self._Y = np.concatenate([self._Y, Y])[-self.rows :]
            self._seen += len(X)
            if self._counted() not in self.due:
                return
            if not moments(self._Y)[2].any():
                self.constant = self._seen
            elif tune:
                self._tune()
        except BaseException:  # the tuning stays due
            self._X, self._Y, self._seen = before
            raise

    def _next_but_one(self) -> float:
        """Return the number of rows at the tuning after the next one, infinity if there is none."""
        later = [d for d in self.due if d > self._counted()]
        return later[1] if len(later) > 1 else np.inf

    def _tune(self) -> None:
        chosen = self._parts.compose(self._X, self._Y, _TUNING.get() or ShareBar())
        inner = self._start(chosen)
        said, _ = inner.run(self._X, self._Y)
        half = slice(len(self._Y) // 2, None)
        variance = np.var(self._Y[half], axis=0)
        error = np.mean((self._Y - said.mean)[half] ** 2, axis=0)
        self.unexplained = float(np.mean(error[variance > 0.0] / variance[variance > 0.0])) if variance.any() else 1.0
        self._set_stretch(inner)
        self.chosen, self.inner = chosen, inner
        if self._final():
            self._X, self._Y = self._X[:0], self._Y[:0]
            self._at, self._done = inner.seen, True

    def _set_stretch(self, inner: Learner) -> None:
        """Let intervals be wider after few rows, and take back what repeating the tuning rows taught of their stretch.

        The learner that was just composed misses too few of the rows that it was tuned on.
        """
        contents = inner.dump()
        for name in STRETCH:
            contents[name] = np.zeros_like(contents[name])
        contents[STRETCH[0]] += np.log1p(WIDER / len(self._Y))
        inner.load(contents)

    def _start(self, chosen: Scaled) -> Learner:
        """Return a learner of what was composed, which asks for a member that is tuned anew after a change."""
        learner = chosen.start(self.features, self.outputs)
        mixture = self._mixture(learner)
        if mixture.detector is not None:
            mixture.detector.pauses, mixture.pause = PAUSES, self._retune
        return compiled(learner)

    @staticmethod
    def _mixture(learner: Learner) -> MixtureLearner:
        mixture = innermost_learner(learner)
        assert isinstance(mixture, MixtureLearner)
        return mixture

    def _retune(self, mixture: MixtureLearner) -> None:
        """Tune a member on the rows since the last change, if there was one."""
        detector = mixture.detector
        assert detector is not None
        if not len(detector.rows) or self.chosen is None:
            return
        detector.look()
        rows = detector.since_change
        model = self._parts.retune(*detector.latest(min(rows, self.rows)))
        if model is not None:
            mixture.put(
                RETUNED, partial(model.start, self.features, self.outputs), *detector.latest(rows), like="fresh"
            )
            self.chosen = with_member(self.chosen, RETUNED, model)

    # Files

    @property
    def _chosen(self) -> NDArray[np.uint8]:
        """What was chosen: its description and its record; empty before there is anything."""
        if self.chosen is None or self.inner is None:
            return np.empty(0, dtype=np.uint8)
        about = {"features": self.features, "outputs": self.outputs, "single": self.outputs == 1, "largest": 0.0}
        contents = about | {"learned": self.inner.dump()}
        return np.frombuffer(described_to_bytes(json.dumps(describe(self.chosen)), self.inner, contents), np.uint8)

    def check(self, values: Values) -> None:
        seen, counted, kept = values["seen"], values["seen"] - values["constant"], len(values["x"])
        if counted < 0:
            raise ValueError(f"constant must be at most seen, {seen}, got {values['constant']}.")
        expected = 0 if counted >= self.rows else min(seen, self.rows)
        if kept != expected:
            raise ValueError(f"x must have {expected} rows after {seen} were learned, got {kept}.")
        if bool(len(values["chosen"])) != (counted >= self.due[0]):
            raise ValueError("what was chosen does not go with the number of rows.")
        values["inner"] = self._started(values["chosen"].tobytes()) if len(values["chosen"]) else (None, None)

    def _started(self, data: bytes) -> tuple[Scaled, Learner]:
        """Return the model that was chosen, and a learner of it that has learned what the record holds."""
        description, contents = described_from_bytes(data)
        chosen = rebuild(json.loads(description))
        if type(chosen) is not Scaled or type(innermost(chosen)) is not Mixture:
            raise ValueError(f"what was chosen must be a scaled mixture, got {type(chosen).__name__}.")
        inner = self._start(chosen)
        inner.load(contents["learned"])
        return chosen, inner

    def assign(self, values: Values) -> None:
        self._seen, self.constant, self.unexplained = (values[name] for name in ("seen", "constant", "unexplained"))
        self._X, self._Y = values["x"].copy(), values["y"].copy()
        self.chosen, self.inner = values["inner"]
        self._done = False
        if self._final() and self.inner is not None:
            self._at, self._done = self.inner.seen, True
