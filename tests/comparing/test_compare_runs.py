"""`ogp.compare`: bands that cover what they claim, tuning apart from scoring, the same effort for all."""

from __future__ import annotations

import csv
import doctest
import io
from functools import partial

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.batch.parameter_search import prequential
from onlinegp.comparing import intervals
from onlinegp.comparing.compare import _windows
from onlinegp.comparing.results import Comparison
from onlinegp.datasets import channel_switch
from onlinegp.kernels import RBF
from onlinegp.learner import RowLearner


class ConstantLearner(RowLearner):
    """Says N(value, 1) of every row, and learns nothing."""

    def __init__(self, features: int, outputs: int, value: float) -> None:
        self.features, self.outputs, self.value, self.seen = features, outputs, value, 0

    def learn(self, X, Y):
        self.seen += len(X)

    def predict(self, X):
        shape = (len(X), self.outputs)
        return ogp.predictions.Gaussian(np.full(shape, self.value), np.ones(shape))

    def run(self, X, Y):
        self.learn(X, Y)
        return self.predict(X), np.zeros(len(X), dtype=np.int64)

    def dump(self):
        return {"seen": self.seen}

    def load(self, contents):
        self.seen = contents["seen"]


class Constant(ogp.OnlineRegressor):
    """Predicts a constant."""

    def __init__(self, *, value: float = 0.0) -> None:
        self.value = value

    def start(self, features, outputs):
        return ConstantLearner(features, outputs, self.value)


def scale(n: int) -> np.ndarray:
    """The standard deviation of `noise` along the stream: it falls."""
    return 0.3 + 0.7 * np.exp(-np.arange(n) / 60)


def noise(seed: int, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 1)), scale(n) * rng.standard_normal(n)


def channel(seed: int) -> tuple[np.ndarray, np.ndarray]:
    return channel_switch(150, switch=None, seed=seed)


@pytest.fixture(scope="module")
def found() -> Comparison:
    models = {"klms": ogp.KLMS, "small": partial(ogp.KRLST, budget=10), "as it is": ogp.LinearRLS(noise=0.1)}
    return ogp.compare(models, channel, runs=4, effort=3000, jobs=1)


# What is claimed of intervals and bands


@pytest.mark.parametrize("runs", [5, 20])
def test_intervals_hold_the_expected_value_as_often_as_they_say(runs):
    """Mean squares of 30 normal errors, s^2 chi2(30) / 30, with a part that two algorithms share."""
    rng = np.random.default_rng(0)
    times, level = 4000, 0.95
    hard = rng.gamma(50.0, 1.0 / 50.0, (runs, times))  # how hard a run is, for everybody
    one = 0.4 * hard * rng.chisquare(30, (runs, times)) / 30
    other = 0.2 * hard * rng.chisquare(30, (runs, times)) / 30
    claims = [
        (intervals.of_mean(one, level), 0.4),
        (intervals.of_mean_in_db(one, level), 10 * np.log10(0.4)),
        (intervals.of_difference(one, other, level), 0.2),
        (intervals.of_ratio_in_db(one, other, level), 10 * np.log10(2.0)),
    ]
    for interval, truth in claims:
        assert np.mean((interval.low <= truth) & (truth <= interval.high)) == pytest.approx(level, abs=0.012)
    paired, alone = claims[3][0], claims[1][0]
    assert np.mean(paired.high - paired.low) < np.sqrt(2) * np.mean(alone.high - alone.low)


def test_bands_of_learning_curves_cover_the_known_expected_error():
    """The expected squared error of predicting zero is the variance of the noise, at every row."""
    covered, steady = [], []
    truth = 10 * np.log10((scale(300) ** 2).reshape(-1, 20).mean(axis=1))
    last = 10 * np.log10((scale(300)[-60:] ** 2).mean())
    for i in range(60):
        seeds = range(1000 * i, 1000 * i + 12)
        found = ogp.compare({"zero": Constant()}, noise, seeds=seeds, window=20, jobs=1)
        band, level = found.curve("zero"), found.steady_state("zero")
        covered += ((band.low <= truth) & (truth <= band.high)).tolist()
        steady.append(level.low <= last <= level.high)
    assert np.mean(covered) == pytest.approx(0.95, abs=0.02)  # of 900 points
    assert np.mean(steady) >= 0.88  # of 60


def test_a_difference_of_zero_is_found_where_there_is_none():
    found = ogp.compare({"zero": Constant(), "one": Constant(value=1.0), "none": Constant()}, noise, runs=8, jobs=1)
    assert found.behind("none") == (0.0, 0.0, 0.0)
    assert found.behind("one").low > 3.0
    assert found.behind("one", "one") == (0.0, 0.0, 0.0)


