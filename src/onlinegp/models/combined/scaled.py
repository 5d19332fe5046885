"""Standardize x and y for a model. Predictions have the units of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import LARGEST, Array, count
from onlinegp.engine.compiled import nodes, snapshot
from onlinegp.engine.plan import Plan, around
from onlinegp.kernels.importance import KernelInUse
from onlinegp.learner import Learner, Sizes, skip
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import INSIDE, OuterLearner, OuterRegressor
from onlinegp.models.combined.robust import RobustLearner
from onlinegp.models.combined.standardize import CONSTANT, LIMIT, TINY, Scale, like_so_far, moments, own_size
from onlinegp.models.recipe import parameters
from onlinegp.predictions import Predictions
from onlinegp.state import Values, array, flags, integer, points

MIN_SCALE_ROWS = 5  # rows before the scales are first estimated
MAX_TWIN_ROWS = 10_000  # limit of the compiled twin, which cannot be interrupted while it learns these rows again


@parameters
class Scaled(OuterRegressor):
    """Wrap a model and standardize its data: (x - center) / scale, and the same for y. Predictions are in data units.

    Scales that are not given are learned from the first `rows` rows. After 5 rows, and each time the number of rows has
    doubled, mean and standard deviation are estimated again, and the inner model learns the rows so far from scratch in
    the new units. After `rows` rows the scales are fixed. Each row is predicted only from the rows before it; the first
    5 rows are predicted by the mean and spread of these.

    A constant column keeps the scale 1. A constant y is centered. When y first varies, its scale becomes the size of
    this deviation. (Do not confuse this class with `onlinegp.kernels.Scaled`, a kernel multiplied by a number.)

    Cost: as for the inner model
    Memory: as for the inner model, plus the first rows
    Equation: (x - center) / scale, and y likewise
    Variance of y: as for the inner model, in the units of the data

    Parameters
    ----------
    model : OnlineRegressor
        The inner model. A copy with the same parameters learns; this object does not change.
    rows : int
        The number of rows to learn the scales from. These rows are stored until the scales are fixed.
    x_center, x_scale : array-like of shape (d,), or float, optional
        If you give both, they are used from the start.
    y_center, y_scale : array-like of shape (outputs,), or float, optional
        The same for y.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.linspace(0, 5000, 200)[:, None]
    >>> y = 1e6 + 1e5 * np.sin(X[:, 0] / 500)
    >>> ogp.Scaled(ogp.KRLST()).fit(X, y).score(X, y) > 0.9
    True
    """

    model: OnlineRegressor
    _: KW_ONLY
    rows: int = 100
    x_center: ArrayLike | None = None
    x_scale: ArrayLike | None = None
    y_center: ArrayLike | None = None
    y_scale: ArrayLike | None = None

    def check(self) -> None:
        count(rows=self.rows)
        super().check()

    def kernels_in_use(self, learner: Learner) -> list[KernelInUse]:
        return [replace(one, standardized=True) for one in super().kernels_in_use(learner)]

    def start(self, features: int, outputs: int) -> ScaledLearner:
        x = _given("x", self.x_center, self.x_scale, features, "feature")
        y = _given("y", self.y_center, self.y_scale, outputs, "output")
        model = self._inside().unfitted()  # a copy, so that changing parameters later has no effect
        return ScaledLearner(model, features, outputs, count(rows=self.rows), x, y)


@dataclass(frozen=True)
class Scaling:
    """Center and scale of inputs and targets, estimated before learning."""

    x: Scale
    y: Scale

    @classmethod
    def of(cls, X: Array, y: Array) -> Scaling:
        """Return mean and standard deviation of the columns. A column that is constant up to rounding has scale 1."""
        return cls(Scale.of(X), Scale.of(y.reshape(len(y), -1)))

    def __call__(self, X: Array, y: Array) -> tuple[Array, Array]:
        """Return inputs and targets in standard units."""
        return self.x(X), self.y(y.reshape(len(y), -1)).reshape(y.shape)

    def around(self, model: OnlineRegressor) -> Scaled:
        """Return the model within a :class:`Scaled` with these scales."""
        (xc, xs), (yc, ys) = self.x.numbers(), self.y.numbers()
        return Scaled(model, x_center=xc, x_scale=xs, y_center=yc, y_scale=ys)


def _given(name: str, center: Any, scale: Any, width: int, what: str) -> Scale | None:
    """Return the scale from the parameters, or None if they are not given."""
    if center is None and scale is None:
        return None
    if center is None or scale is None:
        raise ValueError(f"{name}_center and {name}_scale must be given together, or neither of them.")
    columns = {}
    for label, value in ((f"{name}_center", center), (f"{name}_scale", scale)):
        array = np.asarray(value)
        if array.dtype.kind not in "fiu" or array.shape not in ((), (width,)) or not np.all(np.abs(array) < LARGEST):
            raise ValueError(f"{label} must be one finite number, or one for each {what} ({width}), got {value!r}.")
        columns[label] = np.full(width, array, dtype=np.float64)
    if not np.all(columns[f"{name}_scale"] > TINY):
        raise ValueError(f"{name}_scale must be positive, got {scale!r}. Use 1.0 for a column that never varies.")
    return Scale(*columns.values())


class ScaledLearner(OuterLearner):
    """An inner learner in standard units, the scales, and the rows from which the scales are estimated."""

    fields = {
        "seen": integer(),
        "varies": flags("outputs", attribute="_varies"),
        "x": points("kept", attribute="_X"),
        "y": array("kept", "outputs", attribute="_Y"),
        "x_center": array("features", least=-LARGEST, most=LARGEST, attribute="_x.center"),
        "x_scale": array("features", least=TINY, most=LARGEST, attribute="_x.scale"),
        "y_center": array("outputs", least=-LARGEST, most=LARGEST, attribute="_y.center"),
        "y_scale": array("outputs", least=TINY, most=LARGEST, attribute="_y.scale"),
        **INSIDE,
    }
    lengths = {"kept": None}

    def __init__(
        self, model: OnlineRegressor, features: int, outputs: int, rows: int, x: Scale | None, y: Scale | None
    ) -> None:
        self.features, self.outputs, self.rows, self.seen = features, outputs, rows, 0
        self._start = partial(model.start, features, outputs)
        self.inner = self._start()
        self._x_given, self._y_given = x is not None, y is not None
        self._x, self._y = x or Scale.none(features), y or Scale.none(outputs)
        self._varies = np.full(outputs, self._y_given)  # outputs with a known scale
        self._X, self._Y = np.empty((0, features)), np.empty((0, outputs))  # stored rows
        self._change: Callable[[Learner], Learner] = lambda learner: learner

    def hold(self, change: Callable[[Learner], Learner]) -> None:
        self._change = change  # also of the learners that take its place
        super().hold(change)

    def learn(self, X: Array, Y: Array) -> None:
        if self._final():
            self.inner.learn(self._x(X), self._y(Y))
            self.seen += len(X)
        else:
            self.run(X, Y)

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        predicted, size, start = [], np.empty(len(X), dtype=np.int64), 0
        while start < len(X):
            part = slice(start, start + self._unchanged(Y[start:]))
            predictions, size[part] = self._run(X[part], Y[part])
            predicted.append(predictions)
            start = part.stop
        return Predictions.joined(predicted), size

    def predict(self, X: Array) -> Predictions:
        return self._in_units(self.inner.predict(self._x(X)))

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        return self._in_units(skip(self.inner, self._x(X), None if Y is None else self._y(Y)))

    def plan(self) -> Plan | None:
        numbers: dict[str, Any] = {"limit": LIMIT, "rows": float(self.rows)}
        numbers |= {"x_given": float(self._x_given), "y_given": float(self._y_given)}
        numbers["fresh"] = ()
        fields: dict[str, Any] = {"varies": self._varies, "x": self._X, "y": self._Y}
        for name, units in (("x", self._x), ("y", self._y)):
            fields |= {f"{name}_center": units.center, f"{name}_scale": units.scale}
        fields["fixed"] = np.array([float(self._fixed())])
        plan = around("scaled", self, numbers, fields, {"model": self.inner})
        if plan is not None and self.inner.seen and not self._fixed() and self._twin_learns_scales():
            numbers["fresh"] = snapshot(self._change(self._start()))  # the twin needs a new learner to start from
        return plan

    def steady_after(self) -> int:
        """Return the number of rows until the compiled twin can run; zero if it can."""
        return 0 if self._fixed() or self._twin_learns_scales() else self.rows - self.seen

    def _twin_learns_scales(self) -> bool:
        """Whether all inner learners are compiled from their first row on, so that the twin can restart them."""
        if self.rows > MAX_TWIN_ROWS:
            return False
        inside = [one for one in nodes(self.inner) if not isinstance(one, ScaledLearner)]
        rare = any(hasattr(one, "steady_after") or getattr(one, "detector", None) is not None for one in inside)
        return not rare and not any(isinstance(one, RobustLearner) and one.rows for one in inside)

    def counted(self) -> None:
        """Set `seen` of the inner learners after the twin has learned: all rows, or none before the first scale."""
        if self._twin_learns_scales():
            for one in nodes(self.inner):
                if "seen" in vars(one):
                    one.seen = self.seen if self._started() else 0

    def check(self, values: Values) -> None:
        kept = 0 if self._fixed(values["seen"]) else values["seen"]
        if len(values["x"]) != kept:
            raise ValueError(f"x must have {kept} rows after {values['seen']} were learned, got {len(values['x'])}.")

    # Rows with equal scales

    def _fixed(self, seen: int | None = None) -> bool:
        """Whether the first `rows` rows are complete, so that rows are no longer stored."""
        return (self.seen if seen is None else seen) >= self.rows or (self._x_given and self._y_given)

    def _started(self) -> bool:
        """Whether the inner learner has learned the rows so far."""
        return self._fixed() or self.seen >= MIN_SCALE_ROWS

    def _final(self) -> bool:
        """Whether the scales can no longer change."""
        return self._fixed() and bool(self._varies.all())

    def _due(self) -> int:
        """Return the number of rows at which the scales are next estimated: 1, ..., 5, 10, 20, ..., `rows`."""
        n = MIN_SCALE_ROWS if self.seen >= MIN_SCALE_ROWS else self.seen + 1
        while n <= self.seen:
            n *= 2
        return min(n, self.rows)

    def _unchanged(self, Y: Array) -> int:
        """Return the number of next rows with equal scales, at least one. The last of them may change the scales."""
        if self._final():
            return len(Y)
        if not self._fixed():
            return min(len(Y), self._due() - self.seen)
        new = self._deviates(Y).any(axis=1)  # a row in which an output first varies is learned alone
        return max(1, int(new.argmax())) if new.any() else len(Y)

    def _deviates(self, Y: Array) -> Any:
        """Return where an output differs that was constant so far, (n, p)."""
        away = np.abs(Y - self._y.center)
        return (away > np.maximum(CONSTANT * np.abs(self._y.center), TINY)) & ~self._varies

    # Learning rows with equal scales

    def _run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        """Predict and learn rows with equal scales (see `_unchanged`)."""
        if not self._fixed():
            return self._run_and_keep(X, Y)
        self.seen += len(X)
        new = self._deviates(Y[:1])[0]
        if not new.any():
            predicted, size = self.inner.run(self._x(X), self._y(Y))
            return self._in_units(predicted), size
        # so far the inner learner got zeros for this output, which are zeros on any scale
        predicted = self.predict(X)
        self._y = Scale(self._y.center, np.where(new, np.abs(Y[0] - self._y.center), self._y.scale))
        self._varies = self._varies | new
        self.inner.learn(self._x(X), self._y(Y))
        return predicted, np.array([self.inner.size])

    def _run_and_keep(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        due = self._due()
        if self.inner.seen:
            predicted, size = self.inner.run(self._x(X), self._y(Y))
            predicted, size = self._in_units(predicted), size.copy()
        else:
            predicted, size = self.predict(X), np.zeros(len(X), dtype=np.int64)
        self.seen += len(X)
        self._X, self._Y = np.concatenate([self._X, X]), np.concatenate([self._Y, Y])
        if self.seen == due:
            self._find()
        size[-1] = self.inner.size
        return predicted, size

    def _find(self) -> None:
        """Estimate the scales from the rows so far, and train a new inner learner on these rows."""
        X, Y = self._X, self._Y
        if not self._x_given:
            self._x = Scale.of(X)
        if not self._y_given:
            center, std, self._varies = moments(Y)
            self._y = Scale(center, np.where(self._varies, std, own_size(center)))
        if self._started():
            self.inner = self._change(self._start())
            self.inner.learn(self._x(X), self._y(Y))
        if self._fixed():
            self._X, self._Y = X[:0].copy(), Y[:0].copy()

    def _in_units(self, predicted: Predictions) -> Predictions:
        """Return predictions of the inner learner in the units of the data."""
        if self.inner.seen or self._y_given:
            return predicted.affine(self._y.center, self._y.scale)
        return like_so_far(predicted, self._Y)
