"""`onlinegp forecast` with dates, text and missing numbers as features: the future is encoded as the past."""

from __future__ import annotations

import numpy as np
import pytest
from shell import inside, rows_of

import onlinegp as ogp

pd = pytest.importorskip("pandas")

MODEL = ["--kernel", "rbf(3.0)", "--noise", "0.01", "--model", "krlst", "--budget", "30", "--quiet"]
COLUMNS = ["--features", "when,state,x", "--categories", "onehot", "--dates", "calendar", "--missing", "impute"]
LEARNED, N, STEPS, LAGS = 40, 200, 4, 3  # a fifth of the rows is for learning the columns


def table(n=N + STEPS):
    """Return rows with a category that is now and then missing or new, and a number that is now and then missing."""
    rng = np.random.default_rng(0)
    when = pd.date_range("2024-01-01 00:30", periods=n, freq="5h").strftime("%Y-%m-%dT%H:%M:%S")
    state = np.array(["on", "off"], dtype=object)[rng.integers(0, 2, n)]
    x = np.round(rng.standard_normal(n), 6)
    y = np.round(1.0 * (state == "on") + x + 0.1 * rng.standard_normal(n), 6)
    state[9::23], state[N + 1] = None, "new"
    x[7::17], x[N + 2] = np.nan, np.nan
    return pd.DataFrame({"when": when, "state": state, "x": x, "y": y})


@pytest.fixture
def folder(tmp_path):
    frame = table()
    frame[:N].to_csv(tmp_path / "past.csv", index=False)
    frame[N:][["x", "when", "state"]].to_csv(tmp_path / "future.csv", index=False)
    return tmp_path


def inputs():
    frame = table()
    columns = ogp.columns.Encoding(missing="impute").fit(frame[:LEARNED][["when", "state", "x"]])
    return columns.transform(frame[["when", "state", "x"]]).to_numpy()


def learned(X, *, horizon=1):
    y = table()["y"].to_numpy()[:N]
    return ogp.Lagged(ogp.KRLST(ogp.kernels.RBF(3.0), noise=0.01, budget=30), lags=LAGS, horizon=horizon).fit(X[:N], y)


def predicted(folder, *args):
    done = inside("forecast", *args, "--steps", STEPS, "--future", "future.csv", "--quiet", cwd=folder)
    return np.array([[float(row["mean"]), float(row["std"])] for row in rows_of(done.stdout)])


def test_the_future_is_encoded_as_the_past(folder):
    X = inputs()
    ahead = learned(X).forecast(STEPS, X[N:])
    expected = np.column_stack([ahead.mean, ahead.std])
    given = predicted(folder, "past.csv", *MODEL, *COLUMNS, "--lags", LAGS, "--save", "m.ogp")
    np.testing.assert_allclose(given, expected, rtol=1e-6)
    np.testing.assert_array_equal(predicted(folder, "--start", "m.ogp"), given)


def test_new_rows_are_encoded_by_what_was_stored(folder):
    """Half of the rows, then the other half with --start, give what all rows give."""
    frame = table()
    whole = predicted(folder, "past.csv", *MODEL, *COLUMNS, "--lags", LAGS, "--tune", LEARNED)
    frame[:100].to_csv(folder / "one.csv", index=False)
    frame[100:N].to_csv(folder / "two.csv", index=False)
    options = [*MODEL, *COLUMNS, "--lags", LAGS, "--tune", LEARNED]
    inside("run", "one.csv", *options, "--save", "m.ogp", "--out", "o.csv", cwd=folder)
    np.testing.assert_allclose(predicted(folder, "two.csv", "--start", "m.ogp"), whole, rtol=1e-6)


def test_direct_models_encode_the_future_too(folder):
    X = inputs()
    given = predicted(folder, "past.csv", *MODEL, *COLUMNS, "--lags", LAGS, "--direct")
    for h in range(1, STEPS + 1):
        ahead = learned(X, horizon=h).skip(X[N : N + h])
        np.testing.assert_allclose(given[h - 1], [ahead.mean[-1], ahead.std[-1]], rtol=1e-6)


def test_a_table_of_dates_alone_is_a_future(folder):
    frame = table()
    frame[N:][["when"]].to_csv(folder / "future.csv", index=False)
    columns = ogp.columns.Encoding().fit(frame[:LEARNED][["when"]])
    X = columns.transform(frame[["when"]]).to_numpy()
    ahead = learned(X).forecast(STEPS, X[N:])
    given = predicted(folder, "past.csv", *MODEL, "--dates", "calendar", "--lags", LAGS)
    np.testing.assert_allclose(given[:, 0], ahead.mean, rtol=1e-6)


def test_what_cannot_be_encoded_is_refused_by_its_place(folder):
    args = ["forecast", "past.csv", *MODEL, *COLUMNS, "--lags", LAGS, "--steps", STEPS]
    assert "the features when, state, x" in inside(*args, cwd=folder, code=1).stderr.decode()
    (folder / "future.csv").write_text("when,state,x\n" + "2024-03-01,on,1\n" * 2 + "soon,on,1\n" * 2)
    told = inside(*args, "--future", "future.csv", cwd=folder, code=3).stderr.decode()
    assert "future.csv, line 4" in told
    assert "'soon'" in told


def test_a_constant_target_with_dates_is_refused_by_name(folder):
    frame = table()
    frame["y"] = 1.0
    frame.to_csv(folder / "past.csv", index=False)
    args = ["forecast", "past.csv", *MODEL, *COLUMNS, "--lags", LAGS, "--steps", STEPS, "--future", "future.csv"]
    assert "nothing to learn" in inside(*args, cwd=folder, code=3).stderr.decode()


def test_ahead_is_refused_where_dates_are_inputs(folder):
    told = inside("run", "past.csv", *MODEL, "--lags", LAGS, "--dates", "calendar", "--ahead", cwd=folder, code=1)
    assert "its when would be unknown" in told.stderr.decode()
