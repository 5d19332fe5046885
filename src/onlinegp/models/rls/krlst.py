"""Kernel recursive least-squares tracker."""

from __future__ import annotations

from dataclasses import KW_ONLY

from onlinegp.checks import choice, count, fraction, positive
from onlinegp.kernels import Kernel
from onlinegp.models.recipe import RecipeRegressor, chosen_dictionary, parameters
from onlinegp.recipes.beliefs import Posterior
from onlinegp.recipes.dictionaries import Dictionary
from onlinegp.recipes.forgetting import BackToPrior, Forgetting, Keep, UncertaintyInjection
from onlinegp.recipes.pruning import LeastError
from onlinegp.recipes.update import Recipe

JITTER = 1e-12  # added to the diagonal of K, relative to k(x, x)


@parameters
class KRLST(RecipeRegressor):
    """KRLS tracker: online GP regression with a budget and forgetting, for functions that change.

    As for a Gaussian process, the variance shrinks near data, and it returns to the prior as the data age. KRLST
    follows changes best of all models here. Use the KLMS family if O(M^2) is too expensive.

    Differs from KAFBOX: KAFBOX learns a signal power, which multiplies all variances, and never forgets it. Here the
    variance of the kernel is the signal power. ``power="learned"`` learns and forgets the signal power. KAFBOX's jitter
    of 1e-6 limits its accuracy.

    Cost: O(M^2) per sample with M the budget, O(M^2) memory
    Memory: O(M^2) with M the budget
    Equation: b <- sqrt(lambda) b + h e / s, S <- lambda S + (1 - lambda) I - h h' / s, in coordinates f(C) = L u
    Variance of y: of a GP over all samples, through M centers; it returns to the prior as samples age

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    noise : float
        The variance of the noise in y. Samples that differ from the span of the centers by less than a thousandth of
        the noise do not become centers.
    budget : int
        The largest number of centers M. Beyond it, the center that matters least to the mean is removed.
    forgetting : float or Forgetting
        A factor lambda in (0, 1]; 1 forgets nothing. A number moves the posterior back to the prior, Sigma <- lambda
        Sigma + (1 - lambda) K and mu <- sqrt(lambda) mu. ``UncertaintyInjection(factor)`` increases it, Sigma <- Sigma
        / lambda.
    power : {"fixed", "learned"}
        Whether the signal power, a factor of all variances, comes from the kernel or is learned from the innovations.
    dictionary : Dictionary, optional
        Which samples may become centers, from :mod:`onlinegp.recipes.dictionaries`; every sample if None. Other
        samples are projected onto the centers.
    jitter : float
        Added to the diagonal of K, relative to k(x, x). The default is just above rounding errors.
    engine : str
        See :class:`~onlinegp.models.recipe.RecipeRegressor`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> y = np.sin(X[:, 0])
    >>> model = ogp.KRLST(ogp.kernels.RBF(1.0), noise=1e-3, budget=20, forgetting=0.9999).fit(X, y)
    >>> mean, std = model.predict([[0.0], [9.0]], return_std=True)
    >>> bool(std[0] < 0.1 < std[1])  # near the data, and far from them
    True

    References
    ----------
    Van Vaerenbergh, Lazaro-Gredilla and Santamaria, "Kernel recursive least-squares tracker for time-varying
    regression", IEEE Trans. Neural Networks and Learning Systems, 2012.
    """

    kernel: Kernel | None = None
    _: KW_ONLY
    noise: float = 1e-2
    budget: int = 100
    forgetting: float | Forgetting = 1.0
    power: str = "fixed"
    dictionary: Dictionary | None = None
    jitter: float = JITTER

    def recipe(self) -> Recipe:
        return Recipe(
            self._kernel(),
            Posterior(positive(noise=self.noise), positive(jitter=self.jitter)),
            dictionary=chosen_dictionary(self.dictionary),
            forgetting=self._forgetting(),
            pruning=LeastError(count("OnlineGP(budget=None) has no limit.", budget=self.budget)),
            learn_power=choice(("fixed", "learned"), power=self.power) == "learned",
        )

    def _forgetting(self) -> Forgetting:
        if isinstance(self.forgetting, (Keep, BackToPrior, UncertaintyInjection)):
            fraction(forgetting=self.forgetting.factor)
            return self.forgetting
        factor = fraction("Use 1.0 to forget nothing.", forgetting=self.forgetting)
        return Keep() if factor == 1.0 else BackToPrior(factor)
