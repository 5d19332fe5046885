"""From a learned stream to what comes next: sampled paths, or a model for each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined import Lagged
from onlinegp.predictions import Predictions
from onlinegp.streams.errors import BadData, listed
from onlinegp.streams.reading.source import Columns, Source
from onlinegp.streams.running.column_encoding import Encoder
from onlinegp.streams.writing.sinks import NoSink

COLUMNS = ("step", "mean", "std", "lower", "upper")


class LastValues(NoSink):
    """A sink that keeps the last targets, for a picture."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.begin()

    def begin(self) -> None:
        self.y = np.empty(0)

    def write(self, keys: list[Any], added: list[Any]) -> None:
        self.y = np.concatenate([self.y, added[0]])[-self.rows :]


def by_paths(model: OnlineRegressor, steps: int, X: Array, *, paths: int, seed: int) -> Predictions:
    """Return the next rows as sampled paths give them, see `Lagged.forecast`."""
    if not isinstance(model, Lagged) or not model.lags:
        raise ValueError("a forecast needs a model with lags, which feeds on past values. Make one with --lags N.")
    return model.forecast(steps, X, paths=paths, seed=seed)


def by_direct_models(
    learned: Callable[[int], tuple[OnlineRegressor, Encoder]], steps: int, cells: Array
) -> Predictions:
    """Return the next rows, each predicted by a model of its own, whose horizon is that many rows.

    `learned` returns the model of a horizon h, which has learned the stream, and the encoder of its features. Skipping
    h rows, it predicts the last of them from values that have come, and from no other prediction.
    """
    said = []
    for h in range(1, steps + 1):
        model, encoder = learned(h)
        said.append(model.skip(encoder(cells[:h])).rows(slice(h - 1, h)))
    return Predictions.joined(said)


def future_features(source: Source | None, columns: Columns, steps: int) -> Array:
    """Return the features of the next rows (steps, d), as they stand in a table that holds them."""
    features = columns.features
    if not features:
        return np.empty((steps, 0))
    if source is None:
        raise ValueError(
            f"the model has the features {listed(features)}, and what they will be is not known here. "
            f"Give a table of the next {steps} rows with --future FILE, or use --lags N alone."
        )
    for name in features:
        if name not in source.names:
            raise ValueError(f"the model needs the column {name!r}. {source.path} has: {listed(source.names)}.")
    source.select(replace(columns, target=None, keys=()))
    rows: list[Array] = []
    for block in source:
        rows.append(block.X)
        if sum(map(len, rows)) >= steps:
            return np.concatenate(rows)[:steps]
        if block.error is not None:
            raise BadData(block.error.message(source.path))
    raise BadData(f"{source.path} has {sum(map(len, rows))} rows, and {steps} are to be predicted. Use fewer --steps.")
