"""Events of many keys, what `step` makes of them in memory, and the same through Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import onlinegp as ogp
from onlinegp.fleet import step
from onlinegp.kernels import RBF

FEATURES = ["a", "b", "c", "d"]
ROLES = {"key": "sensor", "order": "time", "features": FEATURES, "target": "y"}
SAID = ["mean", "std", "lower", "upper", "log_density"]


def model(budget: int = 50) -> ogp.KRLST:
    return ogp.KRLST(RBF(1.0), noise=0.01, budget=budget)


def need_spark() -> None:
    """Skip the tests where Spark cannot run, and say what is missing."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'onlinegp[spark]'")
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        pytest.skip("there is no Java: Spark needs version 17 or later", allow_module_level=True)
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', told)
    if version is None or int(version[1]) < 17:
        pytest.skip(f"Spark needs Java 17 or later, and here is {told.splitlines()[:1]}", allow_module_level=True)


def session(failures: int = 3):
    """Return a session of two cores in which a task may fail some times."""
    from pyspark.sql import SparkSession

    from onlinegp.spark.by_key import PROVIDER, ROCKSDB

    builder = SparkSession.builder.master(f"local[2,{failures}]").appName("onlinegp tests")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # small queries, started quickly
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "Europe/Madrid",  # where one hour a year is there twice
        PROVIDER: ROCKSDB,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def events(keys: int, each: int) -> pd.DataFrame:
    """Return events of each key, at the same times."""
    rng, n = np.random.default_rng(0), keys * each
    X = rng.normal(size=(n, len(FEATURES)))
    columns = {"sensor": [f"s{i}" for i in np.repeat(np.arange(keys), each)], "time": np.tile(np.arange(each), keys)}
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
    return pd.DataFrame(columns | dict(zip(FEATURES, X.T, strict=True)) | {"y": y})


def in_memory(frame: pd.DataFrame, start: ogp.OnlineRegressor) -> tuple[pd.DataFrame, dict[str, bytes]]:
    """Return the predictions, sorted by key and time, and the states: `step` for each key."""
    states, parts = {}, []
    for key, group in frame.groupby("sensor"):
        group = group.sort_values("time")
        states[key], trace = step(start, None, group[FEATURES].to_numpy(), group["y"].to_numpy())
        predicted = (trace.mean, trace.std, *trace.interval(0.95), trace.log_density)
        parts.append(group[["sensor", "time", "y"]].assign(**dict(zip(SAID, predicted, strict=True))))
    return by_key(pd.concat(parts)), states


def by_key(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sort_values(["sensor", "time"], ignore_index=True)


def write_files(frame: pd.DataFrame, folder: Path, parts: int) -> None:
    """Write Parquet files, each with the next part of the times of all keys, in random order."""
    folder.mkdir(parents=True)
    times = np.array_split(np.unique(frame["time"]), parts)
    for i, some in enumerate(times):
        path = folder / f"{i}.parquet"
        frame[frame["time"].isin(some)].sample(frac=1.0, random_state=i).to_parquet(path, index=False)
        os.utime(path, (1e9 + i, 1e9 + i))  # Spark takes files by age


def stream(spark, folder: Path, files: int = 1):
    """Return the files as a stream with some of them in each batch."""
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(str(folder))


def write(out, folder: Path):
    """Start a query that writes Parquet files into a folder, with its checkpoint beside them, until all is read."""
    writer = out.writeStream.format("parquet").option("path", str(folder / "out"))
    return writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()


def finish(out, folder: Path) -> None:
    """Write until all is read, and start again if this machine needs the ten seconds that Spark waits for a Python."""
    for attempt in range(4):
        try:
            return write(out, folder).awaitTermination()
        except Exception as error:
            if "failed to connect back" not in str(error) or attempt == 3:
                raise


def assert_same(out: pd.DataFrame, states: dict[str, bytes], frame: pd.DataFrame, start: ogp.OnlineRegressor) -> None:
    """Every row exactly once, and predictions and states to the last bit."""
    expected, kept = in_memory(frame, start)
    pd.testing.assert_frame_equal(by_key(out)[list(expected.columns)], expected, check_exact=True)
    assert not out["late"].any()
    assert states == kept
