"""Parquet: the same output in blocks of any size, bad rows or not; damaged files are refused with a message."""

from __future__ import annotations

import datetime
import decimal
import errno
import io

import pytest
from shell import FIXED, inside, rows_of

from onlinegp.files.atomic import Replacement
from onlinegp.streams.writing import sinks

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

DAY = datetime.datetime(2024, 1, 1)


def write(path, n=50, **columns):
    table = {
        "time": [DAY + datetime.timedelta(seconds=i) for i in range(n)],
        "tags": [["a", str(i)] for i in range(n)],
        "raw": [b"\xff" + bytes([i]) for i in range(n)],
        "kind": pa.array(["u", "v"] * (n // 2)).dictionary_encode(),
        "price": [decimal.Decimal(f"{i}.25") for i in range(n)],
        "x": [float(i % 7) for i in range(n)],
        "y": [float(i % 5) for i in range(n)],
    }
    pq.write_table(pa.table(table | columns), path)
    return path


@pytest.mark.parametrize("out", ["out.csv", "out.jsonl"])
def test_keys_are_written_alike_beside_bad_rows(tmp_path, out):
    """A bad row changes nothing about the others of its block."""
    x = [float(i % 7) for i in range(50)]
    args = ["--copy", "time,tags,raw,kind,price", "--features", "x", "--target", "y", "--on-bad-row", "skip"]
    results = []
    for odd in (0.5, None):
        path = write(tmp_path / "data.parquet", x=[*x[:-1], odd])
        for every in ("1", "7", "10000"):
            inside("run", path, *FIXED, *args, "--every", every, "--out", tmp_path / out)
            results.append((tmp_path / out).read_bytes().splitlines()[: 50 if out == "out.csv" else 49])
    assert len(results[0]) == len(results[-1])
    assert all(result == results[0] for result in results)


def test_bad_rows_stop_or_are_left_out(tmp_path):
    for odd, reason in ((None, "missing"), (float("inf"), "infinity"), (1e200, "1e+150")):
        path = write(tmp_path / "data.parquet", x=[1.0] * 20 + [odd] + [2.0] * 29)
        args = ["run", path, *FIXED, "--features", "x", "--target", "y"]
        for every in ("7", "10000"):
            done = inside(*args, "--every", every, code=3)
            assert f"line 21, column 'x': '{odd}'" in done.stderr.decode()
            assert reason in done.stderr.decode()
            assert len(rows_of(done.stdout)) == 20
            assert len(rows_of(inside(*args, "--every", every, "--on-bad-row", "skip").stdout)) == 49


def test_large_whole_numbers_are_rounded_as_text_is(tmp_path):
    path = write(tmp_path / "data.parquet", y=[2**53 + 1] * 50)
    predicted = rows_of(inside("run", path, *FIXED, "--features", "x", "--target", "y").stdout)
    assert float(predicted[0]["y"]) == float(str(2**53 + 1))


def test_damaged_files(tmp_path):
    good = write(tmp_path / "data.parquet").read_bytes()
    for data in (b"", b"PAR1", good[:-1], good[:100], good[:200] + b"\xff" * 400 + good[600:], b"x,y\n1,2\n"):
        (tmp_path / "bad.parquet").write_bytes(data)
        args = ["run", tmp_path / "bad.parquet", *FIXED, "--features", "x", "--target", "y"]
        assert b"bad.parquet" in inside(*args, code=3).stderr
    assert b"is not a regular file" in inside("run", "/dev/null", "--format", "parquet", *FIXED, code=1).stderr
    table = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["x", "x"])
    pq.write_table(table, tmp_path / "twice.parquet")
    assert b"two columns of the same name" in inside("run", tmp_path / "twice.parquet", *FIXED, code=3).stderr


def test_output_without_a_row_has_its_columns_and_replaces_what_was_there(tmp_path):
    (tmp_path / "data.csv").write_text("place,x,y\n")
    out = tmp_path / "out.parquet"
    out.write_bytes(b"of another run")
    inside("run", tmp_path / "data.csv", *FIXED, "--flag", "0.1", "--copy", "place", "--target", "y", "--out", out)
    inside(
        "run",
        tmp_path / "data.csv",
        *FIXED,
        "--flag",
        "0.1",
        "--copy",
        "place",
        "--target",
        "y",
        "--out",
        tmp_path / "out.csv",
    )
    table = pq.read_table(out)
    assert table.num_rows == 0
    assert ",".join(table.column_names) == (tmp_path / "out.csv").read_text().strip()
    texts = [name for name, kind in zip(table.column_names, table.schema.types, strict=True) if kind == pa.string()]
    assert texts == ["place", "event"]


def test_a_disk_that_is_full_is_named_and_nothing_is_left(tmp_path, monkeypatch):
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

    def replaced(path):
        new = Replacement(path)
        new.file.close()
        new.file = Full()
        return new

    monkeypatch.setattr(sinks, "Replacement", replaced)
    monkeypatch.setattr(sinks.ParquetSink, "ROWS", 10)
    path = write(tmp_path / "data.parquet")
    told = inside(
        "run", path, *FIXED, "--features", "x", "--target", "y", "--out", tmp_path / "o.parquet", code=1
    ).stderr
    assert b"o.parquet: No space left on device" in told
    assert [file.name for file in tmp_path.iterdir()] == ["data.parquet"]
