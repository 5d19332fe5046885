"""Algorithms that make every sample a center, and correct the weights of the most recent centers: LKAPA, KAPSM."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array, count
from onlinegp.engine.plan import Plan
from onlinegp.kernels import Kernel
from onlinegp.models.affine.base import FIELDS, WindowLearner
from onlinegp.models.affine.window import Window
from onlinegp.models.expansion import Expansion
from onlinegp.state import Fields, Values, array


class Correction(Protocol):
    """A rule that corrects the weights of the rows in the window. `kind` is the name of its compiled twin."""

    @property
    def kind(self) -> str: ...

    @property
    def constants(self) -> Mapping[str, float]: ...

    def weights(self, window: Window) -> Array:
        """Return Z (n, p), which is added to the weights of the rows in the window."""
        ...


class Ball:
    """The bound |f| <= radius for each output. Squared norms are updated with each change of f.

    A correction by Z adds 2 Z . F + Z . K Z to |f|^2, and removing a center of weight w subtracts 2 w f(c) +
    w^2 k(c, c), where f is the function without that center.
    """

    def __init__(self, outputs: int, radius: float) -> None:
        self.radius, self.norms = radius, np.zeros(outputs)  # |f|^2

    def scale(self, window: Window, Z: Array, KZ: Array) -> Array | None:
        """Return the factor (p,) that scales f back into the ball after a correction, or None if f is inside."""
        squares = self.norms
        squares += (Z * (2.0 * window.F + KZ)).sum(axis=0)
        np.maximum(squares, 0.0, out=squares)
        if not (squares > self.radius**2).any():
            return None
        scale = np.where(squares > self.radius**2, self.radius / np.sqrt(squares), 1.0)
        squares *= scale**2
        return scale

    def remove(self, f: Expansion, center: Array, weight: Array, from_scratch: bool) -> None:
        """Update the norms after a center with `weight` (p,) was removed from f, or compute them from scratch."""
        _, mean = f.at(center)
        squares = self.norms
        squares -= weight * (2.0 * mean + weight * f.diagonal(center))
        if from_scratch:
            squares[...] = (f.weights * (f.rows(f.centers) @ f.weights)).sum(axis=0)
        np.maximum(squares, 0.0, out=squares)


class RecentLearner(WindowLearner):
    """Add every sample as a center, correct the weights of the rows in the window, and remove the oldest center.

        weights <- keep weights,   then weights of the window += Z

    The `correction` computes Z. F holds the predictions for the rows X in the window and is updated too:
    F <- keep F + K Z. If a center c of weight w is removed, k(X, c) w is subtracted from F.
    """

    def __init__(
        self,
        kernel: Kernel,
        features: int,
        outputs: int,
        *,
        window: int,
        budget: int | None,
        correction: Correction,
        keep: float = 1.0,
        radius: float | None = None,
    ) -> None:
        f = Expansion(kernel, features, outputs, most=budget)
        super().__init__(f, Window(kernel, features, outputs, window))
        self.budget, self.correction, self.keep = budget, correction, keep
        self.ball = None if radius is None else Ball(outputs, radius)

    @cached_property
    def fields(self) -> Fields:
        norms: Fields = {} if self.ball is None else {"norms.squares": array("outputs", attribute="ball.norms")}
        return {**FIELDS, **norms}

    def leaf_plan(self) -> Plan:
        own = {"keep": self.keep} if self.ball is None else {"radius": self.ball.radius}
        return self.plan_of(self.correction.kind, {**self.correction.constants, **own})

    def correct(self, x: Array, y: Array, e: Array, seen: Any) -> None:
        window, f = self.window, self.f
        window.push(x, y, seen[1])
        Z = self.correction.weights(window)
        old = self._admit(x)
        if self.keep != 1.0:
            f.weights[...] *= self.keep
            window.F[...] *= self.keep
        f.weights[self._places(), :] += Z
        KZ = window.K @ Z
        scale = None if self.ball is None else self.ball.scale(window, Z, KZ)
        window.F[...] += KZ
        if scale is not None:
            f.weights[...] *= scale
            window.F[...] *= scale
        if old is not None:
            center, weight = old[0], old[1] * self.keep if scale is None else old[1] * self.keep * scale
            window.F[...] -= np.multiply.outer(window.kernel.row(window.X, center), weight)
            if self.ball is not None:  # from scratch now and then, to limit rounding errors
                self.ball.remove(f, center, weight, from_scratch=window.count % f.size == 0)
        self.errors.add(e, y, self.seen)

    def _admit(self, x: Array) -> tuple[Array, Array] | None:
        """Add x as a center. If the budget is full, remove a center and return it with its weight, else return None."""
        if self.budget is None or self.f.size < self.budget:
            self.f.append(x)
            return None
        j = (self.window.count - 1) % self.budget
        old = self.f.center(j), self.f.weights[j].copy()
        self.f.replace(j, x)
        return old

    def _places(self) -> NDArray[np.int64]:
        """Return, for each slot of the window, the index of its center, (n,)."""
        window = self.window
        row = window.count - 1 - (window.count - 1 - np.arange(len(window.X))) % window.length
        return row if self.budget is None else row % self.budget

    def check(self, values: Values) -> None:
        seen, count, size = values["seen"], values["window"]["count"], len(values["f"]["centers"])
        centers = seen if self.budget is None else min(seen, self.budget)
        if count != seen or size != centers:
            raise ValueError(
                f"after {seen} rows there must be {centers} centers and a window that has counted {seen} rows, "
                f"got {size} and {count}."
            )


def recent_rule(window: int, budget: int | None) -> dict[str, Any]:
    """Return window and budget. Raise an error if one of them is invalid or the budget is less than the window."""
    count("With one row this is KLMS.", window=window)
    if budget is not None and count("Use budget=None to keep every sample.", budget=budget) < window:
        raise ValueError(
            f"budget must be at least the window, {window}, because all rows in the window are centers, got {budget}. "
            f"Use a smaller window, or budget=None."
        )
    return {"window": window, "budget": budget}
