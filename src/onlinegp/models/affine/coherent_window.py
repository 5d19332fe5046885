"""Algorithms that admit a sample if it is coherent with no center, and correct the weights for the last rows."""

from __future__ import annotations

from onlinegp.checks import Array
from onlinegp.models.affine.base import AffineRegressor, WindowLearner
from onlinegp.models.affine.window import KernelRows
from onlinegp.models.expansion import Expansion
from onlinegp.models.lms.coherence import largest_coherence
from onlinegp.state import Values


class CoherentLearner(WindowLearner):
    """An expansion that admits x if it is coherent with no center, with the kernel rows of the last rows.

    The coherence of two inputs is |k(x, c)| / sqrt(k(x, x) k(c, c)).
    """

    window: KernelRows

    def __init__(self, f: Expansion, window: int, coherence: float) -> None:
        super().__init__(f)
        self.window = KernelRows(f.kernel, self.features, self.outputs, window)
        self.coherence = coherence

    def novel(self, k: Array, kxx: float) -> bool:
        """Return whether x, with kernel row k, becomes a center. If k(x, x) is zero, x cannot contribute."""
        return kxx > 0.0 and largest_coherence(k, kxx, self.f.numbers("kcc")) <= self.coherence

    def admit(self, x: Array, kxx: float, r: int) -> None:
        self.f.append(x, kcc=kxx)
        self.window.admit(r)

    def check(self, values: Values) -> None:
        count, columns = values["window"]["count"], values["window"]["H"].shape[1]
        seen, size = values["seen"], len(values["f"]["centers"])
        if count != seen or columns != size:
            raise ValueError(
                f"the window has {count} rows and {columns} centers, "
                f"but the model has {seen} and {size}: they must be the same."
            )


class CoherentRegressor(AffineRegressor):
    """Base class of the models with a `CoherentLearner`. Each center stores its k(c, c)."""

    def expansion(self, features: int, outputs: int) -> Expansion:
        return Expansion(self.over(), features, outputs, also=("kcc",))
