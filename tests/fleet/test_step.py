"""The one function for all engines: states as bytes, in parts or at once the same bits, and forged ones refused."""

from __future__ import annotations

import numpy as np
import pytest

import onlinegp as ogp
from forging import record_of, with_checksum, written
from models import EVERY, MODELS, stream
from onlinegp.engine import available
from onlinegp.files.container import ModelFileError
from onlinegp.fleet import from_bytes, step
from onlinegp.fleet.members import start_members
from onlinegp.kernels import RBF
from onlinegp.state import learner_to_bytes

ENGINES = ("native" if available() else "python", "python")


@pytest.mark.parametrize("name", EVERY)
def test_in_parts_as_at_once_as_the_model(name):
    model, (X, y) = EVERY[name], stream(90)
    whole, trace = step(model, None, X, y)
    state, parts = None, []
    for part in (slice(0, 1), slice(1, 40), slice(40, 90)):
        state, predicted = step(model, state, X[part], y[part])
        parts.append(predicted.mean)
    alone = ogp.run(model.unfitted(), X, y)
    np.testing.assert_array_equal(trace.mean, alone.mean)
    np.testing.assert_array_equal(trace.std, alone.std)
    np.testing.assert_array_equal(np.concatenate(parts), trace.mean)
    assert state == whole
    again = from_bytes(model, state)
    np.testing.assert_array_equal(again.predict(X), model.unfitted().fit(X, y).predict(X))


def test_a_state_is_little_more_than_its_numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    state, _ = step(ogp.KRLST(RBF(1.0), noise=0.01, budget=50), None, X, np.sin(X[:, 0]))
    m, d = 50, 4
    numbers = 2 * m * (m + 1) // 2 + m * d + 4 * m  # L and S; the centers; weights, k(c, c), ages, changes of Q
    assert 8 * numbers < len(state) < 8 * numbers + 500
    assert len(state) < len(from_bytes(ogp.KRLST(RBF(1.0), noise=0.01, budget=50), state).to_bytes())


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


FORGED = {
    "features": ({"features": 10**9}, "impossible sizes"),
    "outputs": ({"outputs": 0}, "impossible sizes"),
    "single": ({"single": 2}, "single must be"),
    "other width": ({"features": 3}, "features"),
    "largest": ({"largest": -1.0}, "negative|at least zero"),
    "infinite largest": ({"largest": np.inf}, "finite|at least zero"),
    "fewer": ({"learned.L": np.zeros(54)}, "fit the state|bytes, but its entries"),
    "more": ({"learned.dQ": np.zeros(11)}, "fit the state|bytes, but its entries"),
    "smaller": ({"learned.size": 3}, "fit the state|bytes, but its entries"),
    "larger": ({"learned.size": 2**61}, "exceed|fit the state"),
    "negative": ({"learned.size": -1}, "fit the state|-1 centers"),
    "seen": ({"learned.seen": -1}, "negative|at least 0"),
    "scale": ({"learned.scale": -0.5}, "must be positive"),
    "power": ({"learned.power": 0.0}, "must be positive"),
    "not a number": ({"learned.bound": np.nan}, "finite"),
}


@pytest.mark.parametrize("engine", ["auto", "python"])
@pytest.mark.parametrize("name", FORGED)
def test_forged_states_are_refused(name, engine):
    (X, y), (changes, message) = stream(30), FORGED[name]
    model = ogp.KRLST(RBF(0.7), budget=10, engine=engine)
    state, _ = step(model, None, X, y)
    schema = start_members(model, 2, 1).schemas[False]
    assert written(schema, schema.from_bytes(state)) == state
    with pytest.raises(ValueError, match=message):
        step(model, written(schema, schema.from_bytes(state) | changes), X, y)


