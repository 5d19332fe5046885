"""Predict the rows of a stream, then learn the rows with a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.models.alarms.detector import Detector
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.breakdown import BreakdownError
from onlinegp.models.combined.base import innermost
from onlinegp.predictions import Gaussian, Predictions
from onlinegp.streams.errors import StreamBreakdownError


@dataclass(frozen=True)
class Predicted:
    """Predictions of rows before they were learned (NaN if not predicted), and the model sizes after the rows.

    `known` says whether the model had learned any data before the row.
    """

    predictions: Predictions
    size: NDArray[Any]
    known: NDArray[np.bool_]

    @classmethod
    def joined(cls, parts: Sequence[Predicted]) -> Predicted:
        if not parts:
            return cls(Gaussian(np.empty(0), np.empty(0)), np.empty(0), np.empty(0, dtype=bool))
        size, known = np.concatenate([p.size for p in parts]), np.concatenate([p.known for p in parts])
        return cls(Predictions.joined([part.predictions for part in parts]), size, known)

    def __len__(self) -> int:
        return len(self.size)


def advance(model: OnlineRegressor, X: Array, y: Array, *, learn: bool = True, seen: Array | None = None) -> Predicted:
    """Predict the rows X (n, features). With `learn`, learn the rows with a target (y is not NaN).

    A detector also checks rows that are not learned: `seen` contains their targets. Such rows are processed one by one.

    Raises
    ------
    StreamBreakdownError
        If the model diverges. The error contains the predictions of the rows before.
    """
    predicted: list[Predicted] = []
    apart = np.isnan(y) & ~np.isnan(y if seen is None else seen)
    for part, missing in stretches(np.isnan(y), apart):
        rows = X[part] if X.shape[1] else None
        try:
            with np.errstate(all="ignore"):  # the model checks the result
                if learn and not missing:
                    trace = model.run(rows, y[part], progress=False)  # type: ignore[arg-type]
                    predicted.append(Predicted(trace.predictions, trace.size, trace.scored))
                else:
                    odd = apart[part.start] and isinstance(model, Detector)
                    predictions = (
                        model.judge(X[part], seen[part]) if odd else model.skip(X[part], None if missing else y[part])  # type: ignore
                    )
                    size, known = size_of(model), model.__sklearn_is_fitted__()
                    predicted.append(
                        Predicted(predictions, np.full(len(predictions), size), np.full(len(predictions), known))
                    )
        except BreakdownError as error:
            if error.trace is not None:
                predicted.append(Predicted(error.trace.predictions, error.trace.size, error.trace.scored))
            raise StreamBreakdownError(innermost(model), error.reason, predicted=Predicted.joined(predicted)) from error
        except ValueError as error:
            if not size_of(model):  # nothing was learned yet, so a parameter is invalid
                raise
            raise StreamBreakdownError(innermost(model), str(error), predicted=Predicted.joined(predicted)) from error
    return Predicted.joined(predicted)


def size_of(model: OnlineRegressor | None) -> int:
    """Return the number of centers. Zero before anything was learned."""
    return 0 if model is None or not model.__sklearn_is_fitted__() else model.size_


def stretches(missing: NDArray[np.bool_], apart: NDArray[np.bool_] | None = None) -> list[tuple[slice, bool]]:
    """Divide rows into slices with and without a target, in order. Each row in `apart` is a slice alone."""
    alone = False if apart is None else apart[1:] | apart[:-1]
    cuts = np.flatnonzero(np.diff(missing) | alone) + 1
    edges = [0, *cuts.tolist(), len(missing)]
    return [(slice(a, b), bool(missing[a])) for a, b in pairwise(edges) if b > a]
