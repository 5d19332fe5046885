"""Inputs at the edges of what is allowed: every prediction is finite, or there is an error that says why not."""

import numpy as np
import pytest
from processes import report

from marks import slow
from models import AFFINE, LINEAR, LOCAL, MODELS, STEPS
from onlinegp.engine import available

ENGINES = [
    slow("python"),
    pytest.param("native", marks=pytest.mark.skipif(not available(), reason="the compiled engine was not built")),
]


def streams(n: int, seed: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-2.0, 2.0, (n, 2)), rng.standard_normal(n)
    signs = rng.choice([-1.0, 1.0], (n, 2))
    wide = signs * 10.0 ** rng.uniform(-150, 149, (n, 2))
    heights = rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-150, 149, n)
    steps = np.where(np.arange(n) < n // 2, -1e140, 1e140)
    denormal = 5e-324 * rng.integers(0, 1000, (n, 2))
    return {
        "inputs from 1e-150 to 1e149": (wide, y),
        "targets from 1e-150 to 1e149": (X, heights),
        "both": (wide, heights),
        "all at 1e149": (np.full((n, 2), 1e149), np.full(n, 1e149)),
        "alternating 1e149": (X, 1e149 * (-1.0) ** np.arange(n)),
        "denormal inputs": (denormal, y),
        "denormal targets": (X, denormal[:, 0]),
        "constant": (np.full((n, 2), 0.3), np.full(n, 2.0)),
        "zeros": (np.zeros((n, 2)), np.zeros(n)),
        "one input, many targets": (np.full((n, 2), 0.3), y),
        "every input twice": (np.repeat(X[: n // 2 + 1], 2, axis=0)[:n], y),
        "neighbors in the last bit": (0.3 + np.spacing(0.3) * rng.integers(0, 3, (n, 2)), y),
        "a huge step": (X, steps),
        "a step of the inputs": (X + 1e10 * (np.arange(n) >= n // 2)[:, None], y),
    }


def offences(model, X: np.ndarray, y: np.ndarray, block: int) -> list[str]:
    """Learn a stream in blocks; return what was predicted that is no number, unless an error said so."""
    found = []
    points = np.concatenate([X[:3], X[-3:], np.zeros((1, 2))])
    try:
        for i in range(0, len(X), block):
            trace = model.run(X[i : i + block], y[i : i + block])
            if not (np.isfinite(trace.mean).all() and np.isfinite(trace.std).all()):
                found.append(f"run of rows {i} to {i + block}")
                break
            mean, std = model.predict(points, return_std=True)
            if not (np.isfinite(mean).all() and np.isfinite(std).all()):
                found.append(f"predict after row {i + block}")
                break
    except (ValueError, ArithmeticError):
        pass  # it says so
    return found


def attack(engine: str, n: int, seeds: range, block: int) -> tuple[int, list[str]]:
    found, count = [], 0
    for seed in seeds:
        for what, (X, y) in streams(n, seed).items():
            for name, model in (MODELS | STEPS | AFFINE | LINEAR | LOCAL).items():
                fresh = model.unfitted()
                if "engine" in model.parameter_names():
                    fresh.set_params(engine=engine)
                with np.errstate(all="ignore"):  # what becomes of it is looked at, not the way there
                    found += [f"{name}, {what}, seed {seed}: {o}" for o in offences(fresh, X, y, block)]
                count += 1
    return count, found


@pytest.mark.parametrize("engine", ENGINES)
def test_extremes_predict_numbers(engine):
    count, found = attack(engine, n=60, seeds=range(1), block=20)
    assert not found, f"{len(found)} of {count} streams:\n" + "\n".join(found)


@pytest.mark.attack
@pytest.mark.parametrize("engine", ENGINES)
def test_more_extremes_predict_numbers(engine):
    count, found = attack(engine, n=200, seeds=range(1, 6 if engine == "native" else 3), block=50)
    report(f"{engine}: {count} streams of 200 rows at the edges, {len(found)} with a prediction that is no number")
    assert not found, "\n".join(found)
