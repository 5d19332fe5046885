"""Codes that mean missing, and values that cannot be."""

from __future__ import annotations

import json

import numpy as np
import pytest
from shell import FIXED, inside, onlinegp, rows_of

from onlinegp import load
from onlinegp.streams.reading.formats import open_source
from onlinegp.streams.reading.source import choose_columns
from onlinegp.streams.running.plausible import FEWEST, IN_A_ROW, CodeWatch, PlausibleRange

CODED = ["-9999", "-9999.0", "-9.999e3", " -9999", "n/a"]


def table(n=400, bad=(), code="-9999", column="y"):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, n)
    y = 20.0 + 3.0 * np.sin(x) + 0.1 * rng.standard_normal(n)
    rows = [{"x": f"{a:.5f}", "y": f"{b:.5f}"} for a, b in zip(x, y, strict=True)]
    for i in bad:
        rows[i][column] = code
    return rows


def write(path, rows):
    path.write_text("x,y\n" + "".join(f"{row['x']},{row['y']}\n" for row in rows))
    return path


@pytest.mark.parametrize("code", CODED)
@pytest.mark.parametrize("few", [True, False])  # read in Python, or by pyarrow
def test_codes_are_missing_targets(tmp_path, code, few):
    """As an empty field is: the same bytes."""
    n = 20 if few else 400
    one, two = (write(tmp_path / f"{i}.csv", table(n, [5, 7], value)) for i, value in enumerate((code, "")))
    for path in (one, two):
        inside("run", path, *FIXED, "--na-values", "-9999,n/a", "--out", path.with_suffix(".out.csv"))
    assert one.with_suffix(".out.csv").read_bytes() == two.with_suffix(".out.csv").read_bytes()
    assert rows_of(one.with_suffix(".out.csv"))[5]["log_density"] == ""


@pytest.mark.parametrize("few", [True, False])
def test_codes_are_missing_features(tmp_path, few):
    path = write(tmp_path / "d.csv", table(20 if few else 400, [9], "-9999.0", "x"))
    args = ["run", path, *FIXED, "--na-values", "-9999", "--out", tmp_path / "o.csv"]
    assert b"line 11, column 'x': '-9999.0' means that the value is missing" in inside(*args, code=3).stderr
    inside(*args, "--missing", "impute", "--save", tmp_path / "m.ogp")
    predicted = rows_of(inside("predict", tmp_path / "m.ogp", path).stdout)  # the file knows the codes
    assert abs(float(predicted[9]["mean"]) - 20.0) < 6.0
    assert load(tmp_path / "m.ogp")


def test_codes_in_json_and_parquet(tmp_path):
    rows = [{"x": float(row["x"]), "y": float(row["y"])} for row in table(60, [50])]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    paths = [tmp_path / "d.jsonl"]
    if pyarrow := pytest.importorskip("pyarrow.parquet"):
        import pyarrow as pa

        pyarrow.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet")
        paths.append(tmp_path / "d.parquet")
    for path in paths:
        source = open_source(str(path), na_values=("-9999",))
        source.select(choose_columns(source))
        y = np.concatenate([block.y for block in source])
        source.close()
        assert np.flatnonzero(np.isnan(y)).tolist() == [50]


def test_a_column_of_numbers_and_codes_is_one_of_numbers(tmp_path):
    path = write(tmp_path / "d.csv", table(40, [i for i in range(40) if i % 4], "?", "x"))
    told = inside("run", path, *FIXED, "--na-values", "?", "--missing", "impute", "--out", tmp_path / "o.csv").stderr
    assert b"predicted from x\n" in told


@pytest.mark.parametrize("column", ["x", "y"])
def test_common_codes_are_reported_and_not_replaced(tmp_path, column):
    path = write(tmp_path / "d.csv", table(400, [200, 300], "-9999", column))
    done = inside("run", path, *FIXED, "--out", tmp_path / "o.csv")
    told = done.stderr.decode()
    assert told.count(f"the column '{column}' holds -9999, far from its other values") == 1
    assert "add --na-values -9999" in told
    assert column == "x" or rows_of(tmp_path / "o.csv")[200]["y"] == "-9999"
    quiet = inside("run", path, *FIXED, "--na-values", "-9999", "--missing", "impute", "--out", tmp_path / "o.csv")
    assert b"far from" not in quiet.stderr


def test_codes_among_such_values_are_numbers():
    told = []
    watch = CodeWatch(told.append)
    watch.look(["a"], [np.linspace(0.0, 2000.0, 100).round(-2)])
    watch.look(["a", "b"], [np.array([999.0, -999.0]), np.full(100, 999.0)])  # within the range; always the same
    assert told == []
    for value in (-99999.0, *np.random.default_rng(0).normal(size=FEWEST)):  # one by one, as from a pipe
        watch.look(["c"], [np.array([value])])
    assert len(told) == 1


