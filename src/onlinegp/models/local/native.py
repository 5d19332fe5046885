"""The GPs on the nearest rows, compiled: `LocalLearner` and `ResidualLearner` say what they must give."""

from __future__ import annotations

from math import sqrt
from operator import attrgetter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.engine import _native, thread_count
from onlinegp.engine.learner import gaussian
from onlinegp.engine.native import pack_kernel
from onlinegp.engine.plan import Plan
from onlinegp.learner import Contents, Sizes
from onlinegp.models.local.distance import Distance
from onlinegp.models.local.learner import MOST_ROWS, LocalLearner, LocalPrior
from onlinegp.models.local.residual import ResidualLearner, ResidualPrior
from onlinegp.predictions import Gaussian
from onlinegp.state import Values, WithFields


class NativeLocalLearner(WithFields):
    """The rows of late, and the exact GP on those that are nearest to a question."""

    atomic = True

    def __init__(self, prior: LocalPrior, features: int, outputs: int) -> None:
        self.prior, self.features, self.outputs = prior, features, outputs
        readable = ResidualLearner if isinstance(prior, ResidualPrior) else LocalLearner
        self.reference = cast(Any, readable)(prior, features, outputs)
        self._core = self._start()
        self.learn_one = self._core.learn_one  # without a detour

    def _start(self) -> Any:
        return _native.Local(_packed(self.prior, self.features), self.features, self.outputs)

    size = property(attrgetter("_core.size"), doc="The number of rows that are kept.")
    seen = property(attrgetter("_core.seen"), doc="The number of rows learned.")

    def learn(self, X: Array, Y: Array) -> None:
        self._core.learn(np.ascontiguousarray(X), np.ascontiguousarray(Y))

    def run(self, X: Array, Y: Array) -> tuple[Gaussian, Sizes]:
        mean, variance, size = self._core.run(np.ascontiguousarray(X), np.ascontiguousarray(Y))
        return gaussian(mean, variance), size

    def predict(self, X: Array, threads: int | None = None) -> Gaussian:
        """Return the distributions of y at the rows of X, whatever the number of threads."""
        return gaussian(*self._core.predict(np.ascontiguousarray(X), threads or thread_count()))

    def skip(self, X: Array, Y: Array | None = None) -> Gaussian:
        return self.predict(X)

    def begin_series(self) -> None:
        pass

    def predict_one(self, x: object) -> tuple[float, float] | None:
        quick = self._core.predict_one(x)
        return None if quick is None else (quick[0], sqrt(quick[1]))

    def plan(self) -> Plan:
        return Plan("leaf", self, model=lambda: self._core)

    def neighbors(self, x: Array) -> NDArray[np.int64]:
        """Return the places in the store of the rows nearest to x (1, d), the nearest first; of equals the newest."""
        return self._core.nearest(x)[0] - (self.seen - self.size)

    def dump(self) -> Contents:
        X, Y, seen = self._core.save()
        return {"X": X, "Y": Y, "seen": seen}

    def assign(self, values: Values) -> None:
        self._core.load(values["X"], values["Y"], values["seen"])


class NativeResidualLearner(NativeLocalLearner):
    """The rows of late with their weights and residuals, the power of the variance, and the linear part."""

    prior: ResidualPrior

    def _start(self) -> Any:
        prior, core = self.prior, _packed(self.prior, self.features)
        core.refits, core.forgetting = min(prior.refits, MOST_ROWS), prior.forgetting
        core.learn_power, core.linear = prior.learn_power, prior.linear
        core.renewal = prior.line(self.features, self.outputs).renewal.tolist()
        return _native.Residual(core, self.features, self.outputs)

    @property
    def alpha(self) -> Array:
        """The weights, (n, p), of the stored rows, the oldest first."""
        return self._core.save()[3]

    @property
    def residuals(self) -> Array:
        """r = y - (K + noise I) alpha, (n, p), as it is kept."""
        return self._core.save()[4]

    def run_both(self, X: Array, Y: Array) -> tuple[Gaussian, Gaussian, Sizes]:
        """Predict each row, then learn it; return its own predictions, those of LocalGP, and the sizes."""
        *both, size = self._core.run_both(np.ascontiguousarray(X), np.ascontiguousarray(Y))
        return gaussian(*both[:2]), gaussian(*both[2:]), size

    def predict_both(self, X: Array) -> tuple[Gaussian, Gaussian]:
        """Return its own predictions, and those of LocalGP from the same solution: w'y_N, with the same linear part."""
        both = self._core.predict_both(np.ascontiguousarray(X), thread_count())
        return gaussian(*both[:2]), gaussian(*both[2:])

    def dump(self) -> Contents:
        X, Y, seen, alpha, r, power, evidence, R, z = self._core.save()
        own = {"X": X, "Y": Y, "seen": seen, "alpha": alpha, "r": r, "power": power, "evidence": evidence}
        return own | ({"line.R": R, "line.z": z, "line.seen": seen} if self.prior.linear else {})

    def assign(self, values: Values) -> None:
        line = self.prior.line(self.features, self.outputs)
        if self.prior.linear:
            line.assign(values["line"])
        alpha, r, R, z = (one.copy() for one in (values["alpha"], values["r"], line.R, line.z))  # they may be read-only
        own = (values[name] for name in ("X", "Y", "seen"))
        self._core.load(*own, alpha, r, values["power"], values["evidence"], R, z)


def compiled(prior: LocalPrior, features: int, outputs: int) -> NativeLocalLearner:
    """Return the compiled learner that is told this."""
    kind = NativeResidualLearner if isinstance(prior, ResidualPrior) else NativeLocalLearner
    return kind(prior, features, outputs)


def _packed(prior: LocalPrior, features: int) -> _native.LocalPrior:
    """Return what a learner is told as the compiled one reads it."""
    core, distance = _native.LocalPrior(), Distance.of(prior.kernel, features)
    recipe = _native.Recipe()
    pack_kernel(recipe, prior.kernel, features)
    core.recipe = recipe
    core.noise, core.fade, core.neighbors = prior.noise, prior.fade, min(prior.neighbors, MOST_ROWS)
    core.store = MOST_ROWS if prior.store is None else min(prior.store, MOST_ROWS)
    core.rates = distance.rates.tolist()
    core.frequencies = [value for circles in distance.circles for value in circles.frequency.tolist()]
    core.radii = [value for circles in distance.circles for value in circles.radius.tolist()]
    return core
