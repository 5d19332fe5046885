"""Titles of the families of models, by package."""

from __future__ import annotations

from onlinegp.models.base import OnlineRegressor

FAMILIES = {
    "onlinegp.auto": "The model to begin with",
    "onlinegp.models.rls": "Gaussian processes with a tracked posterior",
    "onlinegp.models.local": "Gaussian processes on the nearest rows",
    "onlinegp.models.temporal": "Models of series",
    "onlinegp.models.features": "Models on a fixed random basis",
    "onlinegp.models.lms": "Kernel least mean squares",
    "onlinegp.models.affine": "Kernel affine projections",
    "onlinegp.models.linear": "Linear filters",
    "onlinegp.models.baselines": "Baselines",
    "onlinegp.models.combined": "Models made of models",
    "onlinegp.models.alarms": "Alarms",
}
OTHER = "Models of your own"


def family(estimator: type[OnlineRegressor]) -> str:
    """Return the title of the family of a class."""
    module = f"{estimator.__module__}."
    return next((title for package, title in FAMILIES.items() if module.startswith(f"{package}.")), OTHER)
