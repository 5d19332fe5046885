"""Models that break down, and columns that do not vary: never a confident answer without a reason."""

from __future__ import annotations

import json

import numpy as np
import pytest
from shell import inside, onlinegp, rows_of, write_csv

import onlinegp as ogp
from onlinegp import KLMS, KRLST, BreakdownError, Robust
from onlinegp.kernels import RBF, Linear
from onlinegp.models.combined.scaled import Scaling
from onlinegp.models.recipe_learner import RecipeLearner
from onlinegp.predictions import Gaussian
from onlinegp.streams.errors import StreamBreakdownError
from onlinegp.streams.reading.source import Columns
from onlinegp.streams.running.column_encoding import Encoder
from onlinegp.streams.running.first_rows import FirstRows, of_frequent_keys, with_lags
from onlinegp.streams.running.predict_then_learn import advance

UNSTABLE = ["--model", "klms", "--kernel", "rbf(1.0)", "--set", "step=2.5", "--tune", "0"]  # stable below 2


def numbers(rows, name):
    return np.array([float(row[name]) if row[name] else np.nan for row in rows])


@pytest.mark.parametrize("more", [[], ["--lags", "2"], ["--lags", "2", "--horizon", "3"]])
def test_a_model_that_diverges_is_named_with_its_row_and_not_saved(tmp_path, more):
    data, out = write_csv(tmp_path / "data.csv", 3000), tmp_path / "out.csv"
    done = inside("run", data, *UNSTABLE, *more, "--out", out, "--save", tmp_path / "m.ogp", "--quiet", code=1)
    told, predicted = done.stderr.decode(), rows_of(out)
    assert told.count("broke down") == 1
    assert "KLMS" in told
    assert "smaller step" in told
    assert f"at row {len(predicted) + 1} of {data}" in told
    largest = np.abs(numbers(predicted, "y")).max()
    mean, std = numbers(predicted, "mean"), numbers(predicted, "std")
    known = ~np.isnan(mean)
    assert 0 < known.sum() < 2900
    assert np.abs(mean[known]).max() <= 1e6 * max(largest, std[known].max())
    assert not (tmp_path / "m.ogp").exists()


def test_the_rows_before_a_breakdown_are_those_of_a_shorter_stream(tmp_path):
    data, out = write_csv(tmp_path / "data.csv", 3000), tmp_path / "out.csv"
    inside("run", data, *UNSTABLE, "--out", out, "--quiet", code=1)
    text = out.read_bytes()
    lines = data.read_bytes().splitlines(keepends=True)
    data.write_bytes(b"".join(lines[: text.count(b"\n")]))
    inside("run", data, *UNSTABLE, "--out", out, "--quiet")
    assert out.read_bytes() == text


def test_a_checkpoint_is_never_of_a_broken_model(tmp_path):
    data, out = write_csv(tmp_path / "data.csv", 3000), tmp_path / "out.csv"
    args = ["run", data, *UNSTABLE, "--out", out, "--checkpoint", tmp_path / "safe", "--every", "7"]
    assert b"broke down" in inside(*args, code=1).stderr
    facts = json.loads(inside("inspect", tmp_path / "safe" / "checkpoint.ogp", "--json").stdout)
    assert facts["rows done"] <= len(rows_of(out))
    assert facts["rows done"] % 7 == 0
    assert b"broke down" in inside(*args, "--resume", code=1).stderr


def test_the_last_row_may_break_a_model_too(tmp_path):
    """What is learned after the last prediction shows in no prediction: saving looks once more."""
    rows = "".join(f"0.5,{(-1) ** i}\n" for i in range(200))  # at one place, where the mean grows by half each row
    data, out, model = tmp_path / "data.csv", tmp_path / "out.csv", tmp_path / "m.ogp"
    data.write_text("x,y\n" + rows)
    inside("run", data, *UNSTABLE, "--out", out, code=1)
    n = len(rows_of(out))
    for end, code in ((n, 1), (n - 1, 0)):  # the row before the one that could not be predicted broke it
        data.write_text("x,y\n" + "".join(rows.splitlines(keepends=True)[:end]))
        done = inside("run", data, *UNSTABLE, "--out", out, "--save", model, code=code)
        assert len(rows_of(out)) == end
        assert model.exists() == (code == 0)
        assert (f"broke down at row {n} of {data}".encode() in done.stderr) == (code == 1)


