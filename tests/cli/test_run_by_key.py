"""`onlinegp run --by`: a model per key, the same bytes in memory, with a store, and after kills."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from shell import inside, onlinegp, rows_of, started, wait_for
from test_crash import Crashing

import onlinegp as ogp
from marks import slow
from onlinegp.kernels import RBF

FIXED = ["--kernel", "rbf(1.0)", "--noise", "0.01", "--budget", "15", "--model", "krlst", "--quiet"]
BY = ["--by", "sensor", "--order", "time"]


def write_events(path: Path, n: int, *, keys: int = 12, seed: int = 0, level: float = 0.1) -> Path:
    """Write events of sensors with a number each, some targets missing, in the order of their times.

    The levels of two sensors differ by at least `level`.
    """
    rng = np.random.default_rng(seed)
    X, which = rng.uniform(-2, 2, (n, 2)), rng.integers(0, keys, n)
    y = np.sin(X[:, 0]) + level * which + 0.1 * rng.standard_normal(n)
    rows = [
        f"{i},{which[i]},{float(X[i, 0])!r},{float(X[i, 1])!r},{'' if i % 41 == 5 else repr(float(y[i]))}"
        for i in range(n)
    ]
    path.write_text("time,sensor,a,b,y\n" + "".join(row + "\n" for row in rows))
    return path


@pytest.fixture
def data(tmp_path):
    return write_events(tmp_path / "events.csv", 600)


def test_each_key_has_its_own_model(data, tmp_path):
    inside("run", data, *BY, *FIXED, "--out", tmp_path / "out.csv", "--summary", tmp_path / "s.json")
    rows = rows_of(tmp_path / "out.csv")
    assert [row["time"] for row in rows] == [str(i) for i in range(600)]
    assert json.loads((tmp_path / "s.json").read_text())["keys"] == 12
    table = rows_of(data)
    for key in ("0", "7"):
        mine = [i for i, row in enumerate(table) if row["sensor"] == key and row["y"]]
        X = np.array([[float(table[i]["a"]), float(table[i]["b"])] for i in mine])
        y = np.array([float(table[i]["y"]) for i in mine])
        alone = ogp.run(ogp.KRLST(RBF(1.0), noise=0.01, budget=15), X, y)
        np.testing.assert_array_equal([float(rows[i]["mean"]) for i in mine], alone.mean)
        np.testing.assert_array_equal([float(rows[i]["std"]) for i in mine], alone.std)
    missing = [row for row in rows if not row["y"]]
    assert missing
    assert all(row["mean"] and not row["log_density"] for row in missing)


@pytest.mark.parametrize("more", [["--store", "fleet.db", "--keep", "3"], ["--checkpoint", "safe", "--keep", "2"]])
@pytest.mark.parametrize("model", [FIXED, ["--tune", "100", "--budget", "15", "--quiet"]])
def test_a_store_changes_nothing(data, tmp_path, more, model):
    inside("run", data, *BY, *model, "--out", tmp_path / "whole.csv", cwd=tmp_path)
    inside("run", data, *BY, *model, "--out", tmp_path / "out.csv", *more, "--every", "100", cwd=tmp_path)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    store = tmp_path / ("fleet.db" if "--store" in more else "safe/checkpoint.db")
    facts = json.loads(inside("inspect", store, "--json").stdout)
    assert facts["models"] == 12
    one = json.loads(inside("inspect", store, "--key", "7", "--out", tmp_path / "7.ogp", "--json").stdout)
    assert one["learned"] == sum(row["sensor"] == "7" and row["y"] != "" for row in rows_of(data))


def test_keys_of_different_levels_learn_their_own(tmp_path):
    data, out = write_events(tmp_path / "events.csv", 500, keys=4, level=30.0), tmp_path / "out.csv"
    model = [*BY, "--tune", "120", "--budget", "15"]
    assert b"keys differ in level or scale" in inside("run", data, *model, "--out", out).stderr
    error = np.array([float(row["mean"]) - float(row["y"]) for row in rows_of(out) if row["y"] and row["mean"]])
    assert np.sqrt(np.mean(error[200:] ** 2)) < 0.3  # the noise is 0.1, with one level for all keys it is 6.8
    assert np.median(np.abs(error[60:110])) < 2.0  # before the tuning, each key has its own mean
    inside("run", data, *model, "--quiet", "--out", tmp_path / "same.csv", "--store", tmp_path / "s.db", "--keep", "2")
    assert (tmp_path / "same.csv").read_bytes() == out.read_bytes()
    alike = write_events(tmp_path / "alike.csv", 300, keys=4)
    assert b"keys differ" not in inside("run", alike, *model, "--out", out).stderr
    constant = tmp_path / "constant.csv"
    constant.write_text("time,sensor,a,y\n" + "".join(f"{i},{i % 3},{i % 7},{i % 3}\n" for i in range(200)))
    inside("run", constant, *model, "--out", out)
    assert [float(row["mean"]) for row in rows_of(out)[-3:]] == pytest.approx([2.0, 0.0, 1.0], abs=0.1)


def test_devices_that_report_in_turn_are_tuned_on_enough_rows_of_each(tmp_path):
    rng, out = np.random.default_rng(0), tmp_path / "out.csv"
    levels, x = rng.uniform(0, 100, 150), rng.uniform(-2, 2, (24, 150))
    y = levels + np.sin(x) + 0.1 * rng.standard_normal(x.shape)
    data = tmp_path / "turns.csv"
    rows = [f"{i},{k},{float(x[i, k])!r},{float(y[i, k])!r}\n" for i in range(24) for k in range(150)]
    data.write_text("time,sensor,a,y\n" + "".join(rows))  # the 720 rows for tuning have five of each
    told = inside("run", data, *BY, "--budget", "15", "--out", out).stderr
    assert b"720 rows of 72 keys, after 1,4" in told
    assert b"keys differ in level or scale" in told
    error = np.array([float(row["mean"]) - float(row["y"]) for row in rows_of(out)[-600:]])
    assert np.sqrt(np.mean(error**2)) < 0.5  # with one level for all keys it is 29
    few = inside("run", data, *BY, "--budget", "15", "--tune", "100", "--out", out).stderr
    assert b"after" not in few  # a number that is given is kept
    assert b"use a larger --tune N" in few
    assert b"use a larger --tune N" not in told


def test_each_key_tunes_itself(tmp_path):
    data = write_events(tmp_path / "events.csv", 160, keys=2)
    out = tmp_path / "out.csv"
    inside("run", data, *BY, "--tune-by", "key", "--tune", "30", "--quiet", "--out", out)
    assert len(rows_of(out)) == 160
    error = [float(row["mean"]) - float(row["y"]) for row in rows_of(out)[100:] if row["y"] and row["mean"]]
    assert np.std(error) < 0.5
    assert b"--tune-by" in inside("run", data, *BY, "--model", "auto", "--out", out, code=1).stderr
    assert b"--tune-by" in inside("run", data, *BY, *FIXED, "--tune-by", "key", "--out", out, code=1).stderr


@pytest.mark.parametrize("more", [[], ["--store", "fleet.db", "--keep", "2"]])
def test_late_rows(data, tmp_path, more):
    lines = data.read_text().splitlines()
    late = [*lines[:300], lines[200], *lines[300:500], lines[450], lines[499], *lines[500:]]
    (tmp_path / "late.csv").write_text("\n".join(late) + "\n")
    inside("run", data, *BY, *FIXED, "--out", tmp_path / "whole.csv")
    told = inside("run", "late.csv", *BY, *FIXED, "--out", "out.csv", *more, code=3, cwd=tmp_path).stderr
    assert b"late.csv, row 300 of the data: time '199' is not newer than the last row of the key" in told
    assert (tmp_path / "whole.csv").read_text().startswith((tmp_path / "out.csv").read_text())
    if more:
        assert not (tmp_path / "fleet.db").exists()  # nothing was committed
    args = ["run", "late.csv", *BY, *FIXED, "--late", "drop", "--out", "out.csv", "--summary", "s.json", *more]
    inside(*args, cwd=tmp_path)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert json.loads((tmp_path / "s.json").read_text())["late"] == 3


def test_a_store_goes_on_with_another_file(tmp_path):
    whole = write_events(tmp_path / "events.csv", 600)
    lines = whole.read_text().splitlines()
    (tmp_path / "one.csv").write_text("\n".join(lines[:301]) + "\n")
    (tmp_path / "two.csv").write_text("\n".join([lines[0], *lines[301:]]) + "\n")
    inside("run", whole, *BY, *FIXED, "--out", tmp_path / "whole.csv")
    for name in ("one", "two"):
        inside("run", f"{name}.csv", *BY, *FIXED, "--store", "fleet.db", "--out", f"{name}.out.csv", cwd=tmp_path)
    parts = [(tmp_path / f"{name}.out.csv").read_text().splitlines() for name in ("one", "two")]
    assert parts[0] + parts[1][1:] == (tmp_path / "whole.csv").read_text().splitlines()


def test_what_is_said(data, tmp_path):
    data.write_text(data.read_text().replace(",sensor,", ",place,", 1).replace("\n1,", "\n1,s", 1))
    by = ["--by", "place", "--order", "time", "--kernel", "rbf(1.0)", "--noise", "0.1"]
    told = inside("run", data, *by, "--out", tmp_path / "out.csv").stderr.decode()
    assert "not used" not in told  # the column of the key is
    assert "13 keys" in told
    assert "centers" not in told  # each key has its own


def test_what_is_refused(data, tmp_path):
    out = ["--out", tmp_path / "out.csv"]
    for more, message in [
        (["--order", "time"], b"--order needs --by"),
        (["--late", "drop"], b"--late needs --by"),
        (["--tune-by", "key"], b"--tune-by needs --by"),
        (["--by", "none"], b"there is no column 'none'"),
        (["--by", "sensor", "--target", "sensor"], b"--target sensor is the column of the key"),
        ([*BY, "--save", "m.ogp"], b"--save cannot be used with --by"),
        ([*BY, "--ahead"], b"--ahead cannot be used with --by"),
        ([*BY, "--keep", "0"], b"keep must be"),
        ([*BY, "--store", data], b"same file"),
        ([*BY, "--store", "s.db", "--checkpoint", "safe"], b"exclude each other"),
        (["--by", "sensor", "--features", "a", "--order", "y"], b"cannot be compared in an order"),
    ]:
        assert message in inside("run", data, *FIXED, *out, *more, code=None, cwd=tmp_path).stderr
    inside("run", data, *BY, *FIXED, *out, "--checkpoint", "safe", cwd=tmp_path)
    again = ["run", data, *BY, *FIXED, *out, "--checkpoint", "safe"]
    assert b"--resume" in inside(*again, code=4, cwd=tmp_path).stderr
    assert b"--late" in inside(*again, "--resume", "--late", "drop", code=4, cwd=tmp_path).stderr
    before = (tmp_path / "out.csv").read_bytes()
    inside(*again, "--resume", cwd=tmp_path)
    assert (tmp_path / "out.csv").read_bytes() == before


def test_a_store_that_another_run_has_open_is_refused_before_anything_is_touched(data, tmp_path):
    store = ["--store", tmp_path / "fleet.db"]
    first = started("run", "-", *BY, "--tune", "100", *store, "--out", tmp_path / "first.csv")
    try:
        first.stdin.write(b"\n".join(data.read_bytes().splitlines()[:20]) + b"\n")
        first.stdin.flush()
        wait_for((tmp_path / "first.csv").exists)  # it is still collecting rows to tune on
        (tmp_path / "second.csv").write_text("what was there before\n")
        for more in ([], ["--resume"]):
            told = inside("run", data, *BY, *FIXED, *store, *more, "--out", tmp_path / "second.csv", code=1).stderr
            assert b"fleet.db is open for writing in another process" in told
        assert (tmp_path / "second.csv").read_text() == "what was there before\n"
    finally:
        first.kill()
        first.communicate()
    inside("run", data, *BY, *FIXED, *store, "--out", tmp_path / "second.csv")


def crash(folder: Path, *, rows: int, kills: int, every: int, more: list[str]) -> list[int]:
    """Compare a run that is killed so many times with one that is not; return the rows at which it was."""
    write_events(folder / "events.csv", rows, keys=40)
    args = ["run", "events.csv", *BY, *FIXED, "--out", "out.csv", "--every", str(every), *more]
    onlinegp(*args, cwd=folder)
    out = folder / "out.csv"
    whole = out.read_bytes()
    assert whole.count(b"\n") == rows + 1
    out.unlink()
    args += ["--checkpoint", "safe", "--keep", "10"]
    crashing = Crashing(args, out, len(whole), cwd=folder, seed="keys")
    crashing.kill(kills)
    onlinegp(*crashing.args, cwd=folder)
    assert out.read_bytes() == whole
    print(f"\nby key: {len(crashing.landed)} kills of {rows} rows, at row {crashing.landed}", file=sys.stderr)
    return crashing.landed


@pytest.mark.parametrize("more", [["--robust"], slow([]), slow(["--compact"])])
def test_killed_runs_give_the_same_bytes(tmp_path, more):
    assert len(crash(tmp_path, rows=6_000, kills=2, every=300, more=more)) == 2


@pytest.mark.attack
@pytest.mark.parametrize("more", [[], ["--compact"]])
def test_twenty_kills(tmp_path, more):
    landed = crash(tmp_path, rows=60_000, kills=20, every=1000, more=more)
    assert len(landed) == 20
    assert len(set(landed)) > 10


def _time(i: int) -> str:
    return (
        f"2024-01-{1 + i // 24:02}T{i % 24:02}:00:00"
        if i < 720
        else f"2024-02-{1 + (i - 720) // 24:02}T{i % 24:02}:00:00"
    )


def test_events_of_each_key_are_those_of_its_rows_alone(tmp_path):
    """With a budget over all keys, killed and resumed by the store, once each."""
    rng = np.random.default_rng(0)
    y = rng.standard_normal((900, 4))
    y[700:720, 2] += 7.0
    lines = [f"{_time(i)},s{k},{y[i, k]:.6f}" for i in range(900) for k in range(4)]
    (tmp_path / "events.csv").write_text("time,sensor,y\n" + "\n".join(lines) + "\n")
    args = ["--by", "sensor", "--order", "time", "--lags", "2", *FIXED, "--flag", "0.001"]
    inside("run", "events.csv", *args, "--out", "out.csv", "--events", "all.jsonl", cwd=tmp_path)
    events = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    found = [event for event in events if event["key"] == "s2" and event["start"] == 701]
    assert [event["state"] for event in found] == ["open", "clear"]
    assert all(event["reason"].endswith(f" {_time(700)}") for event in found)
    rows = [row for row in rows_of(tmp_path / "out.csv") if row["sensor"] == "s2"]
    assert rows[700]["event"] == str(found[0]["event"])
    alone = [f"{_time(i)},{y[i, 2]:.6f}" for i in range(900)]
    (tmp_path / "one.csv").write_text("time,y\n" + "\n".join(alone) + "\n")
    inside("run", "one.csv", "--lags", "2", *FIXED, "--flag", "0.001", "--out", "o.csv", cwd=tmp_path)
    assert [row["score"] for row in rows_of(tmp_path / "o.csv")] == [row["score"] for row in rows]
    stored = [
        *args,
        "--out",
        "again.csv",
        "--events",
        "again.jsonl",
        "--store",
        "s.db",
        "--resume",
        "--report",
        "r.html",
    ]
    for n in (1500, 3000, 3600):
        (tmp_path / "part.csv").write_text("time,sensor,y\n" + "\n".join(lines[:n]) + "\n")
        inside("run", "part.csv", *stored, cwd=tmp_path)
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "all.jsonl").read_bytes()
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()


def write_faults(path: Path, *, keys: int, busy: int, rows: int) -> None:
    """Write a few rows of each key, and `rows` of the busy ones, each with a fault."""
    rng = np.random.default_rng(1)
    which = np.concatenate([np.repeat(np.arange(busy), rows), np.tile(np.arange(keys), 5)])
    which = which[rng.permutation(len(which))]
    seen = np.zeros(keys, dtype=int)
    y = rng.standard_normal(len(which))
    for i, key in enumerate(which.tolist()):
        seen[key] += 1
        y[i] += 8.0 * (rows - 100 < seen[key] <= rows - 80)
    lines = [f"{i},{key},{value:.6f}" for i, (key, value) in enumerate(zip(which.tolist(), y.tolist(), strict=True))]
    path.write_text("time,sensor,y\n" + "\n".join(lines) + "\n")


def crash_with_events(folder: Path, *, keys: int, busy: int, rows: int, kills: int, every: int, keep: int) -> int:
    """Compare the events of a stored run that is killed so many times with those of one that is not."""
    write_faults(folder / "faults.csv", keys=keys, busy=busy, rows=rows)
    args = ["run", "faults.csv", *BY, "--lags", "1", *FIXED, "--flag", "0.001", "--every", str(every)]
    onlinegp(*args, "--out", "whole.csv", "--events", "whole.jsonl", cwd=folder)
    whole, out = (folder / "whole.csv").stat().st_size, folder / "out.csv"
    args += ["--out", "out.csv", "--events", "events.jsonl", "--store", "s.db", "--keep", str(keep), "--resume"]
    killed = 0
    for k in range(kills):
        process = started(*args, cwd=folder)
        target = whole * (k + 1) / (kills + 1)
        while process.poll() is None and (not out.exists() or out.stat().st_size < target):
            time.sleep(0.001)
        process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
    onlinegp(*args, cwd=folder)
    for name, same in (("out.csv", "whole.csv"), ("events.jsonl", "whole.jsonl")):
        assert (folder / name).read_bytes() == (folder / same).read_bytes()
    events = [json.loads(line) for line in (folder / "whole.jsonl").read_text().splitlines()]
    opened = [(event["key"], event["event"]) for event in events if event["state"] == "open"]
    assert len(set(opened)) == len(opened)
    assert len({key for key, _ in opened}) > 0.9 * busy
    return killed


def test_events_of_a_killed_run_with_a_store_come_once_each(tmp_path):
    assert crash_with_events(tmp_path, keys=40, busy=5, rows=400, kills=2, every=200, keep=20) == 2


@pytest.mark.attack
def test_events_of_ten_thousand_keys_come_once_each(tmp_path):
    assert crash_with_events(tmp_path, keys=10_000, busy=30, rows=500, kills=4, every=10_000, keep=5_000) == 4
