"""Every model takes rows with names: dicts, named tuples and the rows of a frame give the bits of plain numbers."""

from __future__ import annotations

import copy
from collections import namedtuple

import numpy as np
import pandas as pd
import pytest

import onlinegp as ogp
from models import EVERY, stream

every = pytest.mark.parametrize("name", [name for name in EVERY if name != "Columns"])  # it ignores other names
Row = namedtuple("Row", ["b", "a"])  # another order than that of training


def named(X):
    return [{"a": row[0], "b": row[1]} for row in X.tolist()]


def turned(row):
    return {"b": row["b"], "a": row["a"]}


@every
def test_rows_by_name_are_rows_by_place(name):
    X, y = stream(40)
    plain, by_name = copy.deepcopy(EVERY[name]), copy.deepcopy(EVERY[name])
    for i, (x, row) in enumerate(zip(X, named(X), strict=True)):
        plain.learn_one(x, y[i])
        by_name.learn_one(row if i % 2 == 0 else turned(row), y[i])
    assert list(by_name.feature_names_in_) == ["a", "b"]
    expected = plain.predict_one(X[7], return_std=True)
    row = named(X)[7]
    for x in (row, turned(row), Row(row["b"], row["a"]), pd.Series(turned(row)), X[7]):
        assert by_name.predict_one(x, return_std=True) == expected
    assert np.array_equal(by_name.predict([turned(one) for one in named(X)]), plain.predict(X))
    again = ogp.from_bytes(by_name.to_bytes())
    assert again.predict_one(turned(row), return_std=True) == expected


@every
def test_a_run_takes_rows_by_name(name):
    X, y = stream(30)
    expected = copy.deepcopy(EVERY[name]).run(X, y)
    model = copy.deepcopy(EVERY[name])
    rows = [row if i % 3 == 0 else turned(row) for i, row in enumerate(named(X))]
    trace = ogp.run(model, rows, y.tolist())
    assert np.array_equal(trace.mean, expected.mean)
    assert np.array_equal(trace.std, expected.std)
    assert model.predict_one(rows[1]) == model.predict_one(X[1])


@every
def test_other_names_are_refused_before_anything_is_learned(name):
    X, y = stream(20)
    model = copy.deepcopy(EVERY[name])
    for row, target in zip(named(X), y, strict=True):
        model.learn_one(row, target)
    before = model.to_bytes()
    wrong = {
        "lacks 'b'": {"a": 1.0},
        "also has 'c'": {"a": 1.0, "b": 2.0, "c": 3.0},
        "lacks 'b' and also has 'c'": {"a": 1.0, "c": 2.0},
        "feature 'b' must hold numbers, got the text 'high'": {"a": 1.0, "b": "high"},
        "feature 'b' contains NaN or nothing": {"a": 1.0, "b": None},
    }
    for message, row in wrong.items():
        with pytest.raises(ValueError, match=message):
            model.learn_one(row, 0.0)
        with pytest.raises(ValueError, match=message):
            model.predict_one(row)
        with pytest.raises(ValueError, match=message):
            model.run([row], [0.0])
    assert model.to_bytes() == before


def test_a_first_row_that_is_refused_leaves_no_names():
    model = ogp.KRLST()
    with pytest.raises(ValueError, match="got the text 'high'"):
        model.learn_one({"level": "high"}, 1.0)
    with pytest.raises(TypeError, match="names of features must be strings, got 3"):
        model.learn_one({3: 1.0}, 1.0)
    model.learn_one({"x": 1.0}, 1.0)
    assert list(model.feature_names_in_) == ["x"]


def test_names_come_from_the_first_rows_alone():
    model = ogp.KRLST().learn_one([1.0, 2.0], 3.0)
    with pytest.raises(ValueError, match="trained without names"):
        model.predict_one({"a": 1.0, "b": 2.0})
    assert model.predict_one(Row(1.0, 2.0)) == model.predict_one([1.0, 2.0])  # a tuple, as before


def test_rows_of_a_frame():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [3.0, 1.0, 2.0]})
    y = [1.0, 2.0, 3.0]
    whole = ogp.KRLST().fit(frame, y)
    for rows in (
        [row for _, row in frame[["b", "a"]].iterrows()],
        list(frame.itertuples(index=False)),
        frame.to_dict("records"),
    ):
        model = ogp.KRLST()
        for row, target in zip(rows, y, strict=True):
            model.learn_one(row, target)
        assert model.predict_one(rows[0]) == whole.predict_one([1.0, 3.0])
    with pytest.raises(ValueError, match=r"itertuples\(index=False\)"):
        whole.predict_one(next(frame.itertuples()))


def test_rows_from_zip_and_from_a_generator():
    pairs = [({"a": float(i), "b": 1.0}, float(i)) for i in range(5)]
    X, y = zip(*pairs, strict=True)  # tuples
    for make in (ogp.KRLST, lambda: ogp.Columns(ogp.KRLST(), rows=3)):
        plain = make().fit(list(X), list(y))
        assert np.array_equal(make().fit(X, y).predict(X), plain.predict(list(X)))
        assert np.array_equal(ogp.run(make(), X, y).mean, ogp.run(make(), list(X), list(y)).mean)
    with pytest.raises(TypeError, match=r"^X must be an array or a list, got a generator\. Pass list\(X\)\.$"):
        ogp.run(ogp.KRLST(), (x for x in X), y)


def test_mixed_rows_are_refused():
    with pytest.raises(TypeError, match="row 1 of X must have names"):
        ogp.KRLST().fit([{"a": 1.0}, [2.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="names of row 1 of X should match the first row: row 1 of X lacks 'a'"):
        ogp.KRLST().fit([{"a": 1.0}, {"b": 2.0}], [1.0, 2.0])


@pytest.mark.parametrize("model", [ogp.KRLST(), ogp.Columns(ogp.KRLST())])
def test_a_dict_is_no_table(model):
    rows = [{"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 1.0}]
    model.fit(rows, [1.0, 2.0])
    for call in (lambda: model.predict(rows[0]), lambda: model.partial_fit({"a": [1.0], "b": [2.0]}, [1.0])):
        with pytest.raises(TypeError, match=r"X must have rows, got a dict\. If it is one row, pass \[X\], or use"):
            call()
    assert model.predict(rows[:1]) == model.predict_one(rows[0])
