"""Model files: compact, atomic, and harmless whoever wrote them."""

from __future__ import annotations

import json
import struct
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

import onlinegp as ogp
from forging import forged_file
from models import LOCAL, MODELS, stream
from onlinegp.files import atomic as files
from onlinegp.kernels import RBF, Kernel, Linear, Periodic
from onlinegp.recipes.dictionaries import Quantized


@pytest.fixture
def model():
    return ogp.KRLST(RBF([0.7, 0.9]), noise=0.01, budget=10, forgetting=0.99).fit(*stream(50))


def forged(data: bytes, change) -> bytes:
    """Return the file with its header changed and its checksum right again."""
    return forged_file(data, lambda header, contents: change(header))


def learned(data: bytes, change) -> bytes:
    """Return the file with what was learned changed and its checksums right again."""
    return forged_file(data, lambda header, contents: change(contents))


def test_size_is_that_of_the_centers_in_use():
    big = ogp.KRLST(RBF(0.7), budget=1000).fit(*stream(40))
    triangles = 2 * 8 * big.size_ * (big.size_ + 1) // 2
    assert len(big.to_bytes()) < triangles + 8 * big.size_ * 6 + 1400  # the last for the header, with the schema


def test_an_untrained_model_survives(tmp_path):
    ogp.QKLMS(RBF(0.3) + 2.0 * Periodic(period=3.0), radius=0.1).save(tmp_path / "m.ogp")
    model = ogp.load(tmp_path / "m.ogp")
    assert repr(model) == repr(ogp.QKLMS(RBF(0.3) + 2.0 * Periodic(period=3.0), radius=0.1))


def test_parameters_survive():
    for model in (MODELS | LOCAL).values():
        assert repr(ogp.from_bytes(model.to_bytes())) == repr(model)
    model = ogp.BetaKLMS(RBF(np.array([0.1, 1 / 3])), dictionary=Quantized(0.1 + 0.2))
    again = ogp.from_bytes(model.to_bytes())
    assert again.dictionary == model.dictionary
    assert np.array_equal(again.kernel.length_scale, model.kernel.length_scale)


def test_parameters_set_after_training_do_not_change_the_model(model):
    model.set_params(noise=100.0)
    again = ogp.from_bytes(model.to_bytes())
    assert again.noise == 0.01
    X, y = stream(20, seed=1)
    assert np.array_equal(again.partial_fit(X, y).predict(X), model.partial_fit(X, y).predict(X))


def test_a_kernel_of_ones_own_is_refused_with_the_reason():
    class Mine(Kernel):
        def __call__(self, X, Z=None):
            return RBF(1.0)(X, Z)

        def diag(self, X):
            return np.ones(len(X))

    model = ogp.KLMS(Mine()).fit(*stream(10))
    with pytest.raises((ValueError, TypeError), match="kernel"):
        model.to_bytes()


def test_a_crash_while_writing_leaves_the_old_file(model, tmp_path, monkeypatch):
    path = tmp_path / "model.ogp"
    model.save(path)
    before = path.read_bytes()
    model.partial_fit(*stream(20, seed=1))

    def full_disk(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_others_may_read_what_is_saved(model, tmp_path):
    """As a file that was simply opened and written."""
    model.save(tmp_path / "model.ogp")
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "model.ogp").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: b"", "not an onlinegp model file"),
        (lambda data: b"\x80\x04K\x01.", "not an onlinegp model file"),  # a pickle
        (lambda data: b"SQLite format 3\0" + bytes(100), "a store of many models.*Fleet.load"),
        (lambda data: b"onlinegp" + bytes(100), "format 1"),
        (lambda data: save({"a": np.zeros(3)}), "not a file of onlinegp"),
        (lambda data: data[:-1], "do not fit the file"),
        (lambda data: data[:100], "cut short"),
        (lambda data: data[:-9] + b"\x00" + data[-8:], "damaged"),
        (lambda data: forged(data, lambda h: h.update(format=99)), "format 99"),
        (lambda data: forged(data, lambda h: h.update(kind="fleet")), "not a model"),
        (lambda data: forged(data, lambda h: h["model"].update({"class": "os.system"})), "there is no model"),
        (lambda data: forged(data, lambda h: h["model"].update(module="os")), "there is no model"),
        (lambda data: forged(data, lambda h: h.update(model=[])), "an object with a class"),
        (lambda data: forged(data, lambda h: h["model"]["params"].update(noise=-1)), "noise must be positive"),
        (lambda data: forged(data, lambda h: h["model"]["params"].update(nonsense=1)), "nonsense"),
        (lambda data: forged(data, lambda h: h["model"]["params"].pop("budget")), "lacks 'budget'"),
        (
            lambda data: forged(data, lambda h: h["model"]["params"].update(kernel={"kernel": [{"kernel": "eval"}]})),
            "eval",
        ),
        (
            lambda data: forged(data, lambda h: h["model"]["params"].update(kernel={"part": "Kernel"})),
            "does not describe",
        ),
        (lambda data: learned(data, lambda c: c.update(**{"learned.size": 10**12})), "at most the budget, 10"),
        (
            lambda data: learned(data, lambda c: c.update(**{"learned.size": -1})),
            "size must be at least 0",
        ),
        (lambda data: learned(data, lambda c: c.update(**{"learned.size": 2.5})), "size must be a whole number"),
        (lambda data: learned(data, lambda c: c.update(**{"learned.scale": 0.0})), "scale must be positive"),
        (lambda data: learned(data, lambda c: c.update(**{"learned.power": 0.0})), "power must be positive"),
        (lambda data: learned(data, lambda c: c.update(**{"learned.size": 9})), "must be float64 of shape"),
        (lambda data: learned(data, lambda c: c.update(features=10**15)), "impossible sizes"),
        (lambda data: learned(data, lambda c: c.update(features=1)), "must be float64 of shape|has 2 value"),
        (lambda data: forged(data, lambda h: h.update(names=["a"])), "1 names for 2 columns"),
        (lambda data: learned(data, lambda c: c.update(**{"learned.scale": "1"})), "scale must be a finite"),
        (lambda data: learned(data, lambda c: c.pop("learned.seen") and None), "lacks 'seen'"),
        (lambda data: learned(data, lambda c: c.update(**{"learned.more": 1})), "unknown entry 'more'"),
        (lambda data: forged(data, lambda h: {}), "not a model"),
    ],
)
def test_bad_files_fail_with_the_reason(model, tmp_path, spoil, message):
    path = tmp_path / "bad.ogp"
    path.write_bytes(spoil(model.to_bytes()))
    with pytest.raises(ogp.ModelFileError, match=message) as caught:
        ogp.load(path)
    assert "bad.ogp" in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        ogp.load(tmp_path / "nowhere.ogp")


