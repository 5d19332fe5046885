"""The record: every model through every container, and whatever is damaged or forged is refused."""

from __future__ import annotations

import copy
import json
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onlinegp as ogp
from forging import record_of, with_checksum, written
from models import EVERY, assert_same, stream
from onlinegp.files.container import ModelFileError
from onlinegp.fleet import from_bytes, step
from onlinegp.fleet.members import start_members
from onlinegp.state import Schema, learner_from_bytes, learner_to_bytes, schema_of
from onlinegp.state.record import Described, Entry

X, Y = stream(120)


@pytest.mark.parametrize("rows", [0, 1, 90])
@pytest.mark.parametrize("name", EVERY)
def test_every_model_survives_every_container(name, rows, tmp_path):
    model = EVERY[name].unfitted()
    if rows:
        model.fit(X[:rows], Y[:rows])
    model.save(tmp_path / "model.ogp")
    assert_same(ogp.load(tmp_path / "model.ogp"), model)
    assert_same(pickle.loads(pickle.dumps(model)), model)
    assert_same(copy.deepcopy(model), model)
    if not rows:
        return
    state, _ = step(EVERY[name], None, X[:rows], Y[:rows])
    assert_same(from_bytes(EVERY[name], state), model)
    fleet = ogp.Fleet(EVERY[name].unfitted()).learn(["a"] * rows, X[:rows], Y[:rows])
    fleet["b"] = model
    fleet.save(tmp_path / "fleet.ogp")
    for one in (ogp.Fleet.load(tmp_path / "fleet.ogp"), pickle.loads(pickle.dumps(fleet))):
        assert list(one) == ["a", "b"]
        assert_same(one["a"], model)
        assert_same(one["b"], model)
    with ogp.Fleet(EVERY[name].unfitted(), store=tmp_path / "fleet.db") as stored:
        stored["c"] = model
    with ogp.Fleet.load(tmp_path / "fleet.db") as stored:
        assert_same(stored["c"], model)


@pytest.mark.parametrize("name", EVERY)
def test_the_schema_of_a_model_does_not_depend_on_what_it_has_learned(name):
    fresh, learned = EVERY[name].start(2, 1), EVERY[name].unfitted().fit(X, Y).learner
    for compact in (False, True):
        schema = schema_of(fresh, compact=compact)
        assert schema.text == schema_of(learned, compact=compact).text
        assert Schema.parse(json.loads(schema.text)).checksum == schema.checksum
        contents = learned.dump_compact() if compact else learned.dump()
        assert {f"learned.{entry}" for entry in contents} == {entry.name for entry in schema.entries[4:]}


@pytest.mark.parametrize("name", EVERY)
def test_a_record_has_the_bytes_of_its_definition(name):
    learner = EVERY[name].unfitted().fit(X, Y).learner
    about = {"features": 2, "outputs": 1, "single": True, "largest": 3.0}
    schema = schema_of(learner)
    record = learner_to_bytes(schema, about | {"learned": learner.dump()})
    assert written(schema, schema.from_bytes(record)) == record
    contents = learner_from_bytes(schema, record)
    assert {entry: contents[entry] for entry in about} == about


def records():
    """Records of learners of many shapes, each with its schema."""
    found = []
    for name in ("KRLST", "KLMS", "LinearRLS", "KAP", "L2S", "Scaled-Mixture", "Lagged-horizon", "Auto", "Forecaster"):
        members, which = start_members(EVERY[name], 2, 1), np.zeros(1, dtype=np.int64)
        members.learn(np.zeros(60, dtype=np.int64), X[:60], Y[:60, None], 1)
        for compact in (False, True):
            found.append((EVERY[name], members.schemas[compact], members.to_bytes(which, True, compact)[0]))
    return found


RECORDS = records()


@pytest.mark.parametrize("number", range(len(RECORDS)))
def test_a_record_that_is_cut_anywhere_is_refused(number):
    _, schema, record = RECORDS[number]
    for end in {*range(min(300, len(record))), *range(0, len(record), 97), len(record) - 1}:
        with pytest.raises(ModelFileError, match=r"Use an undamaged copy"):
            schema.from_bytes(record[:end])
        with pytest.raises(ModelFileError, match=r"Use an undamaged copy"):
            schema.from_bytes(with_checksum(record[:end]) if end > 12 else record[:end])
    with pytest.raises(ModelFileError, match="bytes, but its entries"):
        schema.from_bytes(with_checksum(record + bytes(8)))


