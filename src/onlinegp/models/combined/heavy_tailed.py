"""Predictions for data with outliers: mixtures of a normal distribution and Student's t distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, replace
from math import inf

import numpy as np

from onlinegp.checks import Array, fraction, positive
from onlinegp.engine.plan import Constant, Plan, around
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import INSIDE, OuterRegressor, SpreadLearner, stretched
from onlinegp.models.combined.calibrated import FadingScale, squared
from onlinegp.models.error_tracking import check_log_weights, fading_weights, keep_of, shares_of, weights_rule
from onlinegp.models.recipe import parameters
from onlinegp.predictions import Components, Gaussian, MixtureOf, Predictions, StudentT
from onlinegp.predictions.components import log_of_sum
from onlinegp.predictions.mixture import as_components
from onlinegp.state import Values, array


@parameters
class HeavyTailed(OuterRegressor):
    """Wrap a model and fit the tails of its predictions to its errors.

    The prediction is a mixture of the inner model's prediction, with a calibrated variance (:class:`Calibrated`), and
    of Student's t distributions with the same mean and with scales learned from the errors. Per output, the weights
    follow from past log densities: log w <- fade log w + log p. The inner model learns as it would alone.

    If errors are normal, the log density is lower by less than 0.01 nats per row. Predictions are calibrated already:
    do not add `Calibrated`.

    Cost: as for the inner model
    Memory: as for the inner model
    Equation: p(y) = sum_j w_j t_j(y), log w <- fade log w + log p
    Variance of y: calibrated, with tails learned from the errors

    Parameters
    ----------
    model : OnlineRegressor
        The inner model. A copy with the same parameters learns; this object does not change.
    degrees : sequence of float
        Degrees of freedom of the t distributions, each greater than two.
    half_life : float
        The number of rows after which the weight of an error in the scales has halved.
    fade : float
        The factor in (0, 1] by which past log densities are multiplied with each row.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X, noise = np.zeros((2000, 1)), np.random.default_rng(0).standard_t(3, 2000)
    >>> plain = ogp.run(ogp.Calibrated(ogp.LinearRLS(noise=1.0)), X, noise)
    >>> heavy = ogp.run(ogp.HeavyTailed(ogp.LinearRLS(noise=1.0)), X, noise)
    >>> bool(heavy.log_density.mean() > plain.log_density.mean() + 0.1)
    True

    References
    ----------
    Lange, Little and Taylor, "Robust statistical modeling using the t distribution", J. American Statistical
    Association, 1989.
    """

    model: OnlineRegressor
    _: KW_ONLY
    degrees: Sequence[float] = (3.0, 6.0, 12.0)
    half_life: float = 100.0
    fade: float = 0.99

    def check(self) -> None:
        self._options()
        super().check()

    def start(self, features: int, outputs: int) -> HeavyTailedLearner:
        return HeavyTailedLearner(self._inside().start(features, outputs), *self._options())

    def _options(self) -> tuple[tuple[float, ...], float, float]:
        try:
            listed = list(self.degrees)
        except TypeError:
            raise TypeError(f"degrees must be a list of numbers, such as (3, 6, 12), got {self.degrees!r}.") from None
        degrees = tuple(positive(degrees=nu) for nu in listed)
        if not degrees or min(degrees) <= 2.0:
            raise ValueError(
                f"degrees must be numbers greater than 2, at least one, got {self.degrees!r}. Use 2.1 for very heavy "
                f"tails; with two or less there is no variance."
            )
        return degrees, keep_of(positive(half_life=self.half_life)), fraction(fade=self.fade)

    @property
    def weights_(self) -> Array:
        """The current weights of the inner prediction and of the t distributions, (1 + k,) or (outputs, 1 + k)."""
        learner = self._working
        assert isinstance(learner, HeavyTailedLearner)
        weights = learner.weights()
        return weights[0] if self._single else weights


class HeavyTailedLearner(SpreadLearner):
    """An inner learner, and the scale and the log weight of each component, (outputs, components)."""

    fields = {
        "log_weights": array("outputs", "scales"),
        "total": array("scales", "outputs", positive=True),
        "count": array("scales", "outputs", positive=True),
        **INSIDE,
    }

    def __init__(self, inner: Learner, degrees: tuple[float, ...], keep: float, fade: float) -> None:
        super().__init__(inner)
        self.degrees, self.fade = degrees, fade
        unit = [FadingScale(inner.outputs, keep, first=(nu - 2.0) / nu, degrees=nu) for nu in degrees]  # variance one
        self.scales = [FadingScale(inner.outputs, keep), *unit]
        self.total, self.count = (np.array([getattr(one, name) for one in self.scales]) for name in ("total", "count"))
        self.log_weights = np.zeros((inner.outputs, len(self.scales)))
        self.rebuild()

    def update(self, predicted: Predictions, Y: Array, before: int) -> Predictions:
        Z2 = squared(predicted, Y)
        squares = np.stack([scale.update(Z2) for scale in self.scales], axis=-1)
        parts = self._mixed(predicted, np.ones(squares.shape), squares)
        inside = parts.weights.shape[-1] - len(self.degrees)  # components of the inner prediction
        densities = parts.log_densities(Y)
        if inside > 1:
            together = log_of_sum(parts.weights[..., :inside], densities[..., :inside])
            densities = np.concatenate([together[..., None], densities[..., inside:]], axis=-1)
        weights = np.empty(densities.shape)
        for j in range(self.outputs):
            weights[:, j] = fading_weights(densities[:, j], self.fade, self.log_weights[j])
        return replace(parts, weights=_shared(weights, parts.weights[..., :inside]))

    def current(self, predicted: Predictions) -> Predictions:
        squares = np.stack([scale.current() for scale in self.scales], axis=-1)
        return self._mixed(predicted, np.tile(self.weights(), (len(predicted), 1, 1)), squares)

    def weights(self) -> Array:
        """Return the current weights of the components, (outputs, components)."""
        return np.array([shares_of(own) for own in self.log_weights])

    def _mixed(self, predicted: Predictions, weights: Array, squares: Array) -> Components | MixtureOf:
        """Mix the stretched inner predictions with t distributions. squares: squared scales, (..., components)."""
        factors = np.sqrt(squares)
        if type(predicted) is Gaussian:
            means = np.repeat(predicted.mean[..., None], len(self.scales), axis=-1)
            return Components(weights, means, factors * predicted.std[..., None], (inf, *self.degrees))
        first, students = stretched(predicted, factors[..., 0]), factors[..., 1:] * predicted.std[..., None]
        inner = as_components(first)
        if inner is None:
            heavy = (StudentT(predicted.mean, students[..., k], nu) for k, nu in enumerate(self.degrees))
            return MixtureOf(weights, (first, *heavy))
        means = np.repeat(predicted.mean[..., None], len(self.degrees), axis=-1)
        return Components(
            _shared(weights, inner.weights),
            np.concatenate([inner.means, means], axis=-1),
            np.concatenate([inner.scales, students], axis=-1),
            inner.degrees + self.degrees,
        )

    def plan(self) -> Plan | None:
        numbers: dict[str, Constant] = {"degrees": self.degrees, **self.scales[0].rule(), **weights_rule(self.fade)}
        fields = {"total": self.total, "count": self.count, "log_weights": self.log_weights}
        return around("heavy tailed", self, numbers, fields, {"model": self.inner})

    def check(self, values: Values) -> None:
        check_log_weights(values["log_weights"])

    def rebuild(self) -> None:
        for scale, total, count in zip(self.scales, self.total, self.count, strict=True):
            scale.total, scale.count = total, count


def _shared(weights: Array, inner: Array) -> Array:
    """Return the weights of all components. The components of the inner prediction divide the first weight."""
    if inner.shape[-1] == 1:
        return weights
    return np.concatenate([weights[..., :1] * inner, weights[..., 1:]], axis=-1)
