"""onlinegp: online regression with honest uncertainty.

Models learn one row at a time and predict a distribution. They range from kernel least mean squares filters to online
Gaussian processes; both are Gaussian processes with different assumptions about the posterior covariance. Start with
`Auto`, or with `KRLST` and `run`.
"""

from importlib import import_module
from typing import Any

from onlinegp import kafbox, kernels
from onlinegp.evaluate import run
from onlinegp.files.container import ModelFileError
from onlinegp.models import (
    KLMS,
    KNLMS,
    KRLS,
    KRLST,
    LMS,
    NLMS,
    QKLMS,
    BetaKLMS,
    Kalman,
    LinearRLS,
    LocalGP,
    OnlineGP,
    OnlineRegressor,
    Persistence,
    RandomFeatureGP,
    ResidualGP,
    SmoothedLags,
    TemporalGP,
)
from onlinegp.models.breakdown import BreakdownError
from onlinegp.models.combined import Calibrated, Columns, Conformal, HeavyTailed, Lagged, Mixture, Robust, Scaled
from onlinegp.models.model_file import from_bytes, load

__version__ = "0.2.0"

__all__ = [
    "Auto",
    "BetaKLMS",
    "BreakdownError",
    "Calibrated",
    "Columns",
    "compare",
    "Conformal",
    "datasets",
    "Detector",
    "estimate_hyperparameters",
    "Fleet",
    "Forecaster",
    "from_bytes",
    "GPRegression",
    "HeavyTailed",
    "kafbox",
    "Kalman",
    "kernels",
    "KLMS",
    "KNLMS",
    "KRLS",
    "KRLST",
    "Lagged",
    "LinearRLS",
    "LMS",
    "load",
    "LocalGP",
    "metrics",
    "Mixture",
    "ModelFileError",
    "NLMS",
    "OnlineGP",
    "OnlineRegressor",
    "Persistence",
    "plots",
    "QKLMS",
    "RandomFeatureGP",
    "ResidualGP",
    "Robust",
    "run",
    "Scaled",
    "SmoothedLags",
    "TemporalGP",
    "Tuned",
]
LATER = {  # names that are imported on first use, and their modules
    "Auto": "auto",
    "compare": "comparing",
    "Detector": "models.alarms.detector",
    "estimate_hyperparameters": "batch.tuning",
    "Fleet": "fleet",
    "Forecaster": "models.temporal.forecaster",
    "GPRegression": "batch.gp",
    "Tuned": "auto",
}
ELSEWHERE = {  # public names in other modules
    "comparing": ("Blocks", "Comparison", "Permutations"),
    "datasets": ("channel_switch", "embed", "lorenz", "mackey_glass", "robot_arm"),
    "kernels": ("Linear", "Matern12", "Matern32", "Matern52", "Polynomial", "RBF"),
    "parallel": ("fit_parallel",),
    "predictions": ("Components", "Gaussian", "MixtureOf", "Predictions", "Samples", "StudentT"),
    "recipes": ("dictionaries", "forgetting", "pruning"),
    "trace": ("Trace",),
}


def __getattr__(name: str) -> Any:
    """Import a part of the library on first use. For other names, the error says where they are."""
    if name in ("auto", "batch", "comparing", "datasets", "fleet", "metrics", "parallel", "plots"):
        return import_module(f"onlinegp.{name}")
    if name in LATER:
        return getattr(import_module(f"onlinegp.{LATER[name]}"), name)
    found = [f" Use onlinegp.{module}.{name}." for module, names in ELSEWHERE.items() if name in names]
    found += [f" Use onlinegp.{own}." for own in __all__ if own.lower() == name.lower()]
    found += [f" Use onlinegp.{'' if own in __all__ else 'kafbox.'}{own}." for own in [kafbox.meant(name)] if own]
    raise AttributeError(f"module 'onlinegp' has no attribute {name!r}.{found[0] if found else ''}")


def __dir__() -> list[str]:
    return [*__all__, "__version__", "__doc__"]