@pytest.mark.parametrize("number", range(len(RECORDS)))
def test_any_bit_that_flips_is_noticed(number):
    model, schema, record = RECORDS[number]
    rng = np.random.default_rng(number)
    for at in {*range(130), *rng.integers(0, len(record), 50).tolist()}:
        for bit in range(8) if at < 20 else [int(rng.integers(8))]:
            bad = bytearray(record)
            bad[at] ^= 1 << bit
            with pytest.raises(ModelFileError, match=r"Use an undamaged copy|Learn it again"):
                schema.from_bytes(bytes(bad))
            if at % 10 == 0:
                with pytest.raises(ModelFileError):
                    step(model, bytes(bad), X, Y)


def damaged(rng, record):
    """Return a record with words, bits or its length changed, and its checksum right."""
    data = bytearray(record)
    for _ in range(rng.integers(1, 4)):
        at, kind = int(rng.integers(12, len(data) if rng.integers(2) else min(len(data), 200))), rng.integers(5)
        if kind == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            data[at // 8 * 8 : at // 8 * 8 + 8] = np.int64(rng.choice([0, -1, 7, 2**40, 2**62, -(2**63)])).tobytes()
        elif kind == 2:
            data[at // 8 * 8 : at // 8 * 8 + 8] = np.float64(rng.choice([0.0, -1.0, 1e308, np.nan, np.inf])).tobytes()
        elif kind == 3 and len(data) > 200:
            del data[at : at + int(rng.integers(1, 64))]
        else:
            data[at:at] = rng.bytes(int(rng.integers(1, 64)))
    return with_checksum(bytes(data))


def attacked(seed, count):
    """Use damaged records, which must be refused or go on as models; return how many were refused."""
    rng, refused = np.random.default_rng(seed), 0
    for _ in range(count):
        model, _, record = RECORDS[rng.integers(len(RECORDS))]
        try:
            with np.errstate(all="ignore"):
                _, trace = step(model, damaged(rng, record), X[60:62], Y[60:62])
            assert np.isfinite(trace.mean).all()
        except ModelFileError:
            refused += 1
        except ogp.BreakdownError:
            pass
        except ValueError as error:  # it says how many columns it wants
            assert "features" in str(error) or "shape" in str(error)  # noqa: PT017
    return refused


@pytest.mark.filterwarnings("ignore")
def test_damaged_records():
    assert attacked(0, 300) > 100


@pytest.mark.attack
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(1, 6))
def test_thousands_of_damaged_records(seed):
    assert attacked(seed, 2000) > 700


LENGTHS = Schema(
    [
        Entry("n", "integer"),
        Entry("X", "points", "<f8", ("kept", 2)),
        Entry("Y", "array", "<f8", ("kept", "n")),
        Entry("L", "triangle", "<f4", ("n",)),
        Entry("on", "flags", "|b1", ("kept",)),
        Entry("word", "text"),
        Entry("inside", "model"),
        Entry("nothing", "array", "<f8", ("many", 0)),
    ]
)


def lengths(n=2, kept=3, many=5):
    rng = np.random.default_rng(0)
    return {
        "n": n,
        "X": rng.normal(size=(kept, 2)),
        "Y": rng.normal(size=(kept, n)),
        "L": rng.normal(size=n * (n + 1) // 2).astype(np.float32),
        "on": rng.integers(0, 2, kept).astype(bool),
        "word": "größe",
        "inside": np.arange(7, dtype=np.uint8),
        "nothing": np.zeros((many, 0)),
    }


def test_all_kinds_survive():
    contents = lengths()
    found = LENGTHS.from_bytes(LENGTHS.to_bytes(contents))
    assert LENGTHS.to_bytes(contents) == written(LENGTHS, contents)
    assert list(found) == list(contents)
    for name, value in contents.items():
        np.testing.assert_array_equal(found[name], value)
        assert type(found[name]) is type(value)
    found["X"][:] = 0.0  # it belongs to whoever reads it


@pytest.mark.parametrize("length", [2**62, 2**40, 10**9, 10**6, 10**4, -1, -(2**63)])
def test_a_forged_length_takes_no_memory(length):
    record = LENGTHS.to_bytes(lengths())
    places = [16]  # n, then kept, the length of the word, of the bytes, and of nothing
    places += [24, 24 + 8 + 48 + 48 + 16 + 8, 24 + 8 + 48 + 48 + 16 + 8 + 16, len(record) - 8]
    tracemalloc.start()
    try:
        for place in places:
            bad = with_checksum(record[:place] + np.int64(length).tobytes() + record[place + 8 :])
            with pytest.raises(ModelFileError, match=r"does not fit the state|bytes, but its entries|UTF-8"):
                LENGTHS.from_bytes(bad)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


NAMES = st.lists(st.text("abcd.", min_size=1, max_size=5), min_size=1, max_size=8, unique=True)
VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=9).map(np.array),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=9).map(lambda values: np.array(values, dtype=np.int64)),
    st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda shape: np.ones(shape, dtype=bool)),
)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_contents_survive_and_any_damage_is_refused(data):
    contents = {name: data.draw(VALUES) for name in data.draw(NAMES)}
    schema, record = record_of(contents)
    assert schema.to_bytes(contents) == record
    found = Schema.parse(schema.text).from_bytes(record)
    assert found.keys() == contents.keys()
    for name, value in contents.items():
        np.testing.assert_array_equal(found[name], value)
    described = Described("text", schema, contents).to_bytes()
    again = Described.from_bytes(described)
    assert (again.description, again.schema.text, again.to_bytes()) == ("text", schema.text, described)
    for bytes_, read in ((record, schema.from_bytes), (described, Described.from_bytes)):
        with pytest.raises(ModelFileError):
            read(bytes_[: data.draw(st.integers(0, len(bytes_) - 1))])
    at = data.draw(st.integers(0, len(record) - 1))
    bad = bytearray(record)
    bad[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ModelFileError):
        schema.from_bytes(bytes(bad))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data):
    head = b"ogprec\x01\x00" + bytes(4) + LENGTHS.checksum.to_bytes(4, "little")
    for body in (data, with_checksum(head + data)):
        with pytest.raises(ModelFileError):
            LENGTHS.from_bytes(body)
    with pytest.raises(ModelFileError):
        Described.from_bytes(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["array", "<f8"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(JSON)
def test_any_schema_is_read_or_refused(found):
    try:
        schema = Schema.parse(found)
    except ModelFileError as error:
        assert "schema" in str(error)  # noqa: PT017
    else:
        assert json.loads(schema.text) == list(found)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([["a", "integer"], ["a", "number"]], "twice"),
        ([["a", "code"]], "is not an entry"),
        ([["a", "integer", "<f8", []]], "has a shape"),
        ([["a", "array", "<f2", [1]]], "is not an array"),
        ([["a", "array", "|O", [1]]], "is not an array"),
        ([["a", "array", "<f8", [-1]]], "is not an array"),
        ([["a", "array", "<f8", [1.0]]], "is not an array"),
        ([["a", "triangle", "<f8", [1, 1]]], "is not an array"),
        ("[[", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        (7, "cannot be read"),
    ],
)
def test_schemas_that_make_no_sense_are_refused(found, message):
    with pytest.raises(ModelFileError, match=message):
        Schema.parse(found)


def test_what_cannot_be_stored_is_refused_by_name():
    for changes, message in (
        ({"X": np.full((3, 2), np.nan)}, "X holds a value that is not finite"),
        ({"X": np.zeros((3, 3))}, "X cannot be stored: it must have shape"),
        ({"X": np.zeros(3)}, "X cannot be stored: it must be <f8 with 2 axes"),
        ({"X": [[1.0]]}, "X cannot be stored"),
        ({"n": 2**63}, "a number of the state cannot be stored"),
        ({"n": 1.5}, "a number of the state cannot be stored"),
        ({"more": 1}, "'more' cannot be stored"),
    ):
        with pytest.raises(ModelFileError, match=message):
            LENGTHS.to_bytes(lengths() | changes)


# Learners with dump and load of their own, which declare no fields
