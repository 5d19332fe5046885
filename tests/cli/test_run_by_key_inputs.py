"""`onlinegp run --by`: past values of each key, categories and missing values, a model to start from, late rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from shell import inside, rows_of
from test_run_by_key import BY, FIXED, write_events

import onlinegp as ogp
from onlinegp.kernels import RBF
from onlinegp.streams.running.first_rows import with_lags


def write_series(path: Path, n: int, *, keys: int = 5) -> Path:
    """Write a sine per sensor, one value of a sensor at a time in an order of chance, some missing."""
    rng = np.random.default_rng(0)
    which, steps = rng.integers(0, keys, n), np.zeros(keys)
    lines = []
    for i, key in enumerate(which):
        value = np.sin(0.3 * steps[key] + key) + 0.01 * rng.standard_normal()
        steps[key] += 1
        lines.append(f"{i},s{key},{'' if i % 37 == 30 else repr(float(value))}")
    path.write_text("time,sensor,y\n" + "".join(line + "\n" for line in lines))
    return path


@pytest.mark.parametrize("more", [[], ["--store", "fleet.db", "--keep", "2", "--every", "50"]])
def test_lags_are_those_of_the_key(tmp_path, more):
    data = write_series(tmp_path / "series.csv", 400)
    inside("run", data, *BY, "--lags", "3", *FIXED, "--out", tmp_path / "out.csv", *more, cwd=tmp_path)
    table, rows = rows_of(data), rows_of(tmp_path / "out.csv")
    for key in ("s0", "s3"):
        model = ogp.Lagged(ogp.KRLST(RBF(1.0), noise=0.01, budget=15), lags=3)
        for row, predicted in zip(table, rows, strict=True):
            if row["sensor"] != key:
                continue
            if row["y"]:
                expected = model.run(None, [float(row["y"])])
                assert float(predicted["mean"]) == expected.mean[0]
                assert float(predicted["std"]) == expected.std[0]
            elif model.__sklearn_is_fitted__():
                assert float(predicted["mean"]) == model.skip(np.empty((1, 0))).mean[0]


def test_without_features_there_are_lags_and_they_are_tuned(tmp_path):
    data = write_series(tmp_path / "series.csv", 900)
    told = inside("run", data, *BY, "--tune", "300", "--out", tmp_path / "out.csv").stderr
    assert b"predicted from its last 10 values, for each sensor" in told
    error = [float(row["mean"]) - float(row["y"]) for row in rows_of(tmp_path / "out.csv")[450:] if row["y"]]
    assert np.std(error) < 0.2  # the sines have 0.7
    few = ["--tune", "30", "--lags", "20", "--out", tmp_path / "few.csv"]
    assert b"too few to tune with --lags" in inside("run", data, *BY, *few, code=None).stderr


def test_tuning_rows_have_the_past_of_their_key():
    keys, y = ["a", "b", "a", "a", "b", "a"], np.array([1.0, 10.0, 2.0, np.nan, 20.0, 4.0])
    X = np.arange(6.0)[:, None]
    inputs, targets = with_lags(X, y, 1, 1, keys)
    mean = np.nanmean(y)
    np.testing.assert_array_equal(inputs, [[2, 1], [4, 10], [5, mean]])
    np.testing.assert_array_equal(targets, [2, 20, 4])
    inputs, targets = with_lags(X, y, 2, 2, keys)
    np.testing.assert_array_equal(inputs, [[5, 2, 1]])
    np.testing.assert_array_equal(with_lags(X, y, 0, 1, keys)[0], X[~np.isnan(y)])


def write_mixed(path: Path, n: int, *, start: int = 0) -> Path:
    rng = np.random.default_rng(start)
    lines = []
    for i in range(start, start + n):
        color, x = ("red", "green", "blue")[rng.integers(3)], rng.uniform(-1, 1)
        y = {"red": 1.0, "green": -1.0, "blue": 0.0}[color] + x
        lines.append(f"{i},{'ab'[i % 2]},{color},{'' if i % 29 == 7 else repr(float(x))},{y!r}")
    path.write_text("time,sensor,color,x,y\n" + "".join(line + "\n" for line in lines))
    return path


MIXED = ["--categories", "onehot", "--missing", "impute", "--tune", "60", "--quiet"]


def test_one_encoding_for_all_keys(tmp_path):
    data = write_mixed(tmp_path / "mixed.csv", 300)
    inside("run", data, *BY, *MIXED, "--out", tmp_path / "whole.csv")
    error = [float(row["mean"]) - float(row["y"]) for row in rows_of(tmp_path / "whole.csv")[150:]]
    assert np.sqrt(np.mean(np.square(error))) < 0.4  # without the colors it is 0.8
    more = ["--out", "out.csv", "--checkpoint", "safe", "--every", "50", "--keep", "1"]
    inside("run", data, *BY, *MIXED, *more, cwd=tmp_path)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    inside("run", data, *BY, *MIXED, *more, "--resume", cwd=tmp_path)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


@pytest.mark.parametrize("out", [["--out", "-"], ["--out", "out.csv"]])
def test_a_store_keeps_what_was_learned_of_the_columns(tmp_path, out):
    one, two = write_mixed(tmp_path / "one.csv", 150), write_mixed(tmp_path / "two.csv", 150, start=150)
    whole = tmp_path / "both.csv"
    whole.write_text(one.read_text() + two.read_text().partition("\n")[2])
    inside("run", whole, *BY, *MIXED, "--out", tmp_path / "whole.csv")
    parts = []
    for name in ("one.csv", "two.csv"):
        predicted = inside("run", name, *BY, *MIXED, "--store", "fleet.db", *out, cwd=tmp_path).stdout.decode()
        parts.append((predicted or (tmp_path / "out.csv").read_text()).splitlines())
    assert parts[0] + parts[1][1:] == (tmp_path / "whole.csv").read_text().splitlines()
    other = ["--features", "color", "--store", "fleet.db", "--out", "other.csv"]
    assert (
        b"fleet.db predicts y from color, x, but these options predict y from color"
        in inside("run", one, *BY, *MIXED, *other, code=1, cwd=tmp_path).stderr
    )


def test_columns_are_learned_without_tuning_too(tmp_path):
    data = write_mixed(tmp_path / "mixed.csv", 300)
    fixed = ["--categories", "onehot", "--features", "color", *FIXED]
    inside("run", data, *BY, *fixed, "--out", tmp_path / "out.csv")
    rows = rows_of(tmp_path / "out.csv")
    assert len(rows) == 300
    assert {row["sensor"] for row in rows} == {"a", "b"}


def test_every_key_starts_from_a_model(tmp_path):
    data = write_events(tmp_path / "events.csv", 300)
    ask = ["--features", "a,b", "--target", "y", "--tune", "100", "--model", "krlst", "--budget", "15", "--quiet"]
    inside("run", data, *ask, "--save", tmp_path / "start.ogp", "--out", tmp_path / "one.csv")
    inside("run", data, *BY, "--start", tmp_path / "start.ogp", "--out", tmp_path / "out.csv", "--quiet")
    model, table, rows = ogp.load(tmp_path / "start.ogp").unfitted(), rows_of(data), rows_of(tmp_path / "out.csv")
    mine = [i for i, row in enumerate(table) if row["sensor"] == "4" and row["y"]]
    X = np.array([[float(table[i]["a"]), float(table[i]["b"])] for i in mine])
    alone = ogp.run(model, X, np.array([float(table[i]["y"]) for i in mine]))
    np.testing.assert_array_equal([float(rows[i]["mean"]) for i in mine], alone.mean)
    both = ["--start", tmp_path / "start.ogp", "--tune-by", "key", "--out", tmp_path / "x.csv"]
    assert b"exclude each other" in inside("run", data, *BY, *both, code=1).stderr


def test_late_rows_are_among_the_rejects(tmp_path):
    data = write_events(tmp_path / "events.csv", 100)
    lines = data.read_text().splitlines()
    (tmp_path / "late.csv").write_text("\n".join([*lines[:60], lines[20], *lines[60:]]) + "\n")
    more = ["--late", "drop", "--rejects", "bad.csv", "--summary", "s.json", "--out", "out.csv"]
    inside("run", "late.csv", *BY, *FIXED, *more, cwd=tmp_path)
    (bad,) = rows_of(tmp_path / "bad.csv")
    key = lines[20].split(",")[1]
    assert bad == {
        "line": "60",
        "column": "time",
        "value": "19",
        "reason": f"is not newer than the last row of the key '{key}'",
        "text": f"{key},19",
    }
    figures = json.loads((tmp_path / "s.json").read_text())
    assert (figures["late"], figures["rejected"]) == (1, 1)


def test_compact_states(tmp_path):
    data = write_events(tmp_path / "events.csv", 400)
    for name, more in {
        "exact": [],
        "memory": ["--compact"],
        "store": ["--compact", "--store", "fleet.db", "--keep", "2"],
    }.items():
        inside("run", data, *BY, *FIXED, "--every", "50", *more, "--out", f"{name}.csv", cwd=tmp_path)
    exact, memory, store = ((tmp_path / f"{name}.csv").read_bytes() for name in ("exact", "memory", "store"))
    assert memory == store != exact
    one, two = (np.array([float(r["mean"]) for r in rows_of(tmp_path / f"{n}.csv")]) for n in ("exact", "memory"))
    np.testing.assert_allclose(one, two, atol=1e-5)
    assert b"--compact needs --by" in inside("run", data, *FIXED, "--compact", code=1).stderr


def test_dates_that_are_the_order_are_inputs_only_by_name(tmp_path):
    lines = [f"2024-01-{1 + i // 2:02d},s{i % 2},{i % 5},{i % 7}\n" for i in range(56)]
    (tmp_path / "data.csv").write_text("time,sensor,x,y\n" + "".join(lines))
    command = ["run", tmp_path / "data.csv", *BY, "--dates", "calendar", "--tune", "0", "--out", tmp_path / "out.csv"]
    assert b"not used: time (the order of rows: name it in --features" in inside(*command).stderr
    named = inside(*command, "--features", "x,time").stderr
    assert b"not used" not in named
    assert b"inputs from time: time.weekday_sin" in named
