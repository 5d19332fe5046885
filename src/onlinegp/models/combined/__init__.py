"""Models that wrap other models and change their inputs or predictions."""

from onlinegp.models.combined.calibrated import Calibrated
from onlinegp.models.combined.columns import Columns
from onlinegp.models.combined.conformal import Conformal
from onlinegp.models.combined.heavy_tailed import HeavyTailed
from onlinegp.models.combined.iterated_forecaster import IteratedForecaster
from onlinegp.models.combined.lagged import Lagged
from onlinegp.models.combined.mixture import Mixture
from onlinegp.models.combined.robust import Robust
from onlinegp.models.combined.scaled import Scaled
from onlinegp.models.combined.transformed import Transformed

__all__ = [
    "Calibrated",
    "Columns",
    "Conformal",
    "HeavyTailed",
    "IteratedForecaster",
    "Lagged",
    "Mixture",
    "Robust",
    "Scaled",
    "Transformed",
]
