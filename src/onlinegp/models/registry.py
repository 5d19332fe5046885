"""Which model classes exist in this process, by name: the library's own, and those that the user has defined."""

from __future__ import annotations

from typing import Any

from onlinegp.models.base import OnlineRegressor

LIBRARY = "onlinegp"


def known_model(name: Any, module: Any) -> type[OnlineRegressor] | None:
    """Return the class of a name that was defined in a module, which has been imported already; None if there is none.

    Classes of this library are found whatever their module is. Nothing is imported.
    """
    for cls in _subclasses(OnlineRegressor):
        own = cls.__module__.startswith(f"{LIBRARY}.")
        if cls.__name__ == name and (LIBRARY if own else cls.__module__) == module:
            return cls
    return None


def models_of_users() -> list[type[OnlineRegressor]]:
    """Return the classes that were defined outside of the library, the latest first."""
    return [cls for cls in _subclasses(OnlineRegressor) if not cls.__module__.startswith(f"{LIBRARY}.")]


def _subclasses(cls: type[OnlineRegressor]) -> list[type[OnlineRegressor]]:
    """Return all classes derived from this one, the latest first: a class that was defined again counts once."""
    found = [deeper for sub in cls.__subclasses__() for deeper in (sub, *_subclasses(sub))]
    return found[::-1]