# Fairness


def test_nothing_is_tuned_on_what_is_scored():
    asked: list[int] = []

    def stream(seed: int):
        asked.append(seed)
        return channel(seed)

    found = ogp.compare([ogp.LinearRLS], stream, seeds=[3, 5], effort=500, jobs=1)
    assert asked[0] == 6
    assert sorted(set(asked)) == [3, 5, 6]
    assert found.settings.tuning_rows == 150


def test_permutations_share_rows_and_leave_out_those_to_tune_on():
    y = np.arange(50.0)
    source = ogp.comparing.Permutations(y[:, None], y, tune=12)
    tuned = source.tuning([0, 1])[1]
    runs = [y for _, y in source.runs([0, 1])]
    assert sorted(np.concatenate([tuned, runs[0]])) == y.tolist()
    assert sorted(runs[0]) == sorted(runs[1])
    assert runs[0].tolist() != runs[1].tolist()


def test_blocks_follow_each_other_in_order():
    y = np.arange(50.0)
    source = ogp.comparing.Blocks(y[:, None], y, tune=12)
    assert source.tuning([0, 1, 2])[1].tolist() == y[:12].tolist()
    assert [run[1].tolist() for run in source.runs([7, 8, 9])] == [y[i : i + 12].tolist() for i in (12, 24, 36)]


def test_every_class_gets_the_same_effort_and_what_is_given_stays(found):
    for name in ("klms", "small"):
        assert 3000 - 2 * 150 < found[name].search_rows <= 3000  # from two starts, with trials of 150 rows
        assert found[name].search_rows == 150 * found[name].tried
    assert found["small"].params["budget"] == 10
    assert max(run.size for run in found["small"].runs) <= 10
    assert (found["as it is"].tried, found["as it is"].params["noise"]) == (0, 0.1)
    assert "at most 3000 rows of trials per" in " ".join(repr(found).split())


def test_short_runs_are_said_to_be_short():
    y = np.sin(np.arange(400.0))
    found = ogp.compare([ogp.LinearRLS()], ogp.comparing.Blocks(y[:, None], y), runs=20, jobs=1)
    assert "16 rows. They are too short" in " ".join(repr(found).split())
    assert "short" not in repr(ogp.compare([ogp.LinearRLS()], ogp.comparing.Blocks(y[:, None], y), runs=2, jobs=1))


# What is told


def test_figures_are_those_of_plain_runs(found):
    errors, densities = [], []
    for seed in range(4):
        X, y = channel(seed)
        trace = ogp.run(ogp.LinearRLS(noise=0.1), X, y)
        errors.append(np.append(np.nan, (trace.mean - y)[1:] ** 2))  # nothing was known of the first row
        densities.append(trace.log_density)
    entry = found["as it is"]
    assert "first row, predicted before any row was learned, is not scored" in " ".join(repr(found).split())
    np.testing.assert_allclose(entry.of("error"), np.array(errors), rtol=1e-12)  # windows of one row
    np.testing.assert_allclose(entry.of("steady_density"), np.array(densities)[:, -30:].mean(axis=1))
    steady = np.array(errors)[:, -30:].mean()
    assert found.steady_state("as it is").value == pytest.approx(10 * np.log10(steady))
    assert entry.runs[0].bytes == 8 * (36 + 6 + 1)


def test_a_row_before_any_data_is_scored_in_no_part_of_a_comparison():
    def stream(seed: int):
        X = np.random.default_rng(seed).normal(size=(20, 1))
        return X, 70 + X[:, 0]

    found = ogp.compare([ogp.LinearRLS()], stream, runs=2, window=10, steady=20, jobs=1)
    errors = [(ogp.run(ogp.LinearRLS(), *stream(seed)).mean - stream(seed)[1]) ** 2 for seed in range(2)]
    np.testing.assert_allclose(found["LinearRLS"].of("steady_error"), [e[1:].mean() for e in errors])
    np.testing.assert_allclose(found["LinearRLS"].of("error"), [[e[1:10].mean(), e[10:].mean()] for e in errors])
    assert prequential(ogp.LinearRLS(), *stream(0), last=1.0).squared_error == pytest.approx(errors[0][1:].mean())
    short = ogp.compare([ogp.LinearRLS()], lambda seed: [rows[:1] for rows in stream(seed)], runs=2, jobs=1)
    assert "Use longer runs" in short["LinearRLS"].why