def test_values_that_are_not_finite_are_refused():
    model = ogp.KRLST(budget=10, engine="python").fit(*stream(50))
    model._state.alpha[0] = np.nan
    with pytest.raises(ogp.BreakdownError, match="not finite"):
        model.to_bytes()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_is_caught(model, data):
    good = bytearray(model.to_bytes())
    position = data.draw(st.integers(0, len(good) - 1))
    good[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ogp.ModelFileError):
        ogp.from_bytes(bytes(good))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_refused(data):
    for body in (data, len(data).to_bytes(8, "little") + data):
        with pytest.raises(ogp.ModelFileError):
            ogp.from_bytes(body)


def test_a_linear_kernel_round_trip():
    model = ogp.OnlineGP(Linear() + 1.0, noise=0.1).fit(*stream(30))
    again = ogp.from_bytes(model.to_bytes())
    X, _ = stream(5, seed=3)
    assert np.array_equal(again.predict(X, True), model.predict(X, True))


@pytest.mark.parametrize("deeper", [lambda k: k + RBF(0.5), lambda k: RBF(0.5) + k, lambda k: 1.01 * k])
def test_whatever_can_be_saved_can_be_loaded(deeper):
    kernel = RBF(0.7)
    for _ in range(400):
        kernel = deeper(kernel)
    X, y = stream(10)
    model = ogp.KRLST(kernel, noise=0.1, budget=5)
    fleet = ogp.Fleet(model).learn(["a"] * 10, X, y)
    again = ogp.Fleet.from_bytes(fleet.to_bytes())
    np.testing.assert_array_equal(again.predict(["a"] * 10, X, True), fleet.predict(["a"] * 10, X, True))
    again = ogp.from_bytes(model.fit(X, y).to_bytes())
    np.testing.assert_array_equal(again.predict(X, True), model.predict(X, True))


def test_a_model_with_wrong_parameters_is_not_saved():
    with pytest.raises(ValueError, match="noise must be positive"):
        ogp.KRLST(noise=-1.0).to_bytes()
    with pytest.raises(TypeError, match="dictionary must be a part"):
        ogp.BetaKLMS(dictionary=3).to_bytes()


def test_the_same_model_gives_the_same_bytes(model):
    assert model.to_bytes() == ogp.from_bytes(model.to_bytes()).to_bytes()


def test_any_reader_of_safetensors_reads_it(model):
    """As the guide describes the format, with nothing of this library."""
    data = model.to_bytes()
    length = int.from_bytes(data[:8], "little")
    entries = json.loads(data[8 : 8 + length])
    header = json.loads(entries["__metadata__"]["onlinegp"])
    assert header["model"]["class"] == "KRLST"
    zeros = data.replace(header["crc32"].encode(), b"00000000", 1)
    assert f"{zlib.crc32(zeros):08x}" == header["crc32"]
    record = load(data)["record"].tobytes()
    start, end = entries["record"]["data_offsets"]
    assert record == data[8 + length :][start:end]
    contents = read_record(header["schema"], record)
    assert contents["learned.seen"] == 50
    np.testing.assert_array_equal(contents["learned.centers"], model.centers_)
    expected = model.dump()["learned"]
    assert {f"learned.{name}" for name in expected} == {name for name in contents if name.startswith("learned.")}
    for name, value in expected.items():
        np.testing.assert_array_equal(contents[f"learned.{name}"], value)


def read_record(schema, record):
    """Return what is in a record, by name: the reader of the guide."""
    text = json.dumps(schema, separators=(",", ":")).encode()
    assert record[:8] == b"ogprec" + struct.pack("<H", 1)
    assert struct.unpack_from("<II", record, 8) == (zlib.crc32(record[12:]), zlib.crc32(text))
    found, place = {}, 16
    for kind, letter in (("integer", "q"), ("number", "d")):
        for name in [entry[0] for entry in schema if entry[1] == kind]:
            found[name] = struct.unpack_from(f"<{letter}", record, place)[0]
            place += 8
    lengths = {name: value for name, value in found.items() if isinstance(value, int)}
    for name, kind, dtype, shape in (entry for entry in schema if len(entry) == 4):
        for size in shape:
            if isinstance(size, str) and size not in lengths:
                lengths[size] = struct.unpack_from("<q", record, place)[0]
                place += 8
        shape = [lengths.get(size, size) for size in shape]
        shape = [shape[0] * (shape[0] + 1) // 2] if kind == "triangle" else shape
        found[name] = np.frombuffer(record, dtype, int(np.prod(shape)), place).reshape(shape)
        place += -(-found[name].nbytes // 8) * 8
    return found
