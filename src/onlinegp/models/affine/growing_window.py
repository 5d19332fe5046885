"""Algorithms that make every sample a center, and correct the weights of the most recent centers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array, count
from onlinegp.models.affine.base import AffineRegressor, WindowLearner
from onlinegp.models.affine.window import Window
from onlinegp.models.expansion import Expansion
from onlinegp.recipes.costs import kernel_row
from onlinegp.state import Values


class RecentLearner(WindowLearner):
    """Make every sample a center, correct the weights of the rows in the window, and remove the oldest center.

        weights <- keep weights,   weights of the window += Z,   Z = correction(Y - F)

    F, the predictions of the rows in the window, is updated: F <- keep F + K Z - k(X, c) w, if a center c of weight w
    is removed.
    """

    def __init__(self, f: Expansion, *, window: int, keep: float) -> None:
        super().__init__(f)
        self.budget, self.keep = f.most, keep
        self.window = Window(f.kernel, self.features, self.outputs, window)

    @abstractmethod
    def correction(self, E: Array) -> Array:
        """Return the correction Z (n, p) of the weights of the rows in the window, for their errors E (n, p)."""

    def correct(self, x: Array, y: Array, e: Array, seen: Any) -> None:
        window, f = self.window, self.f
        window.push(x, y, seen[1])
        Z = self.correction(window.Y - window.F)
        old = self._admit(x)
        if self.keep != 1.0:
            f.weights[...] *= self.keep
            window.F[...] *= self.keep
        f.weights[self._places(), :] += Z
        KZ = window.K @ Z
        scale = self._corrected(Z, KZ)
        window.F[...] += KZ
        if scale is not None:
            f.weights[...] *= scale
            window.F[...] *= scale
        if old is not None:
            center, weight = old[0], old[1] * self.keep if scale is None else old[1] * self.keep * scale
            window.F[...] -= np.multiply.outer(window.row(center), weight)
            self._removed(center, weight)
        self.errors.add(e, y, self.seen)

    def _corrected(self, Z: Array, KZ: Array) -> Array | None:
        """Return a factor (p,) to scale f after the correction, or None. Called before F changes."""
        return None

    def _removed(self, center: Array, weight: Array) -> None:
        """Called after a center of this weight (p,) was removed."""

    def _admit(self, x: Array) -> tuple[Array, Array] | None:
        """Make x a center. If the budget is full, return the removed center and its weight, else None."""
        if self.budget is None or self.f.size < self.budget:
            self.f.append(x)
            return None
        j = (self.window.count - 1) % self.budget
        old = self.f.center(j), self.f.weights[j].copy()
        self.f.replace(j, x)
        return old

    def _places(self) -> NDArray[np.int64]:
        """Return the center that each slot of the window is, (n,)."""
        window = self.window
        row = window.count - 1 - (window.count - 1 - np.arange(window.size)) % window.length
        return row if self.budget is None else row % self.budget

    def check(self, values: Values) -> None:
        seen, count, size = values["seen"], values["window"]["count"], len(values["f"]["centers"])
        centers = seen if self.budget is None else min(seen, self.budget)
        if count != seen or size != centers:
            raise ValueError(
                f"after {seen} rows there must be {centers} centers and a window that counts as many rows, "
                f"got {size} and {count}."
            )


class RecentRegressor(AffineRegressor):
    """Base class of the models with a `RecentLearner`. The budget is at least the window.

    Parameters
    ----------
    window : int
        The number of rows whose weights are corrected.
    budget : int, optional
        The largest number of centers, at least `window`; None keeps all samples.
    """

    window: int
    budget: int | None

    def rule(self) -> dict[str, Any]:
        return {"window": count("One row makes it KLMS.", window=self.window)}

    def correcting(self, size: float, features: int) -> float:
        """Return the multiplications for K Z, and for the change of F when a center is removed."""
        leaves = self.budget is not None and size >= self.budget
        return self.window**2 + (kernel_row(self.window, features) + self.window if leaves else 0)

    def expansion(self, features: int, outputs: int) -> Expansion:
        return Expansion(self.over(), features, outputs, most=self._most())

    def _most(self) -> int | None:
        if self.budget is not None and count("Use budget=None to keep every sample.", budget=self.budget) < self.window:
            raise ValueError(
                f"budget must be at least the window, {self.window}, whose rows are centers, got {self.budget}. "
                f"Use a smaller window, or budget=None."
            )
        return self.budget