def test_the_users_backend_runs_it_and_finds_the_same(found):
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config(backend="threading", n_jobs=3):
        again = ogp.compare({"klms": ogp.KLMS}, channel, runs=4, effort=3000)
    np.testing.assert_array_equal(again["klms"].of("error"), found["klms"].of("error"))
    assert again["klms"].params == found["klms"].params


def test_what_breaks_down_is_not_ranked():
    models = {"stable": ogp.KLMS(RBF(1.0), step=0.5), "unstable": ogp.KLMS(RBF(3.0), step=2.5)}
    found = ogp.compare(models, partial_channel, runs=3, jobs=1)
    assert [entry.name for entry in found.ranked] == ["stable"]
    assert found["unstable"].broken == 3
    assert "diverged in 3 of 3 runs" in repr(found)
    assert "Nothing was tuned." in repr(found)
    with pytest.raises(ValueError, match="finished all runs, got 'unstable'"):
        found.plot(names=["unstable"])
    assert r"\multicolumn{7}{l}{diverged in 3 of 3 runs}" in found.latex()
    assert found.figures()[-1]["broken_runs"] == 3


def test_what_broke_down_says_why_and_has_no_figures():
    found = ogp.compare({"far off": ogp.LMS(step=50.0)}, partial_channel, runs=2, jobs=1)
    for text in (repr(found), found.latex(), found.csv()):
        assert "broke down at row" in " ".join(text.split())
        assert "Lower the step (LMS is stable below 2 / x'x)" in " ".join(text.split())
    assert found.ranked == ()
    assert found.pareto() == []
    for ask in (
        found.steady_state,
        found.behind,
        found.curve,
        found.convergence,
        lambda name: found.plot(names=[name]),
    ):
        with pytest.raises(ValueError, match=r"got 'far off', which broke down in 2 of 2: LMS\(step=50\.0\) broke"):
            ask("far off")


def test_a_model_with_an_error_of_its_own_is_named():
    class Wrong(Constant):
        def start(self, features, outputs):
            raise RuntimeError("no")

    for model in (Wrong(), Wrong):
        with pytest.raises(RuntimeError) as caught:
            ogp.compare({"right": Constant(), "wrong": model}, noise, runs=2, effort=300, jobs=1)
        assert caught.value.__notes__ == ["The algorithm was wrong."]


def test_no_error_at_all():
    """10 log10 of it is minus infinity, and two such algorithms are equally good."""

    def silence(seed: int):
        X, y = noise(seed)
        return X, 0.0 * y if seed < 3 else y

    models = {"zero": Constant(), "none": Constant(), "one": Constant(value=1.0)}
    found = ogp.compare(models, silence, runs=3, jobs=1)
    assert found.steady_state("none") == (-np.inf, -np.inf, -np.inf)
    assert found.behind("none") == (0.0, 0.0, 0.0)
    assert found.behind("one").value == np.inf
    assert "nan" not in repr(found)


def partial_channel(seed: int):
    return channel_switch(400, switch=None, seed=seed)


def test_csv_latex_and_pictures(found):
    rows = list(csv.DictReader(io.StringIO(found.csv())))
    assert [row["algorithm"] for row in rows] == [entry.name for entry in found.entries]
    assert float(rows[0]["steady_low"]) < float(rows[0]["steady"]) < float(rows[0]["steady_high"])
    assert float(rows[0]["behind"]) == 0.0
    pytest.importorskip("matplotlib")
    left, right = found.plot(cost="bytes").axes
    assert [line.get_label() for line in left.lines] == [entry.name for entry in found.ranked]
    assert right.get_xlabel() == "memory [bytes]"


def test_by_density():
    models = {"zero": Constant(), "one": Constant(value=1.0)}
    found = ogp.compare(models, noise, runs=5, by="density", jobs=1)
    assert found.entries[0].name == "zero"
    assert found.behind("one").value == pytest.approx(0.5, abs=0.2)  # nats: half of the squared distance
    assert found.curve("zero").value == pytest.approx(found["zero"].of("density").mean(axis=0))


