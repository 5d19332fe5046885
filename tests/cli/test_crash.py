"""Crash safety: whatever happens, a resumed run gives the bytes of an uninterrupted one."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from shell import FIXED, inside, onlinegp, started, write_csv


def run_args(data: Path, out: Path, folder: Path, *more: object) -> list[object]:
    return ["run", data, *FIXED, "--out", out, "--checkpoint", folder, "--resume", "--quiet", *more]


def killed_on_the_way(args: list[object], out: Path, length: int, *, kills: int, seed: int) -> int:
    """Start, kill -9 when the output has grown to a random length, resume; return how often it was killed in time."""
    rng, done = random.Random(seed), 0
    for target in sorted(rng.uniform(0.0, 0.8 * length) for _ in range(kills)):
        process = started(*args, stdin=subprocess.DEVNULL)
        while process.poll() is None and (not out.exists() or out.stat().st_size < target):
            time.sleep(0.0005)
        process.kill()
        done += process.wait() != 0
        process.communicate()
    inside(*args)
    return done


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_killed_runs_give_the_same_bytes(tmp_path, suffix):
    data = write_csv(tmp_path / "data.csv", 12_000)
    whole, resumed = tmp_path / f"whole{suffix}", tmp_path / f"resumed{suffix}"
    inside("run", data, *FIXED, "--out", whole, "--quiet")
    args = run_args(data, resumed, tmp_path / "safe", "--every", "300")
    kills = killed_on_the_way(args, resumed, whole.stat().st_size, kills=4, seed=len(suffix))
    assert kills >= 1
    assert resumed.read_bytes() == whole.read_bytes()


@pytest.mark.slow
def test_fifty_kills(tmp_path):
    """Fifty kill -9 at random moments of a run over 200,000 rows. One that ends before is compared and begun again."""
    data, whole = write_csv(tmp_path / "data.csv", 200_000), tmp_path / "whole.csv"
    more = ["--budget", "100", "--robust"]
    began = time.monotonic()
    onlinegp_long("run", data, *FIXED, *more, "--out", whole, "--quiet")
    longest = 1.0 + (time.monotonic() - began) / 20
    rng, kills, runs = random.Random(1), 0, 0
    while kills < 50:
        runs += 1
        out = tmp_path / f"resumed{runs}.csv"
        args = run_args(data, out, tmp_path / f"safe{runs}", "--every", "1000", *more)
        ended = False
        while kills < 50 and not ended:
            process = started(*args, stdin=subprocess.DEVNULL)
            time.sleep(rng.uniform(0.0, longest))
            process.kill()
            ended = process.wait() == 0
            process.communicate()
            kills += not ended
        if not ended:
            onlinegp_long(*args)
        assert out.read_bytes() == whole.read_bytes()
    print(f"{kills} kills in {runs} runs, the last moment after {longest:.1f} s")


def onlinegp_long(*args: object) -> None:
    process = started(*args, stdin=subprocess.DEVNULL)
    _, errors = process.communicate(timeout=1200)
    assert process.returncode == 0, errors.decode()


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
        args += ["--checkpoint", folder.name, "--resume", "--summary", f"{name}.json"]
        if name == "resumed":
            for delay in (1.0, 1.3):
                process = started(*args, stdin=subprocess.DEVNULL, cwd=tmp_path)
                time.sleep(delay)
                process.kill()
                process.communicate()
        inside(*args, cwd=tmp_path)
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
    assert "refused" in told
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
    onlinegp(*args, "--resume", stdin="x,y\n1,2\n2,3\n3,4\n")  # a pipe is read again from its beginning
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


def wait_for(condition, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
