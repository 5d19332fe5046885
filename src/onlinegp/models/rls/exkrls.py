"""Extended kernel recursive least squares."""

from __future__ import annotations

from dataclasses import KW_ONLY

from onlinegp.checks import count, fraction, non_negative, positive
from onlinegp.kernels import Kernel
from onlinegp.models.recipe import RecipeRegressor, parameters
from onlinegp.models.rls.krlst import JITTER
from onlinegp.recipes.beliefs import StateSpace
from onlinegp.recipes.pruning import LeastError
from onlinegp.recipes.update import Recipe

LEAST_TRANSITION = 1e-100


@parameters
class EXKRLS(RecipeRegressor):
    """Extended KRLS: a Kalman filter for a function that fades and drifts with each sample.

        f <- transition f + d,    d ~ GP(0, drift noise k),    y = f(x) + e,    e ~ N(0, noise)

    With every new sample, the noise of past samples grows by the factor 1 / forgetting. O(M^2) per sample with M the
    budget, O(M^2) memory; about 9 us with 100 centers, and 120 us with 500.

    Far from all data, the variance depends on the parameters. If transition^2 exceeds forgetting, it grows to at most
    1e4 times the prior variance. With the default values it grows by drift noise per sample. If transition^2 is below
    forgetting, it converges to drift noise / (forgetting - transition^2) times k(x, x).

    Use it if the function drifts and you roughly know the ratio of drift to noise. Otherwise, or for intervals far from
    the data, use :class:`~onlinegp.KRLST`, which has one parameter for drift and returns to the prior far from the
    data.

    Differs from KAFBOX: KAFBOX stores inverses and subtracts them, which loses all digits on a smooth stream. This
    class uses whitened coordinates, like :class:`~onlinegp.KRLST`, and stays accurate. KAFBOX stops learning when its
    budget is full. This class removes the center that matters least, and does not add a center for a sample that
    differs from the span of the centers by less than a thousandth of the noise. In its first step, KAFBOX divides drift
    by forgetting where the model multiplies, a relative difference of about drift noise. KAFBOX's lambda is noise /
    forgetting. Its default values, transition=0.999 and forgetting=0.995, are for a fading channel. With them, a
    constant function fades to zero, on the Mackey-Glass series after a few thousand samples.

    Cost: O(M^2) per sample with M the budget, O(M^2) memory
    Memory: O(M^2) with M the budget
    Equation: mu <- a (mu + g e / s), Sigma <- (a^2 (Sigma - g g' / s) + drift noise K) / lambda
    Variance of y: of a GP that fades and drifts, through M centers; far from all data it may grow

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    noise : float
        The variance of the noise in y.
    budget : int
        The largest number of centers M.
    transition : float
        The factor in (0, 1] by which f is multiplied with each sample.
    drift : float
        The variance of the change of f per sample, divided by noise k(x, x); zero for no drift.
    forgetting : float
        The factor in (0, 1] by which the squared errors of past samples are multiplied with each sample; 1 forgets
        nothing.
    engine : str
        See :class:`~onlinegp.models.recipe.RecipeRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0] + 0.002 * np.arange(500))
    >>> trace = ogp.run(ogp.kafbox.EXKRLS(ogp.kernels.RBF(1.0), noise=1e-3, drift=1e-2, budget=30), X, y)
    >>> bool(np.mean((y - trace.mean)[100:] ** 2) < 1e-2)
    True

    References
    ----------
    Liu, Park, Wang and Principe, "Extended kernel recursive least squares algorithm", IEEE Trans. Signal Processing,
    2009.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    noise: float = 1e-2
    budget: int = 100
    transition: float = 1.0
    drift: float = 1e-3
    forgetting: float = 1.0

    def recipe(self) -> Recipe:
        return Recipe(
            self._kernel(),
            StateSpace(
                positive(noise=self.noise),
                JITTER,
                self._transition(),
                non_negative("Use 0.0 for a function that does not drift.", drift=self.drift),
                fraction("Use 1.0 to forget nothing.", forgetting=self.forgetting),
            ),
            pruning=LeastError(count("OnlineGP(budget=None) has no limit.", budget=self.budget)),
        )

    def _transition(self) -> float:
        factor = fraction("Use 1.0 for a function that does not fade.", transition=self.transition)
        if factor < LEAST_TRANSITION:
            raise ValueError(
                f"transition must be at least {LEAST_TRANSITION:g}, got {self.transition!r}: its square would be "
                f"rounded to zero. Use a larger value: a function that fades so fast cannot be learned."
            )
        return factor
