"""--lags: a number, a list, or auto."""

import csv

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.cli import main


@pytest.fixture
def day(tmp_path):
    t, rng = np.arange(300), np.random.default_rng(1)
    path = tmp_path / "day.csv"
    np.savetxt(path, rng.normal(size=12)[t % 12] + 0.2 * rng.normal(size=300), header="y", comments="")
    return path


def means(path):
    with open(path) as file:
        return np.array([float(row["mean"] or "nan") for row in csv.DictReader(file)])


def run(day, *options):
    out = day.with_name("out.csv")
    args = ["run", str(day), "--kernel", "rbf(2.0)", "--noise", "0.1", "--model", "krlst", "--out", str(out)]
    assert main([*args, *options]) == 0
    return means(out)


@pytest.mark.parametrize(("text", "lags"), [("1,2,12", [1, 2, 12]), ("auto", "auto"), ("3", 3)])
def test_the_command_predicts_as_the_library(day, text, lags):
    y = np.loadtxt(day, skiprows=1)
    model = ogp.Lagged(ogp.KRLST(ogp.kernels.RBF(2.0), noise=0.1, budget=100), lags=lags)
    expected = model.run(None, y).mean
    np.testing.assert_allclose(run(day, "--lags", text)[50:], expected[50:], rtol=1e-6, atol=1e-6)


def test_a_series_alone_has_automatic_lags(day):
    np.testing.assert_array_equal(run(day), run(day, "--lags", "auto"))
    assert not np.array_equal(run(day), run(day, "--lags", "10"))


def test_it_tells_the_seasons(day, capsys):
    run(day, "--lags", "auto")
    assert "seasons: every 12 rows" in capsys.readouterr().err


def test_a_model_is_tuned_on_the_same_inputs(day, capsys):
    out = str(day.with_name("out.csv"))
    assert main(["run", str(day), "--model", "krlst", "--lags", "1,12", "--tune", "60", "--out", out]) == 0
    assert "its values 1, 12 rows before" in capsys.readouterr().err
    assert main(["run", str(day), "--model", "krlst", "--lags", "auto", "--tune", "100", "--out", out]) == 0


@pytest.mark.parametrize("text", ["1,", "2,1", "0,1", "all", "1,1", "1.5"])
def test_wrong_lags_are_refused(day, text, capsys):
    with pytest.raises(SystemExit):
        main(["run", str(day), "--lags", text])
    assert "--lags" in capsys.readouterr().err


def test_lists_are_for_one_series(day, capsys):
    assert main(["tune", str(day), "--lags", "1,2"]) != 0
    assert "Use --lags N" in capsys.readouterr().err


def test_a_series_without_values_has_no_seasons(tmp_path, capsys):
    (tmp_path / "empty.csv").write_text("y\nnan\n")
    assert main(["run", str(tmp_path / "empty.csv"), "--out", str(tmp_path / "out.csv")]) == 0
    assert "seasons" not in capsys.readouterr().err.replace("by the seasons that are found", "")
