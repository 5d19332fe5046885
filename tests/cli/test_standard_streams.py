"""Standard streams that are closed or full, and readers that have gone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from shell import COMMAND, FIXED, environment, rows_of, started, write_csv


def shell(command: str, **files: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a command line with $onlinegp and these files in the shell."""
    import shlex

    names = {"onlinegp": shlex.join(COMMAND), **{name: shlex.quote(str(path)) for name, path in files.items()}}
    for name, text in names.items():
        command = command.replace(f"${name}", text)
    return subprocess.run(["sh", "-c", command], capture_output=True, env=environment(), timeout=60)


RUN = "$onlinegp run $data --quiet --kernel 'rbf(1.0)' --noise 0.1"


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        (f"{RUN} >&-", 141, b""),
        (f"{RUN} --out $out >&-", 0, b""),
        ("$onlinegp models >&-", 141, b""),
        ("$onlinegp run - --kernel 'rbf(1.0)' <&-", 3, b"onlinegp: standard input is empty"),
        (f"{RUN} --out $out 2>&- >&- <&-", 0, b""),
    ],
)
def test_closed_streams(tmp_path, command, code, told):
    data, out = write_csv(tmp_path / "data.csv", 50), tmp_path / "out.csv"
    before = data.read_bytes()
    done = shell(command, data=data, out=out)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith(told)
    assert told or done.stderr == b""
    assert data.read_bytes() == before  # no file took the number of a closed stream
    assert "$out" not in command or len(rows_of(out)) == 50


def test_closed_messages_do_not_go_to_the_output(tmp_path):
    data = write_csv(tmp_path / "data.csv", 50)
    loud = RUN.replace("--quiet ", "")
    assert shell(f"{loud} 2>&-", data=data).stdout == shell(RUN, data=data).stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("command", [f"{RUN} > /dev/full", "$onlinegp models > /dev/full"])
def test_full_output(tmp_path, command):
    done = shell(command, data=write_csv(tmp_path / "data.csv", 50))
    assert done.returncode == 1
    assert b"No space left" in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("command", "codes"),
    [(["run", *FIXED, "data.csv"], {141}), (["models"], {141}), (["run", "--help"], {0, 141})],  # argparse may not mind
)
def test_a_reader_that_has_gone(tmp_path, command, codes):
    write_csv(tmp_path / "data.csv", 20_000)
    reader, writer = os.pipe()
    os.close(reader)
    process = started(*command, stdin=subprocess.DEVNULL, stdout=writer, cwd=tmp_path)
    os.close(writer)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in codes
    assert b"Error" not in errors
