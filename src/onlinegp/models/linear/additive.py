"""Models whose posterior is a sum over rows: what two of them have learned can be added, and taken back."""

from __future__ import annotations

import copy
from typing import Any, Self, TypeVar

from onlinegp.engine.compiled import Compiled
from onlinegp.learner import Contents
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.undo import Undo

ENGINE = "engine"  # whatever runs them, the sums are the same


class AdditiveRegressor(OnlineRegressor):
    """Base class of models that can be merged. Their learners have `add(contents, sign)`."""

    def merge(self, other: Self) -> Self:
        """Learn what another model has learned, as if its rows had come here: information adds up.

        Both must have the same parameters and the same columns, and forget nothing. The result is as accurate as
        learning all rows in one pass.
        """
        return self._add(other, 1)

    def without(self, other: Self) -> Self:
        """Take back what another model has learned, whose rows this one has learned too: the inverse of `merge`.

        What remains has lost digits: in the direction where a share s of the information is left, about 1 / s of the
        rounding errors of all rows. If that leaves fewer than six digits, it is refused with a ValueError.
        """
        return self._add(other, -1)

    def _add(self, other: Self, sign: int) -> Self:
        theirs = other.dump() if isinstance(other, type(self)) else None
        if theirs is None:
            raise TypeError(f"other must be a {type(self).__name__} that has learned something, got {other!r}.")
        mine: Any = self._working
        for name, value in self.learned_with.items():
            if name != ENGINE and repr(value) != repr(other.learned_with[name]):
                raise ValueError(f"other must have the same {name} as this model, got {other!r}.")
        if self.learned_with.get("forgetting", 1.0) != 1.0:
            raise ValueError("forgetting must be 1.0 to add or take back what was learned: rows that fade have no sum.")
        if (mine.features, mine.outputs) != (theirs["features"], theirs["outputs"]):
            raise ValueError(
                f"other must have {mine.features} features and {mine.outputs} outputs as this model has, "
                f"got {theirs['features']} and {theirs['outputs']}."
            )
        names = [list(getattr(model, "feature_names_in_", ())) for model in (self, other)]
        if all(names) and names[0] != names[1]:
            raise ValueError(
                f"other must have learned the columns {names[0]} in this order, as this model has, got {names[1]}. "
                f"Fit both on frames with the same columns in the same order."
            )
        learned: Contents = theirs["learned"]
        with self._lock:
            if isinstance(self._learner, Undo | Compiled):
                self._learner.change("add", learned, sign)
            else:
                mine.add(learned, sign)
        return self


Model = TypeVar("Model", bound=AdditiveRegressor)


def ready_to_merge(model: Model) -> Model:
    """Return a copy of the model that has learned nothing, its parameters checked, if such models can be merged."""
    if not isinstance(model, AdditiveRegressor):
        raise TypeError(f"model must be one that can be merged, LinearRLS or RandomFeatureGP, got {model!r}.")
    model = copy.deepcopy(model).unfitted()
    model.check()
    return model
