"""Predict the rows of a stream, then learn them. Rows without a target are predicted only."""

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
    """Predictions of rows before they were learned (NaN if there is none), and the dictionary sizes after them.

    `known` says whether the model had seen any data before the row.
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
    """Predict the rows X (n, features), then learn those whose y is not NaN, if `learn`.

    A detector also sees rows that are not learned: `seen` holds their targets. Such rows are processed one at a time.

    Raises
    ------
    StreamBreakdownError
        If the model breaks down. It holds the predictions of the rows before that.
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
            if not size_of(model):  # it has not learned anything yet, so a parameter is wrong
                raise
            raise StreamBreakdownError(innermost(model), str(error), predicted=Predicted.joined(predicted)) from error
    return Predicted.joined(predicted)


def size_of(model: OnlineRegressor | None) -> int:
    """Return the number of centers; zero if there is no model or it has learned nothing."""
    return 0 if model is None or not model.__sklearn_is_fitted__() else model.size_


def stretches(missing: NDArray[np.bool_], apart: NDArray[np.bool_] | None = None) -> list[tuple[slice, bool]]:
    """Split rows into stretches with and without a target, in order; rows in `apart` are stretches of their own."""
    alone = False if apart is None else apart[1:] | apart[:-1]
    cuts = np.flatnonzero(np.diff(missing) | alone) + 1
    edges = [0, *cuts.tolist(), len(missing)]
    return [(slice(a, b), bool(missing[a])) for a, b in pairwise(edges) if b > a]
