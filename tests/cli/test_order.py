"""`onlinegp run --by KEY --order COLUMN`: what is newer, for numbers and times as they are written."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from shell import inside, rows_of
from test_run_by_key import FIXED

NANOSECONDS = 1_700_000_000_000_000_000
AUTUMN = [datetime(2024, 10, 27, tzinfo=UTC) + timedelta(minutes=5 * i) for i in range(40)]
SUMMER, WINTER = timezone(timedelta(hours=2)), timezone(timedelta(hours=1))  # clocks go back after an hour
ORDERED = {
    "nanoseconds": [NANOSECONDS + 20 * i for i in range(40)],
    "an hour twice": [moment.astimezone(SUMMER if i < 12 else WINTER) for i, moment in enumerate(AUTUMN)],
    "fractions": [f"2024-01-01T00:00:{i // 2:02d}{'.5' if i % 2 else ''}Z" for i in range(40)],
    "days": [f"2024-01-{i + 1:02d}" for i in range(28)],
    "basic": [f"20240101T00000{i // 4}{('', '.25', '.5', '.750000001')[i % 4]}" for i in range(36)],
    "basic with an offset": [f"20240101T00000{i // 4}{('', '.25', '.5', '.750000001')[i % 4]}Z" for i in range(36)],
    "several forms": ["2024-01-01", "20240101T01", "2024-01-01 02:00", "2024-01-01T03:00:00+00:00", "2024-01-01T05+01"],
    "months": [f"{1949 + i // 12}-{i % 12 + 1:02d}" for i in range(30)],
    "hours of a day": [f"10:00:0{i // 2}{'.5' if i % 2 else ''}" for i in range(18)],
    "UTC by name": [f"2024-01-01 {9 + i % 2:02d}:00:0{i}{'+01:00' if i % 2 else ' UTC'}" for i in range(9)],
    "words": [f"a{i:03d}" for i in range(30)],
}


def write(path: Path, places: list, *, head: str = "k,t,a,y", line: str = "k{},{},{},{}") -> Path:
    lines = [line.format(i % 2, place, (i * 7) % 5, i % 3) for i, place in enumerate(places)]
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


@pytest.mark.parametrize("places", ORDERED.values(), ids=ORDERED.keys())
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_rows_in_order_are_all_taken(tmp_path, places, kind):
    path = tmp_path / f"data.{kind}"
    texts = [place.isoformat() if isinstance(place, datetime) else place for place in places]
    if kind == "csv":
        write(path, texts)
    else:
        rows = [{"k": f"k{i % 2}", "t": place, "a": (i * 7) % 5, "y": i % 3} for i, place in enumerate(texts)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    args = ["run", path, "--by", "k", "--order", "t", "--features", "a", "--target", "y", *FIXED]
    inside(*args, "--store", tmp_path / "s.db", "--keep", "1", "--out", tmp_path / "out.csv")
    assert len(rows_of(tmp_path / "out.csv")) == len(places)
    again = [*args, "--store", tmp_path / "s.db", "--late", "drop", "--out", tmp_path / "again.csv"]
    inside(*again)
    assert rows_of(tmp_path / "again.csv") == []  # none is newer than itself


def test_a_decimal_comma(tmp_path):
    data = write(tmp_path / "d.csv", [f"{i / 10}".replace(".", ",") for i in range(30)], head="k;t;a;y",
                 line="k{};{};{};{}")  # fmt: skip
    args = ["run", data, "--by", "k", "--order", "t", "--decimal", ",", *FIXED, "--out", tmp_path / "out.csv"]
    inside(*args)
    assert len(rows_of(tmp_path / "out.csv")) == 30


@pytest.mark.parametrize(
    "place",
    [
        "2024-01-01T00:00:00.1234567891Z",
        "01.02.2024",
        "2/1/2024",
        "5 Feb 2024",
        "2024-02-30",
        "10:61",
        "",
        "2024-02-01 01:00:00 PM",
        "1/2/2024 5 pm",
        "2024-02-01T12.5",
        "2024-02-01 12:30.5",
        "20240201T1230.5",
        "2024-02-01T12:00:00.5+00:00:00.25",
        "2024-02-01 12:00:00 CET",
    ],
)
def test_a_time_that_is_not_understood_has_no_place(tmp_path, place):
    """Its text would be compared letter by letter, which is not the order of time."""
    data = write(tmp_path / "d.csv", [*ORDERED["days"], place])
    args = ["run", data, "--by", "k", "--order", "t", *FIXED, "--out", tmp_path / "out.csv"]
    told = inside(*args, code=3).stderr.decode()
    assert f"row 29 of the data: t {place!r} cannot be compared in an order of texts, or of times by ISO 8601" in told
    assert "--date-format" in told


def test_times_of_another_form(tmp_path):
    """As text 02.01. would come before 31.12."""
    data = write(
        tmp_path / "d.csv", ["30.12.2023", "30.12.2023", "31.12.2023", "31.12.2023", "01.01.2024", "02.01.2024"]
    )
    args = [
        "run",
        data,
        "--by",
        "k",
        "--order",
        "t",
        "--date-format",
        "%d.%m.%Y",
        *FIXED,
        "--out",
        tmp_path / "out.csv",
    ]
    inside(*args, "--features", "a")
    assert len(rows_of(tmp_path / "out.csv")) == 6


def test_whole_numbers_beyond_64_bits_have_no_place(tmp_path):
    """As floats they would be equal."""
    data = write(tmp_path / "d.csv", [2**63 - 2, 2**63 - 1, 2**63, 2**63 + 1])
    args = ["run", data, "--by", "k", "--order", "t", *FIXED, "--out", tmp_path / "out.csv"]
    told = inside(*args, code=3).stderr.decode()
    assert f"row 3 of the data: t '{2**63}' cannot be compared in an order of numbers of 64 bits" in told


def test_whole_numbers_of_parquet_and_decimals(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = range(2**60, 2**60 + 20)
    for kind in (pa.decimal128(38, 2), pa.uint64()):
        table = {"k": ["a"] * 20, "t": pa.array(rows, pa.int64()).cast(kind), "a": [1.0, 2.0] * 10, "y": [1.0] * 20}
        parquet.write_table(pa.table(table), tmp_path / "d.parquet")
        inside("run", tmp_path / "d.parquet", "--by", "k", "--order", "t", *FIXED, "--out", tmp_path / "out.csv")
        assert len(rows_of(tmp_path / "out.csv")) == 20


def test_key_and_order_are_never_the_target(tmp_path):
    (tmp_path / "d.csv").write_text("k,name,t\n1,a,1\n1,b,2\n2,c,3\n")
    told = inside("run", tmp_path / "d.csv", "--by", "k", "--order", "t", *FIXED, code=3).stderr.decode()
    assert "has no column of numbers to predict other than k, t" in told


@pytest.mark.parametrize("place", ["", "x", "nan", "inf"])
def test_a_row_without_a_place_is_left_out_on_request(tmp_path, place):
    data = write(tmp_path / "d.csv", [*range(10), place, *range(10, 30), 3, 30])
    args = ["run", data, "--by", "k", "--order", "t", *FIXED, "--out", tmp_path / "out.csv"]
    told = inside(*args, code=3).stderr.decode()
    assert f"row 11 of the data: t {place!r} cannot be compared in an order of numbers" in told
    assert "--on-bad-row skip" in told
    skip = [*args, "--on-bad-row", "skip", "--rejects", tmp_path / "bad.csv"]
    assert "row 32 of the data: t '3' is not newer" in inside(*skip, code=3).stderr.decode()
    inside(*skip, "--late", "drop", "--summary", tmp_path / "s.json")
    assert [row["line"] for row in rows_of(tmp_path / "bad.csv")] == ["11", "32"]
    figures = json.loads((tmp_path / "s.json").read_text())
    assert (figures["rows"], figures["rejected"], figures["late"]) == (31, 2, 1)


def test_numbers_do_not_follow_texts(tmp_path):
    args = ["--by", "k", "--order", "t", *FIXED, "--store", tmp_path / "s.db", "--out", tmp_path / "out.csv"]
    inside("run", write(tmp_path / "one.csv", list(range(10))), *args)
    told = inside("run", write(tmp_path / "two.csv", ORDERED["days"]), *args, code=1).stderr
    assert b"order must be all numbers or all texts, got '2024-01-01T00:00:00.0" in told
    assert b"for the key 'k0', whose last is 8" in told
    (tmp_path / "huge.jsonl").write_text(
        "".join(f'{{"t": {10 ** (40 * i)}, "a": {i}, "y": 1, "k": 0}}\n' for i in range(9))
    )
    huge = ["run", tmp_path / "huge.jsonl", "--by", "k", "--order", "t", *FIXED, "--out", tmp_path / "out.csv"]
    assert b"row 2 of the data: t '1000" in inside(*huge, "--target", "y", code=3).stderr
    rows = [{"k": "a", "t": [1, "2"][i % 2], "a": i, "y": i} for i in range(20)]
    (tmp_path / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    mixed = ["run", tmp_path / "mixed.jsonl", "--by", "k", "--order", "t", *FIXED, "--out", tmp_path / "out.csv"]
    assert b"cannot be compared in an order of texts" in inside(*mixed, code=3).stderr
