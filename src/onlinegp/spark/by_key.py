"""One model per key of a Spark data frame or stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StructField,
    StructType,
)

from onlinegp.checks import Array, probability
from onlinegp.fleet import step
from onlinegp.fleet.members import start_members
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.model_file import to_bytes
from onlinegp.predictions.base import WIDE
from onlinegp.spark.columns import Roles, as_names, use_this_python

LATE = ("refuse", "drop")
ADDED = ("mean", "std", "lower", "upper", "log_density")
STATE = "model"  # name of the state variable in the checkpoint
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run_keyed(
    df: DataFrame,
    *,
    key: str,
    order: str,
    features: str | Sequence[str],
    target: str,
    model: OnlineRegressor,
    late: str = "refuse",
    level: float = 0.95,
) -> DataFrame:
    """Predict each row of a data frame or stream, then learn it, with one model per key.

    The same rows give the same predictions and states as :func:`onlinegp.fleet.step` and as a
    :class:`~onlinegp.Fleet` in memory. Spark does not preserve the order of rows, so the rows of a key in a batch are
    sorted by `order`, then by target and inputs.

    The states of a stream are in its checkpoint, in Spark's RocksDB state store, and :func:`models` reads them. In each
    batch, a key costs a few milliseconds, so choose a trigger that collects at least twenty rows per key. The first
    batch of a checkpoint determines the number of partitions (``spark.sql.shuffle.partitions``).

    Parameters
    ----------
    df : DataFrame
        A data frame or a stream.
    key : str
        The column of the key: strings or whole numbers.
    order : str
        The column that increases over the rows of a key: times, dates, numbers or strings.
    features : str or sequence of str
        The columns of the inputs: numbers.
    target : str
        The column of y.
    model : estimator
        The initial model of each key. A stream that continues from a checkpoint must use the same model.
    late : {"refuse", "drop"}
        How to treat a late row, which is not newer than the last learned row of its key. "refuse" ends the query with
        an error, without learning the batch. "drop" does not learn the row; the output marks it, with nulls in place of
        its prediction.
    level : float
        The probability that y is between `lower` and `upper`.

    Returns
    -------
    DataFrame
        The columns of key, order and target, then mean, std, lower, upper, log_density (null in late rows) and late
        (boolean). ``out.where("late").count()`` is the number of late rows.

    Examples
    --------
    >>> import onlinegp as ogp, onlinegp.spark
    >>> out = onlinegp.spark.run_keyed(
    ...     df, key="sensor", order="time", features=["a", "b"], target="y", model=ogp.KRLST(budget=50)
    ... )  # doctest: +SKIP
    >>> query = (
    ...     out.writeStream.format("parquet")
    ...     .option("path", "out")
    ...     .option("checkpointLocation", "checkpoint")
    ...     .trigger(processingTime="10 minutes")
    ...     .start()
    ... )  # doctest: +SKIP
    """
    roles, task = _prepared(df, key, order, features, target, model, late, level)
    rows, kinds = roles.plain(df), _kinds(roles, df)
    schema = StructType(
        [*kinds, *(StructField(name, DoubleType()) for name in ADDED), StructField("late", BooleanType())]
    )
    if df.isStreaming:
        _check_store(df)
        place = roles.place(df).kind
        predicted = rows.groupBy("key").transformWithStateInPandas(
            Processor(task, kept_schema(place)), schema, "append", "none"
        )
    else:
        predicted = rows.groupBy("key").applyInPandas(lambda key, group: task.advance(key[0], None, group)[1], schema)
    return roles.named(predicted, df, (*ADDED, "late"))


def learn_keyed(
    df: DataFrame,
    *,
    key: str,
    order: str,
    features: str | Sequence[str],
    target: str,
    model: OnlineRegressor,
    late: str = "refuse",
) -> DataFrame:
    """Learn all rows of a data frame with one model per key. Return the states, one row per key, for :func:`models`.

    Parameters
    ----------
    df, key, order, features, target, model, late
        See :func:`run_keyed`. `df` must not be a stream.

    Returns
    -------
    DataFrame
        The columns key, state (bytes, see :func:`onlinegp.fleet.step`), model (the initial model as a model file), last
        (the order of the last row) and late (the number of dropped rows).
    """
    if df.isStreaming:
        raise ValueError("df must not be a stream. Use run_keyed, and read the states with models(checkpoint).")
    roles, task = _prepared(df, key, order, features, target, model, late, 0.95)
    schema = StructType([StructField("key", df.schema[key].dataType), *kept_schema(roles.place(df).kind)])

    def learned(key: tuple[Any], group: pd.DataFrame) -> pd.DataFrame:
        kept = task.advance(key[0], None, group)[0]
        return pd.DataFrame([(key[0], *kept)], columns=schema.names)

    return roles.plain(df).groupBy("key").applyInPandas(learned, schema)


def kept_schema(place: DataType) -> StructType:
    """Return the schema of what is stored per key: state, initial model, last order, and number of late rows."""
    fields = {"state": BinaryType(), "model": BinaryType(), "last": place, "late": LongType()}
    return StructType([StructField(name, kind) for name, kind in fields.items()])


Kept = tuple[bytes, bytes, Any, int]  # state, model, last, late


@dataclass(frozen=True)
class Task:
    """Learn and predict the rows of a key.

    Parameters
    ----------
    model, about : estimator, bytes
        The initial model, and the same model as a file with the names of the columns and the schema of the states.
    late, level : str, float
        See `run_keyed`.
    """

    model: OnlineRegressor
    about: bytes
    late: str
    level: float

    def advance(self, key: Any, kept: Kept | None, rows: pd.DataFrame) -> tuple[Kept, pd.DataFrame]:
        """Learn rows of a key, in any order. Return the new state, and the rows with predictions."""
        state, about, last, dropped = kept or (None, self.about, None, 0)
        if bytes(about) != self.about:
            raise ValueError(
                f"model, features and target must be the same as in the checkpoint, but they differ for key {key!r}. "
                f"Use the same, or another checkpointLocation."
            )
        place, values = rows["place"].to_numpy(), rows.iloc[:, 2:].to_numpy(np.float64)  # (n,), and y and X: (n, 1 + d)
        by, newer = in_order(place, values, last)
        place, values = place[by], values[by]
        if not newer.all() and self.late == "refuse":
            raise ValueError(_not_newer(key, place, newer, last))
        predicted = np.full((len(ADDED), len(place)), np.nan)
        if newer.any():
            X: Any = (
                values[newer, 1:] if values.shape[1] > 1 else None
            )  # without inputs, a series is predicted from its past
            try:
                state, trace = step(self.model, None if state is None else bytes(state), X, values[newer, 0])
            except Exception as error:
                error.add_note(f"These are rows of key {key!r}, sorted, from {place[0]!s} to {place[-1]!s}.")
                raise
            predicted[:, newer] = (trace.mean, trace.std, *trace.interval(self.level), trace.log_density)
            last = place[newer][-1]
        assert state is not None  # the first row of a key is newer
        kept = (state, self.about, last, dropped + int((~newer).sum()))
        columns = {"key": rows["key"].to_numpy(), "place": place, "y": values[:, 0]}
        return kept, pd.DataFrame(columns | dict(zip(ADDED, predicted, strict=True)) | {"late": ~newer}, copy=False)


def in_order(place: Any, values: Array, last: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Return indices that sort rows by order, and which of the sorted rows are newer than the rows before and `last`.

    Rows with the same order are sorted by their values, because Spark may deliver them in any order.
    """
    by = np.argsort(place, kind="stable")
    rises = np.append(True, place[by][1:] > place[by][:-1]).astype(bool)
    if not rises.all():
        by = np.lexsort((*values.T[::-1], np.unique(place, return_inverse=True)[1]))
    return by, rises if last is None else rises & (place[by] > last).astype(bool)


