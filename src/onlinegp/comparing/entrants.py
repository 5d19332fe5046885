"""The algorithms in a comparison: classes, which are tuned, and model instances, which are not tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from onlinegp.models.base import OnlineRegressor


@dataclass(frozen=True)
class Entrant:
    """A class of models to tune, its name in the table, and its fixed parameters."""

    name: str
    estimator: type[OnlineRegressor]
    given: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Fixed:
    """A model that is not tuned and runs in the units of the data."""

    name: str
    model: OnlineRegressor


def entrants(models: Any) -> list[Entrant | Fixed]:
    """Return the algorithms of a dictionary by name, or of a sequence, named by their classes."""
    if isinstance(models, Mapping):
        named = [(str(name), one) for name, one in models.items()]
    elif isinstance(models, Sequence) and not isinstance(models, str):
        named = [(one.name if isinstance(one, Entrant) else _class_of(one).__name__, one) for one in models]
    else:
        named = []
    found = [_entrant(name, one) for name, one in named]
    if not found:
        raise TypeError(f"models must be a list or a dictionary of classes and models, got {models!r}.")
    twice = [one.name for i, one in enumerate(found) if one.name in {other.name for other in found[:i]}]
    if twice:
        raise ValueError(f"models must have different names, got {twice[0]} twice. Pass a dictionary.")
    return found


def _entrant(name: str, one: Any) -> Entrant | Fixed:
    if isinstance(one, OnlineRegressor):
        one.check()
        return Fixed(name, one.unfitted())
    if isinstance(one, Entrant):
        cls, given = one.estimator, one.given
    else:
        cls, given = _class_of(one), dict(one.keywords) if isinstance(one, partial) else {}
    if odd := sorted(set(given) - set(cls.parameter_names())):
        raise ValueError(f"{name} has no parameter {odd[0]!r}. Its parameters: {', '.join(cls.parameter_names())}.")
    return Entrant(name, cls, given)


def _class_of(one: Any) -> type[OnlineRegressor]:
    """Return the class of a model, of a class, or of a class with given parameters."""
    if isinstance(one, partial) and one.args:
        raise TypeError(
            f"models must have their parameters by name, as in partial(onlinegp.KRLST, budget=50), got {one!r}."
        )
    cls = type(one) if isinstance(one, OnlineRegressor) else one.func if isinstance(one, partial) else one
    if not (isinstance(cls, type) and issubclass(cls, OnlineRegressor)):
        raise TypeError(
            f"models must be classes such as onlinegp.KRLST, which are tuned, functools.partial(onlinegp.KRLST, "
            f"budget=50) with fixed parameters, or instances such as onlinegp.KRLST(), got {one!r}."
        )
    return cls
