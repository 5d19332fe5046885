"""Columns around a model: it takes raw tables, in Python and from the command line, with the same predictions."""

from __future__ import annotations

import copy
import csv
import pickle

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.cli import main

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("narwhals")


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    hours = pd.date_range("2026-01-01", periods=n, freq="h")
    state = rng.choice(["on", "off", "idle"], n)
    load = rng.uniform(0.0, 1.0, n)
    power = 2.0 * (state == "on") + load + 0.05 * rng.standard_normal(n)
    load[5::17] = np.nan
    return pd.DataFrame({"time": hours.strftime("%Y-%m-%d %H:%M:%S"), "state": state, "load": load, "power": power})


def fitted(**options):
    data = table()
    return ogp.Columns(ogp.KRLST(), missing="impute", **options).fit(data.drop(columns="power"), data["power"]), data


def test_it_is_the_model_on_encoded_rows():
    model, data = fitted()
    X = data.drop(columns="power")
    inner = ogp.KRLST().fit(model.encode(X), data["power"])
    assert np.array_equal(model.predict(X), inner.predict(model.encode(X)))
    assert model.names_[-5:] == ["state=idle", "state=off", "state=on", "load", "load=missing"]
    assert model.score(X, data["power"]) > 0.9
    row = X.iloc[3]
    assert model.predict_one(row.to_dict()) == model.predict_one(row) == model.predict(X[3:4])[0]
    assert np.array_equal(model.predict(data), model.predict(X))  # other columns are ignored
    assert np.array_equal(model.predict(pl.from_pandas(X)), model.predict(X))
    assert np.array_equal(model.predict(X.to_dict("records")), model.predict(X))


def test_rows_one_by_one_continue_a_block():
    data = table()
    X, y = data.drop(columns="power"), data["power"]
    block = ogp.Columns(ogp.KRLST(), missing="impute")
    trace = ogp.run(block, X, y)
    single = ogp.Columns(ogp.KRLST(), missing="impute").partial_fit(X[:100], y[:100])
    for i in range(100, 200):
        row = X.iloc[i].to_dict()
        assert single.predict_one(row) == trace.mean[i]
        single.learn_one(row, y[i])
    assert single.to_bytes() == block.to_bytes()


