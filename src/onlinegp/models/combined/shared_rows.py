"""Let a ResidualGP and a LocalGP in a mixture share rows, if they have the same kernel and parameters.

A ResidualGP solves the same equations as a LocalGP and can return both predictions (`run_both`). So the LocalGP does
not run: `SharedRows` replaces it, and its wrappers, such as `HeavyTailed`, get the second prediction of the ResidualGP.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine.compiled_leaf import Compiled
from onlinegp.engine.plan import Plan, plan_of
from onlinegp.learner import Learner, RowLearner, Sizes
from onlinegp.models.combined.base import OuterLearner, SpreadLearner, innermost_learner
from onlinegp.models.local.learner import LocalPrior
from onlinegp.models.local.residual import ResidualPrior
from onlinegp.predictions import Predictions
from onlinegp.state import Contents, Values, array, integer, points

Change = Callable[[SpreadLearner, Predictions], Predictions]
Ran = dict[str, tuple[Predictions, Sizes]]


class SharedRows(RowLearner):
    """A LocalGP that uses the rows of a ResidualGP, `source`."""

    fields = {"X": points("kept"), "Y": array("kept", "outputs"), "seen": integer()}
    lengths = {"kept": None}

    def __init__(self, source: Any) -> None:
        self.source, self.features, self.outputs = source, source.features, source.outputs

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.source.size

    @property
    def seen(self) -> int:  # type: ignore[override]
        return self.source.seen

    def learn(self, X: Array, Y: Array) -> None:
        raise TypeError("SharedRows learns with its source.")

    def predict(self, X: Array) -> Predictions:
        return self.source.predict_both(X)[1]

    def plan(self) -> Plan | None:
        source = plan_of(self.source)
        return None if source is None else Plan("shared rows", self, model=source.model)

    def dump(self) -> Contents:
        contents = self.source.dump()
        return {name: contents[name] for name in ("X", "Y", "seen")}

    def assign(self, values: Values) -> None:
        pass  # they must equal the rows of the source: see `check_shared`


def share_rows(members: dict[str, Learner], apart: Collection[str] = ()) -> dict[str, str]:
    """Let each LocalGP use the rows of a ResidualGP that keeps the same rows. Return {LocalGP: ResidualGP}, by name.

    Members in `apart` do not share rows, because they restart at other rows.
    """
    shared = {}
    for name, member in members.items():
        for other, candidate in members.items():
            if name not in apart and other not in apart and _keeps_the_same(member, candidate):
                members[name] = _with_rows(member, SharedRows(innermost_learner(candidate)))
                shared[name] = other
                break
    return shared


def check_shared(shared: Mapping[str, str], values: Values) -> None:
    """Raise an error if members that share rows have different rows in a file."""
    for name, source in shared.items():
        mine, theirs = _inside(values[f"{name}."]), _inside(values[f"{source}."])
        if not all(np.array_equal(mine[one], theirs[one]) for one in SharedRows.fields):
            raise ValueError(f"{name} must have the same rows as {source}, because both share their rows.")


def _inside(values: Values) -> Values:
    while "model" in values:
        values = values["model"]
    return values


def run_member(members: Mapping[str, Learner], name: str, sharing: list[str], X: Array, Y: Array) -> Ran:
    """Run a member. Return the predictions of this member and of the members that share its rows, by name."""
    if not sharing:
        return {name: members[name].run(X, Y)}
    source: Any = innermost_learner(members[name])
    before = source.seen
    own, local, size = source.run_both(X, Y)

    def change(outer: SpreadLearner, predicted: Predictions) -> Predictions:
        return outer.update(predicted, Y, before)

    return {one: (changed(members[one], own if one == name else local, change), size) for one in (name, *sharing)}


def predict_member(members: Mapping[str, Learner], name: str, sharing: list[str], X: Array) -> dict[str, Predictions]:
    """Return the predictions of a member and of the members that share its rows, by name."""
    if not sharing:
        return {name: members[name].predict(X)}
    source: Any = innermost_learner(members[name])
    own, local = source.predict_both(X)

    def change(outer: SpreadLearner, predicted: Predictions) -> Predictions:
        return outer.current(predicted)

    return {one: changed(members[one], own if one == name else local, change) for one in (name, *sharing)}


def changed(learner: Learner, predicted: Predictions, change: Change) -> Predictions:
    """Return the predictions of a learner, given the predictions of its innermost learner."""
    if not isinstance(learner, SpreadLearner):
        return predicted
    return change(learner, changed(learner.inner, predicted, change))


def _keeps_the_same(member: Learner, candidate: Learner) -> bool:
    """Whether two members can share rows: a LocalGP and a ResidualGP, with wrappers that change only predictions."""
    local, residual = innermost_learner(member), innermost_learner(candidate)
    prior, other = (getattr(getattr(one, "reference", one), "prior", None) for one in (local, residual))
    if type(prior) is not LocalPrior or type(other) is not ResidualPrior or other.linear or prior != other.local:
        return False
    same_engine = isinstance(local, Compiled) == isinstance(residual, Compiled)
    return same_engine and _only_spreads(member) and _only_spreads(candidate)


def _only_spreads(learner: Learner) -> bool:
    while isinstance(learner, SpreadLearner):
        learner = learner.inner
    return not isinstance(learner, OuterLearner)


def _with_rows(learner: Learner, rows: SharedRows) -> Learner:
    """Return a copy of a learner with other rows in its innermost learner."""
    if not isinstance(learner, SpreadLearner):
        return rows
    learner.inner = _with_rows(learner.inner, rows)
    return learner