@pytest.mark.parametrize("engine", ["auto", "python"])
def test_states_that_are_not_finite_are_neither_written_nor_read(engine):
    X, y = stream(30)
    model = ogp.KRLST(RBF(0.7), budget=10, engine=engine)
    state, _ = step(model, None, X, y)
    schema = start_members(model, 2, 1).schemas[False]
    for name in ("learned.L", "learned.S", "learned.centers"):
        contents = schema.from_bytes(state)
        contents[name].reshape(-1)[0] = np.nan
        with pytest.raises(ModelFileError, match="not finite"):
            step(model, written(schema, contents), X, y)
        with pytest.raises(ModelFileError, match="not finite"):
            schema.to_bytes(contents)
    with pytest.raises(ModelFileError, match="power holds a value that is not finite"):
        schema.to_bytes(schema.from_bytes(state) | {"learned.power": np.inf})
    members, which = start_members(model, 2, 1), np.zeros(1, dtype=np.int64)
    with np.errstate(all="ignore"):
        members.run(which, X[:1], np.array([[np.inf]]), 1)
    with pytest.raises(ModelFileError, match="not finite"):
        members.to_bytes(which, True)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("outputs", [1, 2])
def test_both_engines_write_and_read_the_same_bytes(name, outputs):
    """The record of the compiled engine is what Python writes of the same contents, and each reads the other's."""
    X, y = stream(60)
    Y, which = np.stack([y, -y], axis=1)[:, :outputs], np.zeros(1, dtype=np.int64)
    fast, slow = (start_members(MODELS[name].unfitted().set_params(engine=engine), 2, outputs) for engine in ENGINES)
    fast.learn(np.zeros(60, dtype=np.int64), X, Y, 1)
    fast.largest[0] = 2.5
    (state,) = fast.to_bytes(which, outputs == 1)
    about = {"features": 2, "outputs": outputs, "single": outputs == 1, "largest": 2.5}
    assert fast.schemas[False].text == slow.schemas[False].text
    assert fast.schemas[True].text == slow.schemas[True].text
    assert state == learner_to_bytes(fast.schemas[False], about | {"learned": fast.dump(0)})
    for one in (slow, fast):
        one.from_bytes(which, [state], outputs == 1)
        assert one.largest[0] == 2.5
        assert one.to_bytes(which, outputs == 1) == [state]


FORGED_RECORDS = [
    ({"features": 10**9}, "impossible sizes"),
    ({"outputs": 0}, "impossible sizes"),
    ({"single": 3}, "single must be"),
    ({"learned.z": np.zeros(7)}, "bytes, but its entries"),
    ({"learned.R": np.zeros(3)}, "does not fit|bytes, but its entries"),
    ({"learned.seen": -1}, "at least 0"),
    ({"features": 1}, "features"),
]


@pytest.mark.parametrize(("changes", "message"), FORGED_RECORDS)
def test_forged_records_are_refused(changes, message):
    X, y = stream(30)
    model = ogp.LinearRLS()
    state, _ = step(model, None, X, y)
    schema = start_members(model, 2, 1).schemas[False]
    contents = schema.from_bytes(state)
    assert written(schema, contents) == schema.to_bytes(contents) == state
    with pytest.raises(ValueError, match=message):
        step(model, written(schema, contents | changes), X, y)
    _, other = record_of(contents)
    with pytest.raises(ModelFileError, match=r"other fields than this model\. Learn it again"):
        step(model, other, X, y)


def test_states_of_older_versions_are_refused_by_name():
    X, y = stream(30)
    state, _ = step(ogp.KRLST(budget=10), None, X, y)
    for old in (b"ogpstat1", b"ogpstat2"):
        with pytest.raises(ModelFileError, match=f"old format {old.decode()}\. Learn it again"):
            step(ogp.KRLST(budget=10), old + bytes(100), X, y)
    newer = with_checksum(state[:6] + b"\x02\x00" + state[8:])
    with pytest.raises(ModelFileError, match="version 2, but this onlinegp reads version 1"):
        step(ogp.KRLST(budget=10), newer, X, y)


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_a_state_may_come_as_a_database_returns_it(kind):
    model, X, y = ogp.KRLST(budget=5), np.arange(12.0).reshape(6, 2), np.arange(6.0)
    state, _ = step(model, None, X[:3], y[:3])
    expected, _ = step(model, state, X[3:], y[3:])
    assert step(model, kind(state), X[3:], y[3:])[0] == expected
    assert from_bytes(model, kind(state)).to_bytes() == from_bytes(model, state).to_bytes()


def test_what_is_no_model_and_no_state_is_refused():
    with pytest.raises(TypeError, match="state must be bytes from step, or None, got a str"):
        step(ogp.KRLST(), "state", [[0.0]], [0.0])
    with pytest.raises(TypeError, match="model must be an estimator such as"):
        step(ogp.KRLST, None, [[0.0]], [0.0])
