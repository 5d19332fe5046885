"""Base class of models that can be merged with and subtracted from each other."""

from __future__ import annotations

import copy
from typing import Any, Self, TypeVar

from onlinegp.engine.compiled_leaf import Compiled
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.undo import Undo
from onlinegp.state import Contents

ENGINE = "engine"  # models with different engines can be merged


class AdditiveRegressor(OnlineRegressor):
    """Base class of models that can be merged. Their learners have `add(contents, sign)`."""

    def merge(self, other: Self) -> Self:
        """Add the knowledge of another model, as if this model had learned the rows of both models.

        Both models must have the same parameters and the same columns, and forgetting=1. The result is as accurate as
        learning all rows in one pass.
        """
        return self._add(other, 1)

    def without(self, other: Self) -> Self:
        """Remove the knowledge of another model, which was merged before: the inverse of `merge`.

        The result is less accurate: if a share s of the information remains in some direction, rounding errors grow by
        the factor 1 / s. If fewer than six digits would remain, a ValueError is raised.
        """
        return self._add(other, -1)

    def _add(self, other: Self, sign: int) -> Self:
        theirs = other.dump() if isinstance(other, type(self)) else None
        if theirs is None:
            raise TypeError(f"other must be a {type(self).__name__} that has learned data, got {other!r}.")
        mine: Any = self._working
        for name, value in self.learned_with.items():
            if name != ENGINE and repr(value) != repr(other.learned_with[name]):
                raise ValueError(f"other must have the same {name} as this model, got {other!r}.")
        if self.learned_with.get("forgetting", 1.0) != 1.0:
            raise ValueError("forgetting must be 1.0 to merge or subtract models.")
        if (mine.features, mine.outputs) != (theirs["features"], theirs["outputs"]):
            raise ValueError(
                f"other must have {mine.features} features and {mine.outputs} outputs, like this model, "
                f"got {theirs['features']} and {theirs['outputs']}."
            )
        names = [list(getattr(model, "feature_names_in_", ())) for model in (self, other)]
        if all(names) and names[0] != names[1]:
            raise ValueError(
                f"other must have learned the columns {names[0]} in this order, like this model, got {names[1]}. "
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
    """Return an unfitted copy of a model. Raise an error if its parameters are invalid or it cannot be merged."""
    if not isinstance(model, AdditiveRegressor):
        raise TypeError(f"model must have a method merge, such as LinearRLS or RandomFeatureGP, got {model!r}.")
    model = copy.deepcopy(model).unfitted()
    model.check()
    return model
