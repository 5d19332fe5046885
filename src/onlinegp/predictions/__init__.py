"""A prediction is a distribution: mean and standard deviation, and whatever else one may ask of it.

Whoever scores, draws or writes predictions asks them for an interval, a log density or a quantile, and need not know
what kind of distribution they are. Models answer with `Gaussian` unless they say otherwise.
"""

from onlinegp.predictions.base import Predictions
from onlinegp.predictions.components import Components
from onlinegp.predictions.mixture import MixtureOf
from onlinegp.predictions.samples import Samples
from onlinegp.predictions.student import Gaussian, StudentT

__all__ = ["Components", "Gaussian", "MixtureOf", "Predictions", "Samples", "StudentT"]
