"""Ctrl-C, SIGTERM, and standard streams that are closed, full or left by their reader."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from shell import COMMAND, FIXED, environment, inside, rows_of, started, wait_for, write_csv

from marks import slow
from onlinegp import KRLST, Fleet, load
from onlinegp.auto.members import Parts
from onlinegp.processes import cores
from onlinegp.streams.errors import Stopped
from onlinegp.streams.running.stop_signals import Stopper

linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are looked up in /proc")
SIGNALS = pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), slow(signal.SIGHUP, 129)],
)


def children(pid: int) -> set[int]:
    """Return the processes that a process has started and that live, and theirs."""
    try:
        found = {int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    except (FileNotFoundError, ProcessLookupError):
        return set()
    return found.union(*map(children, found))


def alive(pids: set[int]) -> set[int]:
    def state(pid: int) -> str:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return "X"

    return {pid for pid in pids if state(pid) not in "XZ"}


def busy(pids: set[int], seconds: float = 0.5) -> int:
    """Return how many of these processes have worked for so long: after half a second they are beyond their start."""

    def ticks(pid: int) -> int:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            return 0
        return int(fields[11]) + int(fields[12])

    return sum(ticks(pid) > seconds * os.sysconf("SC_CLK_TCK") for pid in pids)


@contextmanager
def ended(process: subprocess.Popen[bytes], workers: set[int]) -> Iterator[None]:
    """Leave nobody behind if the test fails, either."""
    try:
        yield
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
        for pid in alive(workers):
            os.kill(pid, signal.SIGKILL)


def assert_all_end(process: subprocess.Popen[bytes], number: int, code: int) -> None:
    """Send a process a signal when it has two busy workers, and look for them when it has ended."""
    workers: set[int] = set()
    with ended(process, workers):
        wait_for(lambda: busy(children(process.pid)) >= 2, 90.0)
        workers |= children(process.pid)
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == code
        assert b"Traceback" not in errors
        wait_for(lambda: not alive(workers), 10.0)


@linux
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGKILL, -signal.SIGKILL),
        slow(signal.SIGTERM, 143),
        slow(signal.SIGHUP, 129),
    ],
)
def test_compare_leaves_nobody_behind(tmp_path, number, code):
    data = write_csv(tmp_path / "data.csv", 60_000)
    places = {"TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    args = ["--models", "krlst,swkrls,fbkrls", "--kernel", "rbf(1.0)", "--noise", "0.1", "--tune", "50", "--jobs", "2"]
    with open(data, "rb") as file:
        process = started("compare", "-", *args, stdin=file, env=environment() | places)
    assert_all_end(process, number, code)
    assert code < 0 or os.listdir(tmp_path / "tmp") == []


@linux
def test_compare_over_runs_leaves_nobody_behind(tmp_path):
    data = write_csv(tmp_path / "data.csv", 60_000)
    args = ["--models", "krlst,swkrls,fbkrls", "--kernel", "rbf(1.0)", "--runs", "4", "--jobs", "2"]
    process = started("compare", data, *args, stdin=subprocess.DEVNULL)
    assert_all_end(process, signal.SIGKILL, -signal.SIGKILL)


@linux
def test_compare_leaves_nobody_behind_while_it_tunes(tmp_path):
    """Maximum likelihood takes longest, and runs in a process of its own, which does not look at its parent."""
    data = write_csv(tmp_path / "data.csv", 5000, features=20)
    process = started("compare", data, "--tune", "5000", "--models", "krlst", stdin=subprocess.DEVNULL)
    workers: set[int] = set()
    with ended(process, workers):
        wait_for(lambda: busy(children(process.pid)) >= 1, 90.0)
        workers |= children(process.pid)
        process.kill()
        process.communicate(timeout=30)
        wait_for(lambda: not alive(workers), 10.0)


@linux
@pytest.mark.skipif(cores() < 2, reason="with one processor there are no workers")
def test_reproduce_leaves_nobody_behind(tmp_path):
    process = started("reproduce", "fig3", "--out", tmp_path / "out", stdin=subprocess.DEVNULL)
    assert_all_end(process, signal.SIGTERM, 143)
    assert os.listdir(tmp_path / "out") == []


@linux
@SIGNALS
def test_tune_and_run_end_while_tuning(tmp_path, number, code):
    """There is much to try, and a signal does not wait for the end of it."""
    data = write_csv(tmp_path / "data.csv", 20_000, features=8)
    for command in (["tune", data], ["run", data, "--checkpoint", tmp_path / "safe"]):
        args = [*command, "--tune", "10000", "--out", tmp_path / f"{command[0]}.csv"]
        process = started(*args, stdin=subprocess.DEVNULL)
        if command[0] == "run":
            wait_for(lambda: (tmp_path / "run.csv").exists() and (tmp_path / "run.csv").stat().st_size > 100_000)
        wait_for(lambda pid=process.pid: busy({pid}, 2.0))
        process.send_signal(number)
        with ended(process, set()):
            _, errors = process.communicate(timeout=20)
        assert process.returncode == code, errors
        assert b"interrupted" in errors or b"terminated" in errors
        assert b"Traceback" not in errors
    assert not (tmp_path / "tune.csv").exists()
    assert f"after {len(rows_of(tmp_path / 'run.csv'))} rows" in errors.decode()


@SIGNALS
def test_signals_while_writing_end_after_a_whole_row(tmp_path, number, code):
    data, out = write_csv(tmp_path / "data.csv", 100_000), tmp_path / "out.csv"
    process = started("run", data, *FIXED, "--out", out, "--robust", stdin=subprocess.DEVNULL)
    wait_for(lambda: out.exists() and out.stat().st_size > 100_000)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == code
    text = out.read_bytes()
    assert text.endswith(b"\n")
    rows = text.count(b"\n") - 1
    assert 0 < rows < 100_000
    assert f"after {rows} rows".encode() in errors


def test_workers_do_not_outlive_a_failing_block():
    from onlinegp.processes import worker_pool

    with pytest.raises(KeyboardInterrupt), worker_pool(2) as pool:  # noqa: PT012
        future = pool.submit(os.getpid)
        pid = future.result()
        pool.submit(time.sleep, 60.0)
        raise KeyboardInterrupt
    wait_for(lambda: not alive({pid}) if sys.platform == "linux" else True, 5.0)


def test_a_worker_that_is_killed_is_said():
    from onlinegp.processes import worker_pool

    with pytest.raises(OSError, match="was killed"), worker_pool(1) as pool:
        pool.submit(os._exit, 1).result()


def test_terminated_in_the_middle_of_a_write_leaves_the_old_file(tmp_path):
    """SIGTERM becomes an exception: what was written beside is removed."""
    code = (
        "import os, signal, sys, onlinegp.cli as cli\n"
        "from onlinegp.files.atomic import write_atomically\n"
        "def chunks():\n"
        "    yield b'half'\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    yield b'whole'\n"
        "cli._command = lambda argv: write_atomically(sys.argv[1], chunks())\n"
        "sys.exit(cli.main([]))\n"
    )
    path = tmp_path / "model.ogp"
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", code, str(path)], env=environment(), capture_output=True, timeout=60)
    assert done.returncode == 143
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.ogp"]


def test_parquet_is_there_in_full_or_not_at_all(tmp_path):
    """Killed while it writes: the old file stays. Ended by a bad row: the rows before it are there."""
    parquet = pytest.importorskip("pyarrow.parquet")
    data, out = write_csv(tmp_path / "data.csv", 200_000), tmp_path / "out.parquet"
    out.write_bytes(b"precious")
    out.chmod(0o600)
    process = started("run", data, *FIXED, "--out", out, "--quiet", stdin=subprocess.DEVNULL)
    with ended(process, set()):
        wait_for(lambda: any(path.name.endswith(".part") and path.stat().st_size for path in tmp_path.iterdir()))
    assert out.read_bytes() == b"precious"
    lines = data.read_text().splitlines()[:301]
    data.write_text("\n".join([*lines, "1,2"]) + "\n")
    done = subprocess.run([*COMMAND, "run", str(data), *FIXED, "--out", str(out)], env=environment())
    assert done.returncode == 3
    np.testing.assert_equal(parquet.read_table(out).num_rows, 300)
    assert out.stat().st_mode & 0o777 == 0o600


def test_a_signal_within_an_import_is_not_lost(tmp_path):
    """Libraries catch everything while they import others."""
    (tmp_path / "library.py").write_text(
        "import os, signal\ntry:\n    import part\nexcept BaseException:\n    pass\nloaded = True\n"
    )
    (tmp_path / "part.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nfor i in range(9): i\n")
    code = (
        "import sys, time, onlinegp.cli as cli\n"
        "def command(argv):\n"
        "    import library\n"
        "    print('loaded', flush=True)\n"
        "    time.sleep(30.0)\n"
        "cli._command = command\n"
        "sys.exit(cli.main([]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), cwd=tmp_path, capture_output=True, timeout=60
    )
    assert done.returncode == 143, done.stderr
    assert done.stdout == b"loaded\n"


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_within_an_import_ends_a_run_after_it(tmp_path, monkeypatch, number):
    """What is raised within an import comes out as an ImportError, or not at all."""
    name = f"signaled_{int(number)}"  # one for each case: a module is imported once
    (tmp_path / f"{name}.py").write_text(f"import signal\nsignal.raise_signal({int(number)})\nwhole = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    with Stopper() as stopper:
        stopper.waiting = True
        module = importlib.import_module(name)
        assert module.whole
        with pytest.raises(Stopped):
            time.sleep(5)
    del sys.modules[name]  # not by monkeypatch, which would put it back
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0


def test_a_run_that_is_ended_saves_its_model(tmp_path):
    """What was learned up to the signal is in the file, and no row that was not written."""
    data, out, saved = write_csv(tmp_path / "data.csv", 100_000), tmp_path / "out.csv", tmp_path / "m.ogp"
    more = ["--save", saved, "--summary", tmp_path / "s.json"]
    process = started("run", data, *FIXED, "--out", out, "--robust", *more, stdin=subprocess.DEVNULL)
    wait_for(lambda: out.exists() and out.stat().st_size > 100_000)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    rows = len(rows_of(out))
    assert process.returncode == 143
    assert 0 < rows < 100_000
    assert f"after {rows} rows. The model is saved".encode() in errors
    assert load(saved).n_samples_seen_ == rows
    assert json.loads((tmp_path / "s.json").read_text())["rows"] == rows


def test_a_pipe_that_is_ended_while_it_waits_saves_its_model(tmp_path):
    process = started("run", "-", *FIXED, "--save", tmp_path / "m.ogp")
    process.stdin.write(b"x,y\n1,2\n2,3\n3,4\n")
    process.stdin.flush()
    assert [process.stdout.readline() for _ in range(4)][3].startswith(b"4,")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 143
    assert load(tmp_path / "m.ogp").n_samples_seen_ == 3


@pytest.fixture
def keys_that_tune(tmp_path):
    """Four keys, each of which tunes itself on its first 20 rows, so that one block holds four tunings."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (140, 2))
    lines = [f"k{i % 4},{i},{a:.6f},{b:.6f},{np.sin(a) + b:.6f}" for i, (a, b) in enumerate(X)]
    (tmp_path / "data.csv").write_text("\n".join(["k,t,a,b,y", *lines]) + "\n")
    return tmp_path


