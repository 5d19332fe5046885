"""Hostile tables and odd bytes: a message and an exit code, whatever the bytes; the same rows, whoever reads them.

Every input is made from a fixed seed and its number, so that a failure can be made again.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import math
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from outcomes import without_arrow
from shell import inside, rows_of

QUICK = ["--model", "qklms(radius=100.0, step=0.001)", "--kernel", "rbf(1.0)", "--tune", "0", "--quiet"]
MEANT = (0, 1, 3, 4)  # exit codes
SECONDS = 60  # of one input: a hang, not a measure of speed
ADDED = ("mean", "std", "lower", "upper", "log_density")

FIELDS = [
    *("1", "-2.5", "1e3", "", " ", "NA", "nan", "nan(1)", "inf", "1e400", "1e200", "0x1", "1_0", "+1", " 1 ", "1,5"),
    *('"1"', '"', '""', '"a', 'a"', '"a""b"', '"a,b"', '"a\nb"', "a\rb", "\x00", "\x1b[2J", "\ufeff1", "\u202e"),
    *("word", "M\u00fcnchen", "#", "\\N", "true", "2024-01-01", "{", "[1]", "x" * 3000, "1" * 400, "-", ".", "1d3"),
]
NAMES = [
    *("x", "y", "mean", "mean_input", "time", "", " ", "x y", '"q"', '"a,b"', "1", "1,5", "z", "\u00e9", "a", "b", "c"),
    *("\x1b]0;t\x07", "n" * 500),
]
MARKS = [b'"', b"\n", b"\r", b"\x00", b"\xff", b",", b";", b"\xef\xbb\xbf", b"\x1b", b"{"]
OPTIONS = [[], [], ["--lags", "2"], ["--decimal", ","], ["--encoding", "latin-1"], ["--format", "csv"]]
JSON_LINES = [
    *("", "{", "null", '{"x": 1, "x": 2}', "[" * 2000, '{"x": ' * 2000, '{"x": 1}{"y": 2}', "\ufeff{}"),
    '{"x": 1' + "0" * 5000 + "}",
]


def table(rng: random.Random) -> bytes:
    """Return a table that is odd in some ways: its marks, ends, fields, widths and encoding."""
    mark, end = rng.choice([",", ";", "\t", " ", "|"]), rng.choice([*["\n"] * 10, *["\r\n"] * 5, "\r"])
    width, rows = rng.choice([1, 2, 3, 5]), rng.choice([0, 1, 5, 40, 120])
    share = rng.choice([0.0, 0.01, 0.1, 0.6])

    def field() -> str:
        return rng.choice(FIELDS) if rng.random() < share else f"{rng.gauss(0.0, 1.0):.3f}"

    lines = [] if rng.random() < 0.3 else [mark.join(rng.sample(NAMES, k=width))]
    for _ in range(rows):
        odd = rng.random() < share / 5
        lines.append(mark.join(field() for _ in range(width + odd * rng.randint(-width, 3))))
    text = end.join(lines) + rng.choice(["", end, end + end])
    return text.encode(rng.choice([*["utf-8"] * 10, "utf-16", "utf-8-sig"]))


def json_lines(rng: random.Random) -> bytes:
    """Return JSON lines, some of them odd."""
    values: list[Any] = [1, -2.5, None, True, "1", "\ud800", 10**400, [], {}, "\x1b[2J", math.nan, math.inf, 1e200]

    def row() -> str:
        names = rng.choice([["x", "y"], ["x", "k", "y"], ["y"]])
        return json.dumps({name: rng.choice(values) if rng.random() < 0.1 else rng.gauss(0, 1) for name in names})

    lines = [row() if rng.random() < 0.95 else rng.choice(JSON_LINES) for _ in range(rng.choice([1, 5, 60]))]
    return "\n".join(lines).encode()


def mutated(data: bytes, rng: random.Random) -> tuple[bytes, int]:
    """Return the bytes with some flipped, cut, doubled or moved, and how many were touched."""
    changed, touched = bytearray(data), 0
    for _ in range(rng.choice([0, 1, 1, 3, 20])):
        if not changed:
            break
        a, b = sorted(rng.choices(range(len(changed) + 1), k=2))
        b = min(b, a + 50)
        kind = rng.randrange(5)
        if kind == 0 and a < len(changed):
            changed[a] = rng.randrange(256)
        elif kind == 1:
            del changed[a:b]
        elif kind == 2:
            changed[a:a] = changed[a:b]
        elif kind == 3:
            changed[a:a] = rng.choice(MARKS)
        else:
            changed = changed[: max(a, b)]
        touched += max(1, b - a)
    return bytes(changed), touched


@contextlib.contextmanager
def alarm(what: str) -> Iterator[None]:
    """Fail if this takes so long that it must hang."""

    def rung(*_: object) -> None:
        raise TimeoutError(what)

    before = signal.signal(signal.SIGALRM, rung)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def told(path: Path, *options: str) -> tuple[int, bytes, bytes]:
    """Run the command and check what must hold of any input: exit code, message, and numbers in every row."""
    done = inside("run", path, *QUICK, *options, code=None)
    assert done.returncode in MEANT, done
    assert done.returncode == 0 or b"onlinegp: " in done.stderr
    assert done.stderr.decode().replace("\n", "").isprintable()
    for row in rows_of(io.StringIO(done.stdout.decode(), newline="").read()) if done.stdout.isascii() else []:
        for name in ADDED:
            value = row.get(name)
            assert not value or math.isfinite(float(value)), row
    return done.returncode, done.stdout, done.stderr


def attack(folder: Path, count: int, seed: int) -> None:
    """Put so many inputs through the command, each with several block sizes, with pyarrow and without."""
    makers: list[tuple[str, Callable[[random.Random], bytes]]] = [(".csv", table), (".jsonl", json_lines)]
    codes, touched, size = Counter(), 0, 0
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")
        suffix, make = makers[number % 5 == 4]
        data, changed = mutated(make(rng), rng)
        if number % 11 == 10:
            data, more = mutated(gzip.compress(data), rng)
            changed += more
        path = folder / f"table{suffix}"
        path.write_bytes(data)
        options = [*rng.choice(OPTIONS), "--on-bad-row", rng.choice(["skip", "skip", "stop"])]
        with alarm(f"input {number} of seed {seed}"):
            first = told(path, *options)
            assert told(path, *options, "--every", str(rng.choice([1, 3, 33, 50]))) == first, (seed, number)
            with without_arrow():
                assert told(path, *options) == first, (seed, number)
        codes[first[0]] += 1
        touched += changed
        size += len(data)
    how = ", ".join(f"{times} with exit code {code}" for code, times in sorted(codes.items()))
    print(
        f"\n{count} tables of {size} bytes, {touched} of them mutated: {how}; no traceback, no hang, no difference",
        file=sys.stderr,
    )
    assert set(codes) >= {0, 3}  # some were good, some were not: else this tests nothing


def test_some_hostile_tables(tmp_path):
    attack(tmp_path, 60, seed=1)


@pytest.mark.attack
@pytest.mark.parametrize("seed", range(2, 12))
def test_hostile_tables_by_the_thousand(tmp_path, seed):
    attack(tmp_path, 1000, seed)


@pytest.mark.attack
def test_hostile_parquet(tmp_path):
    """Bytes of a Parquet file changed at random: read, or refused with a message."""
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    good, path, codes, touched = tmp_path / "good.parquet", tmp_path / "table.parquet", Counter(), 0
    pq.write_table(pa.table({"x": [0.5, 1.5] * 50, "k": ["a", "b"] * 50, "y": [1.0, None] * 50}), good)
    for number in range(1000):
        data, changed = mutated(good.read_bytes(), random.Random(number))
        path.write_bytes(data)
        with alarm(f"Parquet {number}"):
            code, *_ = told(path)
        codes[code] += 1
        touched += changed
    print(f"\n1000 Parquet files, {touched} bytes mutated: {dict(codes)}", file=sys.stderr)
