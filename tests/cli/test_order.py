"""`onlinegp run --by KEY --order COLUMN`: what is newer, for numbers and times as they are written."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from shell import inside, rows_of
from test_by_key import FIXED

NANOSECONDS = 1_700_000_000_000_000_000
AUTUMN = [datetime(2024, 10, 27, tzinfo=UTC) + timedelta(minutes=5 * i) for i in range(40)]
SUMMER, WINTER = timezone(timedelta(hours=2)), timezone(timedelta(hours=1))  # clocks go back after an hour
ORDERED = {
    "nanoseconds": [NANOSECONDS + 20 * i for i in range(40)],
    "an hour twice": [moment.astimezone(SUMMER if i < 12 else WINTER) for i, moment in enumerate(AUTUMN)],
    "fractions": [f"2024-01-01T00:00:{i // 2:02d}{'.5' if i % 2 else ''}Z" for i in range(40)],
    "days": [f"2024-01-{i + 1:02d}" for i in range(28)],
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


@pytest.mark.parametrize("place", ["", "x", "nan", "inf"])
def test_a_row_without_a_place_is_left_out_on_request(tmp_path, place):
    data = write(tmp_path / "d.csv", [*range(10), place, *range(10, 30), 3, 30])
    args = ["run", data, "--by", "k", "--order", "t", *FIXED, "--out", tmp_path / "out.csv"]
    told = inside(*args, code=3).stderr.decode()
    assert f"row 11 of the data: t {place!r} has no place in an order of numbers" in told
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
    assert b"order must be all numbers or all texts, got '2024-01-01' for the key 'k0', whose last is 8" in told
    (tmp_path / "huge.jsonl").write_text(
        "".join(f'{{"t": {10 ** (40 * i)}, "a": {i}, "y": 1, "k": 0}}\n' for i in range(9))
    )
    huge = ["run", tmp_path / "huge.jsonl", "--by", "k", "--order", "t", *FIXED, "--out", tmp_path / "out.csv"]
    assert b"row 9 of the data: t '1000" in inside(*huge, "--target", "y", code=3).stderr
    rows = [{"k": "a", "t": [1, "2"][i % 2], "a": i, "y": i} for i in range(20)]
    (tmp_path / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    mixed = ["run", tmp_path / "mixed.jsonl", "--by", "k", "--order", "t", *FIXED, "--out", tmp_path / "out.csv"]
    assert b"has no place in an order of texts" in inside(*mixed, code=3).stderr