class BreakingLearner(RecipeLearner):
    """Answers NaN from its sixth sample on."""

    def run(self, X, Y):
        before = self.seen
        predicted, size = super().run(X, Y)
        predicted.mean[max(0, 5 - before) :] = np.nan
        return predicted, size

    def predict(self, X):
        predicted = super().predict(X)
        return predicted if self.seen < 5 else Gaussian(np.full_like(predicted.mean, np.nan), predicted.std)

    def predict_one(self, x):
        return None


class Breaking(KLMS):
    def start(self, features, outputs):
        return BreakingLearner(self.recipe(), features, outputs)


@pytest.mark.parametrize("robust", [False, True])
def test_what_is_not_finite_ends_at_that_row(robust):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 1)), rng.standard_normal(20)
    model = Robust(Breaking(RBF(1.0))) if robust else Breaking(RBF(1.0))
    with pytest.raises(StreamBreakdownError, match=r"Breaking.*not finite") as caught:
        advance(model, X, y)
    assert len(caught.value.predicted) == 5
    assert np.isfinite(caught.value.predicted.predictions.mean).all()
    with pytest.raises(BreakdownError):
        model.to_bytes()


class RefusingLearner(RecipeLearner):
    """Breaks down by itself when it meets its sixth sample."""

    def run(self, X, Y):
        if self.seen + len(Y) > 5:
            raise ValueError("it lost its balance")
        return super().run(X, Y)


class Refusing(KLMS):
    def start(self, features, outputs):
        return RefusingLearner(self.recipe(), features, outputs)


def test_a_model_that_gives_up_by_itself():
    y = np.array([0.0, 1.0, 2.0, np.nan, 4.0, 5.0, 6.0, 7.0])  # three, a missing one, four
    with pytest.raises(StreamBreakdownError, match="it lost its balance") as caught:
        advance(Refusing(RBF(1.0)), np.zeros((8, 1)), y)
    assert len(caught.value.predicted) == 4


def test_an_honest_extrapolation_is_not_broken():
    """A straight line, far from its data: a huge mean with an interval to match."""
    model = KRLST(Linear(), noise=0.1)
    advance(model, np.array([[0.1], [0.2]]), np.array([0.1, 0.2]))
    predicted = advance(model, np.array([[1e9]]), np.array([np.nan])).predictions
    assert abs(predicted.mean[0]) > 1e6
    assert predicted.std[0] > abs(predicted.mean[0]) / 100


# Columns that do not vary


@pytest.mark.parametrize("value", [0.0, 5.1, -1e-9, 1e15])
def test_rounding_is_no_spread(value):
    rng = np.random.default_rng(0)
    jitter = value * (1.0 + 1e-15 * rng.standard_normal(50))
    scaling = Scaling.of(np.column_stack([jitter, np.full(50, value), rng.standard_normal(50)]), jitter)
    assert scaling.x.scale[:2].tolist() == [1.0, 1.0]
    assert scaling.x.scale[2] == pytest.approx(1.0, abs=0.3)
    assert scaling.y.scale == [1.0]


def stream(tmp_path, target):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, len(target))
    path = tmp_path / "data.csv"
    path.write_text("x,y\n" + "".join(f"{a!r},{b!r}\n" for a, b in zip(x.tolist(), target.tolist(), strict=True)))
    return path


