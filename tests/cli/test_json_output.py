"""JSON lines that any reader takes: JSON has neither NaN nor infinity."""

from __future__ import annotations

import json

import numpy as np
import pytest
from shell import FIXED, inside, onlinegp

from onlinegp.streams.writing.sinks import open_sink


def test_keys_that_are_no_numbers_are_null_in_json(tmp_path):
    nan, inf = float("nan"), float("inf")
    names, values = ("k", "y"), [nan, inf, 1.5, [1.0, nan], {"b": -inf, "c": "nan"}, None]
    sink = open_sink(str(tmp_path / "out.jsonl"), names, added=("mean",))
    sink.write([values], [np.arange(6.0), np.arange(6.0)])
    sink.close()
    written = (tmp_path / "out.jsonl").read_text().splitlines()
    strict = [json.loads(line, parse_constant=pytest.fail) for line in written]
    assert [row["k"] for row in strict] == [None, None, 1.5, [1.0, None], {"b": None, "c": "nan"}, None]


def test_json_lines_on_standard_output(tmp_path):
    """A pipe of JSON lines is answered in JSON lines, each before the next is read."""
    rows = [{"at": f"2026-01-01T00:{i:02}:00Z", "a": i / 5, "y": i / 5} for i in range(20)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "data.jsonl").write_text(text)
    inside("run", "data.jsonl", *FIXED, "--out", "out.jsonl", cwd=tmp_path)
    piped = onlinegp("run", "-", *FIXED, "--out", "jsonl", stdin=text, cwd=tmp_path)
    assert piped.stdout == (tmp_path / "out.jsonl").read_bytes()
    assert json.loads(piped.stdout.splitlines()[3])["at"] == rows[3]["at"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.jsonl", "out.jsonl"]
    refused = onlinegp("run", "-", *FIXED, "--out", "jsonl", "--checkpoint", "safe", stdin=text, cwd=tmp_path, code=4)
    assert b"output to a pipe cannot be corrected" in refused.stderr
    assert b"must end in .csv, .jsonl or .parquet, or be - or jsonl" in (
        inside("run", "data.jsonl", *FIXED, "--out", "json", cwd=tmp_path, code=1).stderr
    )


def test_nan_in_a_copied_column_of_a_run(tmp_path):
    data, out = tmp_path / "data.jsonl", tmp_path / "out.jsonl"
    rows = [{"id": float("nan") if i == 2 else i, "a": i / 5, "y": i / 5} for i in range(5)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    inside("run", data, "--target", "y", "--features", "a", *FIXED, "--out", out)
    found = [json.loads(line, parse_constant=pytest.fail) for line in out.read_text().splitlines()]
    assert [row["id"] for row in found] == [0, 1, None, 3, 4]
