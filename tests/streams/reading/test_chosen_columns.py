"""Which columns are target, features and keys, if nobody says it."""

from __future__ import annotations

import pytest
from shell import FIXED, inside, onlinegp, rows_of

from onlinegp.streams.reading.formats import open_source


def test_a_column_without_a_value_in_the_first_rows_is_copied(tmp_path):
    """A log may end with a column of comments that is empty as a rule."""
    path = tmp_path / "a.csv"
    path.write_text("x,y,comment\n" + "".join(f"{i % 7},{i % 5},{'filter' * (i == 110)}\n" for i in range(120)))
    for missing in ("stop", "impute"):
        told = inside("run", path, *FIXED, "--missing", missing, "--out", tmp_path / "o.csv").stderr.decode()
        assert "not used: comment (no value in the first rows)" in told
        assert "target: y, predicted from x\n" in told
        assert rows_of(tmp_path / "o.csv")[110]["comment"] == "filter"


def test_columns_whose_names_end_with_id_are_keys(tmp_path):
    lines = [f"{1000 + i},{i % 7},{i * 3 % 5},{i % 3},{i % 5}" for i in range(40)]
    (tmp_path / "d.csv").write_text("\n".join(["listing_id,SensorID,grid,y,Order Id", *lines]) + "\n")
    told = inside("run", tmp_path / "d.csv", *FIXED, "--out", tmp_path / "o.csv").stderr.decode()
    assert "listing_id, SensorID, Order Id (named like a key: --features uses it)" in told
    assert "target: y, predicted from grid\n" in told


@pytest.mark.parametrize("name", ["ts", "ts_ms", "created_at", "eventTime", "epoch"])
@pytest.mark.parametrize("unit", [1, 1000])
def test_a_clock_is_neither_target_nor_feature(tmp_path, name, unit):
    """JSON lines of devices often end with their time, which is not what they measure."""
    (tmp_path / "d.csv").write_text(
        f"x,y,{name}\n" + "".join(f"{i % 7},{i % 5},{(1767225600 + 60 * i) * unit}\n" for i in range(40))
    )
    told = inside("run", tmp_path / "d.csv", *FIXED, "--out", tmp_path / "o.csv").stderr.decode()
    assert f"not used: {name} (named like a key: --features uses it)" in told
    assert "target: y, predicted from x\n" in told


def test_a_clock_in_parquet(tmp_path):
    parquet, pyarrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    times = [1767225600000 + 60_000 * i for i in range(200)]
    table = {"x": [i % 7 / 2 for i in range(200)], "y": [i % 5 / 2 for i in range(200)], "ts": times}
    parquet.write_table(pyarrow.table(table), tmp_path / "d.parquet")
    options = [*FIXED, "--flag", "1/day", "--out", tmp_path / "o.csv"]
    told = inside("run", tmp_path / "d.parquet", *options).stderr.decode()
    assert "target: y, predicted from x\n" in told
    assert "--flag 1/day is 0.000694 events per row" in told


@pytest.mark.parametrize("name", ["ts", "timestamp", "reading_id"])
def test_a_key_is_no_target_of_a_model_per_device(tmp_path, name):
    rows = [f"{'ab'[i % 2]},{i % 7},{i % 5},{1767225600 + 60 * i}\n" for i in range(40)]
    (tmp_path / "d.csv").write_text(f"device,x,y,{name}\n" + "".join(rows))
    told = inside("run", tmp_path / "d.csv", "--by", "device", *FIXED, "--out", tmp_path / "o.csv").stderr.decode()
    assert f"not used: {name} (named like a key: --features uses it)" in told
    assert "target: y, predicted from x, for each device\n" in told


@pytest.mark.parametrize(
    ("name", "start"), [("ts", 280), ("run_time", 3600), ("response_time_ns", 2e8), ("bytes", 1.8e9)]
)
def test_a_quantity_with_such_a_name_is_a_number(tmp_path, name, start):
    (tmp_path / "d.csv").write_text(f"x,{name}\n" + "".join(f"{i % 7},{start + i % 5}\n" for i in range(40)))
    told = inside("run", tmp_path / "d.csv", *FIXED, "--out", tmp_path / "o.csv").stderr.decode()
    assert f"target: {name}, predicted from x\n" in told


