"""Spark at the size that is promised: 2,000 keys of 50 events, kills of the driver and of a worker, a million rows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from events import FEATURES, ROLES, assert_same, events, finish, model, need_spark, session, stream, write_files

need_spark()
import onlinegp as ogp  # noqa: E402
from onlinegp.spark import fit, learn_keyed, models, run_keyed  # noqa: E402
from onlinegp.spark.states import stored  # noqa: E402

pytestmark = pytest.mark.slow
KEYS, EACH = 2000, 50


@pytest.fixture(scope="module")
def spark():
    started = session()
    yield started
    started.stop()


def result(spark, folder: Path) -> tuple[pd.DataFrame, dict]:
    rows = stored(str(folder / "checkpoint")).collect()
    return spark.read.parquet(str(folder / "out")).toPandas(), {row["key"]: bytes(row["state"]) for row in rows}


def test_frames_and_streams_give_what_memory_gives(spark, tmp_path):
    frame = events(KEYS, EACH)
    write_files(frame, tmp_path / "in", 10)
    df = spark.read.parquet(str(tmp_path / "in"))
    states = {row["key"]: bytes(row["state"]) for row in learn_keyed(df, **ROLES, model=model()).collect()}
    assert_same(run_keyed(df, **ROLES, model=model()).toPandas(), states, frame, model())
    finish(run_keyed(stream(spark, tmp_path / "in", 5), **ROLES, model=model()), tmp_path)
    assert_same(*result(spark, tmp_path), frame, model())
    own = models(tmp_path / "checkpoint", keys=["s7", "s1999"])
    for key, again in own.items():
        alone = frame[frame["sensor"] == key]
        expected = model().fit(alone[FEATURES].to_numpy(), alone["y"].to_numpy())
        np.testing.assert_array_equal(again.predict(alone[FEATURES].to_numpy()), expected.predict(alone[FEATURES]))


def test_kills_of_the_driver_and_of_a_worker_leave_no_trace(spark, tmp_path):
    frame = events(KEYS, EACH)
    write_files(frame, tmp_path / "in", 10)
    for batch in (0, 2):
        driver = start_driver(tmp_path)
        wait_for(tmp_path, batch, driver)
        os.killpg(driver.pid, signal.SIGKILL)  # the driver, its Java and all workers
        driver.wait()
        assert not committed(tmp_path, batch)
    driver = start_driver(tmp_path)
    wait_for(tmp_path, 3, driver)
    os.kill(workers(driver.pid)[0], signal.SIGKILL)
    assert driver.wait() == 0
    assert_same(*result(spark, tmp_path), frame, model())


def start_driver(folder: Path) -> subprocess.Popen:
    script = Path(__file__).parent / "driver.py"
    return subprocess.Popen([sys.executable, script, str(folder), "2"], start_new_session=True)


def committed(folder: Path, batch: int) -> bool:
    return (folder / "checkpoint" / "commits" / str(batch)).exists()


def wait_for(folder: Path, batch: int, driver: subprocess.Popen) -> None:
    """Wait until the driver is amid a batch: some seconds after its begin, while workers work for it."""
    while not (folder / "checkpoint" / "offsets" / str(batch)).exists() or not workers(driver.pid):
        assert driver.poll() is None
        time.sleep(0.1)
    time.sleep(1.0)


def workers(session_id: int) -> list[int]:
    """Return the processes that Spark's daemon has forked in a session of the system: those that run models."""
    told = subprocess.run(["ps", "-eo", "pid,ppid,sid,args"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 3) for line in told.splitlines()[1:]]
    of = {int(pid): int(ppid) for pid, ppid, sid, args in rows if int(sid) == session_id and "pyspark.daemon" in args}
    return [pid for pid, parent in of.items() if parent in of]


@pytest.mark.parametrize("name", ["LinearRLS", "RandomFeatureGP"])
def test_a_million_rows_of_eight_partitions_are_one_pass(spark, tmp_path, name):
    rng, n = np.random.default_rng(0), 1_000_000
    X = rng.normal(size=(n, len(FEATURES)))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
    pd.DataFrame(X, columns=FEATURES).assign(y=y).to_parquet(tmp_path / "rows.parquet", index=False)
    df = spark.read.parquet(str(tmp_path / "rows.parquet")).repartition(8)
    start = ogp.LinearRLS(noise=0.01) if name == "LinearRLS" else ogp.RandomFeatureGP(noise=0.01, pairs=20)
    merged, whole = fit(df, features=FEATURES, target="y", model=start), start.unfitted().fit(X, y)
    assert merged.n_samples_seen_ == n
    for ours, theirs in zip(merged.predict(X[:500], True), whole.predict(X[:500], True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
