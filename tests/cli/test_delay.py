"""`onlinegp run --delay N`: targets that come late."""

from __future__ import annotations

import numpy as np
import pytest
from shell import FIXED, inside, rows_of, write_csv

import onlinegp as ogp
from onlinegp.kernels import RBF

DELAY = 4


@pytest.fixture
def data(tmp_path):
    return write_csv(tmp_path / "data.csv", 120)


def columns(path):
    rows = rows_of(path)
    return np.array([[float(row["x0"]), float(row["x1"])] for row in rows]), np.array([float(row["y"]) for row in rows])


@pytest.mark.parametrize(
    ("options", "model"),
    [
        (FIXED, ogp.KRLST(RBF(1.0), noise=0.01, budget=20)),
        (["--model", "linearrls"], ogp.Tuned(ogp.LinearRLS())),
        ([], ogp.Auto()),
    ],
)
def test_the_command_waits_as_long_as_the_library(data, tmp_path, options, model):
    inside("run", data, *options, "--delay", DELAY, "--out", tmp_path / "out.csv")
    told = rows_of(tmp_path / "out.csv")
    trace = ogp.run(model, *columns(data), delay=DELAY)
    for name in ("mean", "std"):
        given = [float(row[name]) for row in told[DELAY:]]
        np.testing.assert_allclose(given, getattr(trace, name)[DELAY:], rtol=1e-12)


def test_the_first_rows_are_not_scored(data, tmp_path):
    done = inside("run", data, *FIXED, "--delay", DELAY, "--out", tmp_path / "out.csv")
    assert "learned 4 rows late" in done.stderr.decode()
    assert "scored 116 rows (4 not" in done.stderr.decode()


def test_intervals_of_late_targets_follow_their_errors(tmp_path):
    rng = np.random.default_rng(0)
    drift = np.cumsum(rng.normal(0.0, 0.3, 600))
    (tmp_path / "d.csv").write_text("x,y\n" + "".join(f"{rng.normal():.4f},{y:.4f}\n" for y in drift))
    for delay in (0, 48):
        options = ["--model", "linearrls", "--delay", delay, "--out", tmp_path / "o.csv"]
        told = inside("run", tmp_path / "d.csv", *options).stderr.decode()
        assert "inside their 95% intervals" not in told  # the hint where there are too few


def test_each_key_waits_for_rows_of_its_own(tmp_path):
    path, out = tmp_path / "data.csv", tmp_path / "out.csv"
    rng = np.random.default_rng(0)
    X, y, keys = rng.normal(size=60), rng.normal(size=60), rng.integers(0, 3, 60)
    path.write_text(
        "key,x,y\n" + "".join(f"k{k},{a!r},{b!r}\n" for k, a, b in zip(keys, X.tolist(), y.tolist(), strict=True))
    )
    inside("run", path, "--by", "key", *FIXED, "--delay", DELAY, "--out", out)
    told = np.array([float(row["mean"]) for row in rows_of(out)])
    for key in range(3):
        own = keys == key
        trace = ogp.run(ogp.KRLST(RBF(1.0), noise=0.01, budget=20), X[own, None], y[own], delay=DELAY)
        np.testing.assert_allclose(told[own][DELAY:], trace.mean[DELAY:], rtol=1e-12)


def test_a_run_with_a_delay_can_be_resumed(data, tmp_path):
    whole, parts, half = tmp_path / "whole.csv", tmp_path / "parts.csv", tmp_path / "half.csv"
    lines = data.read_text().splitlines(keepends=True)
    inside("run", data, *FIXED, "--delay", DELAY, "--out", whole)
    half.write_text("".join(lines[:51]))
    safe = ["--delay", DELAY, "--out", parts, "--checkpoint", tmp_path / "safe"]
    inside("run", half, *FIXED, *safe)
    half.write_text("".join([lines[0], *lines[51:]]))
    inside("run", half, *FIXED, *safe, "--resume", "next")
    assert parts.read_text() == whole.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--delay", "-1"], "--delay must be from 0 to"),
        (["--delay", "3", "--lags", "2"], "Use --horizon 3"),
        (["--horizon", "3"], "use --delay N"),
    ],
)
def test_what_cannot_be_is_refused(data, options, message):
    done = inside("run", data, *options, code=1)
    assert message in done.stderr.decode()
