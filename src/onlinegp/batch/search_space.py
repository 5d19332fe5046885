"""The search spaces of the tuner for each class of models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.models import (
    EXKRLS,
    KAPSM,
    KLMS,
    KLMSCSAL1,
    KLMSCSL1,
    KNLMS,
    KRLS,
    KRLST,
    L2S,
    LMS,
    MXKLMS,
    NLKAPA,
    NLMS,
    NORMA,
    QKLMS,
    QKLMSFB,
    RFFKLMS,
    BetaKLMS,
    Kalman,
    LinearRLS,
    OnlineRegressor,
    ProbLMS,
)
from onlinegp.models.lms.base import ExpansionRegressor
from onlinegp.models.lms.multikernel import MultikernelRegressor
from onlinegp.models.local.estimator import NeighborsRegressor


class Move(Protocol):
    """A value to try for a parameter."""

    def of(self, suggested: Any) -> Any:
        """Return the value to try, given the suggested value."""


@dataclass(frozen=True)
class Times:
    """Multiply the suggested number by a factor."""

    factor: float

    def of(self, suggested: float) -> float:
        return self.factor * suggested


@dataclass(frozen=True)
class Value:
    """A fixed value, independent of the suggested one."""

    value: Any

    def of(self, suggested: Any) -> Any:
        return self.value


@dataclass(frozen=True)
class LengthScales:
    """Multiply all length scales of the suggested kernel by a factor."""

    factor: float

    def of(self, suggested: Kernel) -> Kernel:
        return suggested.with_theta(suggested.theta + np.log(self.factor) * length_scales(suggested))


@dataclass(frozen=True)
class Isotropic:
    """Set all d length scales of the suggested kernel to a factor times sqrt(d).

    Two rows of d standardized columns have a distance of about sqrt(2 d).
    """

    factor: float

    def of(self, suggested: Kernel) -> Kernel:
        scales = length_scales(suggested)
        same = np.log(self.factor * np.sqrt(max(1, scales.sum())))
        return suggested.with_theta(np.where(scales, same, suggested.theta))


@dataclass(frozen=True)
class Each:
    """Apply a move to each of several suggested values, such as kernels or length scales."""

    move: Move

    def of(self, suggested: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(map(self.move.of, suggested))


def length_scales(kernel: Kernel) -> Array:
    """Return a mask of the entries of `kernel.theta` that are logarithms of length scales."""
    return np.array(["length_scale" in name for name in kernel.names], dtype=bool)


def typical_length_scale(kernel: Kernel) -> float:
    """Return l where 1 / l^2 is the mean of 1 / length_scale^2. Return 1 if the kernel has no length scale.

    Averaged over all directions, a single length scale l gives the same squared scaled distance for a step of given
    length.
    """
    scales = kernel.theta[length_scales(kernel)]
    return float(np.mean(np.exp(-2.0 * scales)) ** -0.5) if scales.size else 1.0


@dataclass(frozen=True)
class Search:
    """How to tune a class of models.

    Attributes
    ----------
    tried : mapping from str to tuple of Move
        {parameter: values to try in addition to the suggested value}. Parameters that a class lacks are left out.
    by : {"density", "error"}
        The criterion: the one-step-ahead log density, or the squared error for models without a meaningful variance.
    step_implies_noise : bool
        Whether the parameter `step` equals 1 / (noise + k(x, x)).
    suggest : callable
        Returns suggested parameters in addition to kernel and noise, given the kernel and the budget.
    """

    tried: Mapping[str, tuple[Move, ...]] = field(default_factory=dict)
    by: Literal["density", "error"] = "density"
    step_implies_noise: bool = False
    suggest: Callable[[Kernel, int | None], dict[str, Any]] = lambda kernel, budget: {}


def search_of(cls: type[OnlineRegressor]) -> Search:
    """Return how to tune a class: its entry in SEARCHES, or its own attributes `searched` and `tuned_by`."""
    for base in cls.__mro__:
        if "searched" in vars(base):  # a class outside the library
            return Search(vars(base)["searched"], getattr(cls, "tuned_by", "density"))
        if base in SEARCHES:
            return SEARCHES[base]
    return Search()


def uses_kernel(cls: type[OnlineRegressor]) -> bool:
    """Return whether a class has a kernel, or length scales, among its parameters."""
    return any("kernel" in name or "length_scale" in name for name in cls.parameter_names())


def suggested(cls: type[OnlineRegressor], kernel: Kernel, noise: float, budget: int | None) -> dict[str, Any]:
    """Return suggested parameters of a class for a tuned kernel and noise. Parameters that it lacks are left out.

    A radius is half a length scale. A step that implies the noise is 1 / (noise + k(x, x)), as for KLMS.
    """
    search, radius = search_of(cls), 0.5 * typical_length_scale(kernel)
    found: dict[str, Any] = {"kernel": kernel, "noise": noise, "budget": budget, "radius": radius}
    if search.step_implies_noise:
        found["step"] = 1.0 / (noise + float(kernel.diag(np.zeros((1, 1)))[0]))
    found |= search.suggest(kernel, budget)
    return {name: found[name] for name in cls.parameter_names() if name in found}


def values(*values: Any) -> tuple[Move, ...]:
    return tuple(map(Value, values))


def times(*factors: float) -> tuple[Move, ...]:
    return tuple(map(Times, factors))


# Comparisons search kernel and noise of all models, in addition to the parameters that are listed for their classes
WIDELY: Mapping[str, tuple[Move, ...]] = {
    "kernel": (*map(LengthScales, (0.25, 0.5, 2.0, 4.0)), *map(Isotropic, (0.25, 0.5, 1.0, 2.0))),
    "noise": times(0.01, 0.1, 10.0),
}

FORGETTING = values(0.9999, 0.999, 0.99)  # memories of 10,000, 1,000 and 100 rows
MEMORY = 0.999999  # suggested forgetting: a memory of a million rows
STORE = 100_000  # suggested number of rows to store: limits the cost, but is larger than most streams

FILTER: Mapping[str, tuple[Move, ...]] = {
    "radius": times(0.25, 0.5, 2.0, 4.0),
    "coherence": values(0.5, 0.8, 0.9, 0.99),
    "kernel": (*map(LengthScales, (0.25, 0.5, 2.0)), *map(Isotropic, (0.125, 0.25, 0.5, 1.0, 2.0))),
    "step": times(0.0625, 0.125, 0.25, 0.5, 2.0),
    "noise": times(0.1, 10.0, 100.0),
    "leak": times(0.01, 0.1),
}
KERNELS = {**FILTER, "kernels": tuple(Each(LengthScales(factor)) for factor in (0.25, 0.5, 2.0, 4.0))}
PENALTY = {**FILTER, "penalty": times(0.01, 0.1, 10.0)}
LINEAR_NOISE = times(3.0, 10.0, 30.0, 100.0, 1000.0)  # nonlinear effects count as noise, too
# Inputs that are nearly equal, as in smooth series, need large weights. With an even weaker prior, a column that is
# constant while tuning gets a huge weight as soon as it varies
LINEAR_PRIOR = times(10.0, 100.0)
DRIFT = times(1e-4, 1e-2, 0.1, 10.0, 100.0)
LINEAR_STEP = times(0.01, 0.03, 0.1, 0.3, 2.0)


def _kernels(kernel: Kernel, budget: int | None) -> dict[str, Any]:
    """Suggest the tuned kernel with half, the same and twice the length scales."""
    return {"kernels": tuple(LengthScales(factor).of(kernel) for factor in (0.5, 1.0, 2.0))}


def _widths(kernel: Kernel, budget: int | None) -> dict[str, Any]:
    """Suggest widths around the length scale of the tuned kernel, the widest first."""
    scale = typical_length_scale(kernel)
    return {"length_scales": (2.0 * scale, scale, 0.5 * scale)}


def _safe_to_remove(kernel: Kernel, budget: int | None) -> dict[str, Any]:
    """With a budget, suggest parameters with which weights are small before they are removed."""
    return {} if budget is None else {"step": 1.0, "epsilon": 10.0}


SEARCHES: Mapping[type, Search] = {  # {class or base class: search}
    KRLS: Search({"threshold": values(1e-3, 0.1, 0.3, 0.5)}),
    KRLST: Search(
        {"forgetting": FORGETTING, "power": values("fixed")},
        suggest=lambda *_: {"forgetting": MEMORY, "power": "learned"},
    ),
    EXKRLS: Search(  # for a function that drifts but does not fade
        {"drift": values(0.0, 1e-3, 1e-2, 1e-1), "forgetting": (*values(1.0), *FORGETTING)},
        suggest=lambda *_: {"transition": 1.0, "forgetting": MEMORY},
    ),
    NeighborsRegressor: Search({"forgetting": FORGETTING}, suggest=lambda *_: {"store": STORE}),
    LinearRLS: Search({"forgetting": FORGETTING, "prior": LINEAR_PRIOR, "noise": LINEAR_NOISE}),
    Kalman: Search({"noise": LINEAR_NOISE, "drift": DRIFT}),
    ProbLMS: Search({"noise": LINEAR_NOISE, "drift": DRIFT}),
    LMS: Search({"step": LINEAR_STEP}, "error"),
    NLMS: Search({"step": LINEAR_STEP}, "error"),
    KLMS: Search(FILTER, "error", step_implies_noise=True),
    QKLMS: Search(FILTER, "error", step_implies_noise=True),
    NORMA: Search(FILTER, "error", step_implies_noise=True),
    RFFKLMS: Search(FILTER, "error", step_implies_noise=True),
    QKLMSFB: Search({**FILTER, "forgetting": values(0.8, 0.99, 1.0)}, "error", step_implies_noise=True),
    BetaKLMS: Search(FILTER, "error"),
    KNLMS: Search(FILTER, "error"),
    KLMSCSL1: Search(PENALTY, "error"),
    KLMSCSAL1: Search(PENALTY, "error"),
    NLKAPA: Search({**FILTER, "epsilon": times(0.01, 0.1, 10.0)}, "error", suggest=_safe_to_remove),
    KAPSM: Search(  # here `radius` is a norm of f, not a distance between inputs
        {**FILTER, "radius": values(1.0, 3.0, 10.0, 30.0)}, "error", suggest=lambda *_: {"radius": None}
    ),
    ExpansionRegressor: Search(FILTER, "error"),
    MXKLMS: Search(
        {**KERNELS, "mixing_step": times(0.01, 0.1, 10.0)}, "error", step_implies_noise=True, suggest=_kernels
    ),
    MultikernelRegressor: Search(KERNELS, "error", suggest=_kernels),
    L2S: Search(
        {
            "length_scales": tuple(Each(Times(factor)) for factor in (0.25, 0.5, 2.0)),
            "coherence": FILTER["coherence"],
            "step": times(0.125, 0.25, 0.5, 2.0),
        },
        "error",
        suggest=_widths,
    ),
}
