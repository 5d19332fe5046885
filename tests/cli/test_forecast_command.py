"""`onlinegp forecast`, `run --ahead` and `predict` on series: what comes next, from the past that is known."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from shell import inside, onlinegp, rows_of, started

import onlinegp as ogp
from onlinegp.models.combined import IteratedForecaster

MODEL = ["--kernel", "rbf(1.5)", "--noise", "0.01", "--model", "krlst", "--budget", "30", "--quiet"]
SINE = np.sin(np.arange(300) / 3.0) + 0.1 * np.random.default_rng(0).standard_normal(300)


@pytest.fixture
def folder(tmp_path):
    write_series(tmp_path / "series.txt", SINE)
    return tmp_path


def write_series(path, values):
    path.write_text("".join(f"{value!r}\n" for value in np.asarray(values).tolist()))


def numbers(rows):
    return np.array([[float(row[name]) for name in ("step", "mean", "std", "lower", "upper")] for row in rows])


def test_the_command_says_what_python_says(folder):
    done = inside("forecast", "series.txt", *MODEL, "--lags", 4, "--steps", 7, "--level", 0.8, "--seed", 3, cwd=folder)
    table = numbers(rows_of(done.stdout))
    model = IteratedForecaster(ogp.KRLST(ogp.kernels.RBF(1.5), noise=0.01, budget=30), lags=4, steps=7).fit(None, SINE)
    ahead = model.forecast(7, seed=3)
    expected = np.column_stack([np.arange(1, 8), ahead.mean, ahead.std, *ahead.interval(0.8)])
    np.testing.assert_allclose(table, expected, rtol=1e-6)


def test_formats_pictures_and_a_saved_model(folder):
    options = [*MODEL, "--lags", 4, "--steps", 5]
    done = inside("forecast", "series.txt", *options, "--plot", "p.png", "--save", "m.ogp", cwd=folder)
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")
    inside("forecast", "series.txt", *options, "--out", "next.csv", cwd=folder)
    assert (folder / "next.csv").read_bytes() == done.stdout
    inside("forecast", "--start", "m.ogp", "--steps", 5, "--out", "next.jsonl", "--quiet", cwd=folder)
    lines = [json.loads(line) for line in (folder / "next.jsonl").read_text().splitlines()]
    np.testing.assert_array_equal([line["mean"] for line in lines], numbers(rows_of(done.stdout))[:, 1])


def test_new_rows_follow_the_past_of_a_saved_model(folder):
    """Half of the series, then the other half: the same as the whole."""
    write_series(folder / "one.txt", SINE[:150])
    write_series(folder / "two.txt", SINE[150:])
    inside("forecast", "one.txt", *MODEL, "--lags", 4, "--steps", 5, "--save", "m.ogp", "--out", "o.csv", cwd=folder)
    halves = inside("forecast", "two.txt", "--start", "m.ogp", "--steps", 5, "--quiet", cwd=folder)
    whole = inside("forecast", "series.txt", *MODEL, "--lags", 4, "--steps", 5, cwd=folder)
    np.testing.assert_allclose(numbers(rows_of(halves.stdout)), numbers(rows_of(whole.stdout)), rtol=1e-6)


def test_a_model_whose_forecasts_were_never_checked_says_so(folder):
    inside("run", "series.txt", *MODEL, "--lags", 4, "--save", "m.ogp", "--out", "o.csv", cwd=folder)
    for source in ([], ["series.txt"]):
        told = inside("forecast", *source, "--start", "m.ogp", "--steps", 5, cwd=folder).stderr.decode()
        assert "never compared with observed values" in told
        assert "onlinegp forecast --save" in told


def test_direct_models_predict_from_what_came(folder):
    done = inside(
        "forecast", "series.txt", *MODEL, "--lags", 4, "--steps", 3, "--direct", "--plot", "p.svg", cwd=folder
    )
    table = numbers(rows_of(done.stdout))
    for h in (1, 2, 3):
        model = ogp.Lagged(ogp.KRLST(ogp.kernels.RBF(1.5), noise=0.01, budget=30), lags=4, horizon=h).fit(None, SINE)
        predicted = model.skip(np.empty((h, 0)))
        assert table[h - 1, 1] == pytest.approx(predicted.mean[-1], rel=1e-9)
        assert table[h - 1, 2] == pytest.approx(predicted.std[-1], rel=1e-9)


def test_features_need_their_future(folder):
    x = np.cos(np.arange(310))
    rows = [f"{x[i].item()!r},{SINE[i].item() + x[i].item()!r}\n" for i in range(300)]
    (folder / "data.csv").write_text("x,y\n" + "".join(rows))
    args = ["forecast", "data.csv", *MODEL, "--lags", 3, "--features", "x", "--steps", 4]
    told = inside(*args, cwd=folder, code=1).stderr.decode()
    assert "the model needs the features x of the next" in told
    assert "--future FILE" in told
    (folder / "future.csv").write_text("t,x\n" + "".join(f"{i},{x[i].item()!r}\n" for i in range(300, 310)))
    table = numbers(rows_of(inside(*args, "--future", "future.csv", cwd=folder).stdout))
    y = SINE + x[:300]
    model = ogp.Lagged(ogp.KRLST(ogp.kernels.RBF(1.5), noise=0.01, budget=30), lags=3).fit(x[:300, None], y)
    np.testing.assert_allclose(table[:, 1], model.forecast(4, x[300:304, None]).mean, rtol=1e-6)
    short = inside(*args[:-1], 11, "--future", "future.csv", cwd=folder, code=3).stderr.decode()
    assert "has 10 rows, but --steps is 11" in short
    (folder / "other.csv").write_text("z\n1\n")
    assert "needs the column 'x'" in inside(*args, "--future", "other.csv", cwd=folder, code=1).stderr.decode()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["series.txt", "--steps", "0"], "--steps must be from 1"),
        (["series.txt", "--steps", "3", "--lags", "0"], "--lags must be at least 1"),
        (["series.txt", "--steps", "3", "--futures", "1"], "--futures must be from 2"),
        (["series.txt", "--steps", "3", "--seed", "-1"], "--seed must be 0 or more"),
        (["--steps", "3"], "Pass SOURCE, the series, or --start FILE"),
        ([], "Pass SOURCE, the series, or --start FILE"),
        (["-", "--steps", "3", "--direct"], "so SOURCE cannot be a pipe"),
        (["series.txt", "--steps", "3", "--direct", "--save", "m.ogp"], "--direct trains a model for each step"),
        (["series.txt", "--steps", "3", "--out", "x.doc"], "must end in .csv"),
        (["series.txt", "--steps", "3", "--plot", "x.doc"], "--plot x.doc must end in .png, .svg or .pdf"),
        (["series.txt", "--steps", "3", "--out", "series.txt"], "are the same file"),
        (["series.txt", "--steps", "3", "--future", "series.txt", "--plot", "series.txt"], "are the same file"),
    ],
)
def test_bad_options_are_refused(folder, args, message):
    done = inside("forecast", *args, cwd=folder, code=1)
    assert message in done.stderr.decode()
    assert (folder / "series.txt").read_text().count("\n") == 300


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["series.txt", "--direct", "--seed", "3"], "--direct samples no paths, so --seed would have no effect"),
        (["series.txt", "--direct", "--futures", "50"], "so --futures would have no effect"),
        (["series.txt", "--direct", "--horizon", "2"], "Leave --horizon out"),
        (["series.txt", "--future", "series.txt"], "--future series.txt is for a model with features"),
        (["--start", "m.ogp", "--future", "series.txt"], "--future series.txt is for a model with features"),
        (["--start", "plain.ogp", "--future", "series.txt"], "plain.ogp contains no names of columns"),
        (["--start", "m.ogp", "--save", "n.ogp"], "--save needs SOURCE"),
        (["--start", "m.ogp", "--delimiter", ";"], "no SOURCE or --future to read: --delimiter would have no"),
        (["series.txt", "--category-limit", "3"], "--category-limit 3 has no effect, because categories are ignored"),
        (["rows.jsonl", "--decimal", ","], "rows.jsonl is not CSV, so --decimal would have no effect"),
    ],
)
def test_options_without_an_effect_are_refused(folder, args, message):
    if "--start" in args:
        more = ["--lags", 4, "--steps", 5, "--save", "m.ogp", "--out", "o.csv"]
        inside("forecast", "series.txt", *MODEL, *more, cwd=folder)
        ogp.load(folder / "m.ogp").save(folder / "plain.ogp")
    (folder / "rows.jsonl").write_text("".join(f'{{"y": {value!r}}}\n' for value in SINE.tolist()))
    model = [] if "--start" in args else MODEL
    done = inside("forecast", *args, *model, "--steps", 3, cwd=folder, code=1)
    assert message in done.stderr.decode()
    assert done.stdout == b""


def test_a_constant_series_and_a_model_without_lags_are_refused_by_name(folder):
    write_series(folder / "constant.txt", np.ones(100))
    options = ("--lags", 2, "--steps", 3)
    assert "nothing to learn" in inside("forecast", "constant.txt", *options, cwd=folder, code=3).stderr.decode()
    ogp.KRLST().fit([[1.0]], [2.0]).save(folder / "plain.ogp")
    told = inside("forecast", "--start", "plain.ogp", "--steps", 3, cwd=folder, code=1).stderr.decode()
    assert "needs a model with lags" in told


# run --ahead


def test_in_a_pipe_the_next_row_is_predicted_before_it_comes():
    process = started("run", "-", *MODEL, "--lags", 3, "--ahead")
    process.stdin.write(b"y\n")
    answers = []
    for i, value in enumerate(SINE[:40].tolist()):
        process.stdin.write(f"{value!r}\n".encode())
        process.stdin.flush()
        if i == 0:
            names = process.stdout.readline().decode().strip().split(",")
        answers.append(dict(zip(names, process.stdout.readline().decode().strip().split(","), strict=True)))
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    assert names[-4:] == ["next_mean", "next_std", "next_lower", "next_upper"]
    for before, row in pairwise(answers[4:]):
        for name in ("mean", "std", "lower", "upper"):
            assert float(before[f"next_{name}"]) == pytest.approx(float(row[name]), rel=1e-9)


def test_ahead_of_a_file_tuning_included(folder):
    args = ["run", "series.txt", "--model", "krlst", "--budget", "20", "--lags", "3", "--tune", "60", "--quiet"]
    inside(*args, "--out", "plain.csv", cwd=folder)
    inside(*args, "--ahead", "--out", "ahead.csv", cwd=folder)
    plain, ahead = rows_of(folder / "plain.csv"), rows_of(folder / "ahead.csv")
    for i in range(2, 299):
        assert float(ahead[i]["mean"]) == pytest.approx(float(plain[i]["mean"]), rel=1e-6, abs=1e-9)
        assert float(ahead[i]["next_mean"]) == pytest.approx(float(plain[i + 1]["mean"]), rel=1e-6, abs=1e-9)
        assert float(ahead[i]["next_std"]) == pytest.approx(float(plain[i + 1]["std"]), rel=1e-6)


# predict


def test_predict_goes_on_from_the_past_in_the_file(folder):
    write_series(folder / "one.txt", SINE[:200])
    write_series(folder / "two.txt", SINE[200:])
    inside("run", "one.txt", *MODEL, "--lags", 4, "--save", "m.ogp", "--out", "o.csv", cwd=folder)
    predicted = rows_of(inside("predict", "m.ogp", "two.txt", "--quiet", cwd=folder).stdout)
    model = ogp.load(folder / "m.ogp")
    expected = model.skip(np.empty((100, 0)), SINE[200:])
    np.testing.assert_allclose([float(row["mean"]) for row in predicted], expected.mean, rtol=1e-9)
    new = rows_of(inside("predict", "m.ogp", "two.txt", "--quiet", "--new-series", cwd=folder).stdout)
    model = ogp.load(folder / "m.ogp").begin_series()
    expected = model.skip(np.empty((100, 0)), SINE[200:])
    np.testing.assert_allclose([float(row["mean"]) for row in new], expected.mean, rtol=1e-9)
    assert [row["mean"] for row in predicted[4:]] == [row["mean"] for row in new[4:]]
    assert predicted[0]["mean"] != new[0]["mean"]


def test_run_goes_on_from_the_past_in_the_file(folder):
    """Two runs, the second with --start, give the rows of one run over both files; --new-series begins without lags."""
    write_series(folder / "one.txt", SINE[:200])
    write_series(folder / "two.txt", SINE[200:])
    inside("run", "series.txt", *MODEL, "--lags", 4, "--out", "whole.csv", cwd=folder)
    inside("run", "one.txt", *MODEL, "--lags", 4, "--save", "m.ogp", "--out", "one.csv", cwd=folder)
    inside("run", "two.txt", "--start", "m.ogp", "--out", "two.csv", cwd=folder)
    inside("run", "two.txt", "--start", "m.ogp", "--new-series", "--out", "new.csv", cwd=folder)
    assert rows_of(folder / "one.csv") + rows_of(folder / "two.csv") == rows_of(folder / "whole.csv")
    assert rows_of(folder / "new.csv")[0]["mean"] != rows_of(folder / "two.csv")[0]["mean"]
    for args in (["run", "two.txt"], ["forecast", "--start", "m.ogp", "--steps", 3]):
        assert b"--new-series" in inside(*args, "--new-series", code=1, cwd=folder).stderr


def test_a_forecast_from_a_pipe():
    text = "".join(f"{value!r}\n" for value in SINE.tolist())
    table = numbers(rows_of(onlinegp("forecast", "-", *MODEL, "--lags", 4, "--steps", 3, stdin=text).stdout))
    assert table.shape == (3, 5)


def test_inspect_names_no_features_where_there_are_none(folder):
    inside("forecast", "series.txt", *MODEL, "--lags", 4, "--steps", 5, "--save", "m.ogp", "--out", "o.csv", cwd=folder)
    told = inside("inspect", "m.ogp", cwd=folder).stdout.decode()
    assert told.endswith("inputs: 0\ntarget: value\n")
    assert json.loads(inside("inspect", "m.ogp", "--json", cwd=folder).stdout)["features"] == []
