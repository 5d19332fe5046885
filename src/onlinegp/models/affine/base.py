"""Base classes of the models that correct several rows at once."""

from __future__ import annotations

from abc import abstractmethod
from enum import IntEnum
from typing import Any, ClassVar, cast

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine import by_engine
from onlinegp.learner import Learner, Sizes
from onlinegp.models.affine.window import Window
from onlinegp.models.expansion import Expansion, ExpansionLearner
from onlinegp.models.lms.base import ExpansionRegressor
from onlinegp.models.lms.native import NativeStepLearner
from onlinegp.models.rowwise import ErrorScale, StepLearner
from onlinegp.predictions import Gaussian
from onlinegp.recipes.costs import ERRORS, kernel_row
from onlinegp.state import Fields, Values, learner

BLOCK = 256  # rows per compiled call; Ctrl-C takes effect between two calls
Kind = IntEnum("Kind", ["KAP", "LKAPA", "NLKAPA", "KAPSM", "PHYPASS"], start=0)  # as in native/api.hpp
NO_VARIANCE = "none of its own: the mean square of about the last 100 errors, the same everywhere"


class AffineRegressor(ExpansionRegressor):
    """Base class of affine projections and projections onto hyperslabs. Their learners have a window of rows.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    engine : {"auto", "native", "python"}
        The engine: compiled, pure Python, or the best available.
    """

    remedy: ClassVar[str] = "Lower the step, and start again with fit."
    std_from_errors: ClassVar[bool] = True

    window: int

    def looking(self, size: float, features: int) -> float:
        """Return the multiplications for the kernel rows of x, the mean, and the mean square of the errors."""
        return kernel_row(size, features) + size + ERRORS + kernel_row(self.window, features)

    def expansion(self, features: int, outputs: int) -> Expansion:
        """Return the expansion to learn, without centers."""
        raise TypeError(f"{type(self).__name__} must define expansion(features, outputs).")

    def start(self, features: int, outputs: int) -> Learner:
        rule, make = self.rule(), cast(Any, self.readable)
        twin: WindowLearner = make(self.expansion(features, outputs), engine="python", **rule)
        compiled = {"kind": Kind[self.compiled], "budget": twin.f.most or 0, **rule}
        return by_engine(self.engine, lambda: CompiledWindowLearner(twin, compiled), lambda: twin)


class BlockLearner(StepLearner):
    """A learner with a compiled loop over rows, in addition to `look` and `correct`.

    Attributes
    ----------
    rule : parameters by name for the compiled loop; None for the Python loop
    """

    rule: dict[str, Any] | None = None

    @abstractmethod
    def _run(self, X: Array, Y: Array, mean: Array, std: Array, size: Sizes) -> None:
        """Run the compiled loop: predict and learn the rows, and fill in the predictions."""

    def learn(self, X: Array, Y: Array) -> None:
        if self.rule is None:
            super().learn(X, Y)
        else:
            self.run(X, Y)

    def run(self, X: Array, Y: Array) -> tuple[Gaussian, Sizes]:
        if self.rule is None:
            return super().run(X, Y)
        X, Y = np.ascontiguousarray(X), np.ascontiguousarray(Y)
        mean, std, size = np.empty(Y.shape), np.empty(Y.shape), np.empty(len(Y), np.int64)
        for i in range(0, len(X), BLOCK):
            rows = slice(i, i + BLOCK)
            self._run(X[rows], Y[rows], mean[rows], std[rows], size[rows])
        return Gaussian(mean, std), size


class WindowLearner(ExpansionLearner):
    """A kernel expansion that corrects the rows of a window. Its standard deviation is that of its recent errors."""

    fields: Fields = {**ExpansionLearner.fields, "errors": learner(), "window": learner()}

    window: Window

    def __init__(self, f: Expansion) -> None:
        super().__init__(f)
        self.errors = ErrorScale(f.outputs)

    def look(self, x: Array) -> tuple[Array, Array, Any]:
        k, mean = self.f.at(x)
        return mean, self.errors.std, (k, mean)


class CompiledWindowLearner(NativeStepLearner):
    """The same, compiled: all that it keeps is in the core."""

    def __init__(self, twin: WindowLearner, rule: dict[str, Any]) -> None:
        from onlinegp.engine import _native
        from onlinegp.engine.native import pack_kernel

        self.reference, self.features, self.outputs = twin, twin.features, twin.outputs
        kernel = _native.Recipe()
        pack_kernel(kernel, twin.f.kernel, twin.features)
        self._core = _native.AffineFilter(_native.AffineRule(**rule), kernel, twin.features, twin.outputs)

    def assign(self, values: Values) -> None:
        twin = self.reference
        twin.assign(values)
        f, errors, gram, chosen = twin.f, twin.errors, getattr(twin, "gram", None), getattr(twin, "chosen", None)
        arrays = {
            **twin.window.dump(),
            "centers": f.centers,
            "numbers": np.vstack([f.weights.T, *(f.numbers(name) for name in f.also)]),
            "squares": errors.numbers,
            "errors": errors.count,
            "norms": getattr(twin, "norms", np.zeros(self.outputs)),
        }
        if gram is not None:
            arrays["G"] = np.array(gram.G)
        if chosen is not None:
            own = chosen.dump()
            arrays |= {"places": own["places"], "along": own["a"], "length": own["d"], "KC": own["K"], "C": own["C"]}
        self._core.load(arrays)

    def readable(self) -> Any:
        saved, twin = self._core.save(), self.reference
        count, numbers, (squares, last, resolution) = saved["count"], saved["numbers"], saved["squares"]
        names = ("X", "K", "Y", "F", *(["H"] if "H" in saved else []))
        values: dict[str, Any] = {
            "seen": count,
            "f": {"centers": saved["centers"], "weights": np.ascontiguousarray(numbers[: self.outputs].T)},
            "errors": {"squares": squares, "last": last, "resolution": resolution, "count": saved["errors"]},
            "window": {"count": count} | {name: saved[name] for name in names},
            "gram": {"G": saved.get("G")},
            "norms.squares": saved["norms"][0],
        }
        values["f"] |= dict(zip(twin.f.also, numbers[self.outputs :], strict=True))
        if "places" in saved:
            own = {"places": saved["places"], "a": saved["along"], "d": saved["length"][:, 0]}
            values["chosen"] = own | {"K": saved["KC"], "C": saved["C"]}
        twin.assign(values)
        return twin