@pytest.mark.parametrize(
    "again", [lambda m: ogp.from_bytes(m.to_bytes()), copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_the_encoding_is_saved_with_the_model(again):
    model, data = fitted(categories="ordinal", na_values=("-999",))
    data.loc[7, "load"] = -999.0
    same = again(model)
    assert same.names_ == model.names_
    assert np.array_equal(same.predict(data), model.predict(data))
    assert same.learn_one(data.iloc[7].drop("power"), 1.0).to_bytes() == model.learn_one(data.iloc[7], 1.0).to_bytes()


def test_bad_rows_are_refused_before_anything_is_learned():
    model, data = fitted()
    before = model.to_bytes()
    for wrong, message in (
        ({"time": "soon", "state": "on", "load": 1.0}, "'soon' is not a date"),
        ({"time": "2026-01-01", "state": "on", "load": "high"}, "'high' is not a number"),
        ({"time": "2026-01-01", "load": 1.0}, "lacks the column 'state'"),
    ):
        with pytest.raises(ValueError, match=message):
            model.learn_one(wrong, 1.0)
    assert model.to_bytes() == before
    fresh = ogp.Columns(ogp.KRLST())
    with pytest.raises(ValueError, match="cannot be encoded from a single row"):
        fresh.learn_one({"load": None, "state": "on"}, 1.0)
    with pytest.raises(ValueError, match="y contains NaN"):
        fresh.fit(data[["state"]], np.full(200, np.nan))
    assert fresh.encoding() is None
    with pytest.raises(ValueError, match="y contains NaN"):
        model.fit(data[["state"]], np.full(200, np.nan))
    assert model.to_bytes() == before
    assert fresh.learn_one({"x": 1.0}, 1.0).predict_one({"x": 1.0}) > 0.5


def test_fit_learns_another_encoding():
    model, data = fitted()
    model.fit(data[["state"]], data["power"])
    assert model.names_ == ["state=idle", "state=off", "state=on"]


@pytest.mark.parametrize("kind", ["onehot", "ordinal"])
def test_a_model_of_the_command_line_predicts_a_raw_frame(kind, tmp_path):
    data = table(400)
    data.to_csv(tmp_path / "power.csv", index=False)
    table(60, seed=1).to_csv(tmp_path / "new.csv", index=False)
    options = ["--categories", kind, "--dates", "calendar", "--missing", "impute", "--model", "krlst", "--budget", "40"]
    path, out = tmp_path / "power.ogp", tmp_path / "out.csv"
    assert (
        main(
            [
                "run",
                str(tmp_path / "power.csv"),
                *options,
                "--tune",
                "100",
                "--save",
                str(path),
                "--out",
                str(tmp_path / "o.csv"),
                "--quiet",
            ]
        )
        == 0
    )
    assert main(["predict", str(path), str(tmp_path / "new.csv"), "--out", str(out), "--quiet"]) == 0
    theirs = [float(row["mean"]) for row in csv.DictReader(out.open())]
    model = ogp.load(path)
    frame = pd.read_csv(tmp_path / "new.csv")
    assert isinstance(model, ogp.Columns)
    np.testing.assert_allclose(model.predict(frame), theirs, rtol=1e-9)  # pandas 2 loses the last bits of a file
    assert model.predict_one(frame.iloc[0]) == pytest.approx(theirs[0], rel=1e-9)
    model.save(tmp_path / "again.ogp")
    assert np.array_equal(ogp.load(tmp_path / "again.ogp").predict(frame), theirs)
    assert (
        main(
            [
                "predict",
                str(tmp_path / "again.ogp"),
                str(tmp_path / "new.csv"),
                "--out",
                str(tmp_path / "p.csv"),
                "--quiet",
            ]
        )
        == 0
    )
    assert [float(row["mean"]) for row in csv.DictReader((tmp_path / "p.csv").open())] == theirs


def test_a_plain_model_of_the_command_line_knows_its_names(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"b": rng.normal(size=300), "a": rng.normal(size=300)})
    frame["y"] = frame["a"] + 2.0 * frame["b"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    path = tmp_path / "m.ogp"
    assert (
        main(
            [
                "run",
                str(tmp_path / "t.csv"),
                "--model",
                "krlst",
                "--tune",
                "100",
                "--save",
                str(path),
                "--out",
                str(tmp_path / "o.csv"),
                "--quiet",
            ]
        )
        == 0
    )
    model = ogp.load(path)
    assert model.predict_one({"a": 1.0, "b": 0.5}) == model.predict_one([0.5, 1.0])
    assert np.array_equal(model.predict(frame[["a", "b"]]), model.predict(frame[["b", "a"]].to_numpy()))


def test_truth_values_blanks_and_missing_texts_are_those_of_the_command_line(tmp_path):
    rng = np.random.default_rng(0)
    heated, city = rng.random(120) < 0.5, rng.choice([" Rome", "Bern", "NA"], 120)
    power = 3.0 * heated + 2.0 * (city == "Bern") + (city == " Rome") + 0.1 * rng.standard_normal(120)
    frame = pd.DataFrame({"heated": heated, "city": city, "power": power})
    frame.to_csv(tmp_path / "t.csv", index=False)  # False and True, as text
    options = ["--categories", "onehot", "--missing", "impute", "--model", "krlst", "--budget", "20", "--tune", "50"]
    saved, out = str(tmp_path / "m.ogp"), tmp_path / "p.csv"
    run = ["run", str(tmp_path / "t.csv"), *options, "--save", saved, "--out", str(tmp_path / "o.csv"), "--quiet"]
    assert main(run) == 0
    assert main(["predict", saved, str(tmp_path / "t.csv"), "--out", str(out), "--quiet"]) == 0
    theirs = [float(row["mean"]) for row in csv.DictReader(out.open())]
    model = ogp.load(saved)
    np.testing.assert_allclose(model.predict(frame), theirs, rtol=1e-9)
    np.testing.assert_allclose(model.predict(frame.to_dict("records")), theirs, rtol=1e-9)
    assert model.predict_one({"heated": True, "city": "Bern"}) > 2.0 + model.predict_one(
        {"heated": False, "city": "Bern"}
    )
