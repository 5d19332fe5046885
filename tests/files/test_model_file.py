"""Model files: compact, atomic, and harmless whoever wrote them."""

from __future__ import annotations

import json
import struct
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import onlinegp as ogp
from models import MODELS, stream
from onlinegp.files import atomic as files
from onlinegp.files import model_file
from onlinegp.kernels import RBF, Kernel, Linear, Periodic
from onlinegp.recipes.dictionaries import Quantized


@pytest.fixture
def model():
    return ogp.KRLST(RBF([0.7, 0.9]), noise=0.01, budget=10, forgetting=0.99).fit(*stream(50))


def forged(data: bytes, change) -> bytes:
    """Return the file with its header changed and its checksum right again."""
    length = struct.unpack_from("<I", data, 10)[0]
    rest = data[model_file.PREFIX.size :]
    header = json.loads(rest[:length])
    answer = change(header)
    header = answer if isinstance(answer, list) else header
    text = json.dumps(header).encode()
    body = text + rest[length:]
    return model_file.PREFIX.pack(model_file.MAGIC, model_file.VERSION, len(text), zlib.crc32(body)) + body


def test_size_is_that_of_the_centers_in_use():
    big = ogp.KRLST(RBF(0.7), budget=1000).fit(*stream(40))
    triangles = 2 * 8 * big.size_ * (big.size_ + 1) // 2
    assert len(big.to_bytes()) < triangles + 8 * big.size_ * 6 + 1000


def test_an_untrained_model_survives(tmp_path):
    ogp.QKLMS(RBF(0.3) + 2.0 * Periodic(period=3.0), radius=0.1).save(tmp_path / "m.ogp")
    model = ogp.load(tmp_path / "m.ogp")
    assert repr(model) == repr(ogp.QKLMS(RBF(0.3) + 2.0 * Periodic(period=3.0), radius=0.1))


def test_parameters_survive():
    for model in MODELS.values():
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
        (lambda data: data[:-1], "damaged or cut short"),
        (lambda data: data[:100], "damaged or cut short"),
        (lambda data: data[:-9] + b"\x00" + data[-8:], "damaged or cut short"),
        (lambda data: data[:8] + b"\x63\x00" + data[10:], "version 99"),
        (lambda data: forged(data, lambda h: h.update(estimator="os.system")), "does not describe a model"),
        (lambda data: forged(data, lambda h: h["params"].update(noise=-1)), "noise must be positive"),
        (lambda data: forged(data, lambda h: h["params"].update(nonsense=1)), "nonsense"),
        (lambda data: forged(data, lambda h: h["params"].update(kernel={"kernel": {"kernel": "eval"}})), "eval"),
        (lambda data: forged(data, lambda h: h["params"].update(kernel={"part": "Kernel"})), "does not describe"),
        (lambda data: forged(data, lambda h: h["state"].update(size=10**12)), "exceed the budget"),
        (lambda data: forged(data, lambda h: h["state"].update(size=-1)), "impossible sizes"),
        (lambda data: forged(data, lambda h: h["state"].update(size=2.5)), "impossible sizes"),
        (lambda data: forged(data, lambda h: h["state"].update(size=9)), "too many"),
        (lambda data: forged(data, lambda h: h.update(features=10**15)), "shorter than the header"),
        (lambda data: forged(data, lambda h: h["state"].update(scale=float("nan"))), "scale must be a finite"),
        (lambda data: forged(data, lambda h: h["state"].pop("seen")), "does not describe a model"),
        (lambda data: forged(data, lambda h: []), "not an object|does not describe"),
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
    with pytest.raises(ogp.ModelFileError, match="alpha holds a value that is not finite"):
        ogp.from_bytes(model.to_bytes())


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
    body = model_file.PREFIX.pack(model_file.MAGIC, model_file.VERSION, len(data), zlib.crc32(data)) + data
    with pytest.raises(ogp.ModelFileError):
        ogp.from_bytes(body)


def test_a_linear_kernel_round_trip():
    model = ogp.OnlineGP(Linear() + 1.0, noise=0.1).fit(*stream(30))
    again = ogp.from_bytes(model.to_bytes())
    X, _ = stream(5, seed=3)
    assert np.array_equal(again.predict(X, True), model.predict(X, True))
