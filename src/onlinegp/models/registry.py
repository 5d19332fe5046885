"""Find model classes by name, in the library and among the classes of the user."""

from __future__ import annotations

import sys
from typing import Any

from onlinegp.models.base import OnlineRegressor

LIBRARY = "onlinegp"


def known_model(name: Any, module: Any) -> type[OnlineRegressor] | None:
    """Return the class with this name in an imported module, or None.

    The module of a class of this library is "onlinegp". No other module is imported.
    """
    if module == LIBRARY and isinstance(name, str):
        getattr(sys.modules[LIBRARY], name, None)  # this may import a class on first use
    for cls in _subclasses(OnlineRegressor):
        own = cls.__module__.startswith(f"{LIBRARY}.")
        if cls.__name__ == name and (LIBRARY if own else cls.__module__) == module:
            return cls
    return None


def models_of_users() -> list[type[OnlineRegressor]]:
    """Return the classes that were defined outside the library. The last class comes first."""
    return [cls for cls in _subclasses(OnlineRegressor) if not cls.__module__.startswith(f"{LIBRARY}.")]


def _subclasses(cls: type[OnlineRegressor]) -> list[type[OnlineRegressor]]:
    """Return all subclasses of a class. The last defined class comes first."""
    found = [deeper for sub in cls.__subclasses__() for deeper in (sub, *_subclasses(sub))]
    return found[::-1]
