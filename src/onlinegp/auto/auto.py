"""`Auto`: a mixture that scales and tunes itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import ClassVar

from onlinegp.auto.composed import Member
from onlinegp.auto.members import MEMBERS, Parts
from onlinegp.auto.self_tuning import REMEDY, SelfTuning
from onlinegp.checks import count, fraction, positive
from onlinegp.kernels import Kernel
from onlinegp.kernels.spec import columns
from onlinegp.models.facts import Facts
from onlinegp.models.recipe import parameters


@parameters
class Auto(SelfTuning):
    """A mixture that scales and tunes itself, in the units of the data: the model to start with.

    The first rows are predicted by the mean and spread of the rows before them, then by members that need no tuning.
    After `earliest` rows, a background process tunes kernels and noise. The tuned model learns all rows so far and
    replaces the first members. This is repeated each time the number of rows has doubled, up to `rows` rows. The last
    tuning is the most thorough and takes seconds for a thousand rows. Afterwards, a row takes about a hundred
    microseconds.

    The tuned model is a mixture of up to eleven members. Members have more weight if they have predicted well recently,
    and at rows where they are certain. The members are a GP on current residuals (:class:`ResidualGP`) and a GP on the
    nearest rows (:class:`LocalGP`), both with the most likely stationary kernel; a residual GP with a linear part; one
    with a smoother or rougher kernel; a GP on few centers (:class:`KRLST`); linear regression (:class:`LinearRLS`); the
    last value (:class:`Persistence`); and two with short memories, a KRLST that forgets and a GP on the last 150 rows.
    The tails of the predictions of each member are fitted to its errors (:class:`HeavyTailed`).

    For skewed targets without negative values, the model learns a root or the logarithm of y if this makes the observed
    values more likely (:class:`~onlinegp.models.combined.Transformed`). Predictions are in the units of the data. If
    more than half of the targets are zero, y stays as it is, because means would be far too small; then intervals are
    nearly symmetric, and their lower ends may be negative.

    The model follows changes. If the member with the last 150 rows predicts better than the members with all rows, or
    if predictions become much worse than before, a residual GP ("fresh") starts again from the rows since the change.
    After the last tuning, the background process also tunes another residual GP ("retuned") on the rows since the
    change: 150 and 700 rows after it was detected, for use 150 and 300 rows later. The other members continue, so that
    a false alarm does little harm, and the mixture still knows the earlier relation if it returns.

    A value beyond ten predicted standard deviations is clipped before the members learn it, unless it is the fourth in
    a row: a spike is not predicted again, and a jump is followed.

    If rows must take microseconds, or if all rows must take the same time, use a single member instead.

    Cost: O(n d + k^3) per sample with n the rows kept and k the neighbors: about 300 us
    Memory: O(N d) with N the rows kept for the local GPs (store), O(M^2) for the KRLST
    Equation: p(y) = sum_j w_j p_j(y) over up to eleven members
    Variance of y: of a mixture of members with tails fitted to their errors; close to its nominal level on the
        streams of the guide

    Parameters
    ----------
    rows : int
        The number of rows of the last tuning.
    earliest : int, optional
        The number of rows of the first tuning, at most `rows`. If None: 80, or `rows` if that is less.
    tuning_delay : float
        A tuning on n rows runs in the background and is used tuning_delay x n rows later, the last tuning after twice
        this number. If it is not ready by then, the stream waits, so that results depend only on the data. With zero
        the stream waits for each tuning, and all tunings are thorough.
    members : sequence of str
        The members of the mixture: any of "residual", "local", "residual-linear", "residual-other", "krlst", "linear",
        "persistence", "krlst-recent", "local-recent" and "fresh". The last two
        follow changes. Members among the first three with a much less likely kernel are left out.
    kernel : Kernel, optional
        The kernel for inputs and target in standard units. If given, only noise and forgetting are tuned.
    noise : float, optional
        The variance of the noise divided by the variance of the target; tuned if None.
    forgetting : float, optional
        The forgetting factor of :class:`KRLST` and :class:`LocalGP`; tuned if None.
    neighbors : int
        The number of rows from which a local or residual GP predicts.
    store : int, optional
        The number of latest rows that the local and residual GPs keep; all if None.
    budget : int
        The number of centers of the KRLST.

    Attributes
    ----------
    chosen_ : OnlineRegressor or None
        The tuned model, unfitted; None before the first tuning.
    weights_ : dict
        The weight of each member in the next prediction, by name.
    members_ : list of Member
        The members of the mixture. Each has a name, weight, error (its usual standard deviation, in standard deviations
        of the target), behind (how far its recent log density is below the best member, in nats per row), cost and
        model.
    changes_ : list of (int, str)
        The changes that were detected: the row where each began, and what changed, "relation", "inputs" or "target".

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(0, 100, (200, 2))
    >>> y = 70 + 5 * np.sin(X[:, 0] / 10) + 0.1 * X[:, 1]
    >>> model = ogp.Auto().fit(X, y)
    >>> mean, std = model.predict(X[:3], return_std=True)
    >>> sorted(model.weights_)[0]
    'fresh'

    References
    ----------
    Raftery, Karny and Ettler, "Online prediction under model uncertainty via dynamic model averaging", Technometrics,
    2010.
    """

    _: KW_ONLY
    rows: int = 1000
    earliest: int | None = None
    tuning_delay: float = 0.5
    members: Sequence[str] = MEMBERS
    kernel: Kernel | None = None
    noise: float | None = None
    forgetting: float | None = None
    neighbors: int = 64
    store: int | None = 50_000
    budget: int = 300

    facts: ClassVar[Facts] = Facts(remedy=REMEDY)

    def check(self) -> None:
        self.start(1 if self.kernel is None else columns(self.kernel), 1)

    def _chooser(self) -> Parts:
        names = tuple(self.members) if isinstance(self.members, Sequence) else (self.members,)
        if isinstance(self.members, str) or not names or not set(names) <= set(MEMBERS):
            raise ValueError(f"members must be some of {', '.join(MEMBERS)}, in a list, got {self.members!r}.")
        if self.kernel is not None and not isinstance(self.kernel, Kernel):
            raise TypeError(f"kernel must be a kernel of onlinegp.kernels or None, got {self.kernel!r}.")
        return Parts(
            members=tuple(dict.fromkeys(names)),
            kernel=self.kernel,
            noise=None if self.noise is None else positive("Use None to tune it.", noise=self.noise),
            forgetting=None if self.forgetting is None else fraction(forgetting=self.forgetting),
            neighbors=count(neighbors=self.neighbors),
            store=None if self.store is None else count("Use None to keep all rows.", store=self.store),
            budget=count(budget=self.budget),
        )

    @property
    def weights_(self) -> dict[str, float]:
        return self._auto.weights()

    @property
    def members_(self) -> list[Member]:
        return self._auto.members()

    @property
    def changes_(self) -> list[tuple[int, str]]:
        return self._auto.changes()
