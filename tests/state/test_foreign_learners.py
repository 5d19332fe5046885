"""Records of learners that declare no fields: they bring their own schema."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import onlinegp as ogp
from forging import record_of, written
from models import assert_same, stream
from onlinegp.files.container import ModelFileError
from onlinegp.fleet import from_bytes, step
from onlinegp.fleet.members import start_members
from onlinegp.learner import RowLearner
from onlinegp.predictions import Gaussian
from onlinegp.state import Schema
from onlinegp.state.record import Entry

X, Y = stream(120)


class Foreign(RowLearner):
    def __init__(self, features, outputs):
        self.features, self.outputs, self.rows, self.word = features, outputs, np.empty((0, outputs)), "none"

    def learn(self, X, Y):
        self.rows = np.vstack([self.rows, Y])
        self.seen, self.word = len(self.rows), f"{len(self.rows)} rows"

    def predict(self, X):
        return Gaussian(np.full((len(X), self.outputs), float(self.seen)), np.ones((len(X), self.outputs)))

    def dump(self):
        more = {} if self.seen < 50 else {"late": 1.5}  # what it holds depends on what it has learned
        return {"rows": self.rows.copy(), "seen": self.seen, "word": self.word} | more

    dump_compact = dump

    def load(self, contents):
        if contents["seen"] != len(contents["rows"]):
            raise ValueError("seen must be the number of rows.")
        self.rows, self.seen, self.word = contents["rows"].copy(), contents["seen"], contents["word"]


class ForeignModel(ogp.OnlineRegressor):
    def __init__(self):
        pass

    def start(self, features, outputs):
        return Foreign(features, outputs)


@pytest.mark.parametrize("model", [ForeignModel(), ogp.Scaled(ForeignModel(), rows=20), ogp.Mixture([ForeignModel()])])
@pytest.mark.parametrize("rows", [1, 40, 90])
def test_a_learner_without_fields_brings_its_own_schema(model, rows, tmp_path):
    one = model.unfitted().fit(X[:rows], Y[:rows])
    assert_same(ogp.from_bytes(one.to_bytes()), one)
    assert_same(copy.deepcopy(one), one)
    state, _ = step(model, None, X[:rows], Y[:rows])
    assert_same(from_bytes(model, state), one)
    with ogp.Fleet(model, store=tmp_path / "fleet.db") as stored:
        stored["a"] = one
        stored.learn(["b"], X[:1], Y[:1])
    with ogp.Fleet.load(tmp_path / "fleet.db") as stored:
        assert_same(stored["a"], one)


def test_a_learner_without_fields_is_attacked_in_vain():
    schema = start_members(ForeignModel(), 2, 1).schemas[False]
    assert schema.entries[-1] == Entry("learned.*", "contents")
    inside = written(schema, {})  # a record of no entries
    for body in (b"", bytes(8), inside, b"\xff" * 40):
        bad = {"features": 2, "outputs": 1, "single": 1, "largest": 1.0, "learned.*": body}
        with pytest.raises(ModelFileError):
            step(ForeignModel(), written(schema, bad), X, Y)
    deep = record_of({"x": 1})[1]
    for _ in range(2000):
        own = Schema([Entry("*", "contents")])
        lengths_ = np.array([0, len(own.text)], dtype="<u4").tobytes()
        deep = lengths_ + own.text.encode() + written(own, {"*": deep})
    bad = {"features": 2, "outputs": 1, "single": 1, "largest": 1.0, "learned.*": deep}
    with pytest.raises(ModelFileError, match="cannot contain another such learner"):
        step(ForeignModel(), written(schema, bad), X, Y)


class Odd(Foreign):
    def dump(self):
        return super().dump() | {"odd": {1, 2}}


def test_what_a_learner_may_not_dump_is_named():
    class OddModel(ogp.OnlineRegressor):
        def __init__(self):
            pass

        def start(self, features, outputs):
            return Odd(features, outputs)

    with pytest.raises(ModelFileError, match=r"odd cannot be stored: it is {1, 2}\. Dump arrays of float64"):
        OddModel().fit(X, Y).to_bytes()