@pytest.mark.parametrize(
    ("change", "error", "predicted"),
    [
        ({"models": "krlst"}, TypeError, "models must be a list"),
        ({"models": [ogp.KLMS, ogp.KLMS]}, ValueError, "KLMS twice"),
        ({"models": [partial(ogp.KLMS, stepp=1.0)]}, ValueError, "KLMS has no parameter 'stepp'"),
        ({"models": [int]}, TypeError, "models must be classes such as"),
        ({"models": [partial(ogp.KLMS, RBF(2.0))]}, TypeError, "must have their parameters by name"),
        ({"models": [ogp.KLMS(step=-1.0)]}, ValueError, "step must be"),
        ({"stream": noise(0)}, TypeError, "Permutations\\(X, y\\) for rows whose order has no meaning"),
        ({"stream": lambda seed: noise(0)}, ValueError, "stream must depend on its seed"),
        ({"stream": lambda seed: noise(seed, 100 + seed)}, ValueError, "the same shape for each seed"),
        ({"runs": 1}, ValueError, "runs must be at least 2, got 1. A single run has no"),
        ({"runs": 0}, ValueError, "runs must be at least 2, got 0"),
        ({"runs": 2.5}, TypeError, "runs must be a whole number, got 2.5"),
        ({"runs": None, "seeds": [1, 1]}, ValueError, "seeds must be different"),
        ({"runs": None, "seeds": [4]}, ValueError, "at least two, got \\[4\\]. Use range\\(20\\)"),
        ({"runs": None, "seeds": 5}, TypeError, "seeds must be whole numbers, one per run, got 5"),
        ({"runs": None, "seeds": "12"}, TypeError, "seeds must be whole numbers, one per run, got '12'"),
        ({"seeds": [1.5, 2]}, ValueError, "seeds must be a whole number of at least 0, got 1.5"),
        ({"seeds": [-1, 2]}, ValueError, "seeds must be a whole number of at least 0, got -1"),
        ({"seeds": [1, 2, 3]}, ValueError, "the number of seeds, 3, got 2"),
        ({"by": "luck"}, ValueError, "by must be one of"),
        ({"level": 1.0}, ValueError, "level must be greater than 0 and less than 1"),
        ({"steady": 1000}, ValueError, "must fit into a run of 300 rows"),
        ({"stream": ogp.comparing.Blocks(*noise(0), tune=299)}, ValueError, "must leave at least two rows for each"),
        ({"stream": ogp.comparing.Permutations(*noise(0), tune=300)}, ValueError, "tune must leave rows to score"),
        ({"jobs": 0}, ValueError, "jobs must be at least 1"),
        ({"jobs": "2"}, TypeError, "jobs must be a whole number, got '2'"),
        ({"since": 1.5}, TypeError, "since must be a whole number, got 1.5"),
        ({"stream": lambda seed: noise(seed)[1]}, TypeError, "stream must return X and y, got ndarray from stream"),
        ({"stream": lambda seed: (*noise(seed), 1)}, TypeError, "stream must return X and y, got tuple"),
        ({"stream": lambda seed: None}, TypeError, "got NoneType from stream\\(2\\). Return both; for a series use"),
        (
            {"models": [ogp.LMS], "stream": lambda seed: (noise(seed)[0], np.full(300, 7.0 + seed))},
            ValueError,
            "stream must have a y that varies in the 300 rows for tuning, got 9.0 in all rows",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(change, error, predicted):
    arguments = {"models": {"zero": Constant()}, "stream": noise, "runs": 2, "jobs": 1} | change
    with pytest.raises(error, match=predicted):
        ogp.compare(arguments.pop("models"), arguments.pop("stream"), **arguments)


@pytest.mark.parametrize(
    "one",
    [ogp.compare, ogp.comparing.Comparison, ogp.comparing.Permutations, ogp.comparing.Blocks],
    ids=lambda one: one.__name__,
)
def test_examples_do_what_they_say(one):
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder(recurse=False).find(one, one.__name__):
        assert runner.run(test).failed == 0
    assert runner.tries > 0


def test_windows_are_means_and_the_last_may_be_shorter():
    assert _windows(np.arange(7.0), 3).tolist() == [1.0, 4.0, 6.0]


def test_random_features_are_drawn_for_each_run():
    """The runs differ by 1e-9 in y: their errors differ by their frequencies, unless the seed was given."""

    def nearly_the_same(seed):
        X = np.random.default_rng(0).uniform(-3, 3, (200, 1))
        return X, np.sin(2 * X[:, 0]) + 1e-9 * np.random.default_rng(seed).standard_normal(200)

    few = partial(ogp.kafbox.RFFKLMS, kernel=RBF(1.0), basis=20)
    models = {"drawn": few, "given": partial(few, seed=0), "as it is": ogp.kafbox.RFFKLMS(RBF(1.0), basis=20)}
    found = ogp.compare(models, nearly_the_same, runs=5, effort=1000, jobs=1)
    spread = {entry.name: np.ptp([run.steady_error for run in entry.runs]) for entry in found.entries}
    assert spread["drawn"] > 1e-4
    assert max(spread["given"], spread["as it is"]) < 1e-7
