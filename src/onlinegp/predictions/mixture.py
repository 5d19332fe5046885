"""Mixtures of distributions of any kind, mixtures included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, probability
from onlinegp.predictions.base import Predictions

MOST_STEPS = 200  # more than it takes between any two doubles of like magnitude
SMALL = 1e-3  # probabilities below this are known to the last digits, the others to those of one
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class MixtureOf(Predictions):
    """Mixtures: y comes from member k with probability weights[..., k].

    Attributes
    ----------
    weights : (n, members) or (n, outputs, members), which sum to one
    members : the members' predictions of the same rows
    """

    weights: Array
    members: tuple[Predictions, ...]

    @cached_property
    def mean(self) -> Array:  # type: ignore[override]
        return self._sum(self._asked(lambda member, _: member.mean))

    @cached_property
    def std(self) -> Array:  # type: ignore[override]
        # var = sum of w (var_k + (mean_k - mean)^2)
        means, stds = self._asked(lambda member, _: member.mean), self._asked(lambda member, _: member.std)
        return np.sqrt(self._sum([std**2 + (mean - self.mean) ** 2 for mean, std in zip(means, stds, strict=True)]))

    def log_densities(self, y: ArrayLike) -> Array:
        """Return the log density that each member gives to y, of the shape of the weights."""
        return np.stack(self._asked(lambda member, y: member.log_density(y), y), axis=-1)

    def log_density(self, y: ArrayLike) -> Array:
        return log_of_sum(self.weights, self.log_densities(y))

    def cdf(self, y: ArrayLike) -> Array:
        return self._sum(self._asked(lambda member, y: member.cdf(y), y))

    def survival(self, y: ArrayLike) -> Array:
        return self._sum(self._asked(lambda member, y: member.survival(y), y))

    def _asked(self, ask: Callable[[Predictions, Any], Array], y: ArrayLike | None = None) -> list[Array]:
        """Return what each member answers; those of one kind are asked at once, one after the other as rows."""
        if self._in_a_row is None:
            return [ask(member, y) for member in self.members]
        shape = self.members[0].mean.shape
        if y is not None:
            y = np.broadcast_to(self._values(y), (len(self.members), *shape)).reshape(-1, *shape[1:])
        return list(ask(self._in_a_row, y).reshape(len(self.members), *shape))

    @cached_property
    def _in_a_row(self) -> Predictions | None:
        """The members one after the other, if they are of one kind."""
        kinds = {(member.kind(), str(getattr(member, "degrees", ""))) for member in self.members}
        return Predictions.joined(self.members) if len(kinds) == 1 else None

    def quantile(self, p: float) -> Array:
        """Return the value that y exceeds with probability 1 - p: between the members' quantiles, by Newton's steps.

        A step that leaves the bracket, or follows one that did not halve the error, is replaced by bisection.
        """
        p = probability(p=p)
        quantiles = self._asked(lambda member, _: member.quantile(p))
        counts = [self.weights[..., k] > 0.0 for k in range(len(quantiles))]
        low = np.minimum.reduce([np.where(c, q, np.inf) for c, q in zip(counts, quantiles, strict=True)])
        high = np.maximum.reduce([np.where(c, q, -np.inf) for c, q in zip(counts, quantiles, strict=True)])
        y = np.clip(self._sum(quantiles), low, high)
        active = low < high  # NaN is not
        part, x, low, high = self._at(active), y[active], low[active], high[active]
        before = np.full(x.shape, np.inf)
        for _ in range(MOST_STEPS):
            if not len(x):
                break
            excess = part.cdf(x) - p
            low, high = np.where(excess < 0.0, x, low), np.where(excess < 0.0, high, x)
            with np.errstate(all="ignore"):
                new = x - excess / np.exp(part.log_density(x))
            bad = ~((new > low) & (new < high)) | (np.abs(excess) > 0.5 * before)
            new = np.where(bad, 0.5 * (low + high), new)
            going = np.abs(excess) > 2.0 * EPS * (4.0 * p if p < SMALL else 1.0)
            new = np.where(going, new, x)
            going &= (np.abs(new - x) > 4.0 * EPS * np.abs(x)) & (high - low > 4.0 * EPS * np.abs(x))
            y[active] = new
            active[active] = going
            part, x, low, high, before = part._at(going), new[going], low[going], high[going], np.abs(excess[going])
        return y

    def affine(self, center: Array | float, scale: Array | float) -> MixtureOf:
        return MixtureOf(self.weights, tuple(member.affine(center, scale) for member in self.members))

    def kind(self) -> Any:
        return type(self), tuple(member.kind() for member in self.members)

    def _sum(self, values: Sequence[Array]) -> Array:
        """Return the weighted sum of the members' values; one of no weight does not count, whatever it says."""
        terms = [self.weights[..., k] * value for k, value in enumerate(values)]
        if not self._all_count:
            terms = [np.where(self.weights[..., k] == 0.0, 0.0, term) for k, term in enumerate(terms)]
        return sum(terms[1:], terms[0])

    @cached_property
    def _all_count(self) -> bool:
        """Whether every member has a weight in every row."""
        return bool(self.weights.all())

    def _at(self, which: Any) -> MixtureOf:
        """Return some of the distributions, in a row."""
        return self._each(lambda array: array[which])


def log_of_sum(weights: Array, log_densities: Array) -> Array:
    """Return log sum_k w_k p_k over the last axis, from the logs of p; the largest term is taken out."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(weights > 0.0, np.log(weights) + log_densities, -np.inf)
        largest = terms.max(axis=-1)
        rest = np.where(np.isinf(largest), 0.0, largest)  # of a point mass: its density is infinite, or none
        return rest + np.log(np.exp(terms - rest[..., None]).sum(axis=-1))


def of_several_kinds(parts: Sequence[Predictions]) -> MixtureOf:
    """Return predictions of different kinds one after the other: all the weight is on the kind of the row."""
    kinds: dict[Any, list[int]] = {}
    for i, part in enumerate(parts):
        kinds.setdefault(part.kind(), []).append(i)
    rows = np.split(np.arange(sum(map(len, parts))), np.cumsum([len(part) for part in parts])[:-1])
    first = parts[0].mean
    weights = np.zeros((sum(map(len, parts)), *first.shape[1:], len(kinds)))
    members = []
    for k, own in enumerate(kinds.values()):
        mine = np.concatenate([rows[i] for i in own])
        where = np.zeros(len(weights), dtype=np.int64)  # elsewhere its first row stands, without weight
        where[mine] = np.arange(len(mine))
        weights[mine, ..., k] = 1.0
        members.append(Predictions.joined([parts[i] for i in own]).rows(where))
    return MixtureOf(weights, tuple(members))
