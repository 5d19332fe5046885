"""Which columns are target, features and keys, if nobody says it."""

from __future__ import annotations

from shell import FIXED, inside, rows_of


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


def test_a_key_is_no_target_unless_it_is_named(tmp_path):
    (tmp_path / "d.csv").write_text("id;area;rent\n" + "".join(f"{i};{i},5;{i},25\n" for i in range(20)))
    told = inside("run", tmp_path / "d.csv", *FIXED, "--out", tmp_path / "o.csv", code=3).stderr.decode()
    assert "Read them as numbers with --decimal ," in told
    assert "Name the column to predict with --target" in told
    inside("run", tmp_path / "d.csv", "--target", "id", "--lags", "2", *FIXED, "--out", tmp_path / "o.csv")
