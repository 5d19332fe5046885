"""What a key is: a string or a whole number, of one type in a run and in a store; a row without one has no model."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import numpy as np
import pytest
from shell import inside, rows_of
from test_run_by_key import FIXED

import onlinegp as ogp

RUN = ["--by", "k", "--target", "y", "--features", "a", *FIXED]


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def table(path, keys, type=None):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    n = len(keys)
    columns = {"k": pa.array(keys, type), "a": np.arange(n) / n, "y": np.arange(n) / n}
    parquet.write_table(pa.table(columns), path)
    return path


def keys_in(store):
    with ogp.Fleet.load(store) as fleet:
        return {key: fleet[key].n_samples_seen_ for key in fleet}


@pytest.fixture
def csv(tmp_path):
    (tmp_path / "text.csv").write_text("k,a,y\n" + "".join(f"{i % 2},{i / 6},{i / 6}\n" for i in range(6)))
    return tmp_path / "text.csv"


@pytest.mark.parametrize("first", ["csv", "parquet"])
def test_another_type_than_that_of_the_store_is_refused(tmp_path, csv, first):
    whole = table(tmp_path / "whole.parquet", [0, 1, 0, 1])
    one, two = (csv, whole) if first == "csv" else (whole, csv)
    store = ["--store", tmp_path / "fleet.db"]
    inside("run", one, *RUN, *store, "--out", tmp_path / "one.csv")
    before = (tmp_path / "fleet.db").read_bytes()
    (tmp_path / "two.csv").write_text("what was there before\n")
    told = inside("run", two, *RUN, *store, "--out", tmp_path / "two.csv", code=1).stderr.decode()
    names = ("strings", "whole numbers") if first == "csv" else ("whole numbers", "strings")
    assert f"the keys in {tmp_path}/fleet.db are {names[0]}, but --by k in {two} contains {names[1]}" in told
    assert "Convert the column" in told
    assert (tmp_path / "two.csv").read_text() == "what was there before\n"
    assert (tmp_path / "fleet.db").read_bytes() == before
    assert set(keys_in(tmp_path / "fleet.db")) == ({"0", "1"} if first == "csv" else {0, 1})


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ([0.0, 1.0], "float"),
        ([True, False], "bool"),
        ([datetime.date(2024, 1, 1)] * 2, "date"),
        ([datetime.datetime(2024, 1, 1)] * 2, "datetime"),
        ([Decimal("1.5")] * 2, "float"),
        ([b"a", b"b"], "bytes"),
    ],
)
def test_columns_that_are_no_keys_are_refused(tmp_path, keys, name):
    data = table(tmp_path / "odd.parquet", keys)
    told = inside("run", data, *RUN, "--store", tmp_path / "fleet.db", "--out", tmp_path / "out.csv", code=1).stderr
    assert b"--by k must name a column of strings or whole numbers" in told
    assert f"of the type {name}. Convert the column to strings".encode() in told
    assert [path.name for path in tmp_path.iterdir()] == ["odd.parquet"]


def test_types_of_strings_and_whole_numbers_are_keys(tmp_path):
    pa = pytest.importorskip("pyarrow")
    for i, type in enumerate((pa.int8(), pa.uint16(), pa.int64())):
        inside("run", table(tmp_path / "w.parquet", [0, 1], type), *RUN, "--store", "w.db", cwd=tmp_path)
        assert keys_in(tmp_path / "w.db") == {0: i + 1, 1: i + 1}
    for i, type in enumerate((pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()))):
        inside("run", table(tmp_path / "s.parquet", ["0", ""], type), *RUN, "--store", "s.db", cwd=tmp_path)
        assert keys_in(tmp_path / "s.db") == {"0": i + 1, "": i + 1}


ROWS = [
    {"k": "x", "a": 0.0, "y": 0.0},
    {"k": None, "a": 0.1, "y": 0.1},
    {"a": 0.2, "y": 0.2},
    {"k": "", "a": 0.3, "y": 0.3},
    {"k": 0, "a": 0.4, "y": 0.4},
    {"k": float("nan"), "a": 0.5, "y": 0.5},
    {"k": True, "a": 0.6, "y": 0.6},
    {"k": "x", "a": 0.7, "y": 0.7},
]


def test_null_missing_and_empty_are_not_one_key(tmp_path):
    data = lines(tmp_path / "data.jsonl", ROWS)
    told = inside("run", data, *RUN, "--out", tmp_path / "out.csv", code=3).stderr.decode()
    assert "data.jsonl, row 2 of the data: k '' is missing, so the row belongs to no model" in told
    assert "--on-bad-row skip" in told
    assert len(rows_of(tmp_path / "out.csv")) == 1
    skip = ["--on-bad-row", "skip", "--rejects", tmp_path / "bad.csv"]
    for order in ([], ["--order", "a"]):
        store = tmp_path / f"fleet{len(order)}.db"
        inside("run", data, *RUN, *order, "--store", store, "--out", tmp_path / "out.csv", *skip)
        assert keys_in(store) == {"x": 2, "": 1}
        bad = rows_of(tmp_path / "bad.csv")
        assert [(row["line"], row["value"], row["column"]) for row in bad] == [
            ("2", "", "k"),
            ("3", "", "k"),
            ("5", "0", "k"),
            ("6", "nan", "k"),
            ("7", "True", "k"),
        ]
        assert bad[2]["reason"] == "is not like the keys before, which are strings"


def test_an_empty_cell_is_no_key(tmp_path, csv):
    csv.write_text(csv.read_text() + ",0.5,0.5\n")
    told = inside("run", csv, *RUN, "--out", tmp_path / "out.csv", code=3).stderr
    assert b"row 7 of the data: k '' is missing" in told
    inside("run", csv, *RUN, "--store", tmp_path / "f.db", "--out", tmp_path / "out.csv", "--on-bad-row", "skip")
    assert keys_in(tmp_path / "f.db") == {"0": 3, "1": 3}


def test_nulls_of_parquet(tmp_path):
    data = table(tmp_path / "null.parquet", [1, None, 2, 2**40])
    assert b"row 2 of the data" in inside("run", data, *RUN, "--out", tmp_path / "out.csv", code=3).stderr
    inside("run", data, *RUN, "--store", tmp_path / "f.db", "--out", tmp_path / "out.csv", "--on-bad-row", "skip")
    assert keys_in(tmp_path / "f.db") == {1: 1, 2: 1, 2**40: 1}
