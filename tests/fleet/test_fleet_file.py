"""Fleet files: a fleet continues bit for bit, and damaged or forged files are refused."""

import json

import numpy as np
import pytest

from fleets import events, every, models
from forging import with_checksum, written
from onlinegp.files import container
from onlinegp.files.container import ModelFileError
from onlinegp.fleet import Fleet
from onlinegp.state.record import Schema


@every
def test_save_and_load_continue_bit_for_bit(engine, tmp_path):
    keys, X, y = events(400, 10)
    for model in models(engine):
        fleet = Fleet(model).learn(keys[:200], X[:200], y[:200])
        fleet.save(tmp_path / "fleet.ogp")
        again = Fleet.load(tmp_path / "fleet.ogp")
        assert list(again) == list(fleet)
        one, two = (each.run(keys[200:], X[200:], y[200:]) for each in (fleet, again))
        np.testing.assert_array_equal(one.mean, two.mean)
        np.testing.assert_array_equal(one.std, two.std)


@every
def test_damaged_files_are_refused(engine, tmp_path):
    keys, X, y = events(100, 5)
    path = tmp_path / "fleet.ogp"
    Fleet(models(engine)[0]).learn(keys, X, y).save(path)
    data = path.read_bytes()
    flipped = bytearray(data)
    flipped[-20] ^= 1
    for bad in (b"", data[:10], data[:-1], data + b"x", b"x" + data[1:], bytes(flipped)):
        path.write_bytes(bad)
        with pytest.raises(ModelFileError):
            Fleet.load(path)


def renamed(keys) -> dict:
    """Return the array that holds these keys in a file."""
    return {"keys": np.frombuffer(json.dumps(keys).encode(), dtype=np.uint8)}


def record(change):
    """Return a change of a file: of the contents of its first record."""

    def of_first(header, arrays):
        end, schema = int(arrays["ends"][0]), Schema.parse(header["schema"])
        contents = schema.from_bytes(arrays["records"][:end].tobytes())
        change(contents)
        arrays["records"][:end] = np.frombuffer(written(schema, contents), dtype=np.uint8)

    return of_first


def word(place, value):
    """Return a change of a file: of eight bytes of its first record."""

    def of_first(header, arrays):
        end = int(arrays["ends"][0])
        first = arrays["records"][:end].tobytes()
        first = with_checksum(first[:place] + np.array(value).tobytes() + first[place + 8 :])
        arrays["records"][:end] = np.frombuffer(first, dtype=np.uint8)

    return of_first


FEATURES, SIZE, SCALE = 16, 40, 64  # where a record of a recipe has them


def forged(data: bytes, change) -> bytes:
    """Return a fleet file with its header and arrays changed and its checksum right again."""
    header, arrays = container.from_bytes(data)
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(header, arrays)
    return container.to_bytes(header, arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header, arrays: arrays.update(renamed([*"abcdef"])), "of its 6 models end"),
        (lambda header, arrays: arrays.update(renamed([*"abcd"])), "of its 4 models end"),
        (lambda header, arrays: arrays.update(renamed(["a"] * 5)), "twice"),
        (lambda header, arrays: arrays.update(renamed([[]] * 5)), "strings and whole numbers"),
        (lambda header, arrays: arrays.update(renamed({})), "strings and whole numbers"),
        (lambda header, arrays: arrays.pop("keys"), "strings and whole numbers"),
        (lambda header, arrays: arrays.update({"keys": np.frombuffer(b"[" * 10**5, np.uint8)}), "does not describe"),
        (lambda header, arrays: header.update(features=10**9), "impossible"),
        (lambda header, arrays: header.update(features="2"), "impossible"),
        (lambda header, arrays: header.update(outputs=10**9), "impossible"),
        (lambda header, arrays: header.update(outputs=2), "single must be"),
        (lambda header, arrays: header.update(names=["a"]), "1 names for 2 columns"),
        (lambda header, arrays: header.update(more=1), "unknown entry 'more'"),
        (lambda header, arrays: header.update(kind="model"), "not a fleet"),
        (lambda header, arrays: header["model"].update({"class": "eval"}), "there is no model"),
        (lambda header, arrays: header["model"]["params"].update(budget=2), "at most the budget|exceed the budget"),
        (lambda header, arrays: header["model"]["params"].update(budget=-1), "budget must be at least 1"),
        (lambda header, arrays: header.update(compact=True), "the schema has|the schema lacks"),
        (lambda header, arrays: header.pop("schema"), "schema"),
        (lambda header, arrays: header.update(schema=[]), "the schema lacks 'features'"),
        (lambda header, arrays: header["schema"].pop(), "the schema lacks 'learned.evidence'"),
        (lambda header, arrays: header["schema"].append(["more", "integer"]), "the unknown entry 'more'"),
        (lambda header, arrays: header["schema"].append(["more", "code"]), "cannot be read"),
        (lambda header, arrays: header["schema"].append(header["schema"][0]), "twice"),
        (lambda header, arrays: arrays.update(records=arrays["records"][:-1]), "do not fit the file"),
        (lambda header, arrays: arrays.pop("records"), "no records"),
        (lambda header, arrays: arrays.update(records=arrays["records"].astype(float)), "no records"),
        (lambda header, arrays: arrays.pop("ends"), "lacks the positions where"),
        (lambda header, arrays: arrays["ends"].__setitem__(0, 2**62), "do not fit the file"),
        (lambda header, arrays: arrays["ends"].__setitem__(0, -8), "do not fit the file"),
        (lambda header, arrays: arrays["ends"].__setitem__(0, 0), "cut short"),
        (lambda header, arrays: arrays.update(more=np.zeros(1)), "unknown entry 'more'"),
        (lambda header, arrays: arrays["records"].__setitem__(50, 255), "damaged"),
        (lambda header, arrays: arrays["records"].__setitem__(6, 9), "version 9"),
        (word(FEATURES, 3), "features"),
        (word(SIZE, 2**61), "budget|does not fit"),
        (word(SIZE, 3), "fit the state|bytes, but its entries"),
        (word(SIZE, -1), "fit the state|-1 centers"),
        (word(SCALE, 0.0), "positive"),
        (word(SCALE, np.nan), "finite"),
        (word(96, np.nan), "not finite"),
        (record(lambda contents: contents.update(largest=-1.0)), "at least zero|negative"),
        (record(lambda contents: contents.update({"learned.seen": -1})), "at least 0|negative"),
    ],
)
@every
def test_forged_files_are_refused(change, message, engine, tmp_path):
    keys, X, y = events(100, 5)
    path = tmp_path / "fleet.ogp"
    Fleet(models(engine)[0]).learn(keys, X, y).save(path)
    path.write_bytes(forged(path.read_bytes(), lambda header, arrays: None))
    assert len(Fleet.load(path, progress=True)) == 5
    path.write_bytes(forged(path.read_bytes(), change))
    with pytest.raises(ModelFileError, match=message):
        Fleet.load(path)


def test_an_empty_fleet_survives(tmp_path):
    Fleet(models("python")[0]).save(tmp_path / "fleet.ogp", progress=True)
    fleet = Fleet.load(tmp_path / "fleet.ogp")
    assert len(fleet) == 0
    assert len(fleet.learn(["a"], np.zeros((1, 7)), [1.0])) == 1