def test_one_impossible_value_is_flagged_and_does_not_spoil_the_model(tmp_path):
    """With --flag. Without it the model clips the value, and the run says that it was there."""
    path, out = write(tmp_path / "d.csv", table(1500, [700])), tmp_path / "o.csv"
    model = ["--model", "krlst", "--kernel", "4.0 * rbf(1.0)", "--noise", "0.01", "--budget", "20", "--tune", "100"]
    errors = {}
    for name, more in (("plain", []), ("flag", ["--flag", "0.0001"]), ("robust", ["--flag", "0.0001", "--robust"])):
        told = inside("run", path, *model, *more, "--out", out).stderr.decode()
        rows = rows_of(out)
        errors[name] = np.median([abs(float(row["y"]) - float(row["mean"])) for row in rows[701:900]])
        assert "1 target is far outside the range of all earlier targets" in told
        assert ("flagged and not learned" in told) == (name == "flag")
        assert ("learned as errors of at most 3 standard deviations" in told) == (name == "robust")
        assert ("add --flag" in told) == (name == "plain")
        assert name == "plain" or rows[700]["event"]
    assert max(errors.values()) < 0.2


def test_impossible_values_within_the_tuning_rows(tmp_path):
    path, out = write(tmp_path / "d.csv", table(400, [60])), tmp_path / "o.csv"
    inside("run", path, "--model", "krlst", "--budget", "20", "--tune", "100", "--flag", "0.001", "--out", out)
    rows = rows_of(out)
    assert not rows[60]["event"]  # rows for tuning open none
    assert np.median([float(row["std"]) for row in rows[100:]]) < 1.0


def test_the_plausible_range():
    rng = np.random.default_rng(0)
    found = PlausibleRange()
    assert not found.add(np.array([-9999.0, *rng.normal(size=FEWEST)])).any()  # not known yet
    found = PlausibleRange()
    found.add(rng.normal(size=100))
    assert found.add(np.array([0.0, 1e4, np.nan, 0.5])).tolist() == [False, True, False, False]
    assert found.add(np.full(100, 1e4)).all()  # the same again and again: no change of the stream
    found.add(np.zeros(1))
    jump = 1000.0 + rng.normal(size=50)
    assert found.add(jump).tolist() == [True] * IN_A_ROW + [False] * 40
    one, other = PlausibleRange(), PlausibleRange()
    y = np.concatenate([rng.normal(size=60), [1e5], rng.normal(size=9), 1e3 + rng.normal(size=60)])
    whole = one.add(y)
    assert np.concatenate([other.add(part) for part in np.split(y, range(7, 120, 7))]).tolist() == whole.tolist()
    assert vars(one) == vars(other)


def test_a_resumed_run_knows_what_is_plausible(tmp_path):
    rows = table(400, [150, 250])
    write(tmp_path / "whole.csv", rows)
    args = [*FIXED, "--flag", "0.001", "--every", "100"]
    inside("run", "whole.csv", *args, "--out", "expected.csv", cwd=tmp_path)
    for n in (200, 400):
        write(tmp_path / "data.csv", rows[:n])
        inside("run", "data.csv", *args, "--out", "out.csv", "--checkpoint", "safe", "--resume", cwd=tmp_path)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()


@pytest.mark.parametrize("rows", [["oops", "0.5"], ["", "oops", "0.5"], ["0.5", "oops", "0.7", "0.9"]])
def test_one_text_cell_is_a_bad_row(tmp_path, rows):
    """And not a column of text, which would be left out without an error."""
    lines = [f"{i},{cell},{i}" for i, cell in enumerate(rows)]
    (tmp_path / "d.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")
    args = ["run", tmp_path / "d.csv", *FIXED, "--missing", "impute", "--out", tmp_path / "o.csv"]
    done = inside(*args, code=3)
    assert b"column 'b': 'oops' is not a number" in done.stderr
    assert b"not used" not in done.stderr
    done = inside(*args, "--on-bad-row", "skip", "--rejects", tmp_path / "bad.csv")
    assert b"1 rejected" in done.stderr
    assert [row["value"] for row in rows_of(tmp_path / "bad.csv")] == ["oops"]


def test_negative_codes_are_no_options(tmp_path):
    sent = "x,y\n1,-9999\n2,3\n"
    for form in (["--na-values", "-9999,NA"], ["--na-values=-9999"]):
        done = onlinegp("run", "-", *FIXED, *form, stdin=sent)
        assert rows_of(done.stdout)[0]["y"] == ""
