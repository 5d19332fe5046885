"""Fit a model to a large data frame: a model per partition, then merge all models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame

from onlinegp.models.linear.additive import AdditiveRegressor, ready_to_merge
from onlinegp.models.model_file import from_bytes
from onlinegp.spark.columns import as_names, check_numbers, numbers, use_this_python

Model = TypeVar("Model", bound=AdditiveRegressor)


def fit(df: DataFrame, *, features: str | Sequence[str], target: str, model: Model) -> Model:
    """Return a copy of the model that has learned all rows. Workers learn partitions, then the models are merged.

    The result equals one pass over all rows up to about 1e-9, because sums are rounded in another order. All rows pass
    through Python workers once; only the models go to the driver.

    Parameters
    ----------
    df : DataFrame
        The rows. It must not be a stream.
    features : str or sequence of str
        The columns of the inputs: numbers.
    target : str
        The column of y.
    model : estimator
        A model that can be merged: LinearRLS, RandomFeatureGP.

    Examples
    --------
    >>> import onlinegp as ogp, onlinegp.spark
    >>> model = onlinegp.spark.fit(
    ...     df, features=["a", "b"], target="y", model=ogp.RandomFeatureGP(noise=0.1)
    ... )  # doctest: +SKIP
    """
    if df.isStreaming:
        raise ValueError("df must not be a stream. Use run_keyed for a stream.")
    names, start = as_names(features=features), ready_to_merge(model)
    if not names:
        raise ValueError("features must name at least one column, got none.")
    check_numbers(df, names, target)
    use_this_python(df)
    columns = [f"x{i}" for i in range(len(names))]

    def learned(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        part = start.unfitted()
        for rows in parts:
            if len(rows):
                part.partial_fit(rows[columns].to_numpy(np.float64), rows["y"].to_numpy(np.float64))
        if part.dump() is not None:
            yield pd.DataFrame({"model": [part.to_bytes()]})

    pieces = df.select(*numbers(df, names, target)).mapInPandas(learned, "model binary")
    try:
        whole = from_bytes(pieces.rdd.map(lambda row: bytes(row[0])).treeReduce(_merged))
    except ValueError as error:
        if "empty RDD" not in str(error):
            raise
        raise ValueError("df must have at least one row, got none.") from None
    contents = whole.dump()
    assert contents is not None
    return start.load(contents | {"names": list(names)})


def _merged(one: bytes, other: bytes) -> bytes:
    """Merge the models of two files."""
    model, more = from_bytes(one), from_bytes(other)
    assert isinstance(model, AdditiveRegressor)
    assert isinstance(more, AdditiveRegressor)
    return model.merge(more).to_bytes()
