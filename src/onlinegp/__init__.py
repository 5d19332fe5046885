"""onlinegp: regression on streams with honest uncertainty.

Every online kernel regressor is an online Gaussian process that has made up its mind about its posterior covariance.
"""

from onlinegp import kernels
from onlinegp.auto import Auto
from onlinegp.batch.gp import GPRegression
from onlinegp.batch.tuning import estimate_hyperparameters
from onlinegp.evaluate import run
from onlinegp.files.container import ModelFileError
from onlinegp.fleet import Fleet
from onlinegp.models import (
    FBKRLS,
    KLMS,
    KNLMS,
    KRLS,
    KRLST,
    NORMA,
    QKLMS,
    SWKRLS,
    BetaKLMS,
    LinearRLS,
    LocalGP,
    OnlineGP,
    OnlineRegressor,
    RandomFeatureGP,
)
from onlinegp.models.combined import Calibrated, Conformal, HeavyTailed, Lagged, Mixture, Robust, Scaled
from onlinegp.models.health import BreakdownError
from onlinegp.models.saving import from_bytes, load
from onlinegp.parallel import fit_parallel
from onlinegp.predictions import Gaussian, MixtureOf, Predictions, StudentT
from onlinegp.recipes import dictionaries, forgetting
from onlinegp.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "Auto",
    "BetaKLMS",
    "BreakdownError",
    "Calibrated",
    "Conformal",
    "dictionaries",
    "estimate_hyperparameters",
    "FBKRLS",
    "fit_parallel",
    "Fleet",
    "forgetting",
    "from_bytes",
    "Gaussian",
    "GPRegression",
    "HeavyTailed",
    "kernels",
    "KLMS",
    "KNLMS",
    "KRLS",
    "KRLST",
    "Lagged",
    "LinearRLS",
    "load",
    "Mixture",
    "MixtureOf",
    "LocalGP",
    "ModelFileError",
    "NORMA",
    "OnlineGP",
    "OnlineRegressor",
    "Predictions",
    "QKLMS",
    "RandomFeatureGP",
    "Robust",
    "run",
    "Scaled",
    "StudentT",
    "SWKRLS",
    "Trace",
]
