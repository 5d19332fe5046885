"""onlinegp: online regression with honest uncertainty.

Models learn one row at a time and predict a distribution. They range from kernel least mean squares filters to online
Gaussian processes, and all of them are online Gaussian processes with different assumptions about the posterior
covariance. Start with `Auto`, or with `KRLST` and `run`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from onlinegp import kernels
from onlinegp.auto import Auto
from onlinegp.batch.gp import GPRegression
from onlinegp.batch.tuning import estimate_hyperparameters
from onlinegp.columns import Columns
from onlinegp.comparing import Blocks, Comparison, Permutations, compare
from onlinegp.evaluate import run
from onlinegp.files.container import ModelFileError
from onlinegp.fleet import Fleet
from onlinegp.models import (
    EXKRLS,
    FBKLMS,
    FBKRLS,
    KAP,
    KAPSM,
    KLMS,
    KLMSCSAL1,
    KLMSCSL1,
    KNLMS,
    KRLS,
    KRLST,
    L2S,
    LKAPA,
    LMS,
    MKNLMS,
    MXKLMS,
    NLKAPA,
    NLMS,
    NORMA,
    PHYPASS,
    QKLMS,
    QKLMSFB,
    RFFKLMS,
    SWKRLS,
    BetaKLMS,
    Kalman,
    LinearRLS,
    LocalGP,
    OnlineGP,
    OnlineRegressor,
    Persistence,
    ProbLMS,
    RandomFeatureGP,
    ResidualGP,
)
from onlinegp.models.breakdown import BreakdownError
from onlinegp.models.combined import Calibrated, Conformal, Forecaster, HeavyTailed, Lagged, Mixture, Robust, Scaled
from onlinegp.models.saving import from_bytes, load
from onlinegp.parallel import fit_parallel
from onlinegp.predictions import Components, Gaussian, MixtureOf, Predictions, StudentT
from onlinegp.predictions.samples import Samples
from onlinegp.recipes import dictionaries, forgetting, pruning
from onlinegp.trace import Trace

if TYPE_CHECKING:
    from onlinegp import datasets, metrics, plots

__version__ = "0.1.0"

__all__ = [
    "Auto",
    "BetaKLMS",
    "Blocks",
    "BreakdownError",
    "Calibrated",
    "Columns",
    "compare",
    "Comparison",
    "Components",
    "Conformal",
    "datasets",
    "dictionaries",
    "estimate_hyperparameters",
    "EXKRLS",
    "FBKLMS",
    "FBKRLS",
    "fit_parallel",
    "Fleet",
    "Forecaster",
    "forgetting",
    "from_bytes",
    "Gaussian",
    "GPRegression",
    "HeavyTailed",
    "Kalman",
    "KAP",
    "KAPSM",
    "kernels",
    "KLMS",
    "KLMSCSAL1",
    "KLMSCSL1",
    "KNLMS",
    "KRLS",
    "KRLST",
    "L2S",
    "Lagged",
    "LinearRLS",
    "LKAPA",
    "LMS",
    "load",
    "LocalGP",
    "metrics",
    "Mixture",
    "MixtureOf",
    "MKNLMS",
    "ModelFileError",
    "MXKLMS",
    "NLKAPA",
    "NLMS",
    "NORMA",
    "OnlineGP",
    "OnlineRegressor",
    "Permutations",
    "Persistence",
    "PHYPASS",
    "plots",
    "Predictions",
    "ProbLMS",
    "pruning",
    "QKLMS",
    "QKLMSFB",
    "RandomFeatureGP",
    "ResidualGP",
    "RFFKLMS",
    "Robust",
    "run",
    "Samples",
    "Scaled",
    "StudentT",
    "SWKRLS",
    "Trace",
]


def __getattr__(name: str) -> Any:
    """Import `datasets`, `metrics` and `plots` when they are first used."""
    if name in ("datasets", "metrics", "plots"):
        return import_module(f"onlinegp.{name}")
    raise AttributeError(f"module 'onlinegp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__", "__doc__"]
