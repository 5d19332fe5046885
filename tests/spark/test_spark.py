"""Spark and memory agree to the last bit, whatever order, batches and failures the rows went through.

One session for all.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from events import FEATURES, ROLES, assert_same, events, finish, model, need_spark, session, stream, write, write_files

need_spark()
from pyspark import cloudpickle  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402

import onlinegp as ogp  # noqa: E402
from onlinegp.fleet import step  # noqa: E402
from onlinegp.spark import fit, learn_keyed, models, run_keyed  # noqa: E402
from onlinegp.spark.by_key import PROVIDER, in_order  # noqa: E402
from onlinegp.spark.states import stored  # noqa: E402

SMALL = model(10)


@pytest.fixture(scope="module")
def spark():
    started = session()
    yield started
    started.stop()


def kept(folder: Path) -> dict:
    return {row["key"]: bytes(row["state"]) for row in stored(str(folder / "checkpoint")).collect()}


def finished(out, folder: Path) -> pd.DataFrame:
    finish(out, folder)
    return SparkSession.getActiveSession().read.parquet(str(folder / "out")).toPandas()


def test_a_frame_gives_what_memory_gives(spark):
    frame = events(12, 20)
    df = spark.createDataFrame(frame.sample(frac=1.0, random_state=0)).repartition(5)
    states = {row["key"]: bytes(row["state"]) for row in learn_keyed(df, **ROLES, model=SMALL).collect()}
    assert_same(run_keyed(df, **ROLES, model=SMALL).toPandas(), states, frame, SMALL)
    own = models(learn_keyed(df, **ROLES, model=SMALL), keys=["s3"])["s3"]
    X = frame[FEATURES].to_numpy()
    alone = frame[frame["sensor"] == "s3"]
    np.testing.assert_array_equal(
        own.predict(X), SMALL.unfitted().fit(alone[FEATURES].to_numpy(), alone["y"]).predict(X)
    )
    assert own.feature_names_in_.tolist() == FEATURES


def test_a_stream_that_stops_amid_a_batch_gives_what_memory_gives(spark, tmp_path):
    """Three files in random order, frames of seven rows at most, and a query that is stopped and started again."""
    frame = events(12, 20)
    write_files(frame, tmp_path / "in", 3)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 7)
    out = run_keyed(stream(spark, tmp_path / "in"), **ROLES, model=SMALL)
    query = write(out, tmp_path)
    while query.isActive and not (tmp_path / "checkpoint" / "offsets" / "1").exists():
        time.sleep(0.05)
    query.stop()
    assert not (tmp_path / "checkpoint" / "commits" / "2").exists()
    result = finished(out, tmp_path)
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert_same(result, kept(tmp_path), frame, SMALL)
    every = models(tmp_path / "checkpoint")
    assert sorted(every) == sorted(set(frame["sensor"]))
    assert {key: own.n_samples_seen_ for key, own in every.items()} == dict.fromkeys(every, 20)
    with pytest.raises(KeyError, match="s99"):
        models(tmp_path / "checkpoint", keys=["s1", "s99"])
    write_files(events(1, 1), tmp_path / "more", 1)
    (tmp_path / "more" / "0.parquet").rename(tmp_path / "in" / "9.parquet")
    with pytest.raises(Exception, match="must be those of the checkpoint"):
        finish(run_keyed(stream(spark, tmp_path / "in"), **ROLES, model=model(11)), tmp_path)


class Fatal(ogp.KRLST):
    """Kills a process other than the driver once, where it starts to work there, if a file is there."""

    marker = ""
    driver = 0

    def recipe(self):
        if os.getpid() != Fatal.driver and os.path.exists(Fatal.marker):
            os.remove(Fatal.marker)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().recipe()


def test_a_worker_that_is_killed_is_replaced(spark, tmp_path):
    frame = events(12, 20)
    write_files(frame, tmp_path / "in", 1)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    Fatal.marker, Fatal.driver = str(tmp_path / "kill"), os.getpid()
    Path(Fatal.marker).touch()
    fatal = Fatal(SMALL.kernel, noise=SMALL.noise, budget=SMALL.budget)
    out = finished(run_keyed(stream(spark, tmp_path / "in"), **ROLES, model=fatal), tmp_path)
    assert not Path(Fatal.marker).exists()
    assert_same(out, kept(tmp_path), frame, SMALL)


def test_late_rows_are_refused_or_dropped_and_counted(spark, tmp_path):
    """Times that local clocks show twice are two times; of equal times, one row is learned, and always the same."""
    night = pd.Timestamp("2026-10-25 00:00", tz="UTC")  # 02:00 twice in Madrid
    times = [night + pd.Timedelta(minutes=30 * i) for i in range(6)]
    first = pd.DataFrame({"sensor": 7, "time": times[:4], "y": [0.0, 1.0, 2.0, 3.0]})
    then = pd.DataFrame({"sensor": 7, "time": [times[5], times[3], times[5], times[4]], "y": [9.0, 8.0, 5.0, 4.0]})
    both = [frame.assign(**{name: frame["y"] for name in FEATURES}) for frame in (first, then)]
    (tmp_path / "in").mkdir()
    for i, frame in enumerate(both):
        frame.to_parquet(tmp_path / "in" / f"{i}.parquet", index=False, coerce_timestamps="us")
        os.utime(tmp_path / "in" / f"{i}.parquet", (1e9 + i, 1e9 + i))
    refused = run_keyed(stream(spark, tmp_path / "in"), **ROLES, model=SMALL)
    with pytest.raises(Exception, match="2 of 4 rows of key 7 are not newer"):
        finish(refused, tmp_path)
    out = run_keyed(stream(spark, tmp_path / "in"), **ROLES, model=SMALL, late="drop")
    write(out, tmp_path).awaitTermination()
    out = (
        spark.read.parquet(str(tmp_path / "out")).withColumn("at", F.unix_micros("time")).orderBy("at", "y").toPandas()
    )
    assert len(out) == 8  # the refused batch left nothing
    late, learned = out[out["late"]], out[~out["late"]]
    assert late["y"].tolist() == [8.0, 9.0]
    assert late[["mean", "std", "lower", "upper", "log_density"]].isna().all().all()
    assert learned["y"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert learned["at"].tolist() == [time.value // 1000 for time in times]
    y = learned["y"].to_numpy()
    state, trace = step(SMALL, None, np.stack([y] * len(FEATURES), axis=1), y)
    np.testing.assert_array_equal(learned["mean"], trace.mean)
    (row,) = stored(str(tmp_path / "checkpoint")).collect()
    assert (row["key"], row["late"], bytes(row["state"])) == (7, 2, state)


ORDERS = {
    "date": ["2026-01-02", "2026-10-25", "2026-03-01"],
    "timestamp_ntz": ["2026-03-29 02:30:00", "2026-03-29 02:30:00.5", "2026-03-29 02:00:00.25"],  # in no zone
    "double": ["2", "10", "-0.5"],
    "string": ["b", "c", "a"],
    "smallint": ["2", "10", "-3"],
}


@pytest.mark.parametrize("kind", ORDERS)
def test_orders_of_every_type_come_back(spark, kind):
    rows = [(1, text, float(i)) for i, text in enumerate(ORDERS[kind])]
    df = spark.createDataFrame(rows, "sensor int, time string, y double")
    df = df.withColumn("time", df["time"].cast(kind)).withColumn("a.b", df["y"])
    out = run_keyed(df, key="sensor", order="time", features="a.b", target="y", model=SMALL)
    assert out.schema["time"].dataType == df.schema["time"].dataType
    assert out.schema["sensor"].dataType == df.schema["sensor"].dataType
    y = np.array([2.0, 0.0, 1.0] if kind != "date" else [0.0, 2.0, 1.0])
    _, trace = step(SMALL, None, y[:, None], y)
    texts = out.withColumn("time", out["time"].cast("string")).orderBy("mean").collect()
    expected = sorted(zip(trace.mean, y, [df_text(kind, int(i)) for i in y], strict=True))
    assert [(row["mean"], row["y"], row["time"]) for row in texts] == expected


def df_text(kind: str, i: int) -> str:
    return {"2": "2.0", "10": "10.0"}.get(ORDERS[kind][i], ORDERS[kind][i]) if kind == "double" else ORDERS[kind][i]


@pytest.mark.parametrize("kind", [np.int64, np.float64, str])
@pytest.mark.parametrize("last", [None, 3])
def test_rows_are_sorted_and_ties_do_not_depend_on_their_order(kind, last):
    """Of one key, against a loop that is easy to see through."""
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(size=(12, 3)))
    place = rng.integers(0, 9, 12).astype(kind).astype(object if kind is str else kind)
    last = None if last is None else kind(last)
    expected, before = [], last
    for where, *row in sorted((where, *row) for where, row in zip(place, values.tolist(), strict=True)):
        expected.append((where, *row, before is None or where > before))
        before = where if before is None else max(before, where)
    assert sum(row[-1] for row in expected) < 9
    for _ in range(5):
        mixed = rng.permutation(12)
        by, newer = in_order(place[mixed], values[mixed], last)
        ordered = zip(place[mixed][by], values[mixed][by].tolist(), newer, strict=True)
        assert [(where, *row, new) for where, row, new in ordered] == expected


@pytest.mark.parametrize("name", ["LinearRLS", "RandomFeatureGP"])
def test_partitions_merge_to_one_pass(spark, name):
    frame = events(10, 80)
    start = ogp.LinearRLS(noise=0.01) if name == "LinearRLS" else ogp.RandomFeatureGP(noise=0.01, pairs=20)
    whole = start.unfitted().fit(frame[FEATURES].to_numpy(), frame["y"].to_numpy())
    df = spark.createDataFrame(frame).repartition(8)
    merged = fit(df, features=FEATURES, target="y", model=start)
    assert df.rdd.getNumPartitions() == 8
    X = np.random.default_rng(1).normal(size=(50, 4))
    for ours, theirs in zip(merged.predict(X, return_std=True), whole.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    assert merged.n_samples_seen_ == len(frame)
    assert merged.feature_names_in_.tolist() == FEATURES
    assert start.dump() is None
    with pytest.raises(ValueError, match="at least one row"):
        fit(df.where("false"), features=FEATURES, target="y", model=start)


def test_wrong_arguments_are_refused_when_the_query_is_built(spark, tmp_path):
    df = spark.createDataFrame(events(2, 2))
    good = ROLES | {"model": SMALL}
    wrong = [
        ({"key": "nobody"}, ValueError, "key must be a column of df, got 'nobody'. It has: sensor"),
        ({"key": "y"}, TypeError, "key must be a column of strings or whole numbers"),
        ({"order": "list"}, TypeError, "order must be a column of times"),
        ({"features": ["a", "sensor"]}, TypeError, "features must be a column of numbers"),
        ({"features": []}, ValueError, "at least one column"),
        ({"features": ["a", "y"]}, ValueError, "target must not be one of the features"),
        ({"target": "time"}, ValueError, "two columns 'time'"),
        ({"order": "mean"}, ValueError, "two columns 'mean'"),
        ({"model": 3}, TypeError, "model must be one of onlinegp's"),
        ({"model": ogp.KRLST(budget=0)}, ValueError, "budget"),
        ({"late": "maybe"}, ValueError, "late must be one of refuse, drop"),
        ({"level": 1.0}, ValueError, "level"),
    ]
    df = df.withColumn("list", F.array(df["y"])).withColumn("mean", df["y"])
    for change, kind, message in wrong:
        with pytest.raises(kind, match=message):
            run_keyed(df, **(good | change))
    with pytest.raises(TypeError, match="must have a method merge"):
        fit(df, features=FEATURES, target="y", model=SMALL)
    write_files(events(2, 2), tmp_path / "in", 1)
    streaming = stream(spark, tmp_path / "in")
    with pytest.raises(ValueError, match="must not be a stream"):
        learn_keyed(streaming, **good)
    with pytest.raises(ValueError, match="must not be a stream"):
        fit(streaming, features=FEATURES, target="y", model=ogp.LinearRLS())
    provider = spark.conf.get(PROVIDER)
    spark.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    with pytest.raises(ValueError, match=r"RocksDB state store.*spark.conf.set"):
        run_keyed(streaming, **good)
    spark.conf.set(PROVIDER, provider)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("sensor", "key must be present in every row"),
        ("time", "order must be present"),
        ("b", r"X contains NaN[\s\S]*key 's0'"),
    ],
)
def test_missing_values_end_the_query(spark, column, message):
    df = spark.createDataFrame(events(1, 3)).withColumn(column, F.expr(f"if(time = 1, null, {column})"))
    with pytest.raises(Exception, match=message):
        run_keyed(df, **ROLES, model=SMALL).collect()
