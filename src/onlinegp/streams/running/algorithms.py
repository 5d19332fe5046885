"""Find models by their names on the command line."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from onlinegp import kafbox, models
from onlinegp.auto import Auto
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.families import FAMILIES, family
from onlinegp.models.registry import models_of_users

HIDDEN = ("engine", "dtype")  # parameters that do not change results


@dataclass(frozen=True)
class Algorithm:
    """An estimator class and its name on the command line."""

    name: str
    estimator: type[OnlineRegressor]

    @property
    def summary(self) -> str:
        """The first line of the documentation."""
        return (inspect.getdoc(self.estimator) or "").partition("\n")[0]

    @property
    def parameters(self) -> dict[str, Any]:
        """Names and default values of the parameters."""
        signature = inspect.signature(self.estimator).parameters
        return {name: p.default for name, p in signature.items() if name not in HIDDEN}


def algorithms() -> dict[str, Algorithm]:
    """Return all algorithms by their names on the command line."""
    classes = [Auto, *(getattr(models, name) for name in models.__all__)]
    found = [cls for cls in classes if issubclass(cls, OnlineRegressor) and cls is not OnlineRegressor]
    return {named(cls): Algorithm(named(cls), cls) for cls in found}


def by_family() -> dict[str, list[Algorithm]]:
    """Return the algorithms of each family, by the title of the family."""
    known = algorithms().values()
    listed = {title: [one for one in known if family(one.estimator) == title] for title in FAMILIES.values()}
    return {title: members for title, members in listed.items() if members}


def algorithm(name: str) -> Algorithm:
    """Return the algorithm with this name. Case, hyphens and underscores do not matter.

    Models of the user in imported modules are found, too.
    """
    known, key = algorithms(), _key(name)
    own = [cls for cls in models_of_users() if _key(cls.__name__) == key]
    if key not in known and not own:
        near = [_key(own) for own in [kafbox.meant(name)] if own] or get_close_matches(key, known)
        guess = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(
            f"there is no model {name!r}.{guess} Models: {', '.join(known)}. See `onlinegp models`. Your own model "
            f"needs --import MODULE."
        )
    if key in known and own:
        raise ValueError(f"both {own[0].__module__} and onlinegp have a model {name!r}. Rename your class.")
    return known[key] if key in known else Algorithm(key, own[0])


def named(estimator: type[OnlineRegressor]) -> str:
    """Return the name of a class on the command line."""
    return _key(estimator.__name__)


def _key(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()
