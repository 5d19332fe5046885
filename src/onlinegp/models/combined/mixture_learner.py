"""The Python learner of `Mixture`: members, their weights, and the change detector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.engine import thread_count
from onlinegp.engine.plan import Constant, Plan, around
from onlinegp.learner import Learner, Sizes, skip
from onlinegp.models.combined.base import MAX_BLOCK_ROWS
from onlinegp.models.combined.change_detector import ChangeDetector
from onlinegp.models.combined.shared_rows import check_shared, predict_member, run_member, share_rows
from onlinegp.models.error_tracking import (
    LEAST,
    check_log_weights,
    fading_means,
    fading_weights,
    keep_of,
    shares_of,
    weights_rule,
)
from onlinegp.predictions import Components, Predictions
from onlinegp.predictions.mixture import mix
from onlinegp.state import Fields, Values, WithFields, array, integer, learner

HALF_LIFE = 50.0  # rows, for the means of the usual log std and the record
LEAST_SURE = 300.0  # the largest |log std|
BETTER, SURER = 3.0, 0.01  # factor of the weight and difference in log std by which a member is better and more certain
MOST_BEHIND = 12.0  # nats: limit of a record, so that after a change another member can soon be the best


class MixtureLearner(WithFields):
    """Learners by name, with their log weights (the largest is zero), usual log std and records."""

    def __init__(
        self,
        members: dict[str, Learner],
        fade: float,
        log_weights: Array,
        gate: float = 0.0,
        detector: ChangeDetector | None = None,
        lasting: float = 0.0,
    ) -> None:
        self.members, self.fade, self.log_weights, self.seen = members, fade, log_weights, 0
        self.detector = detector
        self.pause: Callable[[MixtureLearner], None] | None = None  # called when the change detector says so
        self.usable: Callable[[Array, Array], tuple[Array, Array]] | None = None  # selects the rows for a restart
        self._shared = share_rows(members, set() if detector is None else set(detector.fresh))
        self._running = {
            name: [one for one, source in self._shared.items() if source == name]
            for name in members
            if name not in self._shared
        }  # and the members that share their rows
        self.gate, self._keep = gate, keep_of(HALF_LIFE)
        self._total, self._count = np.zeros(len(members)), np.zeros(len(members))  # sum and weight of log std
        self.lasting, self._record = lasting, np.zeros(len(members))  # the records are added to the log weights
        self._sizes: list[int] = []  # number of components in the predictions of each member
        first = next(iter(members.values()))
        self.features, self.outputs = first.features, first.outputs

    @property
    def size(self) -> int:
        """The size of the largest member. Sizes are not added, because members keep rows of the same stream."""
        return max(member.size for member in self.members.values())

    def weights(self) -> Array:
        """Return the weights for the prediction of the next row, (members,)."""
        weights = shares_of(self.log_weights)
        return _times_records(weights, self._record) if self.lasting else weights

    def behind(self) -> Array:
        """Return how far each member is below the best log density: in nats per row, or the sum if fade is 1."""
        return -self.log_weights * (1.0 - self.fade if self.fade < 1.0 else 1.0)

    def usual_std(self) -> Array:
        """Return the usual std of each member's predictions, a fading geometric mean. NaN if there is no gate."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.exp(self._total / self._count)

    def weights_of(self, predicted: Predictions) -> Array | None:
        """Return the weights of the members in predictions of this mixture, (..., members), else None.

        If a member joined during these rows, the components of the earlier members come first, as joined predictions.
        """
        weights = getattr(predicted, "weights", None)
        ends = np.cumsum(self._sizes)
        if weights is None or not len(ends) or weights.shape[-1] < ends[-1]:
            return None
        earlier, weights = np.split(weights.copy(), [weights.shape[-1] - ends[-1]], axis=-1)
        if earlier.shape[-1] in ends:
            weights[..., : earlier.shape[-1]] += earlier
        return np.add.reduceat(weights, np.append(0, ends[:-1]), axis=-1)

    def learn(self, X: Array, Y: Array) -> None:
        for i in range(0, len(X), MAX_BLOCK_ROWS):
            self.run(X[i : i + MAX_BLOCK_ROWS], Y[i : i + MAX_BLOCK_ROWS])

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
            self.restart(list(detector.fresh), rows)
            detector.started(rows)
        elif detector.age in detector.pauses and self.pause is not None:
            self.pause(self)

    def restart(self, names: list[str], rows: int) -> None:
        """Restart members, which first learn the last `rows` rows."""
        assert self.detector is not None
        X, Y = self.detector.latest(rows)
        if self.usable is not None:
            X, Y = self.usable(X, Y)
        for name in names:
            self.members[name] = self.detector.fresh[name]()
            self.members[name].learn(X, Y)

    def put(self, name: str, start: Callable[[], Learner], one: Learner, usual: Array, like: str) -> None:
        """Add a member, or replace the member of this name. The new member gets the weight of the member `like`.

        When a change is detected, `start()` returns its new learner. See `add_usual` for `usual`.
        """
        total, count = usual
        weight = self.log_weights[list(self.members).index(like)]
        at = list(self.members).index(name) if name in self.members else len(self.members)
        self.log_weights = _with(self.log_weights, at, weight)
        self._record = _with(self._record, at, self._record[list(self.members).index(like)])
        self._total, self._count = _with(self._total, at, total), _with(self._count, at, count)
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
        if self.lasting:
            weights = self._with_records(weights, densities)
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

    def _with_records(self, weights: Array, densities: Array) -> Array:
        """Return weights (n, m) times exp(record), normalized. Records are computed from the rows before."""
        densities = np.clip(np.nan_to_num(densities, nan=LEAST), LEAST, -LEAST)
        behind = np.maximum(densities - densities.max(axis=1, keepdims=True), -weights_rule(self.fade)["cut"])
        records = np.empty_like(weights)
        for i, row in enumerate(behind):
            records[i] = self._record
            record = self._keep * self._record + (1.0 - self._keep) * self.lasting * row
            self._record[:] = np.maximum(record, -MOST_BEHIND)
        return _times_records(weights, records)

    def _gated(self, weights: Array, log_std: Array, usual: Array) -> Array:
        """Return weights (n, m) times (usual std / std)^gate, normalized.

        No member gets more than one that is better (a larger weight) and more certain (a smaller std).
        """
        doubt = self.gate * (log_std - usual)
        gated = weights * np.exp(np.maximum(doubt.min(axis=1, keepdims=True) - doubt, -LEAST_SURE))
        better = weights[:, None, :] >= BETTER * weights[:, :, None]  # (n, m, m): the last one than the other
        surer = log_std[:, None, :] <= log_std[:, :, None] - SURER
        limited = np.minimum(gated, np.where(better & surer, gated[:, None, :], np.inf).min(axis=2))
        return limited / limited.sum(axis=1, keepdims=True)

    def _mixed(self, weights: Array, predicted: tuple[Predictions, ...]) -> Predictions:
        mixed = mix(np.repeat(weights[:, None, :], self.outputs, axis=1), predicted)
        flat = isinstance(mixed, Components)
        self._sizes = [len(one.degrees) if flat and isinstance(one, Components) else 1 for one in predicted]
        return mixed

    def holds(self) -> list[Learner]:
        """Return the inner learners."""
        return list(self.members.values())

    def hold(self, change: Callable[[Learner], Learner]) -> None:
        """Replace members by what `change` returns for them, except members that share rows."""
        for name, sharing in self._running.items():
            if not sharing and not (self.detector is not None and name in self.detector.fresh):
                self.members[name] = change(self.members[name])

    def plan(self) -> Plan | None:
        numbers: dict[str, Constant] = {"gate": self.gate, "usual_keep": self._keep, "largest": LEAST_SURE}
        numbers |= {**weights_rule(self.fade), "lasting": self.lasting, "most_behind": MOST_BEHIND}
        numbers |= {"better": BETTER, "surer": SURER}
        fields = {"log_weights": self.log_weights, "total": self._total, "count": self._count}
        if self.lasting:
            fields["record"] = self._record
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
            **({"record": array("members", attribute="_record")} if self.lasting else {}),
            **({} if self.detector is None else {"change": learner(attribute="detector", prefix="change ")}),
            **{f"{name}.": learner(prefix=f"{name}.") for name in self.members},
        }

    def children(self) -> dict[str, Any]:
        members = dict[str, Any](
            (f"{name}.", member) for name, member in self.members.items()
        )  # a member may have the name "seen"
        return members if self.detector is None else {"change": self.detector, **members}

    def check(self, values: Values) -> None:
        check_log_weights(values["log_weights"])
        total, count = values["total"], values["count"]
        if not np.all(np.abs(total) <= LEAST_SURE * (count + 1e-9)):
            raise ValueError(f"total and count must be a sum of logarithms and its weight, got {total!r}, {count!r}.")
        if self.lasting and not np.all((values["record"] >= -MOST_BEHIND) & (values["record"] <= 0.0)):
            raise ValueError(f"record must be from {-MOST_BEHIND:g} to 0, got {values['record']!r}.")
        check_shared(self._shared, values)


def add_usual(usual: Array, predictions: Predictions) -> None:
    """Add the log std of predictions to their fading sum and its weight, `usual` (2,)."""
    total, count = usual[:, None]
    fading_means(_log_std((predictions,)), keep_of(HALF_LIFE), total, count)


def _with(values: Array, at: int, value: float) -> Array:
    """Return values with one value replaced or appended."""
    return np.concatenate([values[:at], [value], values[at + 1 :]])


def _times_records(weights: Array, records: Array) -> Array:
    """Return weights (..., m) times exp(record), normalized."""
    weights = weights * np.exp(records)
    return weights / weights.sum(axis=-1, keepdims=True)


def _log_std(predicted: tuple[Predictions, ...]) -> Array:
    """Return the uncertainty of each member at each row, (n, m): the mean log std of its outputs."""
    with np.errstate(divide="ignore"):
        log_std = np.stack([np.log(one.std).mean(axis=1) for one in predicted], axis=1)
    return np.clip(np.nan_to_num(log_std, nan=LEAST_SURE), -LEAST_SURE, LEAST_SURE)