class Processor(StatefulProcessor):  # type: ignore[misc]
    """Process the rows of one batch of a stream, key by key, with the states in Spark's state store."""

    def __init__(self, task: Task, schema: StructType) -> None:
        self.task, self.schema = task, schema

    def init(self, handle: Any) -> None:
        self.kept = handle.getValueState(STATE, self.schema)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        kept, predicted = self.task.advance(key[0], self.kept.get(), _together(rows))
        self.kept.update(kept)
        yield predicted

    def close(self) -> None:
        pass


# Internals


def _prepared(
    df: DataFrame,
    key: str,
    order: str,
    features: str | Sequence[str],
    target: str,
    model: OnlineRegressor,
    late: str,
    level: float,
) -> tuple[Roles, Task]:
    """Check the arguments. Return the roles of columns and the task."""
    if not isinstance(model, OnlineRegressor):
        raise TypeError(f"model must be a model of onlinegp, such as KRLST(), got {model!r}.")
    if late not in LATE:
        raise ValueError(f"late must be one of {', '.join(LATE)}, got {late!r}.")
    probability(WIDE, level=level)
    roles = Roles(key, order, as_names(features=features), target)
    roles.check(df, (*ADDED, "late"))
    if not roles.features and not model.features_optional:
        raise ValueError("features must name at least one column, got none. Only models with lags need no features.")
    model = model.unfitted()
    schema = json.loads(start_members(model, len(roles.features), 1).schemas[False].text)
    about = to_bytes(model, extra={"names": list(roles.features), "target": target, "schema": schema})
    use_this_python(df)
    return roles, Task(model, about, late, level)


def _kinds(roles: Roles, df: DataFrame) -> list[StructField]:
    return [
        StructField("key", df.schema[roles.key].dataType),
        StructField("place", roles.place(df).kind),
        StructField("y", DoubleType()),
    ]


def _check_store(df: DataFrame) -> None:
    provider = df.sparkSession.conf.get(PROVIDER, "") or ""
    if "RocksDB" not in provider:
        raise ValueError(
            f"a stream requires the RocksDB state store, but {PROVIDER} is {provider!r}. Before run_keyed: "
            f"spark.conf.set({PROVIDER!r}, {ROCKSDB!r})."
        )


def _together(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of a key, which come in one or more frames."""
    some = list(parts)
    return some[0] if len(some) == 1 else pd.concat(some, ignore_index=True)


def _not_newer(key: Any, place: Any, newer: NDArray[np.bool_], last: Any) -> str:
    first = int(np.argmin(newer))
    before = [value for value in (last, *place[max(first - 1, 0) : first]) if value is not None]
    return (
        f"order must increase, but {int((~newer).sum())} of {len(place)} rows of key {key!r} are not newer than the "
        f"last one: {place[first]!s} comes after {max(before)!s} (times in microseconds since 1970, dates in days). "
        f"Use late='drop' to leave them out."
    )
