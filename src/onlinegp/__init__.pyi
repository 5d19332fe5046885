"""The names of the package for type checkers: some of them are imported when they are first used."""

from onlinegp import datasets, kafbox, kernels, metrics, plots
from onlinegp.auto import Auto, Tuned
from onlinegp.batch.gp import GPRegression
from onlinegp.batch.tuning import estimate_hyperparameters
from onlinegp.comparing.compare import compare
from onlinegp.evaluate import run
from onlinegp.files.container import ModelFileError
from onlinegp.fleet import Fleet
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
from onlinegp.models.alarms.detector import Detector
from onlinegp.models.breakdown import BreakdownError
from onlinegp.models.combined import Calibrated, Columns, Conformal, HeavyTailed, Lagged, Mixture, Robust, Scaled
from onlinegp.models.model_file import from_bytes, load
from onlinegp.models.temporal.forecaster import Forecaster

__version__: str
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
LATER: dict[str, str]
ELSEWHERE: dict[str, tuple[str, ...]]
