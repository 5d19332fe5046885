"""A command for each event: once, beside the run, whatever it does; and at least once if the run is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from shell import inside, onlinegp, started, wait_for

from marks import slow
from onlinegp.streams.running import flag_commands as commands
from onlinegp.streams.running.flag_commands import AT_ONCE, Commands

MODEL = ["--model", "krlst", "--kernel", "rbf(1.0)", "--noise", "0.01", "--budget", "10", "--tune", "0"]
KEEP = [sys.executable, "-c", "import sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read())"]


def write_table(path, n=4000, faults=(1500, 2500, 3500)):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, n)
    y = np.sin(x) + 0.1 * rng.standard_normal(n)
    y[list(faults)] += 3.0
    lines = [f'"a, {i}",{x[i].item()!r},{y[i].item()!r}\n' for i in range(n)]
    path.write_text("row,x,y\n" + "".join(lines))
    return path


def words(*args):
    import shlex

    return shlex.join(map(str, args))


def test_the_command_gets_the_event_as_json_once_for_each_that_opens(tmp_path):
    write_table(tmp_path / "data.csv")
    kept, events = tmp_path / "kept.jsonl", tmp_path / "events.jsonl"
    flags = ["--flag", "0.001", "--on-flag", words(*KEEP, kept), "--summary", tmp_path / "summary.json"]
    more = ["--events", events, "--out", tmp_path / "out.csv"]
    done = inside("run", tmp_path / "data.csv", *MODEL, *flags, *more)
    got = [json.loads(line) for line in kept.read_text().splitlines()]
    written = [json.loads(line) for line in events.read_text().splitlines()]
    opened = [event for event in written if event["state"] == "open"]
    assert sorted(got, key=lambda event: event["row"]) == opened
    assert {event["columns"]["row"] for event in got} >= {"a, 1500", "a, 2500", "a, 3500"}
    assert json.loads((tmp_path / "summary.json").read_text())["commands"] == {"done": len(got), "failed": 0}
    assert f"commands on an event: {len(got)}, 0 failed" in done.stderr.decode()


def test_no_shell_sees_the_command(tmp_path):
    write_table(tmp_path / "data.csv")
    bait = tmp_path / "bait"
    command = f"echo $(touch {bait}) ; touch {bait}"
    inside("run", tmp_path / "data.csv", *MODEL, "--flag", "0.001", "--on-flag", command, "--out", tmp_path / "o.csv")
    assert not bait.exists()


@pytest.mark.parametrize("command", ["false", words(sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")])
def test_a_failure_stops_nothing_and_is_reported_once(tmp_path, command):
    write_table(tmp_path / "data.csv")
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    inside("run", tmp_path / "data.csv", *MODEL, "--flag", "0.001", "--out", one)
    done = inside("run", tmp_path / "data.csv", *MODEL, "--flag", "0.001", "--on-flag", command, "--out", two)
    assert one.read_bytes() == two.read_bytes()
    told = done.stderr.decode()
    assert told.count("it failed with exit code") == 1
    assert re.search(r"commands on an event: (\d+), \1 failed", told)


def test_a_slow_command_is_ended_with_all_that_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "SECONDS", 0.5)
    told = []
    mark = tmp_path / "pid"
    child = (
        "import subprocess, sys; p = subprocess.Popen(['sleep', '60']); "
        "open(sys.argv[1], 'w').write(str(p.pid)); p.wait()"
    )
    runner = Commands(words(sys.executable, "-c", child, mark), told.append)
    runner.start("{}")
    runner.finish()
    assert (runner.done, runner.failed) == (1, 1)
    assert len(told) == 1
    assert "took longer than 0.5 seconds" in told[0]
    if mark.exists():
        wait_for(lambda: not alive(int(mark.read_text())))


def alive(pid):
    """Whether a process runs: one that has ended and waits to be collected does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_few_run_at_a_time_and_none_is_left_behind(tmp_path):
    count = (
        "import os, sys, time; name = sys.argv[1] + '/' + str(os.getpid()); "
        "open(name, 'w').close(); time.sleep(0.3); os.remove(name)"
    )
    folder = tmp_path / "running"
    folder.mkdir()
    runner, most = Commands(words(sys.executable, "-c", count, folder), print), 0
    before = time.monotonic()
    for _ in range(3 * AT_ONCE):
        runner.start("{}")
    assert time.monotonic() - before < 30.0  # they run beside
    assert len(runner.unfinished()) > AT_ONCE
    while runner.unfinished():
        most = max(most, len(os.listdir(folder)))
        time.sleep(0.01)
    runner.finish()
    assert 1 <= most <= AT_ONCE
    assert (runner.done, runner.failed) == (3 * AT_ONCE, 0)
    assert not os.listdir(folder)  # nothing is left


