"""Choose the model of `Auto` for a stream from its rows: scales, kernels, and the members of the mixture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onlinegp import kernels
from onlinegp.auto.targets import AS_IT_IS, ROBUST, SPIKES, Shape, isolated, likely_scales, mostly_zero
from onlinegp.batch.likely_kernels import (
    MATERN,
    MATERN_LINEAR,
    ROUGH,
    SMOOTH,
    SMOOTH_LINEAR,
    Family,
    Hyperparameters,
    likely_isotropic,
    likely_kernels,
    likely_noise,
    linear_noise,
    quickly_likely_kernels,
)
from onlinegp.batch.parameter_search import prequential_density
from onlinegp.batch.tuning import likely_forgetting
from onlinegp.checks import Array
from onlinegp.kernels import Kernel, Sum
from onlinegp.models import KRLST, LinearRLS, LocalGP, OnlineRegressor, Persistence, ResidualGP
from onlinegp.models.combined import Conformal, HeavyTailed, Mixture, Robust, Scaled, Transformed
from onlinegp.models.combined.base import OuterRegressor, innermost
from onlinegp.models.combined.standardize import Scale, moments
from onlinegp.predictions.transformed import transformed
from onlinegp.processes import single_threaded_blas

MEMBERS = (
    "residual",
    "local",
    "residual-linear",
    "residual-other",
    "krlst",
    "linear",
    "persistence",
    "krlst-recent",
    "local-recent",
    "fresh",
)
SHAPES = (MATERN, SMOOTH, ROUGH)
SOME = 500  # rows to tune a kernel of another shape
WORSE = 30.0  # nats: kernels that are less likely by this on the tuning rows are left out
LINEAR_FORGETTING = (1.0, 0.999)
# Two members with short memories follow changes: a KRLST that forgets, and a GP on the last rows
RECENT_BUDGET, RECENT_FORGETTING = 100, 0.998
RECENT_NEIGHBORS, RECENT_STORE = 32, 150
RECENT = ("krlst-recent", "local-recent")
FRESH_STORE = 2000  # rows to store in the fresh member
OTHER = "residual-other"
FRESH = "fresh"  # the member that starts again after a change
RETUNED = "retuned"  # the member that is tuned on the rows since the last change
GATE = 4.0  # gate of the mixture; a gate of 2 is worse for inputs far from all rows
# A fade of 0.8, not 0.9, limits the effect of a single extreme row; `lasting` adds a longer memory. Both were chosen on
# recorded predictions of the members, on the ten streams of benchmarks/accuracy.py and nine streams with changes.
FADE, LASTING = 0.8, 10.0
TAILS: dict[str, Any] = {"degrees": (2.1, 4.0, 10.0), "half_life": 150.0, "fade": 0.98}

Progress = Callable[[float], None]
Tuning = Callable[[Array, Array, Progress], dict[str, Hyperparameters]]


@dataclass(frozen=True)
class Parts:
    """The checked parameters of `Auto`, from which the members of the mixture are created."""

    members: tuple[str, ...] = MEMBERS
    kernel: Kernel | None = None
    noise: float | None = None
    forgetting: float | None = None
    neighbors: int = 64
    store: int | None = None
    budget: int = 300

    def compose(self, X: Array, Y: Array, progress: Progress = lambda share: None) -> OuterRegressor:
        """Return a model for a stream that starts with X (n, d) and Y (n, p). At least one output must vary."""
        return self._composed(X, Y, self.likely, progress)

    def compose_quickly(self, X: Array, Y: Array, progress: Progress = lambda share: None) -> OuterRegressor:
        """Return a model like `compose`, with quickly tuned kernels and without forgetting."""
        return self._composed(X, Y, self.quickly_likely, progress)

    @single_threaded_blas
    def _composed(self, X: Array, Y: Array, tune: Tuning, progress: Progress) -> OuterRegressor:
        scales = likely_scales(X, Y)
        Y = transformed(Y, *map(np.array, zip(*scales, strict=True)))
        off = isolated(X, Y)
        x, y, Z, T = standardized(X[~off], Y[~off])
        models, outliers = self._models(Z, T, tune(Z, T, progress)), bool(off.any())
        members = {name: guarded(one, Y, outliers=outliers and name not in RECENT) for name, one in models.items()}
        return on_scales(scaled(Conformal(_mixture(members)), x, y), scales)

    def untuned(self, X: Array, Y: Array) -> Scaled:
        """Return an untuned model for a stream that starts with few rows X and Y, within milliseconds."""
        x, y, Z, T = standardized(X, Y)
        models: dict[str, OnlineRegressor] = {
            "linear": LinearRLS(noise=linear_noise(Z, T)),
            "persistence": Persistence(),
        }
        if self.kernel is not None:
            models["local"] = self._local(self._given(self.kernel, Z, T))
        else:
            for name, family in (("local", MATERN), ("local-linear", MATERN_LINEAR)):
                models[name] = self._local(likely_isotropic(Z, T, family=family))
        return scaled(
            Conformal(_mixture({name: guarded(one, Y, outliers=False) for name, one in models.items()})), x, y
        )

    @single_threaded_blas
    def retune(self, X: Array, Y: Array, progress: Progress = lambda share: None) -> OuterRegressor | None:
        """Return a member tuned on the rows since a change, or None if their target is constant."""
        off = isolated(X, Y)
        X, Y = X[~off], Y[~off]
        if not moments(Y)[2].any():
            return None
        x, y, Z, T = standardized(X, Y)
        if self.kernel is None:
            families = (MATERN, SMOOTH, MATERN_LINEAR, SMOOTH_LINEAR)
            best = quickly_likely_kernels(Z, T, families=families, progress=progress)[0]
        else:
            best = self._given(self.kernel, Z, T)
        member: OnlineRegressor = self._with_line(best, self.store)
        return guarded(scaled(member, x, y), Y, outliers=bool(off.any()))

    def _models(self, Z: Array, T: Array, tuned: dict[str, Hyperparameters]) -> dict[str, OnlineRegressor]:
        """Return the members by name, in the requested order."""
        other = tuned.pop(OTHER, None)
        best = max(tuned.values(), key=lambda one: one.log_likelihood)
        asked = {"local" if name == "residual" else name for name in self.members}  # these two share a kernel
        wanted = {name: one for name, one in tuned.items() if name in asked}
        least = max((one.log_likelihood for one in wanted.values()), default=0.0) - WORSE
        models: dict[str, OnlineRegressor] = {
            name: self._local(one) if name == "local" else self._with_line(one, self.store)
            for name, one in wanted.items()
            if one.log_likelihood > least
        }
        if "local" in models:
            models["residual"] = self._residual(tuned["local"])
        if other is not None:
            models[OTHER] = self._residual(other)
        if "krlst" in self.members:
            models["krlst"] = self._krlst(best)
        if "linear" in self.members:
            models["linear"] = self._linear(Z, T)
        if "persistence" in self.members and _persists(T):
            models["persistence"] = Persistence()
        models |= {name: model for name, model in self._recent(best).items() if name in self.members}
        if FRESH in self.members:
            models[FRESH] = self._with_line(replace(tuned.get("residual-linear", best), forgetting=1.0), FRESH_STORE)
        return {name: models[name] for name in self.members if name in models} or {"local": self._local(best)}

    def likely(self, Z: Array, T: Array, progress: Progress = lambda share: None) -> dict[str, Hyperparameters]:
        """Return kernels with noise and forgetting: with and without a linear part, or the given kernel."""
        if self.kernel is not None:
            found = [self._given(self.kernel, Z, T)]
        else:
            quick = quickly_likely_kernels(Z, T, families=SHAPES, progress=lambda share: progress(0.2 * share))
            shape = _family(quick[0])
            families = (shape, Family(shape.shape, linear=True))
            found = likely_kernels(Z, T, families=families, progress=lambda share: progress(0.2 + 0.6 * share))
            if OTHER in self.members:  # an independent search, which finds other length scales, too
                found += likely_kernels(Z, T, families=(_unlike(shape),), rows=SOME)
            progress(0.9)
        tuned = dict(zip(self._names(found), self._with_given(found, Z, T), strict=True))
        progress(1.0)
        return tuned

    def quickly_likely(self, Z: Array, T: Array, progress: Progress) -> dict[str, Hyperparameters]:
        """Return kernels with noise like `likely`, much faster, and without forgetting unless it is given."""
        if self.kernel is not None:
            return self.likely(Z, T, progress)
        shapes = quickly_likely_kernels(Z, T, families=SHAPES, progress=lambda share: progress(0.8 * share))
        shape = _family(shapes[0])
        linear = Family(shape.shape, linear=True)
        found = [shapes[0], *quickly_likely_kernels(Z, T, families=(linear,), start=shapes[0])]
        if OTHER in self.members:
            found += [one for one in shapes if _family(one) == _unlike(shape)]
        return dict(zip(self._names(found), self._with_given(found, Z, T, likely=False), strict=True))

    def _names(self, found: list[Hyperparameters]) -> list[str]:
        linear = [self.kernel is None and isinstance(one.kernel, Sum) for one in found]
        names = ["residual-linear" if one else "local" for one in linear]
        return [OTHER if name in names[:i] else name for i, name in enumerate(names)]

    def _with_given(
        self, found: list[Hyperparameters], Z: Array, T: Array, *, likely: bool = True
    ) -> list[Hyperparameters]:
        """Return hyperparameters with the given noise and forgetting, or with the likely forgetting."""
        if self.noise is not None:
            found = [replace(one, noise=self.noise) for one in found]
        if self.forgetting is not None:
            return [replace(one, forgetting=self.forgetting) for one in found]
        return [likely_forgetting(one, Z, T) for one in found] if likely else found

    def _given(self, kernel: Kernel, Z: Array, T: Array) -> Hyperparameters:
        if self.noise is None:
            return likely_noise(kernel, Z, T)
        return Hyperparameters(kernel, self.noise, 1.0, 0.0, len(T))

    def _local(self, one: Hyperparameters) -> LocalGP:
        return LocalGP(
            one.kernel, noise=one.noise, neighbors=self.neighbors, store=self.store, forgetting=one.forgetting
        )

    def _residual(self, one: Hyperparameters) -> ResidualGP:
        return ResidualGP(
            one.kernel, noise=one.noise, neighbors=self.neighbors, store=self.store, forgetting=one.forgetting
        )

    def _krlst(self, one: Hyperparameters) -> KRLST:
        return KRLST(one.kernel, noise=one.noise, budget=self.budget, forgetting=one.forgetting)

    def _recent(self, one: Hyperparameters) -> dict[str, OnlineRegressor]:
        """Return the members with short memories, which adapt quickly to a change."""
        krlst = KRLST(one.kernel, noise=one.noise, budget=min(self.budget, RECENT_BUDGET), forgetting=RECENT_FORGETTING)
        neighbors = min(self.neighbors, RECENT_NEIGHBORS)
        return {
            "krlst-recent": krlst,
            "local-recent": LocalGP(one.kernel, noise=one.noise, neighbors=neighbors, store=RECENT_STORE),
        }

    def _with_line(self, one: Hyperparameters, store: int | None) -> ResidualGP:
        """Return a residual GP with an explicit linear part in place of the linear part of the kernel."""
        kernel = one.kernel.left if self.kernel is None and isinstance(one.kernel, Sum) else one.kernel
        kept = store if self.store is None or store is None else min(store, self.store)
        return ResidualGP(
            kernel, noise=one.noise, neighbors=self.neighbors, store=kept, forgetting=one.forgetting, linear=True
        )

    def _linear(self, Z: Array, T: Array) -> LinearRLS:
        """Return linear regression with the residual noise, and the forgetting that predicts the rows best."""
        noise = linear_noise(Z, T)
        trials = [LinearRLS(noise=noise, forgetting=factor) for factor in LINEAR_FORGETTING]
        return max(trials, key=lambda one: prequential_density(HeavyTailed(one), Z, T)).unfitted()


def _persists(T: Array) -> bool:
    """Whether the last value predicts the next value better than the mean, for any output."""
    return bool((np.mean(np.diff(T, axis=0) ** 2, axis=0) < np.var(T, axis=0)).any())


def _mixture(members: Mapping[str, OnlineRegressor]) -> Mixture:
    """Return the mixture of members. It detects changes if members that start again are among them."""
    fresh = [name for name in (FRESH, RETUNED) if name in members]
    rule: dict[str, Any] = (
        {"restarting": fresh, "against": "local-recent"} if fresh and "local-recent" in members else {}
    )
    return Mixture(list(members.items()), fade=FADE, gate=GATE, lasting=LASTING, **rule)


def with_member(model: OuterRegressor, name: str, member: OuterRegressor) -> OuterRegressor:
    """Return a model with an additional member, or with the member of this name replaced."""
    if isinstance(model, Conformal):
        mixture = innermost(model)
        assert isinstance(mixture, Mixture)
        return Conformal(_mixture(dict(mixture.named()) | {name: member}))
    assert isinstance(model.model, OuterRegressor)
    return around(model, with_member(model.model, name, member))


def on_scales(model: Scaled, scales: list[Shape]) -> OuterRegressor:
    """Wrap a model of transformed targets so that it predicts in the units of the data."""
    if set(scales) == {AS_IT_IS}:
        return model
    powers, units = zip(*scales, strict=True)
    return Transformed(model, power=powers, unit=units)


def around(outer: OuterRegressor, model: OnlineRegressor) -> OuterRegressor:
    """Return a copy of a wrapper with another inner model."""
    return type(outer)(**outer.get_params(deep=False) | {"model": model})


def standardized(X: Array, Y: Array) -> tuple[Scale, Scale, Array, Array]:
    """Return scales for X and Y, and X and Y in standard units, without constant outputs."""
    x, (center, std, varies) = Scale.of(X), moments(Y)
    y = Scale(center, np.where(varies, std, 1.0))
    return x, y, x(X), y(Y)[:, varies]


def guarded(model: OnlineRegressor, Y: Array, *, outliers: bool) -> OuterRegressor:
    """Fit the tails of a model, and let it reject outliers if there were `outliers`, or else clip spikes.

    If most targets are zero, the others are no spikes.
    """
    if outliers:
        return HeavyTailed(Robust(model, **ROBUST), **TAILS)
    tailed = HeavyTailed(model, **TAILS)
    return tailed if mostly_zero(Y) else Robust(tailed, **SPIKES)


def scaled(model: OnlineRegressor, x: Scale, y: Scale) -> Scaled:
    (xc, xs), (yc, ys) = x.numbers(), y.numbers()
    return Scaled(model, x_center=xc, x_scale=xs, y_center=yc, y_scale=ys)


def _unlike(shape: Family) -> Family:
    """Return a family of kernels with a different shape: rough kernels for smooth kernels, and the reverse."""
    return ROUGH if shape == SMOOTH else SMOOTH


def _family(one: Hyperparameters) -> Family:
    """Return the family of a kernel from `likely_kernels`, without its linear part."""
    scaled = one.kernel.left if isinstance(one.kernel, Sum) else one.kernel
    assert isinstance(scaled, kernels.Scaled)
    shape = type(scaled.kernel)
    return next(family for family in SHAPES if family.shape is shape)
