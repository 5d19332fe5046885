"""Forged states of keys, with their checksums right: refused, or a model that predicts or breaks down by name."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import onlinegp as ogp
from forging import forged_file, with_checksum
from models import EVERY, MODELS, stream
from onlinegp.files.container import ModelFileError
from onlinegp.fleet import from_bytes, step

ODD = [0, 1, -1, 2, 3, 255, 2**31, 2**32 + 1, 2**53, 2**61, 2**62, 2**63 - 1, -(2**63)]


def mutated(state: bytes, rng: np.random.Generator) -> bytes:
    """Return a state with bits, words, numbers or its length changed, and the checksum right."""
    data = bytearray(state)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(12, 96 if rng.random() < 0.6 else len(data)))
        kind = rng.integers(4)
        if kind == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            place = at // 8 * 8
            data[place : place + 8] = np.int64(ODD[rng.integers(len(ODD))]).tobytes()
        elif kind == 2:
            place = at // 8 * 8
            data[place : place + 8] = np.float64(rng.choice([0.0, -1.0, 1e308, -1e308, 1e-320, np.nan])).tobytes()
        else:
            data = data[: max(96, at)] if rng.random() < 0.5 else data + bytes(int(rng.integers(1, 50)))
    return with_checksum(bytes(data))


def attacked(count: int, seed: int) -> dict[str, int]:
    """Use forged states of models of every kind, and return what came of them."""
    rng, (X, y) = np.random.default_rng(seed), stream(40)
    fates = {"refused": 0, "predicts": 0, "breaks down": 0}
    originals = []
    for model in MODELS.values():
        for engine in ("auto", "python"):
            for compact in (False, True):
                own = model.unfitted().set_params(engine=engine)
                originals.append((own, step(own, None, X[:25], y[:25], compact=compact)[0]))
    for _ in range(count):
        model, state = originals[rng.integers(len(originals))]
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _, trace = step(model, mutated(state, rng), X[25:28], y[25:28])
            assert np.isfinite(trace.mean).all()
            fates["predicts"] += 1
        except ogp.BreakdownError:
            fates["breaks down"] += 1
        except ModelFileError:
            fates["refused"] += 1
        except ValueError as error:  # it says how many columns it wants
            assert "features" in str(error) or "shape" in str(error)  # noqa: PT017
            fates["refused"] += 1
    return fates


def test_forged_states():
    fates = attacked(400, 0)
    assert fates["refused"] > 100
    assert fates["predicts"] > 50


@pytest.mark.attack
@pytest.mark.parametrize("seed", range(1, 5))
def test_many_forged_states(seed):
    assert sum(attacked(5000, seed).values()) == 5000


def test_a_forged_state_is_no_model_either():
    X, y = stream(30)
    model = ogp.KRLST(budget=10)
    state, _ = step(model, None, X, y)
    data = bytearray(state)
    data[16:24] = np.int64(10**9).tobytes()  # features
    with pytest.raises(ModelFileError, match="impossible sizes"):
        from_bytes(model, with_checksum(bytes(data)))


def learned(**values):
    return lambda header, contents: contents.update(values)


def length_scale(header, contents):
    header["model"]["params"]["kernel"]["kernel"][0]["length_scale"] = [1.0]


def last(name, value):
    def change(header, contents):
        contents[name].reshape(-1)[-1] = value

    return change


FORGED = [
    *((name, learned(features=0)) for name in ("RFFKLMS", "RandomFeatureGP", "RFFKLMS-python")),
    *((name, learned(features=n)) for name in ("RFFKLMS-python", "RandomFeatureGP-python") for n in (1, 3)),
    *((name, length_scale) for name in ("RFFKLMS", "RandomFeatureGP")),
    *(("PHYPASS", last("learned.chosen.places", value)) for value in (2**62, -2, 10_000)),
]


@pytest.mark.parametrize("number", range(len(FORGED)))
@pytest.mark.parametrize("engine", ["auto", "python"])
def test_a_file_that_could_not_be_used_is_refused(number, engine):
    """It would open, and raise an error without a name when it is used."""
    name, change = FORGED[number]
    good = EVERY[name].unfitted().set_params(engine=engine).fit(*stream(40)).to_bytes()
    with pytest.raises(ModelFileError, match=r"places|at least one column|length_scale"):
        ogp.from_bytes(forged_file(good, change))


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        *(("Forecaster-Lagged", "steps", value) for value in (2**31, 2**62, 2**64, 10**300)),
        *(("PHYPASS", parameter, value) for parameter in ("window", "selected") for value in (10**6, 2**53, 2**63)),
        *(("RandomFeatureGP", "engine", value) for value in ("x", None, 1.0)),
    ],
)
def test_a_file_without_rows_that_could_not_learn_is_refused(name, parameter, value):
    bad = forged_file(EVERY[name].to_bytes(), lambda header, _: header["model"]["params"].update({parameter: value}))
    with pytest.raises(ModelFileError, match=f"{parameter}.* must be"):
        ogp.from_bytes(bad)
