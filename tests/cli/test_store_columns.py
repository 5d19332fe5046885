"""A store, and a model pulled out of it, go on with the columns and the options that they were made with."""

from __future__ import annotations

import numpy as np
import pytest
from shell import inside, rows_of
from test_run_by_key import BY, FIXED, write_events

import onlinegp as ogp

ROUNDED = {"rtol": 1e-9}  # rows at once and in parts are rounded differently


@pytest.fixture
def folder(tmp_path):
    """Two files of events, and a store that was made from the first; the second has its columns in another order."""
    write_events(tmp_path / "one.csv", 120, keys=3)
    rows = rows_of(tmp_path / "one.csv")
    names = ["b", "a", "y", "sensor", "time"]
    moved = [",".join(str(int(row[n]) + 120) if n == "time" else row[n] for n in names) for row in rows]
    (tmp_path / "two.csv").write_text("\n".join([",".join(names), *moved]) + "\n")
    inside("run", "one.csv", *BY, *FIXED, "--target", "y", "--store", "fleet.db", "--out", "one.out.csv", cwd=tmp_path)
    return tmp_path


GO_ON = ["run", "two.csv", *BY, "--target", "y", "--store", "fleet.db", "--out", "two.out.csv", "--quiet"]


def test_a_store_refuses_columns_in_another_order(folder):
    before = (folder / "fleet.db").read_bytes()
    told = inside(*GO_ON, code=1, cwd=folder).stderr
    assert b"fleet.db predicts y from a, b, but these options predict y from b, a" in told
    assert not (folder / "two.out.csv").exists()
    assert (folder / "fleet.db").read_bytes() == before
    inside(*GO_ON, "--features", "a,b", cwd=folder)
    assert len(rows_of(folder / "two.out.csv")) == 120


def test_a_store_refuses_options_that_its_models_would_ignore(folder):
    go_on = [*GO_ON, "--features", "a,b"]
    for more, message in [
        (["--model", "klms"], b"--model klms cannot be used with fleet.db, which was created with --model krlst"),
        (["--budget", "7"], b"created with --budget 15"),
        (["--robust"], b"created without it"),
        (["--lags", "2"], b"--lags 2 cannot"),
        (["--by", "time"], b"created with --by sensor"),
    ]:
        assert message in inside(*go_on, *more, code=1, cwd=folder).stderr
    inside(*go_on, cwd=folder)  # nothing typed, then the options of the first run: both go on
    inside(*go_on, *FIXED, "--late", "drop", cwd=folder)
    inside(*go_on, *FIXED, "--late", "drop", "--resume", cwd=folder)


def test_a_store_that_was_made_in_python_takes_no_options(tmp_path):
    data = write_events(tmp_path / "events.csv", 60, keys=2)
    with ogp.Fleet(ogp.KRLST(budget=5), store=tmp_path / "fleet.db") as fleet:
        fleet.learn(["0", "1"], np.zeros((2, 2)), [0.0, 1.0])
    args = ["run", data, *BY, "--store", tmp_path / "fleet.db", "--out", tmp_path / "out.csv", "--quiet"]
    assert b"--budget 9 cannot" in inside(*args, "--budget", "9", code=1).stderr
    inside(*args)


@pytest.mark.parametrize("out", [["--out", "again.csv"], []])
def test_a_model_that_is_pulled_out_knows_its_columns(folder, out):
    (folder / "fleet.db").unlink()
    inside("run", "one.csv", *BY, *FIXED, "--target", "y", "--store", "fleet.db", *out, cwd=folder)
    inside("inspect", "fleet.db", "--key", "1", "--out", "one.ogp", cwd=folder)
    inside("predict", "one.ogp", "two.csv", "--out", "said.csv", "--quiet", cwd=folder)
    rows = rows_of(folder / "two.csv")
    X = np.array([[float(row["a"]), float(row["b"])] for row in rows])
    predicted = [float(row["mean"]) for row in rows_of(folder / "said.csv")]
    np.testing.assert_allclose(predicted, ogp.load(folder / "one.ogp").predict(X), **ROUNDED)


def test_a_model_from_python_is_given_the_columns_that_it_was_taught_with(folder):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(folder / "one.csv").dropna()
    model = ogp.KRLST(budget=9).fit(frame[["b", "time"]], frame["y"])
    model.save(folder / "own.ogp")
    told = inside("predict", "own.ogp", "one.csv", "--out", "said.csv", cwd=folder).stderr
    assert b"predicting from b, time" in told
    predicted = [float(row["mean"]) for row in rows_of(folder / "said.csv") if row["y"]]
    np.testing.assert_allclose(predicted, model.predict(frame[["b", "time"]]), **ROUNDED)
    model.fit(frame[["b", "time"]], frame[["y", "a"]]).save(folder / "own.ogp")
    assert b"the model has 2 outputs" in inside("predict", "own.ogp", "one.csv", code=1, cwd=folder).stderr


def test_a_file_that_is_no_model_is_named(folder):
    for args in (["run", "one.csv"], ["forecast", "one.csv", "--steps", "2"], ["forecast", "--steps", "2"]):
        assert b"onlinegp: two.csv: this is not" in inside(*args, "--start", "two.csv", code=1, cwd=folder).stderr
