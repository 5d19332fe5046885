"""Mix models by how well they have predicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, fraction, non_negative
from onlinegp.engine import thread_count
from onlinegp.engine.plan import Constant, Plan, around
from onlinegp.learner import Learner, Sizes, skip
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import ROWS
from onlinegp.models.combined.changes import ChangeDetector
from onlinegp.models.combined.shared import check_shared, predict_member, run_member, share_rows
from onlinegp.models.error_tracking import (
    LEAST,
    check_log_weights,
    fading_means,
    fading_weights,
    keep_of,
    shares_of,
    weights_rule,
)
from onlinegp.models.facts import Facts
from onlinegp.models.recipe import parameters
from onlinegp.predictions import Components, Predictions
from onlinegp.predictions.mixture import mix
from onlinegp.state import Fields, Values, WithFields, array, integer, learner

HALF_LIFE = 100.0  # rows, for the usual log std of a member
LEAST_SURE = 300.0  # the largest |log std|


@parameters
class Mixture(OnlineRegressor):
    """Run several models and mix their predictions by how well each has predicted.

    The prediction is the mixture of the members' distributions. The weights come from the log densities of the observed
    values, of all outputs together, with more weight for recent rows: log w <- fade log w + log p. One row counts for
    at most 0.5 / (1 - fade) nats, so that one outlier does not decide the weights.
    With fade = 1 there is no such bound, and the weights are those of Bayes' rule: the sum of the mixture's log
    densities is never below that of the best member by more than log(number of members), for one output.

    With a gate, a member gets less weight at a row where it is less certain than usual: its weight is multiplied by
    (usual std / std)^gate, where the usual log std is a fading mean of 100 rows. A model that has seen no data near x
    has a large variance there; a model that extrapolates well does not. The bound above holds for gate = 0.

    Members get the same rows and learn as they would alone, on several threads. The cost is the sum of their costs. Use
    a mixture if no model is known to be the best, or if the best one changes. It does not help if members predict
    nearly the same. A :class:`ResidualGP` and a :class:`LocalGP` with the same kernel and parameters share their rows
    and their solve: both together cost as much as the first alone.

    Parameters
    ----------
    models : list of (name, OnlineRegressor), or of OnlineRegressor
        The members. Copies with the same parameters learn; these objects do not change. The default name is the class
        in lower case, with a number if several members have the same class: parameters are ``krlst-1__noise``.
    fade : float
        The factor in (0, 1] by which log densities fade per row.
    weights : sequence of float, optional
        The initial log weights, up to a common constant, such as sums of log densities on earlier rows; equal if None.
    gate : float
        The strength of the gate; zero for none, 2 is a good value.
    restarting : sequence of str
        Names of members that start again, from the rows after a detected change of the stream: when `against` has
        predicted better than all of them by 20 nats. The other members continue, so a false alarm costs little, and the
        mixture still knows the earlier relation if it returns.
    against : str, optional
        The name of the member with a short memory to compare them with.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> X = np.random.default_rng(0).uniform(-3, 3, (300, 1))
    >>> model = ogp.Mixture([("line", ogp.LinearRLS()), ("gp", ogp.KRLST())]).fit(X, np.sin(2 * X[:, 0]))
    >>> model.weights_["gp"] > 0.9
    True
    >>> ogp.run(model, X, np.sin(2 * X[:, 0])).predictions.weights.shape
    (300, 2)
    """

    models: Sequence[Any]
    _: KW_ONLY
    fade: float = 0.9
    weights: ArrayLike | None = None
    gate: float = 0.0
    restarting: Sequence[str] = ()
    against: str | None = None

    facts: ClassVar[Facts] = Facts(
        cost="the sum of those of the members",
        memory="the sum of those of the members",
        equation="p(y) = sum_j w_j p_j(y), log w <- fade log w + log p",
        variance="that of the mixture: large where the members disagree",
        citation=(
            'Raftery, Karny and Ettler, "Online prediction under model uncertainty via dynamic model averaging", '
            "Technometrics, 2010."
        ),
    )

    def check(self) -> None:
        fraction("Use 1.0 to forget nothing.", fade=self.fade)
        non_negative("Use 0.0 for none.", gate=self.gate)
        self._first_weights()
        self._detector(1, 1)
        for _, model in self.named():
            model.check()

    def start(self, features: int, outputs: int) -> MixtureLearner:
        fade = fraction("Use 1.0 to forget nothing.", fade=self.fade)
        learners = {name: model.start(features, outputs) for name, model in self.named()}
        gate = non_negative("Use 0.0 for none.", gate=self.gate)
        return MixtureLearner(learners, fade, self._first_weights(), gate, self._detector(features, outputs))

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
                f"restarting must be names of members, and against that of another, got {self.restarting!r} and "
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
        """The weights for the prediction of the next row, by the names of the members."""
        learner = self._working
        assert isinstance(learner, MixtureLearner)
        return dict(zip(learner.members, learner.weights().tolist(), strict=True))

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
                raise TypeError(f"models must be estimators of onlinegp, or pairs of a name and one, got {pair[-1]!r}.")
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
        for name in sorted(params.keys() - own.keys(), key=lambda name: "__" in name):  # a member before its parameters
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
        others = {name: getattr(self, name) for name in ("fade", "weights", "gate", "restarting", "against")}
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


class MixtureLearner(WithFields):
    """Learners by name, their log weights (the largest is zero), and their usual log std."""

    def __init__(
        self,
        members: dict[str, Learner],
        fade: float,
        log_weights: Array,
        gate: float = 0.0,
        detector: ChangeDetector | None = None,
    ) -> None:
        self.members, self.fade, self.log_weights, self.seen = members, fade, log_weights, 0
        self.detector = detector
        self.pause: Callable[[MixtureLearner], None] | None = None  # called at the detector's pauses
        self._shared = share_rows(members, set() if detector is None else set(detector.fresh))
        self._running = {
            name: [one for one, source in self._shared.items() if source == name]
            for name in members
            if name not in self._shared
        }  # and who shares their rows
        self.gate, self._keep = gate, keep_of(HALF_LIFE)
        self._total, self._count = np.zeros(len(members)), np.zeros(len(members))  # of log std
        self._sizes: list[int] = []  # components of each member's predictions
        first = next(iter(members.values()))
        self.features, self.outputs = first.features, first.outputs

    @property
    def size(self) -> int:
        """The size of the largest member. Members keep rows of the same stream, which are not counted twice."""
        return max(member.size for member in self.members.values())

    def weights(self) -> Array:
        """Return the weights for the prediction of the next row, (members,)."""
        return shares_of(self.log_weights)

    def weights_of(self, predicted: Predictions) -> Array | None:
        """Return the members' weights, (..., members), in predictions of this mixture; None for other predictions."""
        weights = getattr(predicted, "weights", None)
        if weights is None or weights.shape[-1] != sum(self._sizes):
            return None
        return np.add.reduceat(weights, np.cumsum([0, *self._sizes[:-1]]), axis=-1)

    def learn(self, X: Array, Y: Array) -> None:
        for i in range(0, len(X), ROWS):
            self.run(X[i : i + ROWS], Y[i : i + ROWS])

    def run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        if self.detector is None:
            return self._run(X, Y)
        parts, start = [], 0
        while start < len(X):
            part = slice(start, min(len(X), start + self.detector.until_next))
            parts.append(self._run(X[part], Y[part]))
            self.attend()
            start = part.stop
        if len(parts) == 1:
            return parts[0]
        return Predictions.joined([predicted for predicted, _ in parts]), np.concatenate([size for _, size in parts])

    def attend(self) -> None:
        """Restart the fresh members if a change was detected, or call `pause` if it is due."""
        detector = self.detector
        if detector is None:
            return
        if detector.detected:
            rows = detector.onset()
            X, Y = detector.latest(rows)
            started = {name: start() for name, start in detector.fresh.items()}
            for one in started.values():
                one.learn(X, Y)
            self.members.update(started)
            detector.started(rows)
        elif detector.age in detector.pauses and self.pause is not None:
            self.pause(self)

    def put(self, name: str, start: Callable[[], Learner], one: Learner, predictions: Predictions, like: str) -> None:
        """Add a member, or replace that of this name; it predicted some rows, and begins with the weight of another.

        It starts again, with `start`, when a change is detected.
        """
        total, count = np.zeros((2, 1))
        fading_means(_log_std((predictions,)), self._keep, total, count)
        weight = self.log_weights[list(self.members).index(like)]
        at = list(self.members).index(name) if name in self.members else len(self.members)
        self.log_weights = _with(self.log_weights, at, weight)
        self._total, self._count = _with(self._total, at, total[0]), _with(self._count, at, count[0])
        self.log_weights -= self.log_weights.max()
        self.members[name], self._running[name] = one, []
        if self.detector is not None:
            self.detector.fresh[name] = start

    def _run(self, X: Array, Y: Array) -> tuple[Predictions, Sizes]:
        by_name: dict[str, tuple[Predictions, Sizes]] = {}
        for name, sharing in self._running.items():
            by_name |= run_member(self.members, name, sharing, X, Y)
        ran = [by_name[name] for name in self.members]
        predicted = tuple(predictions for predictions, _ in ran)
        densities = np.stack([one.log_density(Y).sum(axis=1) for one in predicted], axis=1)
        weights = fading_weights(densities, self.fade, self.log_weights)
        if self.detector is not None:
            places = {name: i for i, name in enumerate(self.members)}
            fresh = densities[:, [places[name] for name in self.detector.fresh]]
            self.detector.follow(fresh, densities[:, places[self.detector.window]], X, Y)
        if self.gate:
            log_std = _log_std(predicted)
            weights = self._gated(weights, log_std, fading_means(log_std, self._keep, self._total, self._count))
        self.seen += len(X)
        return self._mixed(weights, predicted), np.max([size for _, size in ran], axis=0)

    def predict(self, X: Array) -> Predictions:
        by_name: dict[str, Predictions] = {}
        for name, sharing in self._running.items():
            by_name |= predict_member(self.members, name, sharing, X)
        return self._now(tuple(by_name[name] for name in self.members))

    def skip(self, X: Array, Y: Array | None = None) -> Predictions:
        return self._now(tuple(skip(member, X, Y) for member in self.members.values()))

    def _now(self, predicted: tuple[Predictions, ...]) -> Predictions:
        weights = np.tile(self.weights(), (len(predicted[0]), 1))
        if self.gate and self._count[0]:
            weights = self._gated(weights, _log_std(predicted), self._total / self._count)
        return self._mixed(weights, predicted)

    def _gated(self, weights: Array, log_std: Array, usual: Array) -> Array:
        """Return weights (n, m) times (usual std / std)^gate, normalized."""
        doubt = self.gate * (log_std - usual)
        weights = weights * np.exp(np.maximum(doubt.min(axis=1, keepdims=True) - doubt, -LEAST_SURE))
        return weights / weights.sum(axis=1, keepdims=True)

    def _mixed(self, weights: Array, predicted: tuple[Predictions, ...]) -> Predictions:
        mixed = mix(np.repeat(weights[:, None, :], self.outputs, axis=1), predicted)
        flat = isinstance(mixed, Components)
        self._sizes = [len(one.degrees) if flat and isinstance(one, Components) else 1 for one in predicted]
        return mixed

    def holds(self) -> list[Learner]:
        """Return the learners inside."""
        return list(self.members.values())

    def hold(self, change: Callable[[Learner], Learner]) -> None:
        """Replace members by what `change` returns for them, except members that share rows."""
        for name, sharing in self._running.items():
            if not sharing and not (self.detector is not None and name in self.detector.fresh):
                self.members[name] = change(self.members[name])

    def plan(self) -> Plan | None:
        numbers: dict[str, Constant] = {"gate": self.gate, "usual_keep": self._keep, "largest": LEAST_SURE}
        numbers |= weights_rule(self.fade)
        fields = {"log_weights": self.log_weights, "total": self._total, "count": self._count}
        if (detector := self.detector) is not None:
            places = {name: float(i) for i, name in enumerate(self.members)}
            numbers |= detector.numbers | {"fresh": tuple(places[name] for name in detector.fresh)}
            numbers["window"] = places[detector.window]
            fields |= detector.arrays
        plan = around("mixture", self, {**numbers, "threads": float(thread_count())}, fields, self.members)
        if plan is not None:
            self._sizes = [member.components for member in plan.inside.values()]
        return plan

    @property
    def fields(self) -> Fields:
        return {
            "log_weights": array("members"),
            "seen": integer(),
            "total": array("members", attribute="_total"),
            "count": array("members", least=0.0, attribute="_count"),
            **({} if self.detector is None else {"change": learner(attribute="detector", prefix="change ")}),
            **{f"{name}.": learner(prefix=f"{name}.") for name in self.members},
        }

    def children(self) -> dict[str, Any]:
        members = dict[str, Any](
            (f"{name}.", member) for name, member in self.members.items()
        )  # one may be called "seen"
        return members if self.detector is None else {"change": self.detector, **members}

    def check(self, values: Values) -> None:
        check_log_weights(values["log_weights"])
        total, count = values["total"], values["count"]
        if not np.all(np.abs(total) <= LEAST_SURE * (count + 1e-9)):
            raise ValueError(f"total and count must be a sum of logarithms and its weight, got {total!r}, {count!r}.")
        check_shared(self._shared, values)


def _with(values: Array, at: int, value: float) -> Array:
    """Return values with one value replaced or appended."""
    return np.concatenate([values[:at], [value], values[at + 1 :]])


def _log_std(predicted: tuple[Predictions, ...]) -> Array:
    """Return the uncertainty of each member at each row, (n, m): the mean log std of its outputs."""
    with np.errstate(divide="ignore"):
        log_std = np.stack([np.log(one.std).mean(axis=1) for one in predicted], axis=1)
    return np.clip(np.nan_to_num(log_std, nan=LEAST_SURE), -LEAST_SURE, LEAST_SURE)
