"""The one function for all engines: states as bytes, in parts or at once the same bits, and forged ones refused."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

import onlinegp as ogp
from models import EVERY, MODELS, stream
from onlinegp.engine import available
from onlinegp.engine.records import packed, unpacked
from onlinegp.files.container import ModelFileError
from onlinegp.files.records import pack_record, unpack_record
from onlinegp.kernels import RBF
from onlinegp.keyed import restored, step
from onlinegp.recipes.records import pack_state, unpack_state

ENGINES = ("native" if available() else "python", "python")


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


def forged(state: bytes, change) -> bytes:
    """Return a state of parts with something changed, and its checksum right."""
    about, contents = unpack_state(state)
    about |= {"more": b""}
    change(about, contents)
    more = about.pop("more")
    data = pack_state(**about, contents=contents) + more
    return data[:8] + zlib.crc32(data[12:]).to_bytes(4, "little") + data[12:]


FORGED = {
    "features": (lambda about, learned: about.update(features=10**9), "impossible sizes"),
    "outputs": (lambda about, learned: about.update(outputs=0), "impossible sizes"),
    "single": (lambda about, learned: about.update(single=2), "impossible sizes"),
    "more": (lambda about, learned: about.update(more=bytes(8)), "do not fit"),
    "fewer": (lambda about, learned: learned.update(L=learned["L"][:-1]), "fit the state of"),
    "no alpha": (lambda about, learned: learned.pop("alpha"), "alpha|other arrays"),
    "smaller": (lambda about, learned: learned.update(size=3), "fit the state of 3"),
    "larger": (lambda about, learned: learned.update(size=2**61), "exceed|fit the state of"),
    "negative": (lambda about, learned: learned.update(size=-1), "impossible sizes|-1 centers"),
    "seen": (lambda about, learned: learned.update(seen=-1), "below zero|at least 0"),
    "scale": (lambda about, learned: learned.update(scale=-0.5), "below zero|must be positive"),
    "rowsum": (lambda about, learned: learned.update(rowsum=np.zeros(10)), "rowsum|other arrays"),
}


@pytest.mark.parametrize("engine", ["auto", "python"])
@pytest.mark.parametrize("name", FORGED)
def test_forged_states_are_refused(name, engine):
    (X, y), (change, message) = stream(30), FORGED[name]
    model = ogp.KRLST(RBF(0.7), budget=10, engine=engine)
    state, _ = step(model, None, X, y)
    assert forged(state, lambda about, learned: None) == state
    with pytest.raises(ModelFileError, match=message):
        step(model, forged(state, change), X, y)


@pytest.mark.parametrize("engine", ["auto", "python"])
def test_states_that_are_not_finite_are_neither_written_nor_read(engine):
    X, y = stream(30)
    model = ogp.KRLST(RBF(0.7), budget=10, engine=engine)
    state, _ = step(model, None, X, y)
    about, learned = unpack_state(state)
    for name in ("L", "S", "centers"):
        at = state.index(learned[name].tobytes())
        data = state[:at] + np.float64(np.nan).tobytes() + state[at + 8 :]
        with pytest.raises(ModelFileError, match="not finite"):
            step(model, data[:8] + zlib.crc32(data[12:]).to_bytes(4, "little") + data[12:], X, y)
    with pytest.raises(ModelFileError, match="not finite"):
        pack_state(**about, contents=learned | {"power": np.inf})
    members, which = model.start_many(2, 1), np.zeros(1, dtype=np.int64)
    with np.errstate(all="ignore"):
        members.run(which, X[:1], np.array([[np.inf]]), 1)
    with pytest.raises(ModelFileError, match="not finite"):
        members.pack(which, True)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("outputs", [1, 2])
def test_both_engines_write_and_read_the_same_bytes(name, outputs):
    """What the compiled engine packs is what Python packs of the same contents, and each reads the other's."""
    X, y = stream(60)
    Y, which = np.stack([y, -y], axis=1)[:, :outputs], np.zeros(1, dtype=np.int64)
    fast, slow = (MODELS[name].unfitted().set_params(engine=engine).start_many(2, outputs) for engine in ENGINES)
    fast.learn(np.zeros(60, dtype=np.int64), X, Y, 1)
    (state,) = fast.pack(which, outputs == 1)
    assert state == packed(2, outputs, outputs == 1, fast.dump(0))
    assert unpacked(state)["learned"].keys() == fast.dump(0).keys()
    slow.unpack(which, [state], outputs == 1)
    assert slow.pack(which, outputs == 1) == [state]
    fast.unpack(which, [state], outputs == 1)
    assert fast.pack(which, outputs == 1) == [state]


FORGED_RECORDS = [
    ({"features": 10**9}, "impossible sizes"),
    ({"outputs": 0}, "impossible sizes"),
    ({"single": 1}, "single must be"),
    ({"more": 1}, "must say"),
    ({"single": None}, "must say"),
    ({".z": None}, "z"),
    ({".R": np.zeros(3)}, "R"),
    ({"features": 1}, "features"),
]


@pytest.mark.parametrize(("changes", "message"), FORGED_RECORDS)
def test_forged_records_are_refused(changes, message):
    X, y = stream(30)
    model = ogp.LinearRLS()
    state, _ = step(model, None, X, y)
    contents = unpack_record(state)
    assert pack_record(contents) == state
    bad = {name: value for name, value in (contents | changes).items() if value is not None}
    with pytest.raises(ValueError, match=message):
        step(model, pack_record(bad), X, y)


def test_a_model_that_broke_down_is_not_packed():
    with pytest.raises(ModelFileError, match="not finite"):
        pack_record({"a": np.array([np.nan])})
    with pytest.raises(ModelFileError, match="not finite"):
        pack_record({"a": np.inf})
    with pytest.raises(ModelFileError, match="not known"):
        pack_record({"a": np.array(["text"])})


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_a_state_may_come_as_a_database_returns_it(kind):
    model, X, y = ogp.KRLST(budget=5), np.arange(12.0).reshape(6, 2), np.arange(6.0)
    state, _ = step(model, None, X[:3], y[:3])
    expected, _ = step(model, state, X[3:], y[3:])
    assert step(model, kind(state), X[3:], y[3:])[0] == expected
    assert restored(model, kind(state)).to_bytes() == restored(model, state).to_bytes()


def test_what_is_no_model_and_no_state_is_refused():
    with pytest.raises(TypeError, match="state must be bytes that step returned, or None, got a str"):
        step(ogp.KRLST(), "state", [[0.0]], [0.0])
    with pytest.raises(TypeError, match="model must be an estimator such as"):
        step(ogp.KRLST, None, [[0.0]], [0.0])