def test_what_was_killed_is_still_to_be_done():
    runner = Commands("sleep 60", print)
    for i in range(6):
        runner.start(str(i))
    runner.kill()
    assert runner.unfinished() == [str(i) for i in range(6)]
    runner.finish()
    assert (runner.done, runner.failed) == (0, 0)


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="processes are looked up in /proc")
def test_commands_end_with_a_run_that_is_killed(tmp_path):
    """And so does what they have started."""
    write_table(tmp_path / "data.csv", 20_000, range(300, 20_000, 700))
    child = (
        "import os, subprocess, sys, time; p = subprocess.Popen(['sleep', '60']); "
        "open(f'{os.getpid()}.part', 'w').write(f'{os.getpid()} {p.pid}'); "
        "os.rename(f'{os.getpid()}.part', f'{os.getpid()}.pids'); p.wait()"
    )
    flags = ["--flag", "0.001", "--on-flag", words(sys.executable, "-c", child)]
    nowhere = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)  # the commands inherit them
    process = started("run", "data.csv", *MODEL, *flags, "--out", "out.csv", cwd=tmp_path, **nowhere)
    wait_for(lambda: len(list(tmp_path.glob("*.pids"))) >= 2)
    process.kill()
    process.wait()
    started_by_it = [int(pid) for file in tmp_path.glob("*.pids") for pid in file.read_text().split()]
    try:
        wait_for(lambda: not any(map(alive, started_by_it)), 10.0)
    finally:
        for pid in filter(alive, started_by_it):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGKILL, slow(signal.SIGTERM)])
def test_a_resumed_run_gives_the_same_bytes_and_every_command(tmp_path, number):
    """Killed while commands are slow: events, and those whose commands had not ended, go on."""
    write_table(tmp_path / "data.csv", 20_000, range(300, 20_000, 700))
    plain = ["run", "data.csv", *MODEL, "--flag", "0.001", "--every", "500"]
    inside(*plain, "--out", "whole.csv", "--events", "expected.jsonl", cwd=tmp_path)
    args = [*plain, "--checkpoint", "safe", "--resume", "--events", "events.jsonl"]
    slow = "import sys, time; time.sleep(0.2); open('kept.jsonl', 'ab').write(sys.stdin.buffer.read())"
    more = ["--on-flag", words(sys.executable, "-c", slow), "--out", "out.csv", "--summary", "summary.json"]
    process = started(*args, *more, cwd=tmp_path)
    wait_for(lambda: (tmp_path / "safe" / "checkpoint.ogp").exists() and (tmp_path / "kept.jsonl").exists())
    process.send_signal(number)
    process.communicate()
    assert process.returncode == (-9 if number == signal.SIGKILL else 143)
    onlinegp(*args, *more, cwd=tmp_path)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert (tmp_path / "events.jsonl").read_bytes() == (tmp_path / "expected.jsonl").read_bytes()  # once each
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    opened = {event["row"] for event in events if event["state"] == "open"}
    assert len(opened) >= 15
    assert {json.loads(line)["row"] for line in (tmp_path / "kept.jsonl").read_text().splitlines()} == opened
    counts = json.loads((tmp_path / "summary.json").read_text())["events"]
    assert sum(counts.values()) == len(opened)


def test_a_command_runs_while_a_pipe_waits(tmp_path):
    """In a pipe the command is started as soon as the row of its event was answered."""
    kept = tmp_path / "kept.jsonl"
    process = started("run", "-", *MODEL, "--flag", "0.001", "--on-flag", words(*KEEP, kept), "--quiet")
    process.stdin.write(b"x,y\n" + b"1,0.5\n1,0.6\n" * 300 + b"1,50\n")
    process.stdin.flush()
    wait_for(lambda: kept.exists() and kept.read_text().count("\n") >= 1)
    process.stdin.close()
    assert process.wait(timeout=60) == 0
