"""Wrap a fitted model in a detector, and unwrap it."""

from __future__ import annotations

from typing import Any

from onlinegp.models.alarms.detector import Detector
from onlinegp.models.base import OnlineRegressor

INSIDE = "model."  # prefix of the fields of the inner model


def watching(model: OnlineRegressor, **parameters: Any) -> Detector:
    """Return a detector around a model that continues to learn. A detector is returned unchanged."""
    inside = model.learned_with["model"] if isinstance(model, Detector) else model.unfitted()
    detector = Detector(inside, **parameters)
    contents = model.dump()
    if contents is None:
        return detector
    learned = contents["learned"]
    if not isinstance(model, Detector):
        empty = detector.start(contents["features"], contents["outputs"]).dump()
        own = {name: value for name, value in empty.items() if not name.startswith(INSIDE)}
        learned = own | {"seen": 1} | {INSIDE + name: value for name, value in learned.items()}
    return detector.load({**contents, "learned": learned})


def unwatched(model: OnlineRegressor) -> OnlineRegressor:
    """Return the inner model of a detector, with everything that it has learned. Return other models unchanged."""
    if not isinstance(model, Detector) or model.model is None:
        return model
    inside: OnlineRegressor = model.learned_with["model"].unfitted()
    contents = model.dump()
    if contents is None:
        return inside
    own = {name.removeprefix(INSIDE): v for name, v in contents["learned"].items() if name.startswith(INSIDE)}
    return inside.load({**contents, "learned": own})