@pytest.mark.parametrize("target", [np.full(400, 5.1), np.where(np.arange(400) % 2, 0.1 + 0.2, 0.3)])
def test_a_constant_target_is_predicted_and_not_tuned_on(tmp_path, target):
    data = stream(tmp_path, target)
    files = ["--out", tmp_path / "out.csv", "--summary", tmp_path / "s.json", "--report", tmp_path / "r.html"]
    told = inside("run", data, *files, "--save", tmp_path / "m.ogp", "--tune", "50").stderr.decode()
    assert "tuned on" not in told
    assert ogp.load(tmp_path / "m.ogp").chosen_ is None
    figures = json.loads((tmp_path / "s.json").read_text())
    assert figures["nmse"] is None
    assert -10.0 < figures["log_density"] < 10.0
    predicted = rows_of(tmp_path / "out.csv")
    np.testing.assert_allclose(numbers(predicted, "mean")[1:], target[1:], rtol=1e-9)
    for command in ("tune", "compare"):
        assert b"nothing to tune on" in inside(command, data, code=3).stderr


def test_a_constant_target_without_tuning_has_no_absurd_figures(tmp_path):
    files = ["--out", tmp_path / "out.csv", "--summary", tmp_path / "s.json"]
    inside("run", stream(tmp_path, np.full(400, 5.1)), "--kernel", "rbf(1.0)", "--noise", "0.01", *files)
    figures = json.loads((tmp_path / "s.json").read_text())
    assert figures["nmse"] is None
    assert -10.0 < figures["log_density"] < 10.0


def test_a_target_that_is_constant_at_first(tmp_path):
    """Tuning waits for the change and takes as many rows after it; from a pipe, a file or in small blocks alike."""
    rng = np.random.default_rng(1)
    target = 5.1 + 0.1 * rng.standard_normal(600)
    target[:230] = 5.1
    data = stream(tmp_path, target)
    args = ["--model", "krlst", "--budget", "20", "--tune", "40", "--quiet"]
    inside("run", data, *args, "--out", tmp_path / "out.csv", "--summary", tmp_path / "s.json")
    predicted = rows_of(tmp_path / "out.csv")
    figures = json.loads((tmp_path / "s.json").read_text())
    assert figures["scored"] == 599
    np.testing.assert_allclose(numbers(predicted, "mean")[1:230], 5.1)
    assert numbers(predicted, "log_density")[300:].mean() > 0.5  # that of the noise is 0.88
    assert 0.8 < figures["coverage"] <= 1.0
    piped = onlinegp("run", "-", *args, stdin=data.read_bytes()).stdout
    small = tmp_path / "small.csv"
    inside("run", data, *args, "--out", small, "--checkpoint", tmp_path / "safe", "--every", "7")
    assert piped == small.read_bytes() == (tmp_path / "out.csv").read_bytes()


def test_waiting_for_a_change_takes_no_more_memory():
    first = FirstRows(10, Encoder(Columns("y", ("x",), ())), varied=True)
    for _ in range(100):
        first.add(np.ones((10, 1)), np.ones(10))
    assert not first.done
    assert len(first.encoded()[1]) == 10


def test_rare_keys_delay_the_tuning_up_to_a_limit():
    first = FirstRows(10, Encoder(Columns("y", ("x",), ())), of_key=3, most=25)
    predicted = [len(first.add(np.ones((1, 1)), np.array([float(i)]), [i])) for i in range(40)]
    assert sum(predicted) == 25
    assert first.done
    first = FirstRows(10, Encoder(Columns("y", ("x",), ())), of_key=3, most=25)
    keys = [i % 5 for i in range(40)]
    assert len(first.add(np.ones((40, 1)), np.arange(40.0), keys)) == 14  # the third row of the fourth key
    np.testing.assert_array_equal(of_frequent_keys(["a", "b", "c", "b", "a", "b"], 3), [1, 3, 5])
    np.testing.assert_array_equal(of_frequent_keys(["a", "b", "c", "b", "a", "b"], 4), [0, 1, 3, 4, 5])
    np.testing.assert_array_equal(of_frequent_keys(["a", "b"], 5), [0, 1])


def test_lags_of_first_rows_are_those_of_their_series():
    y = np.array([1.0, 2.0, np.nan, 4.0, 8.0, 16.0])
    X, known = with_lags(np.empty((6, 0)), y, 2, 1)
    np.testing.assert_array_equal(X, [[6.2, 2.0], [4.0, 6.2], [8.0, 4.0]])  # a missing value is the mean
    np.testing.assert_array_equal(known, [4.0, 8.0, 16.0])
