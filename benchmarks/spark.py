"""Spark: what a key costs in a batch of a stream, beside a function that does nothing; and a fit over partitions.

    python benchmarks/spark.py [--keys 2000] [--batches 6] [--rows 1000000]

Models have 50 centers of 4 inputs, and each key has 25 events in each batch. "nothing" reads a state of the same size,
writes it again and returns the rows as they came: what Spark takes for itself. Both run in turn over the same files, on
two cores; the least of the batches in which all states are full counts. Processor time is that of Java and all Pythons,
and says more where others use the machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StatefulProcessor

import onlinegp as ogp
from onlinegp import spark as ogs
from onlinegp.fleet import step
from onlinegp.kernels import RBF
from onlinegp.spark.by_key import PROVIDER, ROCKSDB

M, FEATURES, EVENTS = 50, ["a", "b", "c", "d"], 25
MODEL = ogp.KRLST(RBF(1.0), noise=0.01, budget=M)
FULL = 3  # the first batch in which all states are full


class Nothing(StatefulProcessor):
    """Read a state, write one of the same size, and return the rows with six numbers more, as they came."""

    def __init__(self, size: int) -> None:
        self.size = size

    def init(self, handle: Any) -> None:
        self.kept = handle.getValueState("kept", "state binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        self.kept.get()
        self.kept.update((bytes(self.size),))
        for part in rows:
            yield part[["key", "time", "y", "a", "b", "c", "d", "y"]].set_axis(list("abcdefgh"), axis=1)

    def close(self) -> None:
        pass


def session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        PROVIDER: ROCKSDB,
    }
    builder = SparkSession.builder.master("local[2]").appName("onlinegp benchmark")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def write_events(folder: Path, keys: int, batch: int) -> None:
    rng, n = np.random.default_rng(batch), keys * EVENTS
    X = rng.normal(size=(n, len(FEATURES)))
    frame = pd.DataFrame(X, columns=FEATURES).assign(
        key=np.tile(np.arange(keys), EVENTS),
        time=np.repeat(np.arange(EVENTS), keys) + batch * EVENTS,
        y=np.sin(X[:, 0]) + 0.1 * rng.normal(size=n),
    )
    frame.sample(frac=1.0, random_state=0).to_parquet(folder / f"{batch}.parquet", index=False)


def processor_seconds() -> float:
    """Return the processor time of the processes that this one has started, and of those that they started."""
    rows = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            rows[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))  # parent; own and waited for
    family, before = {os.getpid()}, 0
    while len(family) > before:
        before = len(family)
        family |= {pid for pid, (parent, _) in rows.items() if parent in family}
    return sum(ticks for pid, (_, ticks) in rows.items() if pid in family) / os.sysconf("SC_CLK_TCK")


def batch_seconds(out: DataFrame, folder: Path) -> tuple[float, float]:
    """Return how long the next batch took, of the files that are there, and the processor time of all of it."""
    used = processor_seconds()
    writer = out.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    took = sum(progress["durationMs"].get("addBatch", 0) for progress in query.recentProgress) / 1000
    return took, processor_seconds() - used


def streams(spark: SparkSession, folder: Path, keys: int, batches: int) -> None:
    events, size = folder / "events", len(full_state())
    events.mkdir()
    write_events(events, keys, 0)
    df = spark.readStream.schema(spark.read.parquet(str(events)).schema).parquet(str(events))
    nothing = df.groupBy("key").transformWithStateInPandas(
        Nothing(size), "a long, b long, c double, d double, e double, f double, g double, h double", "append", "none"
    )
    roles = {"key": "key", "order": "time", "features": FEATURES, "target": "y"}
    queries = {"nothing": nothing, "models": ogs.run_keyed(df, **roles, model=MODEL)}
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in queries}
    for batch in range(batches):
        if batch:
            write_events(events, keys, batch)
        for name, out in queries.items():
            took[name].append(batch_seconds(out, folder / name))
    print(f"{keys:,} keys, {EVENTS} events of each in a batch, states of {size:,} bytes; per key and batch, at least:")
    least = {name: np.min(seconds[FULL:], axis=0) for name, seconds in took.items()}
    for name, (wall, cpu) in least.items():
        print(f"  {name:8} {1000 * wall / keys:.2f} ms, {1000 * cpu / keys:.2f} ms of processor time")
    wall, cpu = least["models"] / least["nothing"]
    print(f"  models / nothing: {wall:.2f}, of processor time {cpu:.2f}")


def full_state() -> bytes:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3 * M, len(FEATURES)))
    return step(MODEL, None, X, np.sin(X[:, 0]))[0]


def partitions(spark: SparkSession, folder: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, len(FEATURES)))
    frame = pd.DataFrame(X, columns=FEATURES).assign(y=np.sin(X[:, 0]) + 0.1 * rng.normal(size=rows))
    frame.to_parquet(folder / "rows.parquet", index=False)
    df = spark.read.parquet(str(folder / "rows.parquet")).repartition(8).cache()
    df.count()
    for start in (ogp.LinearRLS(noise=0.01), ogp.RandomFeatureGP(RBF(2.0), noise=0.01, pairs=50)):
        begun = perf_counter()
        merged = ogs.fit(df, features=FEATURES, target="y", model=start)
        between = perf_counter()
        whole = start.unfitted().fit(X, frame["y"].to_numpy())
        ended = perf_counter()
        largest = max(
            np.abs(ours - theirs).max()
            for ours, theirs in zip(
                merged.predict(X[:1000], return_std=True), whole.predict(X[:1000], return_std=True), strict=True
            )
        )
        print(
            f"{type(start).__name__}, {rows:,} rows: 8 partitions on Spark {between - begun:.1f} s, one pass in memory "
            f"{ended - between:.1f} s, largest difference of a mean or std {largest:.1e}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=2000)
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where files are made (a temporary one)")
    args = parser.parse_args()
    spark = session()
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        streams(spark, Path(name), args.keys, args.batches)
        partitions(spark, Path(name), args.rows)
    spark.stop()


if __name__ == "__main__":
    main()
