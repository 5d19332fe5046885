"""Plans: descriptions of learners from which their compiled twins are created."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.program import Instruction, program
from onlinegp.kernels import Kernel

Constant = float | tuple[float, ...] | Array


@dataclass(frozen=True)
class Plan:
    """The description of a learner from which its compiled twin is created.

    Attributes
    ----------
    kind : the name of the compiled class, as in native/make.cpp and native/leaves/leaves.cpp
    learner : the Python learner
    numbers : constants by name: numbers and arrays
    fields : for a learner with inner learners, the arrays that the next row needs, by name; they are filled in place
    inside : the plans of the inner learners, by name
    kernels : the covariance functions
    recipe : the compiled recipe of a filter
    model : a function that returns the compiled leaf in this tree, or the leaf that shares its rows
    """

    kind: str
    learner: Any
    numbers: Mapping[str, Constant] = field(default_factory=dict)
    fields: Mapping[str, Array] = field(default_factory=dict)
    inside: Mapping[str, Plan] = field(default_factory=dict)
    kernels: Sequence[Kernel] = ()
    recipe: Any = None
    model: Callable[[], Any] | None = None

    @property
    def core(self) -> Any:
        """The compiled leaf of this plan."""
        return None if self.model is None else self.model()

    @property
    def constants(self) -> dict[str, Array]:
        """The numbers and arrays, each as a vector."""
        return {name: np.ravel(np.asarray(value, dtype=np.float64)) for name, value in self.numbers.items()}

    @property
    def programs(self) -> list[list[Instruction]]:
        """The kernels."""
        return [program(kernel, self.learner.features) for kernel in self.kernels]

    @property
    def components(self) -> int:
        """The number of components of the predictions."""
        own = len(self.constants["degrees"]) if "degrees" in self.numbers else 0
        return own + (sum(plan.components for plan in self.inside.values()) if self.inside else 1)

    def walk(self, path: str = "") -> Iterator[tuple[str, Plan]]:
        """Yield this plan and all inner plans with their paths, such as "model."."""
        yield path, self
        for name, plan in self.inside.items():
            yield from plan.walk(f"{path}{name}.")


def plan_of(learner: Any) -> Plan | None:
    """Return the plan of a learner, or None if the learner or an inner learner has no compiled twin."""
    plan = getattr(learner, "plan", None)
    return None if plan is None or not type(learner).__module__.startswith("onlinegp.") else plan()


def around(
    kind: str,
    learner: Any,
    numbers: Mapping[str, Constant],
    fields: Mapping[str, Array],
    inside: Mapping[str, Any],
) -> Plan | None:
    """Return the plan of a wrapper, or None if an inner learner has no plan or the class is a subclass of the user."""
    if "plan" not in vars(type(learner)):
        return None
    plans = {name: plan_of(one) for name, one in inside.items()}
    if any(plan is None for plan in plans.values()):
        return None
    known = {name: plan for name, plan in plans.items() if plan is not None}
    return Plan(kind, learner, numbers, fields, known)
