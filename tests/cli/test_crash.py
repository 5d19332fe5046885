"""Crash safety: whatever happens, a resumed run gives the bytes of an uninterrupted one."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shell import FIXED, inside, onlinegp, rows_of, started, wait_for, write_csv

from marks import slow


def run_args(data: Path, out: Path, folder: Path, *more: object) -> list[object]:
    return ["run", data, *FIXED, "--out", out, "--checkpoint", folder, "--resume", "--quiet", *more]


class Crashing:
    """A run that is killed again and again, each time between its first row and its last, and resumed."""

    def __init__(self, args: list[object], out: Path, length: int, *, cwd: Path, seed: str = "") -> None:
        self.args, self.out, self.length, self.cwd = [*args, "--resume"], out, length, cwd
        self.folder = cwd / str(args[args.index("--checkpoint") + 1])
        self.rng = random.Random(seed)
        self.landed: list[int] = []  # rows in the output at each kill

    def kill(self, times: int) -> None:
        """Kill it so many times, further on each time; begin anew where it was too quick for that."""
        for target in sorted(self.rng.uniform(0.05, 0.8) * self.length for _ in range(times)):
            wait_for(lambda target=target: self._killed(target), 120.0)

    def _killed(self, target: float) -> bool:
        """Kill it when its output has so many bytes, and return whether it was in time."""
        process = started(*self.args, stdin=subprocess.DEVNULL, cwd=self.cwd)
        while process.poll() is None and (not self.out.exists() or self.out.stat().st_size < target):
            time.sleep(0.0005)
        time.sleep(self.rng.uniform(0.0, 0.03))  # while it predicts, writes, or makes a checkpoint
        process.kill()
        _, errors = process.communicate()
        text = self.out.read_bytes()
        rows = text.count(b"\n") - (self.out.suffix == ".csv")  # without the header
        if process.returncode == -signal.SIGKILL and rows > 0 and len(text) < self.length:
            self.landed.append(rows)
            return True
        assert process.returncode in (0, -signal.SIGKILL), errors.decode()
        self.out.unlink()
        shutil.rmtree(self.folder)
        return False


BAD_JSON = "not an object\n"
MODES: dict[str, tuple[str, str, list[str]]] = {  # input, output, options
    "blocks": ("data.csv", "out.csv", []),
    "row by row": ("data.csv", "out.csv", ["--robust"]),
    "lags and a horizon": ("data.csv", "out.csv", ["--lags", "3", "--horizon", "2"]),
    "JSON lines with rejects": (
        "data.jsonl",
        "out.jsonl",
        ["--on-bad-row", "skip", "--rejects", "rejects.csv", "--robust"],
    ),
    "gz": ("data.csv.gz", "out.csv", ["--robust"]),
    "text and dates": ("data.csv", "out.csv", ["--categories", "onehot", "--dates", "calendar", "--missing", "impute"]),
}
QUICK = ("JSON lines with rejects", "text and dates")


def write_input(path: Path, rows: int) -> None:
    """Write the table as the name of the file says; JSON lines hold some that are none."""
    table = write_csv(path.with_name("table.csv"), rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(table.read_bytes()))
    elif path.suffix == ".jsonl":
        lines = [json.dumps({"x0": float(r["x0"]), "x1": float(r["x1"]), "y": float(r["y"])}) for r in rows_of(table)]
        path.write_text("".join(line + "\n" + (BAD_JSON if i % 997 == 500 else "") for i, line in enumerate(lines)))
    else:
        table.rename(path)


def crash(folder: Path, mode: str, *, rows: int, kills: int, every: int) -> list[int]:
    """Compare a run that is killed so many times with one that is not; return the rows at which it was."""
    source, name, more = MODES[mode]
    write_input(folder / source, rows)
    args = ["run", source, *FIXED, "--budget", "60", *more, "--out", name, "--quiet"]
    onlinegp(*args, cwd=folder)
    outputs = [folder / name, *([folder / "rejects.csv"] if "--rejects" in more else [])]
    whole = [path.read_bytes() for path in outputs]
    args += ["--checkpoint", "safe", "--every", str(every)]
    outputs[0].unlink()
    crashing = Crashing(args, outputs[0], len(whole[0]), cwd=folder, seed=mode)
    crashing.kill(kills)
    onlinegp(*crashing.args, cwd=folder)
    assert [path.read_bytes() for path in outputs] == whole
    assert "--rejects" not in more or whole[1].count(b"\n") > 2
    where = ", ".join(map(str, crashing.landed))
    print(f"\n{mode}: {len(crashing.landed)} kills of {rows} rows, at row {where}", file=sys.stderr)
    return crashing.landed


@pytest.mark.parametrize("mode", [name if name in QUICK else slow(name) for name in MODES])
def test_killed_runs_give_the_same_bytes(tmp_path, mode):
    landed = crash(tmp_path, mode, rows=6_000, kills=2, every=300)
    assert len(landed) == 2
    assert all(0 < row < 6_000 for row in landed)


@pytest.mark.attack
@pytest.mark.parametrize("mode", MODES)
def test_sixty_kills(tmp_path, mode):
    """Ten kill -9 at random moments of each mode, sixty in all."""
    landed = crash(tmp_path, mode, rows=60_000, kills=10, every=1000)
    assert len(landed) == 10
    assert all(0 < row < 60_000 for row in landed)
    assert len(set(landed)) > 5


def test_tuned_run_with_lags_rejects_and_a_missing_target(tmp_path):
    """Every piece of state is in the checkpoint: lags, scaling, scores, the rejects' file."""
    lines = write_csv(tmp_path / "good.csv", 1_500).read_text().splitlines()
    for i in range(300, 1500, 211):
        fields = lines[i].rsplit(",", 1)
        lines[i] = fields[0] + ("," if i % 2 else ",text")
    data = tmp_path / "data.csv"
    data.write_text("\n".join(lines) + "\n")
    more = ["--lags", "3", "--tune", "60", "--model", "krlst", "--budget", "15", "--horizon", "2", "--robust"]
    skip = ["--on-bad-row", "skip", "--every", "100", "--quiet"]
    results = []
    for name in ("whole", "resumed"):
        out, rejects, folder = (tmp_path / f"{name}{end}" for end in (".csv", ".rejects.csv", ".safe"))
        args = ["run", "data.csv", *more, *skip, "--out", out.name, "--rejects", rejects.name]
        args += ["--checkpoint", folder.name, "--summary", f"{name}.json"]
        if name == "resumed":
            crashing = Crashing(args, out, len(results[0][0]), cwd=tmp_path)
            crashing.kill(2)
            assert len(crashing.landed) == 2
        inside(*args, "--resume", cwd=tmp_path)
        results.append((out.read_bytes(), rejects.read_bytes()))
    assert results[0] == results[1]
    figures = [(tmp_path / f"{name}.json").read_text().split('"centers"')[0] for name in ("whole", "resumed")]
    assert figures[0] == figures[1]


