"""The one function for all engines: states as bytes, in parts or at once the same bits, and forged ones refused."""

from __future__ import annotations

import numpy as np
import pytest

import onlinegp as ogp
from models import EVERY, stream
from onlinegp.files.container import ModelFileError
from onlinegp.files.records import pack_record, unpack_record
from onlinegp.kernels import RBF
from onlinegp.keyed import restored, step


@pytest.mark.parametrize("name", EVERY)
def test_in_parts_as_at_once_as_the_model(name):
    model, (X, y) = EVERY[name], stream(90)
    whole, trace = step(model, None, X, y)
    state, parts = None, []
    for part in (slice(0, 1), slice(1, 40), slice(40, 90)):
        state, said = step(model, state, X[part], y[part])
        parts.append(said.mean)
    alone = ogp.run(model.unfitted(), X, y)
    np.testing.assert_array_equal(trace.mean, alone.mean)
    np.testing.assert_array_equal(trace.std, alone.std)
    np.testing.assert_array_equal(np.concatenate(parts), trace.mean)
    assert state == whole
    again = restored(model, state)
    np.testing.assert_array_equal(again.predict(X), model.unfitted().fit(X, y).predict(X))


def test_a_state_is_little_more_than_its_numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    state, _ = step(ogp.KRLST(RBF(1.0), noise=0.01, budget=50), None, X, np.sin(X[:, 0]))
    m, d = 50, 4
    numbers = 2 * m * (m + 1) // 2 + m * d + 4 * m  # L and S; the centers; weights, k(c, c), ages, changes of Q
    assert 8 * numbers < len(state) < 8 * numbers + 500
    assert len(state) < len(restored(ogp.KRLST(RBF(1.0), noise=0.01, budget=50), state).to_bytes())


def test_several_outputs_and_wrong_rows():
    X, y = stream(30)
    Y = np.stack([y, -y], axis=1)
    model = ogp.KRLST(RBF(0.7), budget=10)
    state, trace = step(model, None, X, Y)
    assert trace.mean.shape == (30, 2)
    with pytest.raises(ValueError, match=r"y must have shape \(n, 2\)"):
        step(model, state, X, y)
    with pytest.raises(ValueError, match="features"):
        step(model, state, X[:, :1], Y)
    with pytest.raises(ValueError, match="NaN"):
        step(model, state, np.full((1, 2), np.nan), Y[:1])


def test_other_models_and_damaged_states_are_refused():
    X, y = stream(30)
    model = ogp.KRLST(RBF(0.7), budget=10)
    state, _ = step(model, None, X, y)
    for odd in (ogp.KRLST(RBF(0.7), budget=3), ogp.LinearRLS()):
        with pytest.raises(ModelFileError):
            step(odd, state, X, y)
    rng = np.random.default_rng(0)
    for _ in range(200):
        bad = bytearray(state)
        bad[rng.integers(len(bad))] ^= 1 << int(rng.integers(8))
        with pytest.raises(ModelFileError):
            step(model, bytes(bad), X, y)
    for bad in (b"", state[:15], state[:-1], state + b"x"):
        with pytest.raises(ModelFileError):
            step(model, bad, X, y)


def forged(state: bytes, **changes: object) -> bytes:
    """Return a state with entries changed, or left out if None, and its checksum right."""
    contents = unpack_record(state) | {name.replace("_", "."): value for name, value in changes.items()}
    return pack_record({name: value for name, value in contents.items() if value is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": 10**9}, "impossible sizes"),
        ({"outputs": 0}, "impossible sizes"),
        ({"single": 1}, "single must be"),
        ({"more": 1}, "must say"),
        ({"single": None}, "must say"),
        ({"_alpha": None}, "alpha"),
        ({"_size": 3}, "must be float64 of shape"),
        ({"_size": 2**61}, "exceed"),
        ({"_L": np.zeros(3)}, "L"),
    ],
)
def test_forged_states_are_refused(changes, message):
    X, y = stream(30)
    model = ogp.KRLST(RBF(0.7), budget=10)
    state, _ = step(model, None, X, y)
    assert step(model, forged(state), X, y)[0] == step(model, state, X, y)[0]
    with pytest.raises(ModelFileError, match=message):
        step(model, forged(state, **changes), X, y)


def test_a_model_that_broke_down_is_not_packed():
    with pytest.raises(ModelFileError, match="not finite"):
        pack_record({"a": np.array([np.nan])})
    with pytest.raises(ModelFileError, match="not finite"):
        pack_record({"a": np.inf})
    with pytest.raises(ModelFileError, match="not known"):
        pack_record({"a": np.array(["text"])})
