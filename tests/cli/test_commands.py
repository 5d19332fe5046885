"""The other commands."""

from __future__ import annotations

import json

import numpy as np
import pytest
from shell import FIXED, inside, onlinegp, rows_of, write_csv

import onlinegp as ogp
from onlinegp.cli.parsing import parse_every, parse_kernel, parse_model, parse_models
from onlinegp.kernels import RBF, Linear, Matern52
from onlinegp.streams.running.algorithms import algorithms
from onlinegp.streams.running.requested_model import shown


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, and the model that a run over it saved."""
    folder = tmp_path_factory.mktemp("commands")
    write_csv(folder / "data.csv", 300)
    args = ["run", "data.csv", "--tune", "60", "--model", "krlst", "--budget", "20", "--save", "model.ogp"]
    inside(*args, "--out", "out.csv", cwd=folder)
    return folder


def test_models_lists_every_algorithm():
    told = onlinegp("models").stdout.decode()
    unwrapped = " ".join(told.split())
    for name, one in algorithms().items():
        assert f" {name} {one.estimator.facts.cost} {one.summary} " in unwrapped
        assert one.summary
        assert one.estimator.facts.cost.startswith("O(")
        assert one.estimator.facts.citation in " ".join(one.estimator.__doc__.split())
        for parameter in one.parameters:
            assert f"{parameter} :" in one.estimator.__doc__
    assert "forgetting" in inside("models", "KRLS-T").stdout.decode()
    one = inside("models", "kap").stdout.decode()
    assert "Variance of y: the mean squared error" in one
    assert ":class:" not in one
    titles = [line for line in told.splitlines() if line and not line.startswith(" ")]
    assert titles[:2] == ["The model to begin with", "Gaussian processes with a tracked posterior"]
    facts = {one["name"]: one for one in json.loads(inside("models", "--json").stdout)}
    assert facts.keys() == algorithms().keys()
    assert facts["krlst"]["citation"]
    assert facts["lms"]["family"] == "Linear filters"
    assert b"there is no model" in inside("models", "none", code=1).stderr


def test_a_saved_model_opens_in_python_and_has_the_units_of_the_data(tmp_path):
    """What the command does, three lines of Python do."""
    t = np.arange(400)
    series = 56.0 + 4.0 * np.sin(0.2 * t) + 0.05 * np.random.default_rng(0).standard_normal(400)
    (tmp_path / "series.txt").write_text("".join(f"{value!r}\n" for value in series.tolist()))
    args = [tmp_path / "series.txt", "--lags", "6", "--model", "krlst", "--budget", "40", "--tune", "100", "--robust"]
    inside("run", *args, "--save", tmp_path / "m.ogp", "--out", tmp_path / "out.csv", "--quiet")
    model = ogp.load(tmp_path / "m.ogp")
    assert isinstance(model, ogp.Lagged)
    assert abs(model.predict_one(None) - (56.0 + 4.0 * np.sin(0.2 * 400))) < 0.5
    again = model.unfitted()
    again.partial_fit(None, series[:100])
    trace = again.run(None, series[100:])
    predicted = np.array([float(row["mean"]) for row in rows_of(tmp_path / "out.csv")[100:]])
    np.testing.assert_allclose(trace.mean, predicted, rtol=1e-6)


def test_inspect(folder):
    told = onlinegp("inspect", folder / "model.ogp").stdout.decode()
    assert "model: KRLST" in told
    assert "features: x0, x1" in told
    facts = json.loads(inside("inspect", folder / "model.ogp", "--json").stdout)
    assert facts["learned"] == 300
    assert facts["inside"] == ["Tuned", "Scaled", "Conformal", "Robust", "HeavyTailed"]
    assert "y_center" in facts["parameters"]
    assert "noise" in facts["parameters"]
    (folder / "bad.ogp").write_bytes((folder / "model.ogp").read_bytes()[:-3])
    assert b"bad.ogp: the arrays do not fit the file" in inside("inspect", folder / "bad.ogp", code=1).stderr


def test_inspect_shows_tuned_parameters_inside_lags(folder):
    args = ["run", "data.csv", "--lags", "2", "--tune", "60", "--model", "krlst", "--save", "lagged.ogp"]
    told = inside(*args, "--out", "out.csv", cwd=folder).stderr.decode()
    facts = json.loads(inside("inspect", folder / "lagged.ogp", "--json").stdout)
    assert facts["inside"] == ["Lagged", "Tuned", "Scaled", "Conformal", "Robust", "HeavyTailed"]
    for name in ("kernel", "noise", "forgetting"):
        assert f"{name} = {facts['parameters'][name]}\n" in told


def test_predict_does_not_learn(folder):
    text = "place,x1,x0\n" + "Bern,0.5,0.2\n" * 3
    predicted = rows_of(onlinegp("predict", folder / "model.ogp", "-", stdin=text).stdout)
    assert list(predicted[0])[:2] == ["place", "y"]  # the name of the target, though it is not in the table
    assert len({row["mean"] for row in predicted}) == 1
    assert abs(float(predicted[0]["mean"]) - (np.sin(0.2) + 0.21)) < 0.3
    assert b"needs the column 'x1'" in onlinegp("predict", folder / "model.ogp", "-", stdin="x0\n1\n", code=1).stderr


def test_predict_refuses_a_file_for_rejects_where_none_are_left_out(folder):
    args = ["predict", folder / "model.ogp", folder / "data.csv", "--rejects", folder / "bad.csv"]
    assert b"Add --on-bad-row skip, or leave it out" in inside(*args, code=1).stderr
    assert not (folder / "bad.csv").exists()
    inside(*args, "--on-bad-row", "skip", "--quiet")


def test_a_saved_model_opens_in_the_library_and_goes_on(folder):
    model = ogp.load(folder / "model.ogp")
    assert model.n_samples_seen_ == 300
    done = inside("run", folder / "data.csv", "--start", folder / "model.ogp", "--save", folder / "more.ogp")
    assert len(rows_of(done.stdout)) == 300
    assert ogp.load(folder / "more.ogp").n_samples_seen_ == 600


@pytest.mark.parametrize("options", [["--kernel", "rbf(2)"], ["--target", "y", "--lags", "3"], ["--set", "jitter=1"]])
def test_what_a_model_that_goes_on_would_ignore_is_refused(folder, options):
    start = ["--start", folder / "model.ogp"]
    for command in (["run", folder / "data.csv"], ["forecast", "--steps", "3"]):
        told = inside(*command, *start, *options, code=1).stderr.decode()
        assert f"{', '.join(options[::2])} cannot be used with --start" in told
        assert "out, or --start." in told


def test_predict_with_a_model_of_the_library(folder):
    rng = np.random.default_rng(0)
    model = ogp.KLMS(RBF(1.0)).fit(rng.standard_normal((20, 2)), rng.standard_normal(20))
    model.save(folder / "plain.ogp")
    rows = rows_of(folder / "data.csv")
    x = [[float(rows[5]["x0"]), float(rows[5]["x1"])]]  # the first columns of numbers
    predicted = rows_of(inside("predict", folder / "plain.ogp", folder / "data.csv").stdout)
    assert float(predicted[5]["mean"]) == float(model.predict(x)[0])


def test_tune(folder):
    told = onlinegp("tune", folder / "data.csv", "--tune", "80", "--out", folder / "tuned.ogp").stdout.decode()
    assert "kernel = " in told
    assert "relevance beyond linear effects: x0" in told
    done = inside("run", folder / "data.csv", "--start", folder / "tuned.ogp", "--quiet")
    assert rows_of(done.stdout)[0]["mean"] != ""  # nothing to wait for: it was tuned before


def test_tune_does_not_call_a_linear_input_irrelevant(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (200, 2))
    y = 3.0 * X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.05 * rng.standard_normal(200)
    np.savetxt(tmp_path / "a.csv", np.c_[X, y], delimiter=",", header="u,v,y", comments="")
    told = inside("tune", tmp_path / "a.csv", "--model", "krlst").stdout.decode()
    assert "linear(" in told
    assert "relevance beyond linear effects: u 0.0" in told


def test_compare(folder):
    args = [
        "--models",
        "klms,qklms,krlst(budget=20),swkrls(budget=20)",
        "--tune",
        "60",
        "--json",
        folder / "table.json",
    ]
    done = onlinegp("compare", "-", *args, "--out", folder / "c.png", stdin=(folder / "data.csv").read_bytes())
    table = json.loads((folder / "table.json").read_text())
    assert {row["model"] for row in table} == {"klms", "qklms", "krlst(budget=20)", "swkrls(budget=20)"}
    densities = [row["log_density"] for row in table]
    assert densities == sorted(densities, reverse=True)
    assert f"Recommended: {table[0]['model']}" in done.stdout.decode()
    assert (folder / "c.png").read_bytes().startswith(b"\x89PNG")
    assert b"there is no model" in inside("compare", folder / "data.csv", "--models", "krlst,none", code=1).stderr


def test_kernels_and_models_are_read_from_text():
    assert parse_kernel("2.0 * rbf(0.7) + linear()") == 2.0 * RBF(0.7) + Linear()
    kernel = 1.5 * Matern52([0.5, 2.0])
    assert parse_kernel(shown(kernel)).theta.tolist() == pytest.approx(kernel.theta.tolist())
    choice = parse_model("KRLS-T(budget=7, forgetting=uncertaintyinjection(0.99))", {"noise": 0.5})
    model = choice.build({"budget": 100, "kernel": RBF(3.0)})
    assert (model.budget, model.noise, model.kernel) == (7, 0.5, RBF(3.0))
    assert parse_models("klms, krlst(budget=7, noise=0.1),norma") == ["klms", "krlst(budget=7, noise=0.1)", "norma"]
    assert parse_every("30 s") == (None, 30.0)
    assert parse_every("500 rows") == (500, None)
    for text in ("rbf(0.7).__class__", "open('x')", "rbf(1) - rbf(2)", "rbf(", "rbf(nonsense=1)", "1.0"):
        with pytest.raises(ValueError, match=r"read|not a kernel|rbf"):
            parse_kernel(text)


def test_python_fallback_writes_and_reads_the_same_bytes(folder, monkeypatch):
    """Without pyarrow the output is the same, only slower."""
    from onlinegp.streams import number_text as numbers
    from onlinegp.streams.reading import csv_source
    from onlinegp.streams.writing import sinks

    with_arrow = inside("run", folder / "data.csv", *FIXED).stdout
    for module in (numbers, csv_source, sinks):
        monkeypatch.setattr(module, "arrow", lambda: None)
    assert inside("run", folder / "data.csv", *FIXED).stdout == with_arrow
    assert b"needs pyarrow" in inside("run", folder / "data.csv", *FIXED, "--out", "x.parquet", code=1).stderr


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 1.0, 1e-4, 1.5e-5, 1e-6, 9.99e-7, 1e9, 1e10, 123456789.125, 0.1, 5e-324, -1e300]
)
def test_numbers_as_text(value):
    from onlinegp.streams.number_text import arrow, text, texts

    assert float(text(value)) == value
    if arrow() is not None:
        assert texts(np.array([value])).to_pylist() == [text(value)]


def test_the_help_of_run_fits_one_screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    short = inside("run", "--help").stdout.decode()
    assert len(short.splitlines()) <= 40
    assert sum(line.startswith("  --") for line in short.splitlines()) == 11  # ten, and --help-all
    everything = inside("run", "--help-all").stdout.decode()
    assert "--resume" in everything
    assert "exit codes" in everything
    assert "--keys" not in everything


def test_the_list_of_models_fits_the_terminal(monkeypatch, capsys):
    from onlinegp.cli import main

    monkeypatch.setenv("COLUMNS", "80")
    assert main(["models"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_abbreviated_options_are_refused():
    done = inside("run", "data.csv", "--targ", "y", code=2)
    assert b"unrecognized arguments: --targ y. Write the names of options in full" in done.stderr
    assert b"Did you mean --target?" in done.stderr
    assert b"Did you mean --lags or --report?" in onlinegp("run", "d", "--lgas=3", "--repot", code=2).stderr
    assert b"Did you mean" not in onlinegp("run", "d.csv", "--zzz", code=2).stderr


def test_renamed_options_still_work(tmp_path):
    write_csv(tmp_path / "data.csv", 60)
    args = ["run", "data.csv", *FIXED, "--features", "x0", "--target", "y"]
    old = inside(*args, "--keys", "place", "--out", "old.csv", cwd=tmp_path)
    assert b"--keys is now called --copy; the old name still works." in old.stderr
    new = inside(*args, "--copy", "place", "--out", "new.csv", cwd=tmp_path)
    assert b"now called" not in new.stderr
    assert (tmp_path / "old.csv").read_bytes() == (tmp_path / "new.csv").read_bytes()
    assert (tmp_path / "new.csv").read_text().startswith("place,y,mean")


def test_every_source_as_bibtex(capsys):
    from onlinegp.cli import main
    from onlinegp.streams.running.algorithms import algorithms

    assert main(["models", "krlst", "--bibtex"]) == 0
    entry = capsys.readouterr().out
    assert entry.startswith("@article{krlst2012,\n  author = {Van Vaerenbergh and ")
    assert main(["models", "--bibtex"]) == 0
    entries = capsys.readouterr().out.split("\n\n")
    assert len(entries) == len(algorithms())
    for entry in entries:
        assert all(f"  {field} = {{" in entry for field in ("author", "title", "year")), entry
        assert entry.count("{") == entry.count("}")