QUICK = ["--kernel", "rbf(1.0)", "--noise", "0.1", "--forgetting", "1.0", "--set", "members=['krlst','linear']"]
BY_KEY = ["run", "data.csv", "--by", "k", "--order", "t", "--tune-by", "key", "--tune", "20", "--every", "140", *QUICK]


@pytest.mark.parametrize("moment", ["tuning", "learning"])
def test_a_signal_does_not_wait_for_the_tunings_of_keys(keys_that_tune, moment, monkeypatch):
    """Whether a tuning is cut off or a row is done first, all keys go on to the bytes of a run that was not ended."""
    inside(*BY_KEY, "--out", "whole.csv", cwd=keys_that_tune)
    resumed = [*BY_KEY, "--out", "out.csv", "--checkpoint", "safe", "--resume"]
    with monkeypatch.context() as patch:
        if moment == "tuning":
            send_on_call(patch, Parts, "compose", 3)
        else:
            send_on_call(patch, Fleet, "run", 5, after=True)
        assert b"terminated after" in inside(*resumed, code=143, cwd=keys_that_tune).stderr
    done = len(rows_of(keys_that_tune / "out.csv"))
    assert 40 < done < 140  # of a block of 140 rows
    assert f"resuming at row {done}".encode() in inside(*resumed, cwd=keys_that_tune).stderr
    assert (keys_that_tune / "out.csv").read_bytes() == (keys_that_tune / "whole.csv").read_bytes()


