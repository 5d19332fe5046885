"""Flags: as many false alarms as were asked for, planted faults found, and the same along any way through a stream."""

from __future__ import annotations

import json

import numpy as np
import pytest
from shell import FIXED, inside, rows_of

import onlinegp as ogp
from onlinegp.kernels import RBF
from onlinegp.metrics import drifts
from onlinegp.predictions import Gaussian
from onlinegp.streams.running.flags import MOST, Flags, Surprises
from onlinegp.streams.running.observers import Rows
from onlinegp.streams.running.predict_then_learn import Said, advance
from onlinegp.streams.running.score import LEVELS, Score

NOISE = ["--model", "krlst", "--kernel", "rbf(1.0)", "--noise", "0.01", "--budget", "10", "--tune", "0"]


def rows_with(z, std=2.0, **kwargs):
    """Rows that are z standard deviations from their predictions."""
    z = np.asarray(z, dtype=np.float64)
    said = Said(Gaussian(np.full(len(z), 5.0), np.full(len(z), std)), np.zeros(len(z)), np.ones(len(z), dtype=bool))
    return Rows.of(5.0 + std * z, said, level=0.95, **kwargs)


def stored(observer, fresh):
    """Return a fresh observer that goes on from what another one stored."""
    fresh.from_json(json.loads(json.dumps(observer.to_json(), allow_nan=False)))
    return fresh


