"""Base classes of the models that correct several rows at once."""

from __future__ import annotations

from typing import Any, ClassVar

from onlinegp.checks import Array
from onlinegp.engine.plan import Plan
from onlinegp.kernels import Kernel
from onlinegp.models.affine.window import Window
from onlinegp.models.expansion import Expansion
from onlinegp.models.rowwise import ErrorScale, StepLearner
from onlinegp.state import integer, learner

FIELDS = {"seen": integer(), "f": learner(), "errors": learner(), "window": learner()}
REMEDY = "Lower the step, and start again with fit."


class WindowLearner(StepLearner):
    """A kernel expansion that corrects the rows of a window. The std of predictions comes from recent errors."""

    kind: ClassVar[str]  # the name of the compiled twin
    constants: ClassVar[tuple[str, ...]]  # the attributes that the twin needs

    def __init__(self, f: Expansion, window: Window) -> None:
        self.f, self.window, self.features, self.outputs = f, window, f.features, f.outputs
        self.errors = ErrorScale(f.outputs)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return (self.f.kernel,)

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.f.size

    def leaf_plan(self) -> Plan:
        return self.plan_of(self.kind, {name: getattr(self, name) for name in self.constants})

    def plan_of(self, kind: str, constants: dict[str, float]) -> Plan:
        """Return the plan of the compiled twin: `constants`, the length of the window, and the budget."""
        numbers = {name: float(value) for name, value in constants.items()}
        numbers |= {"window": float(self.window.length), "budget": float(self.f.most or 0)}
        return Plan(kind, self, numbers, kernels=self.kernels)

    def look(self, x: Array) -> tuple[Array, Array, Any]:
        k, mean = self.f.at(x)
        return mean, self.errors.std, (k, mean)
