"""Read the models of a stopped stream from its checkpoint, or from a data frame of states."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath

from pyspark.sql import DataFrame, SparkSession

from onlinegp.files.container import ModelFileError
from onlinegp.fleet import from_bytes
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.model_file import with_extra
from onlinegp.spark.by_key import STATE

Key = str | int


def models(
    states: str | PathLike[str] | DataFrame, *, keys: Iterable[Key] | None = None, operator: int = 0
) -> dict[Key, OnlineRegressor]:
    """Return the models of keys as estimators, from the checkpoint of a stream or from a data frame of states.

    All models are loaded into this process. If there are many keys, pass the keys that you need.

    Parameters
    ----------
    states : path or DataFrame
        The ``checkpointLocation`` of a stream, with the states after its last complete batch; or the result of
        `learn_keyed`.
    keys : iterable, optional
        All if None.
    operator : int
        The index of this operator among the stateful operators of the query.

    Examples
    --------
    >>> import onlinegp.spark
    >>> onlinegp.spark.models("checkpoint", keys=["sensor 7"])["sensor 7"].save("sensor7.ogp")  # doctest: +SKIP
    """
    frame = states if isinstance(states, DataFrame) else stored(fspath(states), operator)
    asked = None if keys is None else list(keys)
    if asked is not None:
        frame = frame.where(frame["key"].isin(asked))
    found = {row["key"]: _model(row["key"], row["model"], row["state"]) for row in frame.collect()}
    if asked is not None and (missing := [key for key in asked if key not in found]):
        raise KeyError(f"there is no model of key {missing[0]!r} ({len(missing)} of {len(asked)} keys are unknown).")
    return found


def stored(checkpoint: str, operator: int = 0) -> DataFrame:
    """Return the stored values of a checkpoint per key, with the columns of `learn_keyed`."""
    spark = SparkSession.getActiveSession()
    if spark is None:
        raise RuntimeError("reading a checkpoint requires an active Spark session. Start one first.")
    reader = spark.read.format("statestore").option("stateVarName", STATE).option("operatorId", operator)
    return reader.load(checkpoint).selectExpr("key.*", "value.*")


def _model(key: Key, about: bytes, state: bytes) -> OnlineRegressor:
    try:
        model, extra = with_extra(bytes(about))
        return from_bytes(model, bytes(state), tuple(extra["names"]))
    except ModelFileError as error:
        raise ModelFileError(f"key {key!r}: {error}") from None
