"""From some rows of a stream to a model for it: scales, tuned kernels, and the members of a mixture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onlinegp.batch.choice import prequential_density
from onlinegp.batch.tuning import (
    MATERN,
    ROUGH,
    SMOOTH,
    Family,
    Hyperparameters,
    likely_forgetting,
    likely_kernels,
    likely_noise,
)
from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.models import KRLST, LinearRLS, LocalGP, OnlineRegressor
from onlinegp.models.combined import HeavyTailed, Mixture, Scaled
from onlinegp.models.combined.moments import Scale, moments

MEMBERS = ("local", "local-linear", "krlst", "linear")
SHAPES = (MATERN, SMOOTH, ROUGH)
FEW = 300  # rows, which tell the shape of the kernel
WORSE = 30.0  # nats on the tuning rows: a kernel that is so much less likely than the best one is left out
LINEAR_FORGETTING = (1.0, 0.999)
FADE, GATE = 0.95, 2.0  # of the mixture
DEGREES, TAIL_FADE = (2.5, 4.0, 10.0), 0.98  # of the tails

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Parts:
    """What the members of the mixture are made of: the parameters of `Auto`, checked."""

    members: tuple[str, ...] = MEMBERS
    kernel: Kernel | None = None
    noise: float | None = None
    forgetting: float | None = None
    neighbors: int = 64
    store: int | None = None
    budget: int = 300

    def compose(self, X: Array, Y: Array, progress: Progress = lambda share: None) -> Scaled:
        """Return a model for a stream that begins like X (n, d) and Y (n, p), where at least one output varies."""
        x, (center, std, varies) = Scale.of(X), moments(Y)
        y = Scale(center, np.where(varies, std, 1.0))
        Z, T = x(X), y(Y)[:, varies]
        found = self._tuned(Z, T, progress)
        best, members = found[0], []
        for one in found:
            name = "local-linear" if _has_linear(one) else "local"
            members.append((name, self._local(one)))
        members.append(("krlst", KRLST(best.kernel, noise=best.noise, budget=self.budget, forgetting=best.forgetting)))
        if "linear" in self.members:
            members.append(("linear", self._linear(Z, T)))
        chosen = [(name, HeavyTailed(model, degrees=DEGREES, fade=TAIL_FADE)) for name, model in members if self._wants(name)]
        (xc, xs), (yc, ys) = x.numbers(), y.numbers()
        return Scaled(Mixture(chosen, fade=FADE, gate=GATE), x_center=xc, x_scale=xs, y_center=yc, y_scale=ys)
