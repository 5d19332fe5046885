"""onlinegp: regression on streams with honest uncertainty.

Every online kernel regressor is an online Gaussian process that has made up its mind about its posterior covariance.
"""

from onlinegp import kernels
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
    OnlineGP,
    OnlineRegressor,
)
from onlinegp.models.combined import Lagged, Robust, Scaled
from onlinegp.models.health import BreakdownError
from onlinegp.models.saving import from_bytes, load
from onlinegp.predictions import Gaussian, Predictions
from onlinegp.recipes import dictionaries, forgetting
from onlinegp.samples import Samples
from onlinegp.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "BetaKLMS",
    "BreakdownError",
    "dictionaries",
    "estimate_hyperparameters",
    "FBKRLS",
    "Fleet",
    "forgetting",
    "from_bytes",
    "Gaussian",
    "GPRegression",
    "kernels",
    "KLMS",
    "KNLMS",
    "KRLS",
    "KRLST",
    "Lagged",
    "load",
    "ModelFileError",
    "NORMA",
    "OnlineGP",
    "OnlineRegressor",
    "Predictions",
    "QKLMS",
    "Robust",
    "run",
    "Samples",
    "Scaled",
    "SWKRLS",
    "Trace",
]