def test_a_key_is_no_target_unless_it_is_named(tmp_path):
    (tmp_path / "d.csv").write_text("id;area;rent\n" + "".join(f"{i};{i},5;{i},25\n" for i in range(20)))
    told = inside("run", tmp_path / "d.csv", *FIXED, "--out", tmp_path / "o.csv", code=3).stderr.decode()
    assert "Read them as numbers with --decimal ," in told
    assert "name it with --target" in told
    inside("run", tmp_path / "d.csv", "--target", "id", "--lags", "2", *FIXED, "--out", tmp_path / "o.csv")


@pytest.mark.parametrize("values", [["UP", "DOWN"], ["", "True"], ["2026-01-31", "2026-02-01"]])
def test_a_target_of_text_is_refused_with_a_remedy(tmp_path, values):
    (tmp_path / "d.csv").write_text("x,class\n" + "".join(f"{i},{values[i % 2]}\n" for i in range(20)))
    for command in ("run", "compare"):
        told = inside(command, tmp_path / "d.csv", "--target", "class", code=3).stderr.decode()
        assert "the target 'class' contains text, such as " in told
        assert "Name another column with --target, or write two classes as 0 and 1." in told
    (tmp_path / "d.csv").write_text("x,y\n" + "".join(f"{i},{'off' if i % 9 else i}\n" for i in range(120)))
    told = inside("run", tmp_path / "d.csv", *FIXED, "--target", "y", code=3).stderr.decode()
    assert "line 3, column 'y': 'off' is not a number" in told  # a bad row, which --on-bad-row skip leaves out


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("2026-03-02T00:{:02}:00,pump,{}.5,3", [False, False, True, True]),
        ("02.03.2026 00:{:02};{}.5", [False, True]),
        ("2026-03-02T00:{:02}:00 {}.5", [False, True]),
        ("2026-03-02 00:{:02}:00 {}.5", [False, False, True]),
        ("pump,2026-03-02 00:{:02},7,{}", [False, False, True, True]),
    ],
)
def test_a_log_without_a_header_loses_no_row(tmp_path, line, kinds):
    rows = [line.format(i, 20 + i % 3) for i in range(40)]
    (tmp_path / "log").write_text("\n".join(rows) + "\n")
    source = open_source(str(tmp_path / "log"))
    assert source.names == [f"column{i + 1}" for i in range(len(kinds))]
    assert list(source.numeric.values()) == kinds
    source.close()
    done = onlinegp("run", tmp_path / "log", *FIXED[:4], "--target", source.names[-1], "--out", tmp_path / "o.csv")
    assert b"the first line is a row" in done.stderr
    assert b"40 rows" in done.stderr
    piped = onlinegp("run", "-", *FIXED, "--target", source.names[-1], stdin=(tmp_path / "log").read_bytes())
    assert piped.stdout == (tmp_path / "o.csv").read_bytes()


@pytest.mark.parametrize("header", ["time,temp", "city,2026-01-01,2026-01-02", "2024,value", "a,1", "x,2024-01-31,"])
def test_a_header_with_dates_or_with_numbers_stays_one(tmp_path, header):
    (tmp_path / "d.csv").write_text(header + "\n" + "1,2,3\n" * 5)
    source = open_source(str(tmp_path / "d.csv"))
    source.close()
    assert source.has_header
    assert source.names[0] == header.split(",")[0]


@pytest.mark.parametrize(("header", "mark"), [("time|temp", "'|'"), ("time temp", "space"), ("time:temp", "':'")])
def test_a_delimiter_that_was_not_seen_is_suggested(tmp_path, header, mark):
    (tmp_path / "d.csv").write_text(header + "\n" + "1_x\n" * 5)
    told = inside("run", tmp_path / "d.csv", "--out", tmp_path / "o.csv", code=3).stderr.decode()
    assert f"If {mark} separates the columns, add --delimiter {mark}." in told