def send_on_call(patch, owner, name, number, *, after=False):
    """Let this process send itself SIGTERM in a call of a function, the first one included, and note how it ended."""
    inner, calls = getattr(owner, name), itertools.count(1)

    def called(*args, **kwargs):
        if (mine := next(calls) == number) and not after:
            signal.raise_signal(signal.SIGTERM)
            raise AssertionError("the signal had to wait for the end of the tuning")
        answer = inner(*args, **kwargs)
        if mine:
            signal.raise_signal(signal.SIGTERM)
        return answer

    patch.setattr(owner, name, called)


@pytest.mark.parametrize("every", ["1000", "7"])
def test_a_run_that_is_ended_within_a_block_goes_on_there(tmp_path, monkeypatch, every):
    """Bad rows before and after that place are reported once; the pieces of the second run differ from the first."""
    rng = np.random.default_rng(0)
    lines = [f"{a:.6f},{'x' if i % 50 == 20 else f'{b:.6f}'}" for i, (a, b) in enumerate(rng.normal(size=(400, 2)))]
    (tmp_path / "data.csv").write_text("\n".join(["a,y", *lines]) + "\n")
    args = ["run", "data.csv", *FIXED, "--target", "y", "--on-bad-row", "skip", "--every", "1000"]
    inside(*args, "--out", "whole.csv", "--rejects", "whole_bad.csv", cwd=tmp_path)
    safe = [*args, "--out", "out.csv", "--rejects", "bad.csv", "--checkpoint", "safe", "--resume", "--save", "m.ogp"]
    with monkeypatch.context() as patch:
        send_on_call(patch, KRLST, "run", 3, after=True)
        inside(*safe, code=143, cwd=tmp_path)
    done = len(rows_of(tmp_path / "out.csv"))
    assert 8 < done < 392
    assert load(tmp_path / "m.ogp").n_samples_seen_ == done
    inside(*safe[:-4], *safe[-4:], "--every", every, cwd=tmp_path)
    for one, other in (("out.csv", "whole.csv"), ("bad.csv", "whole_bad.csv")):
        assert (tmp_path / one).read_bytes() == (tmp_path / other).read_bytes()
