"""Mix the predictions of several models with weights from their past errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, fraction, non_negative
from onlinegp.engine.compiled import outer
from onlinegp.kernels.importance import KernelInUse
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.change_detector import ChangeDetector
from onlinegp.models.combined.mixture_learner import MixtureLearner
from onlinegp.models.error_tracking import (
    LEAST,
)
from onlinegp.models.recipe import parameters


@parameters
class Mixture(OnlineRegressor):
    """Run several models, and mix their predictions with weights that follow from their past predictions.

    The prediction is the mixture of the members' distributions. The weights come from the log densities of the observed
    values, of all outputs together, with more weight for recent rows: log w <- fade log w + log p. One row counts for
    at most 0.5 / (1 - fade) nats, so that one outlier does not decide the weights.
    With fade = 1 there is no such bound, and Bayes' rule gives the weights: for one output, the sum of the mixture's
    log densities is below the sum of any member by at most log(number of members).

    With a gate, a member gets less weight at a row where it is less certain than usual, for example because it has seen
    no data near x: its weight is multiplied by (usual std / std)^gate, where the usual log std is a fading mean of 50
    rows. But it never gets more weight than a member that is more certain at this row and has predicted better, with
    at least three times its weight. The bound above holds for gate = 0.

    With `lasting`, the longer record of a member counts, too: `lasting` times a fading mean over 50 rows of the
    difference between its log density and the best log density, at most 12 nats. Use it if the noise is so large that a
    few recent rows do not show which member is best.

    All members learn all rows as they would alone, on several threads. Use a mixture if you do not know the best model,
    or if the best model changes. A mixture does not help if all members predict nearly the same. A :class:`ResidualGP`
    and a :class:`LocalGP` with the same kernel and parameters share their rows and the solution of their equations:
    together they cost the same as the ResidualGP alone.

    Cost: the sum over the members
    Memory: the sum over the members
    Equation: p(y) = sum_j w_j p_j(y), log w <- fade log w + log p
    Variance of y: of the mixture: large where the members disagree

    Parameters
    ----------
    models : list of (name, OnlineRegressor), or of OnlineRegressor
        The members. Copies with the same parameters learn; these objects do not change. The default name is the class
        in lower case, with a number if several members have the same class: parameters are ``krlst-1__noise``.
    fade : float
        The factor in (0, 1] by which past log densities are multiplied with each row.
    weights : sequence of float, optional
        The initial log weights, for example sums of log densities on earlier rows. They may differ by a common
        constant. Equal weights if None.
    gate : float
        The strength of the gate; zero for none, 2 is a good value.
    lasting : float
        The longer record of a member counts like this number of rows; zero for none, 10 is a good value.
    restarting : sequence of str
        Names of members that start again after a change of the stream and learn the rows since the change. A change is
        detected when `against` is better than all of these members by 20 nats. The other members continue, so that a
        false alarm does little harm, and the mixture still knows the earlier relation if it returns.
    against : str, optional
        The name of a member with a short memory. The restarting members are compared with it.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (300, 1))
    >>> model = ogp.Mixture([("line", ogp.LinearRLS()), ("gp", ogp.KRLST())]).fit(X, np.sin(2 * X[:, 0]))
    >>> model.weights_["gp"] > 0.9
    True
    >>> ogp.run(model, X, np.sin(2 * X[:, 0])).predictions.weights.shape
    (300, 2)

    References
    ----------
    Raftery, Karny and Ettler, "Online prediction under model uncertainty via dynamic model averaging", Technometrics,
    2010.
    """

    models: Sequence[Any]
    _: KW_ONLY
    fade: float = 0.9
    weights: ArrayLike | None = None
    gate: float = 0.0
    lasting: float = 0.0
    restarting: Sequence[str] = ()
    against: str | None = None

    def check(self) -> None:
        fraction("Use 1.0 to forget nothing.", fade=self.fade)
        non_negative("Use 0.0 for none.", gate=self.gate)
        non_negative("Use 0.0 for none.", lasting=self.lasting)
        self._first_weights()
        self._detector(1, 1)
        for _, model in self.named():
            model.check()

    def start(self, features: int, outputs: int) -> MixtureLearner:
        fade = fraction("Use 1.0 to forget nothing.", fade=self.fade)
        learners = {name: model.start(features, outputs) for name, model in self.named()}
        gate = non_negative("Use 0.0 for none.", gate=self.gate)
        lasting = non_negative("Use 0.0 for none.", lasting=self.lasting)
        return MixtureLearner(learners, fade, self._first_weights(), gate, self._detector(features, outputs), lasting)

    def _detector(self, features: int, outputs: int) -> ChangeDetector | None:
        members, fresh = (
            dict(self.named()),
            [self.restarting] if isinstance(self.restarting, str) else list(self.restarting),
        )
        if not fresh and self.against is None:
            return None
        if not fresh or self.against in fresh or not {*fresh, self.against} <= members.keys():
            known = ", ".join(members)
            raise ValueError(
                f"restarting and against must be names of different members, got {self.restarting!r} and "
                f"{self.against!r}. The members are: {known}."
            )
        starts: dict[str, Callable[[], Learner]] = {
            name: partial(members[name].unfitted().start, features, outputs) for name in fresh
        }
        return ChangeDetector(starts, str(self.against), features, outputs)

    @property
    def changes_(self) -> list[tuple[int, str]]:
        """The detected changes: the row where each began, and its kind, "relation", "inputs" or "target"."""
        learner = self._working
        assert isinstance(learner, MixtureLearner)
        return [] if learner.detector is None else learner.detector.changes()

    @property
    def weights_(self) -> dict[str, float]:
        """The weights for the prediction of the next row, by name of the member."""
        learner = self._working
        assert isinstance(learner, MixtureLearner)
        return dict(zip(learner.members, learner.weights().tolist(), strict=True))

    def kernels_in_use(self, learner: Learner) -> list[KernelInUse]:
        mixture = outer(learner)
        assert isinstance(mixture, MixtureLearner)
        weights = dict(zip(mixture.members, mixture.weights().tolist(), strict=True))
        return [
            replace(one, weight=weights[name] * one.weight)
            for name, model in self.named()
            for one in model.kernels_in_use(mixture.members[name])
        ]

    @property
    def features_optional(self) -> bool:
        return all(model.features_optional for _, model in self.named())

    @property
    def delay(self) -> int:
        return min(model.delay for _, model in self.named())

    def named(self) -> list[tuple[str, OnlineRegressor]]:
        """Return the members with their names. Raise an error if a member is not a model."""
        if isinstance(self.models, str | OnlineRegressor) or not hasattr(self.models, "__iter__"):
            raise TypeError(f"models must be a list of estimators of onlinegp, got {self.models!r}.")
        pairs = [tuple(one) if isinstance(one, list | tuple) else (None, one) for one in self.models]
        if not pairs:
            raise ValueError("models must have at least one member, got none. Try [KRLST(), LinearRLS()].")
        for pair in pairs:
            if len(pair) != 2 or not isinstance(pair[0], str | None) or not isinstance(pair[1], OnlineRegressor):
                raise TypeError(f"models must be estimators of onlinegp, or pairs (name, estimator), got {pair[-1]!r}.")
        kinds = [type(model).__name__.lower() for _, model in pairs]
        names = []
        for i, (name, _) in enumerate(pairs):
            number = f"-{kinds[: i + 1].count(kinds[i])}" if kinds.count(kinds[i]) > 1 else ""
            names.append(kinds[i] + number if name is None else name)
        for name in names:
            if names.count(name) > 1 or not name or "__" in name or "." in name or name in self.parameter_names():
                raise ValueError(
                    f"the names of members must differ from each other and from {', '.join(self.parameter_names())}, "
                    f"and contain neither '__' nor '.', got {name!r}."
                )
        return [(name, model) for name, (_, model) in zip(names, pairs, strict=True)]

    # Parameters of the members, in scikit-learn's way

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name. With `deep`, include members and their parameters: `name`, `name__noise`."""
        params = super().get_params(deep=False)
        for name, model in self.named() if deep else []:
            params |= {name: model, **{f"{name}__{key}": value for key, value in model.get_params().items()}}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, including members and their parameters. They take effect at the next `fit`."""
        own = {name: value for name, value in params.items() if name in self.parameter_names()}
        super().set_params(**own)
        for name in sorted(params.keys() - own.keys(), key=lambda name: "__" in name):  # members first
            members = dict(self.named())
            member, _, inner = name.partition("__")
            if member not in members:
                known = ", ".join([*self.parameter_names(), *members])
                raise ValueError(f"Invalid parameter {member!r} for estimator {self}. Valid parameters are: {known}.")
            if inner:
                members[member].set_params(**{inner: params[name]})
            else:
                self.models = list((members | {member: params[name]}).items())
        return self

    def unfitted(self) -> Self:
        copies = []
        for one in self.models:
            copies.append((one[0], one[1].unfitted()) if isinstance(one, list | tuple) else one.unfitted())
        others = {name: getattr(self, name) for name in ("fade", "weights", "gate", "lasting", "restarting", "against")}
        return type(self)(copies, **others)

    def _first_weights(self) -> Array:
        members = len(self.named())
        if self.weights is None:
            return np.zeros(members)
        first = np.asarray(self.weights)
        if first.dtype.kind not in "fiu" or first.shape != (members,) or not np.all(np.abs(first) < -LEAST):
            raise ValueError(
                f"weights must be {members} finite numbers, one log weight for each member, got {self.weights!r}."
            )
        return first.astype(np.float64) - first.max()
