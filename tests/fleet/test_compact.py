"""The compact form of a state: a third of the bytes, the same bits wherever it is learned, predictions as before."""

from __future__ import annotations

import numpy as np
import pytest

import onlinegp as ogp
from fleets import events
from forging import record_of, with_checksum, written
from models import EVERY, MODELS, stream
from onlinegp.engine import available
from onlinegp.files.container import ModelFileError
from onlinegp.fleet import from_bytes, step
from onlinegp.fleet.members import start_members
from onlinegp.kernels import RBF, Linear, Matern32, Matern52
from onlinegp.recipes.compact import dump_compact, factor, has_compact, load_compact
from onlinegp.state import learner_from_bytes

TRACKED = {name: model for name, model in MODELS.items() if has_compact(model.recipe())}


def by_row(fleet: ogp.Fleet, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return means and standard deviations of rows that are learned in a call each."""
    traces = [fleet.run([0], X[i : i + 1], y[i : i + 1]) for i in range(len(y))]
    return np.array([[trace.mean[0], trace.std[0]] for trace in traces]).T


def test_a_third_of_the_bytes():
    X = np.random.default_rng(0).normal(size=(200, 4))
    model = ogp.KRLST(RBF(1.0), noise=0.01, budget=50)
    large, small = (step(model, None, X, np.sin(X[:, 0]), compact=compact)[0] for compact in (False, True))
    m, d = 50, 4
    assert len(small) == 96 + 4 * m * (m + 1) // 2 + 4 + 8 * m * (d + 2)  # R in float32; centers, weights, ages
    assert len(small) < len(large) / 3


@pytest.mark.parametrize("name", ["Scaled", "Lagged-Scaled-Robust", "Calibrated", "Mixture", "SWKRLS"])
def test_models_made_of_such_models_are_smaller_too(name):
    large, small = (step(EVERY[name], None, *stream(60), compact=compact)[0] for compact in (False, True))
    assert len(small) < 0.7 * len(large)


@pytest.mark.parametrize("name", TRACKED)
@pytest.mark.parametrize("engine", ["auto", "python"])
def test_what_is_made_again_is_what_was_left_out(name, engine):
    """L, k(c, c) and dQ to rounding; S to the digits of float32, of which a factor keeps twice as many."""
    X, y = stream(150)
    model = TRACKED[name].unfitted().set_params(engine=engine)
    members, which = start_members(model, 2, 1), np.zeros(1, dtype=np.int64)
    members.learn(np.zeros(150, dtype=np.int64), X, y[:, None], 1)
    before = members.dump(0)
    members.from_bytes(which, members.to_bytes(which, True, compact=True), True)
    after = members.dump(0)
    assert after.keys() == before.keys()
    for same in ("centers", "alpha", "born", "size", "seen", "bound", "power", "evidence"):
        np.testing.assert_array_equal(after[same], before[same])
    for made in ("L", "kcc", "dQ"):
        if made in before:
            np.testing.assert_allclose(after[made], before[made], rtol=1e-6, atol=1e-9 * np.abs(before[made]).max())
    if "S" in before:
        S = before["scale"] * before["S"]
        S[np.cumsum(np.arange(1, before["size"] + 1)) - 1] += 1.0 - before["scale"]
        assert after["scale"] == 1.0
        np.testing.assert_allclose(after["S"], S, atol=3e-7 * np.abs(S).max())


@pytest.mark.parametrize("name", TRACKED)
def test_both_engines_agree_on_the_compact_form(name):
    if not available():
        pytest.skip("the compiled engine was not built")
    X, y = stream(150)
    fast, slow = (TRACKED[name].unfitted().set_params(engine=engine) for engine in ("native", "python"))
    members, which = start_members(fast, 2, 1), np.zeros(1, dtype=np.int64)
    members.learn(np.zeros(150, dtype=np.int64), X, y[:, None], 1)
    (state,) = members.to_bytes(which, True, compact=True)
    mine = learner_from_bytes(members.schemas[True], state)["learned"]
    theirs = dump_compact(slow.recipe(), members.dump(0))
    assert mine.keys() == theirs.keys()
    for entry, value in mine.items():
        np.testing.assert_allclose(value, theirs[entry], rtol=1e-5, atol=1e-6)
    members.from_bytes(which, [state], True)
    again = load_compact(slow.recipe(), 2, 1, mine)
    for entry, value in members.dump(0).items():
        np.testing.assert_allclose(value, again[entry], rtol=1e-6, atol=1e-9)


CASES = [
    (RBF(0.7), 1e-1, 1.0),
    (RBF(0.7), 1e-6, 0.99),
    (3.0 * Matern52([0.7, 0.9]), 1e-3, 0.99),
    (Matern32(0.5) + 0.1 * Linear(), 1e-9, 1.0),
]


@pytest.mark.parametrize(("kernel", "noise", "forgetting"), CASES)
def test_predictions_are_as_before(kernel, noise, forgetting):
    """A state that is rounded after every row, 300 times, predicts as one that never is.

    Means to 1e-5 of the standard deviation of the prediction, which itself is right to 1e-5.
    """
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (300, 2))
    y = np.sin(3 * X[:, 0]) + np.sqrt(noise) * rng.standard_normal(300)
    model = ogp.KRLST(kernel, noise=noise, budget=30, forgetting=forgetting)
    exact, rounded = (by_row(ogp.Fleet(model, compact=compact), X, y) for compact in (False, True))
    np.testing.assert_allclose(rounded[1], exact[1], rtol=1e-5)
    assert (np.abs(rounded[0] - exact[0]) < 1e-5 * exact[1]).all()


@pytest.mark.parametrize("name", [*TRACKED, "KLMS", "LinearRLS", "Scaled", "Lagged-Scaled-Robust", "Mixture"])
def test_memory_store_and_step_agree_to_the_last_bit(tmp_path, name):
    keys, X, y = events(120, 4)
    blocks = [slice(i, i + 30) for i in range(0, 120, 30)]
    memory, predicted = ogp.Fleet(EVERY[name], compact=True), {}
    with ogp.Fleet(EVERY[name], store=tmp_path / "fleet.db", keep=2, compact=True) as stored:
        for fleet in (memory, stored):
            traces = [fleet.run(keys[b], X[b], y[b]) for b in blocks]
            predicted[fleet] = np.concatenate([trace.mean for trace in traces])
        np.testing.assert_array_equal(predicted[memory], predicted[stored])
        for key in sorted(stored):
            state = None
            for b in blocks:
                mine = np.flatnonzero(np.array(keys[b]) == key)
                if len(mine):
                    state, _ = step(EVERY[name], state, X[b][mine], y[b][mine], compact=True)
            assert from_bytes(EVERY[name], state).to_bytes() == memory[key].to_bytes() == stored[key].to_bytes()
    with ogp.Fleet.load(tmp_path / "fleet.db", keep=3) as again:
        np.testing.assert_array_equal(*(fleet.run(keys, X, y).mean for fleet in (memory, again)))


def test_order_and_reading_do_not_round_again(tmp_path):
    """A state is rounded when rows were learned, and only then, whoever asks for it in between."""
    keys, X, y = events(200, 5)
    model = ogp.KRLST(RBF(0.7), noise=1e-6, budget=12, forgetting=0.99)
    plain = ogp.Fleet(model, compact=True)
    with ogp.Fleet(model, store=tmp_path / "fleet.db", keep=2, compact=True) as stored:
        with pytest.raises(ValueError, match="begin"):
            stored.newer(["a"], [1])
        stored.begin(2)
        for i in range(0, 200, 20):
            block = slice(i, i + 20)
            stored.newer(keys[block], range(i, i + 20))
            stored.predict(sorted(stored), X[: len(stored)]) if len(stored) else None
            stored.commit()
            one, two = (fleet.run(keys[block], X[block], y[block]).mean for fleet in (plain, stored))
            np.testing.assert_array_equal(one, two)
        assert {key: stored[key].to_bytes() for key in stored} == {key: plain[key].to_bytes() for key in plain}


def test_a_fleet_stays_compact(tmp_path):
    keys, X, y = events(100, 3)
    model = ogp.KRLST(RBF(0.7), noise=0.01, budget=12)
    fleet = ogp.Fleet(model, compact=True).learn(keys, X, y)
    again = ogp.Fleet.from_bytes(fleet.to_bytes())
    np.testing.assert_array_equal(*(one.learn(keys, X, y).predict(keys, X) for one in (fleet, again)))
    np.testing.assert_array_equal(*(one.learn(keys, X, y).predict(keys, X) for one in (fleet, again)))
    with ogp.Fleet(model, store=tmp_path / "fleet.db", compact=True) as stored:
        stored.learn(keys, X, y)
    with pytest.raises(ValueError, match="compact=True"):
        ogp.Fleet(model, store=tmp_path / "fleet.db")


@pytest.mark.parametrize("engine", ["auto", "python"])
def test_forged_compact_states_are_refused(engine):
    X, y = stream(30)
    model = ogp.KRLST(RBF(0.7), budget=10, engine=engine)
    state, _ = step(model, None, X, y, compact=True)
    schema = start_members(model, 2, 1).schemas[True]
    contents = schema.from_bytes(state)
    nothing = np.zeros(0, dtype=np.float32)
    for changes, message in [
        ({"learned.R": nothing}, "fit the state|bytes, but its entries"),
        ({"learned.size": 11}, "exceed|fit the state|bytes, but its entries"),
        ({"learned.R": np.zeros(99, dtype=np.float32)}, "fit the state|bytes, but its entries"),
        ({"learned.seen": -1}, "negative|at least 0"),
        ({"largest": -1.0}, "negative|at least zero"),
    ]:
        with pytest.raises(ModelFileError, match=message):
            step(model, written(schema, contents | changes), X, y)
    odd, bad = record_of({name: value for name, value in contents.items() if name != "learned.R"})
    assert odd.checksum != schema.checksum
    with pytest.raises(ModelFileError, match="other fields"):
        step(model, bad, X, y)
    data = state[:-8] + np.float32([np.inf, 0.0]).tobytes()
    with pytest.raises(ModelFileError, match="not finite"):
        step(model, with_checksum(data), X, y)
    with pytest.raises(ModelFileError):
        step(ogp.KLMS(RBF(0.7), engine=engine), state, X, y)


def test_the_factor_of_a_matrix_without_full_rank():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(8, 3))
    R = factor(A @ A.T)
    np.testing.assert_allclose(R @ R.T, A @ A.T, atol=1e-7)
    assert (np.triu(R, 1) == 0).all()
    np.testing.assert_allclose(factor(np.diag([4.0, 0.0, 9.0])), np.diag([2.0, 0.0, 3.0]))
