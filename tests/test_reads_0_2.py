"""Files that version 0.2 wrote are read by this version, with the same predictions.

python tests/test_reads_0_2.py    # writes the fixtures: until 0.2 is published, never after
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.kernels import RBF

FOLDER = Path(__file__).parent / "fixtures" / "files_0_2"


def rows(n: int = 60) -> tuple[list[dict[str, object]], np.ndarray]:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=n), rng.choice(["on", "off"], n)
    y = np.sin(a) + 2.0 * (b == "on")
    return [{"a": float(x), "state": str(s)} for x, s in zip(a, b, strict=True)], y


def models() -> dict[str, ogp.OnlineRegressor]:
    recipe = ogp.KRLST(RBF(0.7), noise=0.01, budget=15, forgetting=0.99)
    return {
        "columns": ogp.Columns(recipe),
        "scaled": ogp.Columns(ogp.Scaled(ogp.Calibrated(recipe), rows=30)),
        "local": ogp.Columns(ogp.LocalGP(RBF(0.7), noise=0.01)),
        "mixture": ogp.Columns(ogp.Mixture([ogp.LinearRLS(), ogp.QKLMS(RBF(0.7), radius=0.3)])),
        "residual": ogp.Columns(ogp.ResidualGP(RBF(0.7), noise=0.01, neighbors=10)),
        "features": ogp.Columns(ogp.RandomFeatureGP(RBF(0.7), noise=0.01, pairs=10)),
        "conformal": ogp.Columns(ogp.Conformal(ogp.HeavyTailed(recipe))),
        "lagged": ogp.Columns(ogp.Lagged(ogp.Robust(recipe), lags=2)),
        "detector": ogp.Columns(ogp.Detector(recipe)),
        "tuned": ogp.Columns(ogp.Tuned(ogp.KRLST(budget=15), rows=30, tuning_delay=0.0)),
        "auto": ogp.Columns(ogp.Auto(rows=30, earliest=15, tuning_delay=0.0, store=40, neighbors=10, budget=15)),
        "temporal": ogp.Columns(ogp.TemporalGP(noise=0.05)),
        "forecaster": ogp.Columns(ogp.Forecaster()),
    }


def write() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    table, y = rows()
    expected = {}
    for name, model in models().items():
        model.fit(table, y).save(FOLDER / f"{name}.ogp")
        expected[name] = [part.tolist() for part in model.predict(table[:10], return_std=True)]
    fleet = ogp.Fleet(ogp.KRLST(RBF(0.7), noise=0.01, budget=15))
    X = np.array([[row["a"]] for row in table])
    fleet.learn([str(row["state"]) for row in table], X, y).save(FOLDER / "fleet.ogp")
    expected["fleet"] = [part.tolist() for part in fleet.predict(["on"] * 10, X[:10], return_std=True)]
    (FOLDER / "expected.json").write_text(json.dumps(expected), "utf-8")
    with ogp.Fleet(ogp.KRLST(RBF(0.7), noise=0.01, budget=15), store=FOLDER / "fleet.db") as stored:
        stored.learn([str(row["state"]) for row in table], X, y)


EXPECTED = json.loads((FOLDER / "expected.json").read_text("utf-8")) if FOLDER.exists() else {}


@pytest.mark.parametrize("name", [name for name in EXPECTED if name != "fleet"])
def test_a_model_file_of_0_2(name):
    table, y = rows()
    model = ogp.load(FOLDER / f"{name}.ogp")
    assert model.n_samples_seen_ == 60
    np.testing.assert_allclose(model.predict(table[:10], return_std=True), EXPECTED[name], rtol=1e-9)
    model.partial_fit(table, y)


def test_a_fleet_of_0_2():
    X = np.array([[row["a"]] for row in rows()[0]])
    fleet = ogp.Fleet.load(FOLDER / "fleet.ogp")
    np.testing.assert_allclose(fleet.predict(["on"] * 10, X[:10], return_std=True), EXPECTED["fleet"], rtol=1e-9)


def test_a_store_of_0_2(tmp_path):
    path = tmp_path / "fleet.db"
    path.write_bytes((FOLDER / "fleet.db").read_bytes())
    X = np.array([[row["a"]] for row in rows()[0]])
    with ogp.Fleet.load(path) as fleet:
        np.testing.assert_allclose(fleet.predict(["on"] * 10, X[:10], return_std=True), EXPECTED["fleet"], rtol=1e-9)


if __name__ == "__main__":
    sys.exit(write())
