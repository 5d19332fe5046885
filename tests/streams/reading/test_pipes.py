"""Whatever cannot be read twice is a pipe, by whatever name; and gzip is unpacked wherever it comes from."""

from __future__ import annotations

import gzip
import os
import shlex
import shutil
import subprocess
import threading

import pytest
from shell import COMMAND, FIXED, environment, inside, onlinegp, rows_of

from onlinegp.streams.errors import BadData
from onlinegp.streams.reading.raw import Raw

ROWS = 30_000  # more than a pipe holds
TABLE = "x,y\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(ROWS))
QUICK = ["--model", "qklms(radius=100.0, step=0.001)", "--kernel", "rbf(1.0)", "--tune", "0", "--quiet"]


def shell(command, folder, code=0):
    args = ["bash", "-c", command.replace("onlinegp", shlex.join(COMMAND))]
    done = subprocess.run(args, cwd=folder, env=environment(), capture_output=True, timeout=120)
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    "source",
    ["<(cat data.csv)", "<(cat data.csv.gz)", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "- <data.csv", "fifo"],
)
def test_pipes_by_name(tmp_path, source):
    (tmp_path / "data.csv").write_text(TABLE)
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    before = "mkfifo fifo; cat data.csv >fifo & " if source == "fifo" else "cat data.csv | "
    out = shell(f"{before} onlinegp run {source} {shlex.join(QUICK)}", tmp_path).stdout
    assert out.count(b"\n") == ROWS + 1


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.slow
def test_compare_reads_a_pipe_by_name(tmp_path):
    (tmp_path / "data.csv").write_text("\n".join(TABLE.splitlines()[:200]) + "\n")
    done = shell("onlinegp compare <(cat data.csv) --models klms,qklms --tune 30", tmp_path)
    assert b"Recommended" in done.stdout


def test_gzip_in_pieces(tmp_path):
    """Several members, padding, and what inflates a thousandfold."""
    data = os.urandom(1000) + b"\0" * 5_000_000 + b"end"
    path = tmp_path / "data.gz"
    path.write_bytes(gzip.compress(data) + b"\0" * 9 + gzip.compress(b"more") + b"\0")
    raw, chunks = Raw(str(path)), []
    while chunk := raw.read():
        chunks.append(chunk)
    raw.close()
    assert b"".join(chunks) == data + b"more"
    assert max(map(len, chunks)) <= 1 << 18


def test_gzip_bytes_as_they_come(tmp_path):
    """Through a pipe, a byte at a time."""
    os.mkfifo(tmp_path / "fifo")
    packed = gzip.compress(b"x,y\n1,2\n") + gzip.compress(b"3,4\n")

    def send():
        with open(tmp_path / "fifo", "wb", buffering=0) as file:
            for i in range(len(packed)):
                file.write(packed[i : i + 1])

    sender = threading.Thread(target=send)
    sender.start()
    raw, got = Raw(str(tmp_path / "fifo")), b""
    while chunk := raw.read():
        got += chunk
    sender.join()
    raw.close()
    assert raw.pipe
    assert got == b"x,y\n1,2\n3,4\n"


@pytest.mark.parametrize("place", [2, 100, -4, -1])
@pytest.mark.parametrize("damage", ["cut", "flipped", "more"])
def test_damaged_gzip(tmp_path, place, damage):
    """Every whole line before the damage is a row, then a message; never a traceback."""
    text = "x,y\n" + "".join(f"{i},{i * i % 77}\n" for i in range(3000))
    packed = bytearray(gzip.compress(text.encode()))
    if damage == "cut":
        packed = packed[:place]
    elif damage == "flipped":
        packed[place] ^= 0xFF
    else:
        packed += b"garbage"
    (tmp_path / "data.csv.gz").write_bytes(packed)
    done = inside("run", tmp_path / "data.csv.gz", *QUICK, code=3)
    assert b"data.csv.gz" in done.stderr
    if damage == "more":
        assert len(rows_of(done.stdout)) == 3000


def test_cut_gzip_says_so(tmp_path):
    path = tmp_path / "data.gz"
    path.write_bytes(gzip.compress(os.urandom(100_000))[:-5])
    raw = Raw(str(path))
    with pytest.raises(BadData, match="is incomplete"):
        list(iter(raw.read, b""))
    raw.close()


def test_empty_and_devices(tmp_path):
    (tmp_path / "empty.csv").write_bytes(b"")
    for path in (tmp_path / "empty.csv", "/dev/null"):
        assert b"is empty" in inside("run", path, *FIXED, code=3).stderr
    (tmp_path / "zeros.csv").write_bytes(b"\0" * 3_000_000)
    for sent in ({"stdin": b"\0" * 3_000_000}, {}):
        source = "-" if sent else tmp_path / "zeros.csv"
        assert b"line 1: holds zero bytes" in onlinegp("run", source, *FIXED, code=3, **sent).stderr
    assert b"is a folder" in inside("run", tmp_path, *FIXED, code=1).stderr
    assert b"is longer than the limit of 16 MiB" in onlinegp("run", "/dev/zero", *FIXED, code=3).stderr
