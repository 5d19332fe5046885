"""Every algorithm by its name on the command line; what is said of it comes from the classes themselves."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

from onlinegp import models
from onlinegp.models.base import OnlineRegressor

HIDDEN = ("engine", "dtype")  # parameters that change no result


@dataclass(frozen=True)
class Algorithm:
    """An estimator class under its name on the command line."""

    name: str
    estimator: type[OnlineRegressor]

    @property
    def summary(self) -> str:
        """The first line of the documentation."""
        return (inspect.getdoc(self.estimator) or "").partition("\n")[0]

    @property
    def parameters(self) -> dict[str, Any]:
        """Names and defaults."""
        signature = inspect.signature(self.estimator).parameters
        return {name: p.default for name, p in signature.items() if name not in HIDDEN}


def algorithms() -> dict[str, Algorithm]:
    """Return every algorithm by its name on the command line."""
    classes = [getattr(models, name) for name in models.__all__]
    found = [cls for cls in classes if issubclass(cls, OnlineRegressor) and cls is not OnlineRegressor]
    return {named(cls): Algorithm(named(cls), cls) for cls in found}


def algorithm(name: str) -> Algorithm:
    """Return the algorithm of that name; case, hyphens and underscores do not matter."""
    known = algorithms()
    key = _key(name)
    if key not in known:
        raise ValueError(f"there is no model {name!r}. Models: {', '.join(known)}. See `onlinegp models`.")
    return known[key]


def named(estimator: type[OnlineRegressor]) -> str:
    """Return the name of a class on the command line."""
    return _key(estimator.__name__)


def _key(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()
