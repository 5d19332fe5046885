"""Forecast the next rows of a stream by sampled paths, or with a model for each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.iterated_forecaster import WithLags
from onlinegp.predictions import Predictions
from onlinegp.streams.errors import BadData, listed
from onlinegp.streams.reading.source import Columns, Source
from onlinegp.streams.running.column_encoding import Encoder
from onlinegp.streams.writing.sinks import NoSink

COLUMNS = ("step", "mean", "std", "lower", "upper")


class LastValues(NoSink):
    """A sink that stores the last targets for a plot."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.begin()

    def begin(self) -> None:
        self.y = np.empty(0)

    def write(self, keys: list[Any], added: list[Any]) -> None:
        self.y = np.concatenate([self.y, added[0]])[-self.rows :]


def by_paths(model: OnlineRegressor, steps: int, X: Array, *, paths: int, seed: int) -> Predictions:
    """Forecast the next rows by sampled paths. See `Lagged.forecast`."""
    if not isinstance(model, WithLags) or not model.lags:
        raise ValueError("a forecast needs a model with lags. Use --lags N.")
    return model.forecast(steps, X, paths=paths, seed=seed)


def by_direct_models(
    learned: Callable[[int], tuple[OnlineRegressor, Encoder]], steps: int, cells: Array
) -> Predictions:
    """Forecast the next rows with a separate model for each step h, with a horizon of h rows.

    `learned(h)` returns this model after it has learned the stream, and the encoder of its features. Each step is
    predicted from observed values only, never from another prediction.
    """
    predicted = []
    for h in range(1, steps + 1):
        model, encoder = learned(h)
        predicted.append(model.skip(encoder(cells[:h])).rows(slice(h - 1, h)))
    return Predictions.joined(predicted)


def future_features(source: Source | None, columns: Columns, steps: int | None) -> Array:
    """Read the features of the next rows from a table, (steps, d). If `steps` is None, use all rows of the table."""
    features = columns.features
    if not features:
        return np.empty((steps or 0, 0))
    if source is None:
        raise ValueError(
            f"the model needs the features {listed(features)} of the next {steps or ''} rows. "
            f"Pass a table with them by --future FILE, or use only --lags N."
        )
    for name in features:
        if name not in source.names:
            raise ValueError(f"the model needs the column {name!r}. {source.path} has: {listed(source.names)}.")
    source.select(replace(columns, target=None, keys=()))
    rows: list[Array] = []
    for block in source:
        rows.append(block.X)
        if steps is not None and sum(map(len, rows)) >= steps:
            return np.concatenate(rows)[:steps]
        if block.error is not None:
            raise BadData(block.error.message(source.path))
    if steps is None and any(map(len, rows)):
        return np.concatenate(rows)
    raise BadData(f"{source.path} has {sum(map(len, rows))} rows, but --steps is {steps}. Use fewer --steps.")
