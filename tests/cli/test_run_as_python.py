"""`onlinegp run` equals three lines of Python: read, model, run."""

from __future__ import annotations

import numpy as np
import pytest
from shell import inside, onlinegp, rows_of

import onlinegp as ogp

ROWS = 120


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(1)
    X = rng.uniform(0.0, 100.0, (ROWS, 2))
    y = 70.0 + 5.0 * np.sin(X[:, 0] / 10.0) + 0.1 * X[:, 1] + 0.3 * rng.standard_normal(ROWS)
    path = tmp_path_factory.mktemp("python") / "data.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,y", comments="", fmt="%.17g")
    return path


CASES = {
    "auto": ([], ogp.Auto()),
    "auto, other rows": (["--tune", "40", "--budget", "50"], ogp.Auto(rows=40, budget=50)),
    "krlst": (["--model", "krlst"], ogp.Tuned(ogp.KRLST(budget=300), fixed=())),
    "noise": (["--model", "linearrls", "--noise", "0.01"], ogp.Tuned(ogp.LinearRLS(noise=0.01), fixed=("noise",))),
    "lags": (
        ["--model", "linearrls", "--lags", "3", "--tune", "30"],
        ogp.Lagged(ogp.Tuned(ogp.LinearRLS(), rows=30, fixed=()), lags=3),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_command_is_three_lines_of_python(data, case):
    options, model = CASES[case]
    told = inside("run", data, *options)
    table = np.loadtxt(data, delimiter=",", skiprows=1)
    trace = ogp.run(model.unfitted(), None if "--lags" in options else table[:, :-1], table[:, -1])
    assert_same(rows_of(told.stdout), trace)
    assert f"scored {ROWS - 1} rows" in told.stderr.decode()
    assert "tuned on" in told.stderr.decode()


def test_a_pipe_is_answered_by_the_same(data):
    """Each row has a prediction, from the second on a scored one, however the rows come."""
    told = onlinegp("run", "-", "--tune", "40", stdin=data.read_bytes())
    table = np.loadtxt(data, delimiter=",", skiprows=1)
    assert_same(rows_of(told.stdout), ogp.run(ogp.Auto(rows=40), table[:, :-1], table[:, -1]))


def assert_same(rows, trace):
    """To the last bit; the log density of a row that is joined with other kinds of predictions differs in it."""
    lower, upper = trace.interval(0.95)
    for name, expected in (("mean", trace.mean), ("std", trace.std), ("lower", lower), ("upper", upper)):
        np.testing.assert_array_equal([float(row[name]) for row in rows], expected, err_msg=name)
    np.testing.assert_allclose([float(row["log_density"]) for row in rows], trace.log_density, rtol=1e-14)