RESUMED = ["run", "data.csv", *FIXED, "--out", "out.csv", "--checkpoint", "safe", "--every", "100", "--resume"]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A run that stopped at a bad row, which was mended since; and in whole.csv what the whole run gives."""
    folder = tmp_path_factory.mktemp("interrupted")
    data = write_csv(folder / "data.csv", 400)
    inside("run", data, *FIXED, "--out", folder / "whole.csv", "--quiet")
    good = data.read_text()
    lines = good.splitlines()
    lines[350] = lines[350].rsplit(",", 1)[0] + ",text"
    data.write_text("\n".join(lines) + "\n")
    assert b"line 351" in inside(*RESUMED, code=3, cwd=folder).stderr
    data.write_text(good)
    return folder


@pytest.fixture
def interrupted(original, tmp_path):
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(original, tmp_path / "copy"))


def test_resume_after_the_row_was_mended(interrupted):
    inside(*RESUMED, cwd=interrupted)
    assert (interrupted / "out.csv").read_bytes() == (interrupted / "whole.csv").read_bytes()


@pytest.mark.parametrize("damage", ["cut", "changed", "emptied"])
def test_damaged_checkpoint_is_refused_and_the_previous_one_used(interrupted, damage):
    path = interrupted / "safe" / "checkpoint.ogp"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes({"cut": bytes(data[:-100]), "changed": bytes(data), "emptied": b""}[damage])
    told = inside(*RESUMED, cwd=interrupted).stderr.decode()
    assert "Using the previous checkpoint" in told
    assert "checkpoint.ogp" in told
    assert (interrupted / "out.csv").read_bytes() == (interrupted / "whole.csv").read_bytes()


def test_no_good_checkpoint_left(interrupted):
    for path in (interrupted / "safe").glob("*.ogp"):
        path.write_bytes(path.read_bytes()[:-1])
    assert b"do not fit the file" in inside(*RESUMED, code=4, cwd=interrupted).stderr


def test_latest_checkpoint_vanished_between_two_renames(interrupted):
    (interrupted / "safe" / "checkpoint.ogp").unlink()
    inside(*RESUMED, cwd=interrupted)
    assert (interrupted / "out.csv").read_bytes() == (interrupted / "whole.csv").read_bytes()


def test_lost_output_is_noticed(interrupted):
    (interrupted / "out.csv").write_bytes(b"time")
    assert b"which has 4" in inside(*RESUMED, code=4, cwd=interrupted).stderr


def test_other_input_or_options_are_noticed(interrupted):
    assert b"--level" in inside(*RESUMED, "--level", "0.5", code=4, cwd=interrupted).stderr
    told = inside(*RESUMED, "--robust", "2", code=4, cwd=interrupted).stderr
    assert b"was made without --robust, not 2.0. Resume with the options of the first run" in told
    write_csv(interrupted / "data.csv", 400, seed=1)
    assert b"bytes differ" in inside(*RESUMED, code=4, cwd=interrupted).stderr


def test_existing_checkpoint_is_not_overwritten(interrupted):
    fresh = [arg for arg in RESUMED if arg != "--resume"]
    assert b"--resume" in inside(*fresh, code=4, cwd=interrupted).stderr


def test_two_runs_do_not_share_a_folder(tmp_path):
    (tmp_path / "data.csv").write_text("x,y\n1,2\n")
    args = ["run", "-", *FIXED, "--out", tmp_path / "out.csv", "--checkpoint", tmp_path / "safe"]
    first = started(*args)
    first.stdin.write(b"x,y\n1,2\n")
    first.stdin.flush()
    wait_for(lambda: (tmp_path / "out.csv").exists() and (tmp_path / "out.csv").stat().st_size > 50)
    assert b"another run" in onlinegp(*args, stdin="x,y\n", code=4).stderr
    first.communicate()


def test_outputs_that_cannot_be_resumed(tmp_path):
    data = write_csv(tmp_path / "data.csv", 50)
    assert b"--out" in inside("run", data, *FIXED, "--checkpoint", tmp_path / "safe", code=4).stderr
    args = ["run", data, *FIXED, "--out", tmp_path / "out.parquet", "--checkpoint", tmp_path / "safe"]
    assert b"Parquet" in inside(*args, code=4).stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_leave_a_checkpoint(tmp_path, number, code):
    data = write_csv(tmp_path / "data.csv", 6_000)
    inside("run", data, *FIXED, "--out", tmp_path / "whole.csv", "--quiet")
    args = run_args(data, tmp_path / "out.csv", tmp_path / "safe", "--every", "200")
    process = started(*args, stdin=subprocess.DEVNULL)
    wait_for(lambda: (tmp_path / "safe" / "checkpoint.ogp").exists())
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert b"--resume" in errors
    inside(*args)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_interrupted_while_waiting_for_input(tmp_path):
    args = ["run", "-", *FIXED, "--out", tmp_path / "out.csv", "--checkpoint", tmp_path / "safe"]
    process = started(*args)
    process.stdin.write(b"x,y\n1,2\n2,3\n")
    process.stdin.flush()
    wait_for(lambda: (tmp_path / "out.csv").exists() and (tmp_path / "out.csv").read_bytes().count(b"\n") == 3)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130
    process.communicate()
    onlinegp(*args, "--resume", "check", stdin="x,y\n1,2\n2,3\n3,4\n")  # a pipe is read again from its beginning
    assert (tmp_path / "out.csv").read_bytes().count(b"\n") == 4


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_full_disk(tmp_path):
    done = inside("run", write_csv(tmp_path / "data.csv", 9), *FIXED, "--out", "/dev/full", code=1)
    assert b"No space left" in done.stderr


def test_full_disk_then_resumed(tmp_path):
    """The disk fills up in the middle: the file stops growing at a limit of its size."""
    data = write_csv(tmp_path / "data.csv", 3000)
    inside("run", data, *FIXED, "--out", tmp_path / "whole.csv", "--quiet")
    args = run_args(data, tmp_path / "out.csv", tmp_path / "safe", "--every", "500")
    process = started(*args, stdin=subprocess.DEVNULL, preexec_fn=_small_files)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1, errors
    assert b"cannot write" in errors
    assert b"--resume" in errors
    inside(*args)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def _small_files() -> None:
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))


def test_vanished_files(tmp_path):
    assert b"there is no file" in inside("run", tmp_path / "none.csv", code=1).stderr
    data = write_csv(tmp_path / "data.csv", 30)
    done = inside("run", data, *FIXED, "--out", tmp_path / "no" / "out.csv", code=1)
    assert b"folder does not exist" in done.stderr
