"""Predictive distributions: mean, standard deviation, intervals, quantiles and densities.

Code that scores, draws or writes predictions asks for an interval, a log density or a quantile. It does not need to
know the kind of distribution. Most models predict a `Gaussian`.
"""

from onlinegp.predictions.base import Predictions
from onlinegp.predictions.components import Components
from onlinegp.predictions.mixture import MixtureOf
from onlinegp.predictions.samples import Samples
from onlinegp.predictions.student import Gaussian, StudentT
from onlinegp.predictions.transformed import TransformedPredictions

__all__ = ["Components", "Gaussian", "MixtureOf", "Predictions", "Samples", "StudentT", "TransformedPredictions"]
