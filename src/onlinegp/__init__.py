"""onlinegp: regression on streams with honest uncertainty.

Every online kernel regressor is an online Gaussian process that has made up its mind about its posterior covariance.
"""

from onlinegp import kernels
from onlinegp.batch.gp import GPRegression
from onlinegp.batch.tuning import estimate_hyperparameters
from onlinegp.evaluate import Trace, run
from onlinegp.files.model_file import ModelFileError, from_bytes, load
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
)
from onlinegp.recipes import dictionaries, forgetting

__version__ = "0.1.0"

__all__ = [
    "BetaKLMS",
    "FBKRLS",
    "Fleet",
    "GPRegression",
    "KLMS",
    "KNLMS",
    "KRLS",
    "KRLST",
    "ModelFileError",
    "NORMA",
    "OnlineGP",
    "QKLMS",
    "SWKRLS",
    "Trace",
    "dictionaries",
    "estimate_hyperparameters",
    "forgetting",
    "from_bytes",
    "kernels",
    "load",
    "run",
]
