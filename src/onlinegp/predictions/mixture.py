"""Mixtures of distributions of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, probability
from onlinegp.predictions.base import Predictions, quantile_between
from onlinegp.predictions.components import Components, log_of_sum
from onlinegp.predictions.student import Gaussian, StudentT


@dataclass(frozen=True, eq=False, repr=False)
class MixtureOf(Predictions):
    """Mixtures: y comes from member k with probability weights[..., k].

    Members may be distributions of any kind, including your own. Models predict mixtures of normal and t distributions
    as :class:`Components`, which are faster.

    Attributes
    ----------
    weights : (n, members) or (n, outputs, members); they sum to one
    members : the members' predictions of the same rows
    """

    weights: Array
    members: tuple[Predictions, ...]

    def __post_init__(self) -> None:
        # the quantiles of a mixture must match its density, so the stretch of a member also applies to its density
        object.__setattr__(self, "members", tuple(map(_with_stretched_density, self.members)))

    @cached_property
    def mean(self) -> Array:  # type: ignore[override]
        return self._sum([member.mean for member in self.members])

    @cached_property
    def std(self) -> Array:  # type: ignore[override]
        # var = sum of w (var_k + (mean_k - mean)^2)
        return np.sqrt(self._sum([member.std**2 + (member.mean - self.mean) ** 2 for member in self.members]))

    def log_densities(self, y: ArrayLike) -> Array:
        """Return the log density of y under each member, in the shape of the weights."""
        return np.stack([member.log_density(y) for member in self.members], axis=-1)

    def log_density(self, y: ArrayLike) -> Array:
        return log_of_sum(self.weights, self.log_densities(y))

    def cdf(self, y: ArrayLike) -> Array:
        return self._sum([member.cdf(y) for member in self.members])

    def survival(self, y: ArrayLike) -> Array:
        return self._sum([member.survival(y) for member in self.members])

    def quantile(self, p: float) -> Array:
        """Return the value that y exceeds with probability 1 - p. It lies between the quantiles of the members."""
        p = probability(p=p)
        quantiles = np.stack([member.quantile(p) for member in self.members], axis=-1)
        counts = self.weights > 0.0
        low, high = np.where(counts, quantiles, inf).min(axis=-1), np.where(counts, quantiles, -inf).max(axis=-1)
        return quantile_between(self, p, self._sum(np.moveaxis(quantiles, -1, 0)), low, high)

    def affine(self, center: Array | float, scale: Array | float) -> MixtureOf:
        return MixtureOf(self.weights, tuple(member.affine(center, scale) for member in self.members))

    def kind(self) -> Any:
        return type(self), tuple(member.kind() for member in self.members)

    def _sum(self, values: Sequence[Array] | Array) -> Array:
        """Return the weighted sum of values of members. Members of weight zero are ignored, even if they are NaN."""
        terms = [np.where(self.weights[..., k] == 0.0, 0.0, self.weights[..., k] * v) for k, v in enumerate(values)]
        return sum(terms[1:], terms[0])


def mix(weights: Array, members: Sequence[Predictions]) -> Components | MixtureOf:
    """Mix predictions of the same rows. If all members are made of normals and t's, the result is `Components`.

    The weight of a component is multiplied by the weight of its member. The stretch is the weighted mean of the
    stretches of the members.
    """
    parts = [as_components(member) for member in members]
    flat = [part for part in parts if part is not None]
    if len(flat) < len(parts):
        return MixtureOf(weights, tuple(members))
    stretch: Array | float = 1.0
    if not all(part.plain for part in flat):
        stretch = sum(
            (weights[..., k] * (part.stretch - 1.0) for k, part in enumerate(flat)), np.ones(weights.shape[:-1])
        )
    return Components(
        np.concatenate([weights[..., k, None] * part.weights for k, part in enumerate(flat)], axis=-1),
        np.concatenate([part.means for part in flat], axis=-1),
        np.concatenate([part.scales for part in flat], axis=-1),
        tuple(nu for part in flat for nu in part.degrees),
        stretch,
    )


def as_components(predictions: Predictions) -> Components | None:
    """Return the same distributions as `Components`, or None if they are not made of normal and t distributions."""
    if type(predictions) is Components:
        return predictions
    if type(predictions) is MixtureOf:
        flat = mix(predictions.weights, predictions.members)
        return flat if isinstance(flat, Components) else None
    if type(predictions) is Gaussian:
        scale, nu = predictions.std, inf
    elif type(predictions) is StudentT and not isinstance(predictions.degrees, np.ndarray) and predictions.degrees > 2:
        scale, nu = predictions.scale, float(predictions.degrees)
    else:
        return None
    mean = predictions.mean[..., None]
    return Components(np.ones(mean.shape), mean, scale[..., None], (nu,))


def joined_kinds(parts: Sequence[Predictions]) -> Predictions:
    """Concatenate predictions of different kinds as mixtures. In each row only the kind of this row has weight."""
    flat = [as_components(part) for part in parts]
    if all(part is not None for part in flat):
        parts = [part for part in flat if part is not None]
    kinds: dict[Any, list[int]] = {}
    for i, part in enumerate(parts):
        kinds.setdefault(part.kind(), []).append(i)
    if len(kinds) == 1:
        return Predictions.joined(parts)
    rows = np.split(np.arange(sum(map(len, parts))), np.cumsum([len(part) for part in parts])[:-1])
    first = parts[0].mean
    weights = np.zeros((sum(map(len, parts)), *first.shape[1:], len(kinds)))
    members = []
    for k, own in enumerate(kinds.values()):
        mine = np.concatenate([rows[i] for i in own])
        where = np.zeros(len(weights), dtype=np.int64)  # for rows of other kinds, repeat the first row with weight zero
        where[mine] = np.arange(len(mine))
        weights[mine, ..., k] = 1.0
        members.append(Predictions.joined([parts[i] for i in own]).rows(where))
    return mix(weights, members)


def _with_stretched_density(member: Predictions) -> Predictions:
    """Return distributions with the same quantiles but without a stretch."""
    if not isinstance(member, Components) or member.plain:
        return member
    return replace(member, stretch=1.0).affine(member.mean - member.stretch * member.mean, member.stretch)
