"""`compare`: ends within its time, ranks by what was measured, and says what it took."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from itertools import count
from math import inf
from pathlib import Path
from time import monotonic
from types import SimpleNamespace

import numpy as np
import pytest
from shell import inside, onlinegp, rows_of, write_csv

import onlinegp as ogp
from onlinegp.batch.parameter_search import EFFORT, Outcome, Trial
from onlinegp.cli.compare import draw, recommended
from onlinegp.cli.compare_runs import numbers_of
from onlinegp.comparing import time_limit
from onlinegp.comparing.ranking import ranked
from onlinegp.comparing.time_limit import LOOK, Entrant, OneStream, Result, Tuned, likely_within, put_through, tune
from onlinegp.kernels import RBF
from onlinegp.predictions import Gaussian
from onlinegp.progress import Hidden
from onlinegp.streams.reading.formats import open_source
from onlinegp.streams.reading.source import Source, choose_columns
from onlinegp.streams.running.column_encoding import Encoder
from onlinegp.streams.running.observers import Rows
from onlinegp.streams.running.predict_then_learn import Predicted
from onlinegp.streams.running.score import Curves

QUICK = ["--kernel", "rbf(1.0)", "--noise", "0.01", "--tune", "60"]
SLOW = '''
import time
import onlinegp as ogp
from onlinegp.learner import RowLearner

class Waiting(RowLearner):
    def __init__(self, features, outputs, seconds, free):
        self.features, self.outputs, self.seconds, self.free, self.seen = features, outputs, seconds, free, 0
    def learn(self, X, Y):
        for _ in Y:
            self.seen += 1
            if self.seen > self.free:
                time.sleep(self.seconds)
    def predict(self, X):
        import numpy as np
        return ogp.predictions.Gaussian(np.zeros((len(X), self.outputs)), np.ones((len(X), self.outputs)))
    def dump(self):
        return {"seen": self.seen}
    def load(self, contents):
        self.seen = contents["seen"]

class Slow(ogp.OnlineRegressor):
    """A model that waits.

    Parameters
    ----------
    seconds : float
        Per row.
    free : int
        Rows before that.
    """
    def __init__(self, *, seconds=0.01, free=60):
        self.seconds, self.free = seconds, free
    def start(self, features, outputs):
        return Waiting(features, outputs, self.seconds, self.free)
'''


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return write_csv(tmp_path_factory.mktemp("compare") / "data.csv", 2000)


def opened(path: Path) -> Source:
    source = open_source(str(path), rows=LOOK)
    source.select(choose_columns(source))
    return source


def contest_of(path: Path, rows: int = 100) -> OneStream:
    block = next(iter(opened(path)))
    encoder = Encoder(opened(path).columns)
    return OneStream(partial(opened, path), encoder, block.X[:rows], block.y[:rows], rows, inf)


def tuned_klms() -> Tuned:
    params = {"kernel": RBF(1.0), "step": 0.5}
    return Tuned(Entrant("klms", ogp.KLMS), Trial(ogp.KLMS, params, Outcome(), 3, 300), 0.0)


@pytest.mark.slow  # it waits for its twenty seconds
def test_time_that_is_over_cuts_and_is_said(tmp_path):
    """One model finishes, one is too slow, and one does not look at the clock at all."""
    (tmp_path / "mine.py").write_text(SLOW)
    data = write_csv(tmp_path / "long.csv", 20_000)
    models = "qklms,slow(seconds=0.002),slow(seconds=1000.0)"
    args = ["--import", "mine", "--models", models, "--time", "20", "--jobs", "3", "--json", tmp_path / "t.json"]
    told = onlinegp("compare", data, *QUICK, *args, cwd=tmp_path).stdout.decode()
    first, second = json.loads((tmp_path / "t.json").read_text())
    assert (first["model"], first["finished"], first["scored"]) == ("qklms", True, 19_940)
    assert (second["model"], second["finished"], second["stopped_by"]) == ("slow(seconds=0.002)", False, "time")
    assert 0 < second["scored"] < 19_940
    assert second["shared"]["rows"] <= second["scored"] + 60
    assert "not ranked" in told
    assert "slow(seconds=1000.0): it was out of time" in told
    assert "Recommended: qklms" in told


def test_a_run_stops_when_its_time_or_memory_is_used_up(data, monkeypatch):
    contest = contest_of(data)
    whole = put_through(contest, tuned_klms(), monotonic() + 1000.0)
    assert (whole.stopped, whole.figures["finished"], whole.figures["scored"]) == ("", True, 1900)
    with monkeypatch.context() as patch:
        patch.setattr(time_limit, "monotonic", count().__next__)  # one tick at each look
        cut = put_through(contest, tuned_klms(), 8)
    assert cut.stopped == "time"
    assert 0 < cut.figures["scored"] < 1900
    monkeypatch.setattr(time_limit, "MEMORY", 8)
    monkeypatch.setattr(time_limit, "resident", count().__next__)
    assert put_through(contest, tuned_klms(), monotonic() + 1000.0).stopped == "memory"
    nothing = put_through(contest_of(data, LOOK), tuned_klms(), monotonic())
    assert "before any row to score" in nothing.wrong


def test_likelihood_that_takes_too_long_is_replaced_by_a_guess(data):
    predicted: list[str] = []
    (guess,) = likely_within(1e-3, contest_of(data), predicted.append, Hidden())
    assert guess.kernel == RBF((2**0.5,) * 2)
    assert "starts from a guess" in predicted[0]


def test_what_grows_is_capped_or_left_out_with_a_word(tmp_path, data):
    small = tmp_path / "small.csv"
    small.write_text("".join(data.read_text().splitlines(keepends=True)[:400]))
    done = onlinegp("compare", small, *QUICK, "--budget", "20", "--json", tmp_path / "table.json")
    table = {row["model"]: row for row in json.loads((tmp_path / "table.json").read_text())}
    assert table["onlinegp"]["centers"] == 20
    assert "klms" not in table
    assert {"auto", "betaklms"} < set(table)
    assert b"left out: exkrls" in done.stderr
    assert table.pop("auto")["search"] == {"models": 0, "rows": 0}  # it tunes itself
    assert b"--models" in done.stderr
    for row in table.values():
        assert row["scored"] == 399 - 60
        assert 0 < row["search"]["rows"] == 60 * row["search"]["models"] <= EFFORT + 60
        assert f"{row['search']['rows']:>12}" in done.stdout.decode()
    assert float(table["qklms"]["parameters"]["step"]) > 0.0
    densities = [row["log_density"] for row in table.values()]
    assert densities == sorted(densities, reverse=True)


def test_auto_is_the_model_that_run_runs(tmp_path, data):
    small = tmp_path / "small.csv"
    small.write_text("".join(data.read_text().splitlines(keepends=True)[:401]))
    inside("run", small, "--summary", tmp_path / "run.json", "--out", tmp_path / "out.csv")
    alone = json.loads((tmp_path / "run.json").read_text())
    contest = contest_of(small, 80)
    result = put_through(contest, tune(contest, Entrant("auto", ogp.Auto), [], inf), inf)
    assert alone["scored"] == 399
    assert result.figures["scored"] == 320  # after the rows that others are tuned on
    assert result.figures["centers"] == alone["centers"]
    rows = rows_of(tmp_path / "out.csv")[80:]
    errors = np.array([float(row["y"]) - float(row["mean"]) for row in rows])
    assert result.figures["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-12)


def test_a_row_costs_neither_a_start_nor_a_tuning(data, monkeypatch):
    contest, clock = contest_of(data), [0.0]

    def first(contest: OneStream) -> int:
        clock[0] += 1000.0  # seconds, to start a process
        return 0

    def start(contest: OneStream, tuned: Tuned) -> ogp.OnlineRegressor:
        clock[0] += 1000.0  # to make the model
        return model(contest, tuned)

    model = OneStream.model
    monkeypatch.setattr(OneStream, "model", start)
    monkeypatch.setattr(time_limit, "first_block", first)
    monkeypatch.setattr(time_limit, "process_time", lambda: clock[0])
    assert put_through(contest, tuned_klms(), inf).figures["us_per_row"] == 0.0
    assert clock == [2000.0]


@pytest.mark.parametrize(
    ("args", "predicted"),
    [
        (["--time", "0"], b"time must be"),
        (["--time", "nan"], b"time must be"),
        (["--models", "klms,klms"], b"each model once"),
        (["--runs", "1"], b"runs must be at least 2"),
        (["--runs", "2", "--time", "5"], b"--time is for a single run"),
        (["--runs", "2", "--lags", "3", "--horizon", "2"], b"--runs predicts one row ahead"),
        (["--runs", "2", "--lags", "3", "--runs-by", "permutations"], b"but --lags needs this order"),
        (["--latex", "t.tex"], b"--latex needs --runs"),
    ],
)
def test_wrong_options_are_refused_before_any_work(data, args, predicted):
    assert predicted in inside("compare", data, *args, code=1).stderr


def test_no_model_that_can_be_ranked_is_an_error(data):
    models = ["--models", "lms(step=50)", "--jobs", "1"]
    assert b"onlinegp: all models failed. Use a larger" in inside("compare", data, *QUICK, *models, code=1).stderr


# Many runs


def test_many_runs_that_no_model_finished_fail_and_say_why(tmp_path, data):
    table, drawn = tmp_path / "table.json", tmp_path / "curves.svg"
    models = ["--models", "lms(step=50)", "--runs", "3", "--jobs", "1", "--effort", "300"]
    done = inside("compare", data, *QUICK, *models, "--json", table, "--out", drawn, code=1)
    assert b"diverged in 3 of 3 runs" in done.stdout
    assert b"Lower the step" in b" ".join(done.stdout.split())
    assert b"no model finished all runs" in done.stderr
    assert not drawn.exists()
    assert json.loads(table.read_text("utf-8"))[0]["why"].startswith("Scaled(model=LMS(step=50")


def test_tables_for_programs_have_no_infinite_numbers():
    assert numbers_of({"a": -np.inf, "b": np.nan, "c": 1.5, "d": "x", "e": 2}) == {
        "a": None, "b": None, "c": 1.5, "d": "x", "e": 2
    }  # fmt: skip


def test_many_runs_have_intervals_and_tables(tmp_path, data):
    files = {name: tmp_path / f"table.{name}" for name in ("json", "csv", "latex")}
    args = [part for name, path in files.items() for part in (f"--{name}", path)]
    models = ["--models", "qklms,krlst(budget=20),linearrls", "--runs", "4", "--jobs", "1", "--effort", "500"]
    done = inside("compare", data, *QUICK, *models, "--rank", "error", *args, "--out", tmp_path / "c.svg")
    table = json.loads(files["json"].read_text())
    assert {row["algorithm"] for row in table} == {"qklms", "krlst(budget=20)", "linearrls"}
    assert all(row["steady_low"] < row["steady"] < row["steady_high"] for row in table)
    told = " ".join(done.stdout.decode().split())
    assert "4 runs of 485 rows" in told  # of 1940
    assert "on 60 other rows, with at most 500 rows" in told
    assert files["csv"].read_text().startswith("algorithm,")
    assert r"\begin{tabular}" in files["latex"].read_text()
    assert "<svg" in (tmp_path / "c.svg").read_text()
    shuffled = inside("compare", data, *QUICK, *models, "--runs-by", "permutations").stdout.decode()
    assert "4 runs of 1940 rows" in shuffled


def test_columns_of_text_are_learned_from_the_rows_to_tune_on(tmp_path):
    rows = "".join(f"{'ab'[i % 2]},{i % 7},{i % 2 + 0.1 * (i % 7)}\n" for i in range(300))
    (tmp_path / "text.csv").write_text("kind,x,y\n" + rows)
    args = ["--models", "linearrls", "--categories", "onehot", "--runs", "3", "--jobs", "1", "--tune", "60"]
    table = ["--kernel", "rbf(1.0)", "--noise", "0.01", "--json", tmp_path / "table.json", "--rank", "error"]
    inside("compare", tmp_path / "text.csv", *args, *table)
    (row,) = json.loads((tmp_path / "table.json").read_text())
    assert row["steady"] < -30.0  # without the categories it would be -6


# Ranking


def result(
    name: str, error: float, rows: int, *, stopped: str = "", std: float = 1.0, late: float | None = None
) -> Result:
    """Return a result with a constant error, from the row 1000 on another one; the first 100 rows are not scored."""
    e = np.full(rows, error)
    e[1000:] = error if late is None else late
    y = np.zeros(rows)
    curves = Curves()
    for part, unscored in ((slice(0, 100), 100), (slice(100, rows), 0)):
        predicted = Predicted(
            Gaussian(e[part], np.full(len(e[part]), std)), np.zeros(len(e[part])), np.ones(len(e[part]), dtype=bool)
        )
        curves.add(Rows.of(y[part], predicted, level=0.95, unscored=unscored))
    density = float(Gaussian(e, np.full(rows, std)).log_density(y)[100:].mean())
    figures = {"log_density": density, "rmse": float((e[100:] ** 2).mean() ** 0.5), "scored": rows - 100}
    return Result(name, figures, curves, stopped)


def test_those_that_finished_come_first_whatever_the_others_reached():
    good, bad, cut = result("good", 0.2, 5000), result("bad", 0.4, 5000), result("cut", 0.1, 900, stopped="time")
    wrong = Result("wrong", wrong="it broke down")
    for by in ("density", "error"):
        ranking = ranked([cut, bad, wrong, good], by=by)
        assert [one.name for one in ranking.all] == ["good", "bad", "cut"]
        assert ranking.stopped[0].ahead(by)


def test_the_others_are_compared_over_the_rows_that_they_reached():
    best = result("best", 0.5, 5000, late=0.1)  # bad at first, then good
    cut, worse = result("cut", 0.3, 900, stopped="time"), result("worse", 0.6, 900, stopped="memory")
    ranking = ranked([worse, cut, best], by="error")
    first, second = ranking.stopped
    assert (first.result.name, second.result.name) == ("cut", "worse")
    assert first.own == pytest.approx(0.3)
    assert first.best == pytest.approx(0.5)  # not 0.23, which is over the whole
    assert first.ahead("error")
    assert not second.ahead("error")
    assert ranking.plain()[1]["shared"] == {"rows": first.rows, "by": "error", "own": first.own, "best": first.best}


def test_if_none_finished_the_rows_that_all_reached_decide():
    early, late = result("early", 0.3, 900, stopped="time"), result("late", 0.5, 4000, stopped="time", late=0.01)
    ranking = ranked([late, early], by="error")
    assert [one.name for one in ranking.all] == ["early", "late"]  # although late has the smaller error over its rows
    assert late.figures["rmse"] < early.figures["rmse"]
    assert [one.own for one in ranking.stopped] == pytest.approx([0.3, 0.5])
    assert all(one.rows <= 900 for one in ranking.stopped)


def test_a_recommendation_names_those_that_may_be_better():
    good, cut = result("good", 0.2, 5000), result("cut", 0.1, 900, stopped="time")
    assert recommended(ranked([good], by="error")) == "Recommended: good, the best error."
    assert "of the finished models" in recommended(ranked([good, cut], by="error"))
    assert "when stopped: cut;" in recommended(ranked([good, cut], by="density"))
    assert "Ahead" not in recommended(ranked([good, result("cut", 0.3, 900, stopped="time")], by="error"))
    assert recommended(ranked([cut], by="error")) == "Recommended: cut, the best error."


def test_density_and_error_may_disagree():
    sharp, wide = result("sharp", 0.2, 3000, std=0.01), result("wide", 0.3, 3000, std=0.3)
    assert ranked([wide, sharp], by="error").all[0].name == "sharp"
    assert ranked([wide, sharp], by="density").all[0].name == "wide"


def test_rows_that_are_not_scored_decide_nothing():
    best, cut = result("best", 0.5, 5000), result("cut", 0.3, 110, stopped="time")
    (one,) = ranked([best, cut], by="density").stopped
    assert (one.own is None) == (one.rows <= 100)
    assert one.rows <= 110


def test_a_bad_row_ends_it_with_its_place_and_a_remedy_that_is_there(tmp_path):
    data = write_csv(tmp_path / "data.csv", 200)
    lines = data.read_text().splitlines()
    lines[150] = lines[150].replace(",", ",x", 3)
    data.write_text("\n".join(lines) + "\n")
    told = inside("compare", data, *QUICK, "--models", "klms,persistence", "--jobs", "1", code=3).stderr.decode()
    assert "line 151, column 'x0'" in told
    assert "or leave such rows out with --on-bad-row skip" in told


def test_one_stream_with_a_time_limit_is_compared_like_any_other(data):
    """By `onlinegp.compare`: classes are tuned, models run as they are."""
    stream = replace(contest_of(data), until=monotonic() + 100.0)
    predicted = []
    models = {"line": ogp.LinearRLS, "mean": ogp.LinearRLS(noise=1e6, prior=1e-9), "klms": ogp.KLMS(step=1e9)}
    ranking = ogp.compare(models, stream, by="error", jobs=1, say=predicted.append)
    assert [one.name for one in ranking.all] == ["line", "mean"]
    assert [one.name for one in ranking.failed] == ["klms"]
    assert ranking.finished[0].figures["search"]["models"] > 1 > ranking.finished[1].figures["search"]["models"]
    assert any("tuning 3 models" in line for line in predicted)


def test_a_point_of_the_picture_is_above_the_name_of_another():
    pytest.importorskip("matplotlib")
    curves = {name: np.ones(4) for name in ("rows", "scored", "squares")}
    figures = [{"nmse_db": -9.0 - 0.01 * i, "us_per_row": 15.0 + 0.1 * i} for i in range(3)]
    results = [SimpleNamespace(name=f"model {i}", curves=curves, figures=figures[i]) for i in range(3)]
    cost = draw(results).axes[1]
    assert len(cost.lines) == len(cost.texts) == 3
    assert min(line.zorder for line in cost.lines) > max(text.zorder for text in cost.texts)
