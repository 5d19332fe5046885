"""Start the learner of a model, and check the arguments of a run."""

from __future__ import annotations

from typing import Any

from onlinegp.checks import count
from onlinegp.engine.compiled import compiled
from onlinegp.learner import Learner
from onlinegp.models.breakdown import Health
from onlinegp.models.estimator import Estimator
from onlinegp.models.undo import undoable
from onlinegp.state import Contents, load


def start_learner(
    model: Any, features: int, outputs: int, contents: Contents | None
) -> tuple[Learner, Health, dict[str, Any]]:
    """Return a new learner (which continues from `contents` if given), its health, and the parameters of the model."""
    learner, health, learned = model.start(features, outputs), Health(), None
    if contents is not None:
        learned, health.largest = contents["learned"], float(contents["largest"])
        load(learner, learned)
    twin = model.unfitted()  # keeps the current parameters, even if parameters of an inner model change later
    learner = undoable(compiled(learner), lambda: compiled(twin.start(features, outputs)), learned)
    return learner, health, twin.get_params(deep=False)


def checked_delay(model: Estimator, delay: int) -> int:
    """Return the checked delay: the number of rows by which targets are late."""
    late = count("Use 0 if each target is known before the next row.", 0, delay=delay)
    if late > 1 and model.features_optional:
        raise ValueError(
            f"delay must be 0 for {type(model).__name__}, because its predictions use past values, got {delay}. "
            f"Use Lagged(model, lags=..., horizon={delay}), which uses only values that are already known."
        )
    return late if late > 1 else 0
