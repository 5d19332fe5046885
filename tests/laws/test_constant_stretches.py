"""Models whose standard deviation is that of recent errors, on a series that stays the same for long."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import onlinegp as ogp
from models import AFFINE, LINEAR, STEPS, stream
from onlinegp.engine import available
from onlinegp.models.baselines.persistence import PersistenceLearner
from onlinegp.models.rowwise import ErrorScale

MODELS = AFFINE | {name: STEPS[name] for name in ("KLMSCSL1", "KLMSCSAL1")} | {"Persistence": LINEAR["Persistence"]}
every = pytest.mark.parametrize("name", MODELS)


def stretched(n: int, value: float = 7.3) -> tuple[np.ndarray, np.ndarray]:
    """Values to one decimal, then n of the same, at inputs that come again."""
    X, y = stream(100)
    return np.vstack([X, np.tile(X[-1], (n, 1))]), np.append(np.round(value + y, 1), np.full(n, value))


@pytest.mark.parametrize("engine", ["python", "native"])
@every
def test_the_deviation_ends_at_the_resolution_of_the_data(name, engine):
    """A tenth of the smallest change, 0.1: not at zero, where the next change would be impossible."""
    if engine == "native" and not available():
        pytest.skip("the compiled engine was not built")
    model = copy.deepcopy(MODELS[name])
    if "engine" in model.get_params(deep=False):
        model.set_params(engine=engine)
    model.fit(*stretched(1500))
    _, std = model.predict(stretched(0)[0][:1], return_std=True)
    assert std[0] > 0.0099
    if name in ("Persistence", "L2S"):  # others may keep an error of their own
        np.testing.assert_allclose(std, 0.01, rtol=0.01)


def test_both_engines_have_the_same_floor():
    X, y = stretched(300)
    for name in MODELS:
        model = copy.deepcopy(MODELS[name])
        if name == "Persistence":  # it has no choice of engine: the readable learner beside it
            readable = PersistenceLearner(2, 1)
            slow = readable.run(X, y[:, None])[0].std[:, 0]
            fast = ogp.run(model, X, y).std
        else:
            models = [copy.deepcopy(model).set_params(engine=engine) for engine in ("python", "auto")]
            slow, fast = (ogp.run(one, X, y).std for one in models)
        np.testing.assert_allclose(fast, slow, rtol=1e-6, err_msg=name)


def test_without_any_change_the_last_bits_of_y_are_the_floor():
    model = ogp.Persistence().fit(np.zeros((9000, 1)), np.full(9000, 20.5))
    np.testing.assert_allclose(model.predict_one([0.0], return_std=True), [20.5, 20.5 * 2.0**-50], rtol=0.01)


def test_a_block_of_rows_has_the_floors_of_its_rows():
    rng = np.random.default_rng(0)
    Y = np.round(rng.normal(size=(200, 2)) * (rng.random((200, 2)) < 0.1), 2).cumsum(axis=0)
    E = 1e-9 * rng.normal(size=(200, 2))
    block, rows = ErrorScale(2), ErrorScale(2)
    std = block.update(E, Y, 0)
    for i, (e, y) in enumerate(zip(E, Y, strict=True)):
        np.testing.assert_array_equal(std[i], rows.std)
        rows.add(e, y, i)
    change = np.abs(np.diff(Y, axis=0))
    for j in range(2):
        np.testing.assert_allclose(rows.resolution[j], change[:, j][change[:, j] > 1e-12].min())
    np.testing.assert_array_equal(block.numbers, rows.numbers)


def test_rounding_is_no_change():
    """0.1 + 0.2 is not 0.3, and that is not the resolution of the data."""
    y = np.tile([0.3, 0.1 + 0.2, 0.4, 0.4], 50)
    model = ogp.Persistence().fit(np.zeros((200, 1)), y)
    assert model.dump()["learned"]["changes.resolution"][0] > 0.09
