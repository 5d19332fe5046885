"""The model that needs no choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import ClassVar

from onlinegp.auto.members import MEMBERS, Parts
from onlinegp.auto.self_tuning import SelfTuning
from onlinegp.checks import count, fraction, positive
from onlinegp.kernels import Kernel
from onlinegp.kernels.spec import columns
from onlinegp.models.facts import Facts
from onlinegp.models.recipe import parameters


@parameters
class Auto(SelfTuning):
    """Mixture that scales and tunes itself: the model to begin with, in the units of the data.

    The first rows are predicted by mean and spread of those before them, then by members that are chosen at once. After
    `earliest` rows it tunes kernels and noise on them, in a process in the background, lets what it found learn all
    rows so far, and goes on with that; and again whenever the rows have doubled, until `rows`. The last tuning is the
    most careful one, and takes seconds for a thousand rows; a row then takes about a hundred microseconds.

    What it found is a mixture of up to eleven models, weighted by how well each has predicted recently and by how sure
    it is of the row: a GP on current residuals (:class:`ResidualGP`) with the likeliest stationary kernel, and beside
    it, from the same rows, a GP on the nearest rows (:class:`LocalGP`); a local GP with a linear part in its kernel; a
    residual GP with a smoother or rougher kernel; a GP on few centers (:class:`KRLST`); linear regression
    (:class:`LinearRLS`); the last value (:class:`Persistence`); and two with short memories: a KRLST that forgets and a
    GP on the last 150 rows. Each has the tails that its errors show (:class:`HeavyTailed`).

    It follows changes. When the last 150 rows tell more than all rows do, or when predictions become much worse than
    they were, a residual GP ("fresh") starts again with the rows since then, and 150 and 900 rows later another one is
    tuned on them ("retuned"). The others stay as they are: a false alarm costs little, and what comes back is known.

    Not for a microsecond per sample, nor where the same arithmetic must be done for each row: take one of its members.

    Parameters
    ----------
    rows : int
        How many rows it tunes on at last.
    earliest : int, optional
        The number of rows after which it tunes first, at most `rows`; 80, or `rows` if that is less, if None.
    tuning_delay : float
        A tuning on n rows is done in the background and adopted tuning_delay x n rows later, the last one after twice
        as many. If it is not ready then, the stream waits: results depend on the data alone. With zero it waits for
        each tuning, and all of them are careful.
    members : sequence of str
        What may be mixed: some of "residual", "local", "local-linear", "residual-other", "krlst", "linear",
        "persistence", "krlst-recent", "local-recent" and "fresh". Changes are followed with the last two.
        "local-linear" is left out if its kernel is much less likely than that of the first two, and these if theirs is.
    kernel : Kernel, optional
        For inputs and target in standard units: it is used as it is, and only noise and forgetting are tuned.
    noise : float, optional
        Likewise, the variance of the noise in units of the target's variance.
    forgetting : float, optional
        Likewise, the factor of :class:`KRLST` and :class:`LocalGP`.
    neighbors : int
        From how many rows a local or residual GP answers a question.
    store : int, optional
        How many of the latest rows the local and residual GPs keep; all if None.
    budget : int
        The number of centers of the KRLST.

    Attributes
    ----------
    chosen_ : OnlineRegressor or None
        What was found, as a model that has learned nothing; None before the first tuning.
    weights_ : dict
        The weight that each member has in the next prediction, by its name.
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

    facts: ClassVar[Facts] = Facts(
        cost="O(n d + k^3) per sample with n the rows kept and k the neighbors: some 300 us",
        memory="O(N d) with N the rows kept for the local GPs (store), O(M^2) for the KRLST",
        equation="p(y) = sum_j w_j p_j(y) over up to eleven members",
        variance=(
            "that of a mixture of members with the tails that their errors show; near what it promises on the "
            "streams of the guide"
        ),
        citation=(
            'Raftery, Karny and Ettler, "Online prediction under model uncertainty via dynamic model averaging", '
            "Technometrics, 2010."
        ),
    )

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
            noise=None if self.noise is None else positive("Leave it out to have it tuned.", noise=self.noise),
            forgetting=None if self.forgetting is None else fraction(forgetting=self.forgetting),
            neighbors=count(neighbors=self.neighbors),
            store=None if self.store is None else count("Use None to keep all.", store=self.store),
            budget=count(budget=self.budget),
        )

    @property
    def weights_(self) -> dict[str, float]:
        return self._auto.weights()

    @property
    def changes_(self) -> list[tuple[int, str]]:
        return self._auto.changes()
