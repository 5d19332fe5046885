"""The roles of columns in a Spark data frame, and their conversion to plain numbers for Python.

Between Spark and pandas, times would become local times, of which one hour per year is ambiguous, and whole numbers
would become floats if the column has a null. So Python gets the order of a row as its *place*: a whole number, a float
or a text that sorts in the same way and can be converted back. Nulls raise an error before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NumericType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

WHOLE = (ByteType, ShortType, IntegerType, LongType)


@dataclass(frozen=True)
class Place:
    """Convert an order column to a sortable value and back. `kind` is the type of the value."""

    kind: DataType
    there: Callable[[Column], Column]
    back: Callable[[Column], Column]


def place_of(kind: DataType) -> Place | None:
    """Return a conversion of values of a type for which Python and Spark sort equally, or None."""
    if isinstance(kind, TimestampType):
        return Place(LongType(), F.unix_micros, F.timestamp_micros)
    if isinstance(kind, TimestampNTZType):  # a text such as 2026-01-31 12:00:00.5, which sorts like the time
        return Place(StringType(), lambda column: column.cast("string"), lambda column: column.cast("timestamp_ntz"))
    if isinstance(kind, DateType):
        return Place(LongType(), lambda column: F.unix_date(column).cast("long"), _date)
    if isinstance(kind, WHOLE):
        return Place(LongType(), lambda column: column.cast("long"), lambda column: column.cast(kind))
    if isinstance(kind, FloatType | DoubleType):
        return Place(DoubleType(), lambda column: column.cast("double"), lambda column: column.cast(kind))
    if isinstance(kind, StringType):
        return Place(StringType(), lambda column: column, lambda column: column)
    return None


def _date(days: Column) -> Column:
    return F.date_from_unix_date(days.cast("int"))


@dataclass(frozen=True)
class Roles:
    """The names of the columns: key, order within a key, features and target."""

    key: str
    order: str
    features: tuple[str, ...]
    target: str

    def check(self, df: DataFrame, added: Sequence[str]) -> None:
        """Raise an error if a data frame lacks these columns, or if they have other types."""
        kinds = {name: _kind(df, role, name) for role, name in (("key", self.key), ("order", self.order))}
        if not isinstance(kinds[self.key], (*WHOLE, StringType)):
            raise _wrong("key", self.key, kinds[self.key], "strings or whole numbers", "string")
        if place_of(kinds[self.order]) is None:
            raise _wrong("order", self.order, kinds[self.order], "times, dates, numbers or strings", "double")
        check_numbers(df, self.features, self.target)
        names = (self.key, self.order, self.target)
        if twice := sorted({name for name in (*names, *added) if (*names, *added).count(name) > 1}):
            raise ValueError(
                f"the output would have two columns {twice[0]!r}. Name key, order and target differently from each "
                f"other and from {', '.join(added)}, with df.withColumnRenamed."
            )

    def place(self, df: DataFrame) -> Place:
        place = place_of(df.schema[self.order].dataType)
        assert place is not None  # checked
        return place

    def plain(self, df: DataFrame) -> DataFrame:
        """Return the columns key, place, y, x0, x1, ..."""
        kind = df.schema[self.order].dataType
        place = self.place(df).there(_there(df, "order", self.order, F.isnan if _floating(kind) else None))
        key = _there(df, "key", self.key)
        return df.select(key.alias("key"), place.alias("place"), *numbers(df, self.features, self.target))

    def named(self, predicted: DataFrame, df: DataFrame, added: Sequence[str]) -> DataFrame:
        """Return the columns key, order, y and `added`, with the names and types of the input."""
        order = self.place(df).back(predicted["place"])
        own = predicted["key"].alias(self.key), order.alias(self.order), predicted["y"].alias(self.target)
        return predicted.select(*own, *(predicted[name] for name in added))


def check_numbers(df: DataFrame, features: Sequence[str], target: str) -> None:
    """Raise an error if features or target are not numbers."""
    for role, name in (*(("features", name) for name in features), ("target", target)):
        kind = _kind(df, role, name)
        if not isinstance(kind, NumericType | BooleanType):
            raise _wrong(role, name, kind, "numbers", "double")
    if target in features:
        raise ValueError(f"target must not be a feature, got {target!r}: it would predict itself.")


def numbers(df: DataFrame, features: Sequence[str], target: str) -> list[Column]:
    """Return y, x0, x1, ... as doubles."""
    inputs = [df[_tick(name)].cast("double").alias(f"x{i}") for i, name in enumerate(features)]
    return [df[_tick(target)].cast("double").alias("y"), *inputs]


def as_names(**names: str | Sequence[str]) -> tuple[str, ...]:
    """Return names of columns, given as a string or as a sequence."""
    ((role, value),) = names.items()
    several = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(name, str) for name in several):
        raise TypeError(f"{role} must be names of columns, got {value!r}.")
    return several


def use_this_python(df: DataFrame) -> None:
    """Let the workers of a local session use the Python of this process, unless PYSPARK_PYTHON is set."""
    context = getattr(df.sparkSession, "sparkContext", None)
    if context is not None and context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable


# Internals


def _there(df: DataFrame, role: str, name: str, odd: Callable[[Column], Column] | None = None) -> Column:
    """Return a column that stops the query with an error if a value is null or NaN."""
    column = df[_tick(name)]
    missing = column.isNull() if odd is None else column.isNull() | odd(column)
    message = f"{role} must be present in every row, but column {name!r} has missing values. Drop such rows first."
    return F.when(missing, F.raise_error(F.lit(message))).otherwise(column)


def _kind(df: DataFrame, role: str, name: str) -> DataType:
    if not isinstance(name, str):
        raise TypeError(f"{role} must be the name of a column, got {name!r}.")
    if name not in df.columns:
        raise ValueError(f"{role} must be a column of df, got {name!r}. It has: {', '.join(df.columns)}.")
    return df.schema[name].dataType


def _wrong(role: str, name: str, kind: DataType, rule: str, remedy: str) -> TypeError:
    return TypeError(
        f"{role} must be a column of {rule}, but {name!r} has the type {kind.simpleString()}. "
        f"Convert it first: df.withColumn({name!r}, df[{name!r}].cast({remedy!r}))."
    )


def _floating(kind: DataType) -> bool:
    return isinstance(kind, FloatType | DoubleType)


def _tick(name: str) -> str:
    """Return a name in backticks, so that Spark accepts dots in it."""
    return "`" + name.replace("`", "``") + "`"