def write_line(path, n, *, seed=0, faults=()):
    """Write y = sin(x) + N(0, 0.1^2): well specified for `NOISE` but for the faults."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, n)
    y = np.sin(x) + 0.1 * rng.standard_normal(n)
    y[list(faults)] += 1.0
    path.write_text("id,x,y\n" + "".join(f"r{i},{x[i].item()!r},{y[i].item()!r}\n" for i in range(n)))
    return path


def test_false_alarms_are_as_many_as_asked_for_and_planted_faults_are_found(tmp_path):
    """100,000 rows at 0.001: 80 to 120 surprises; with 20 faults of ten standard deviations, all of them besides."""
    n, faults = 100_000, range(3_000, 100_000, 4_850)
    assert len(faults) == 20
    counts = []
    for name, planted in (("plain", ()), ("faults", faults)):
        write_line(tmp_path / f"{name}.csv", n, faults=planted)
        out, summary = tmp_path / f"{name}-out.csv", tmp_path / f"{name}.json"
        inside("run", tmp_path / f"{name}.csv", *NOISE, "--flag", "0.001", "--out", out, "--summary", summary)
        flagged = {row["id"] for row in rows_of(out) if "surprise" in row["flag"]}
        figures = json.loads(summary.read_text())
        assert len(flagged) == figures["flags"]["surprise"]
        assert len(figures["surprises"]) == MOST
        counts.append(flagged)
        assert sum(figures["flags"].values()) - len(flagged) <= 100  # drift: at most 0.001 per row
    plain, found = counts
    assert 80 <= len(plain) <= 120
    assert {f"r{i}" for i in faults} <= found
    assert len(found) <= 140


def test_columns_say_how_odd_a_row_is(tmp_path):
    write_line(tmp_path / "data.csv", 300, faults=[200])
    out = tmp_path / "out.csv"
    inside("run", tmp_path / "data.csv", *NOISE, "--flag", "0.001", "--out", out)
    rows = rows_of(out)
    for row in rows:
        z = (float(row["y"]) - float(row["mean"])) / float(row["std"])
        assert float(row["z"]) == pytest.approx(z, rel=1e-9, abs=1e-12)
        assert 0.0 <= float(row["tail"]) <= 1.0
        assert ("surprise" in row["flag"]) == (float(row["tail"]) < 0.001)
    assert "surprise" in rows[200]["flag"]
    inside("run", tmp_path / "data.csv", *NOISE, "--out", out)
    assert "flag" not in rows_of(out)[0]


def test_missing_targets_and_tuning_rows_are_not_flagged(tmp_path):
    text = "x,y\n" + "".join(f"{i % 7},{'' if i % 10 == 5 else (i % 7) + 50 * (i in (40, 300))}\n" for i in range(400))
    (tmp_path / "data.csv").write_text(text)
    out = tmp_path / "out.csv"
    inside("run", tmp_path / "data.csv", "--model", "krlst", "--tune", "100", "--flag", "0.001", "--out", out)
    rows = rows_of(out)
    assert rows[40]["flag"] == "implausible"  # whatever is predicted of it
    assert {row["flag"] for i, row in enumerate(rows[:100]) if i != 40} == {""}
    assert rows[305]["z"] == rows[305]["tail"] == rows[305]["flag"] == ""
    assert "surprise" in rows[300]["flag"]


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_any_blocks_give_the_same_flags(size):
    z = np.random.default_rng(0).standard_normal(1000)
    z[300:330] += 1.5
    z[500:560] *= 2.0
    z[700:] /= 3.0
    whole, parts = Flags(0.01), Flags(0.01)
    expected, got = whole.add(rows_with(z)), []
    best = Surprises()
    for i in range(0, 1000, size):
        got += parts.add(rows_with(z[i : i + size]))
        best.add(rows_with(z[i : i + size], before=i))
        parts, best = stored(parts, Flags(0.01)), stored(best, Surprises())
    assert got == expected
    assert parts.to_json() == whole.to_json()
    assert {reason for flag in expected if flag for reason in flag.split()} >= {"surprise", "above", "wide", "narrow"}
    assert [row["row"] - 1 for row in best.rows] == np.argsort(-np.abs(z), kind="stable")[:MOST].tolist()


def test_the_most_surprising_rows_keep_their_keys_and_stay_few():
    best = Surprises()
    z = np.r_[np.full(30, 2.0), -50.0, np.inf, 3.0]
    best.add(rows_with(z, before=100, keys={"id": [f"r{i}" for i in range(33)]}))
    assert len(best.rows) == MOST
    assert [row["keys"]["id"] for row in best.rows[:4]] == ["r31", "r30", "r32", "r0"]
    assert best.rows[1]["row"] == 131
    json.dumps(best.to_json(), allow_nan=False)
    best.add(rows_with([99.0], tuning=True, before=133, keys={"id": ["no"]}))
    assert "no" not in [row["keys"]["id"] for row in best.rows]


def test_a_trace_has_the_same():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, (2000, 1))
    y = np.sin(x[:, 0]) + 0.1 * rng.standard_normal(2000)
    y[1500] += 2.0
    trace = ogp.run(ogp.KRLST(RBF(1.0), noise=0.01), x, y)
    np.testing.assert_array_equal(trace.flags(0.001), trace.tail < 0.001)
    assert trace.flags(0.001)[1500]
    np.testing.assert_allclose(trace.z, (y - trace.mean) / trace.std)
    assert trace.tail == pytest.approx(ogp.metrics.tail(y, trace.mean, trace.std))
    assert drifts(trace.z[1000:], 1e-4) == []
    assert drifts(trace.z[1000:] + 1.0, 1e-4)[0][1] == "above"
    with pytest.raises(ValueError, match="rate must be greater than 0"):
        trace.flags(0.0)
    with pytest.raises(ValueError, match=r"z must have shape \(n,\)"):
        drifts(np.ones((3, 2)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--on-flag", "true"], "need --flag P"),
        (["--flag-exit"], "need --flag P"),
        (["--flag", "0"], "--flag must be greater than 0"),
        (["--flag", "0.1", "--on-flag", "no-such-program x"], "there is no such program"),
        (["--flag", "0.1", "--on-flag", "'"], "cannot be split into words"),
        (["--ahead"], "--ahead predicts the next row before it comes, and its x would not be known"),
    ],
)
def test_bad_options_are_refused_before_the_output_is_touched(tmp_path, options, message):
    write_line(tmp_path / "data.csv", 50)
    (tmp_path / "out.csv").write_text("mine")
    done = inside("run", tmp_path / "data.csv", *FIXED, *options, "--out", tmp_path / "out.csv", code=1)
    assert message in done.stderr.decode()
    assert (tmp_path / "out.csv").read_text() == "mine"


def test_an_exit_code_where_it_was_asked_for(tmp_path):
    write_line(tmp_path / "data.csv", 300, faults=[200])
    args = ["run", tmp_path / "data.csv", *NOISE, "--flag", "0.00001", "--out", tmp_path / "out.csv"]
    inside(*args, code=0)
    inside(*args, "--flag-exit", code=5)
    write_line(tmp_path / "data.csv", 300)
    inside(*args, "--flag-exit", code=0)


def test_coverage_by_level_is_that_of_the_intervals():
    """Also where intervals are stretched and the density is not."""
    y = np.random.default_rng(0).standard_normal(1000)
    model = ogp.Conformal(ogp.LinearRLS(noise=0.01))
    rows, score = Rows.of(y, advance(model, np.zeros((1000, 1)), y), level=0.9), Score(0.9)
    score.add(rows)
    for level, within in zip(LEVELS, score.within, strict=True):
        lower, upper = rows.predictions.interval(level)
        assert within == np.count_nonzero(((lower <= y) & (y <= upper))[rows.scored])
