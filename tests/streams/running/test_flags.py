"""Events of a run: as many as were asked for, planted faults found, and the same along any way through a stream."""

from __future__ import annotations

import json

import numpy as np
import pytest
from shell import FIXED, inside, rows_of

import onlinegp as ogp
from onlinegp.kernels import RBF
from onlinegp.metrics import drifts
from onlinegp.predictions import Gaussian
from onlinegp.streams.reading.formats import open_source
from onlinegp.streams.reading.source import Columns
from onlinegp.streams.running.event_rate import detector_parameters, time_column
from onlinegp.streams.running.flags import Flags
from onlinegp.streams.running.observers import Rows
from onlinegp.streams.running.predict_then_learn import Predicted, advance
from onlinegp.streams.running.score import LEVELS, Score
from onlinegp.streams.running.surprises import MOST, Surprises

NOISE = ["--model", "krlst", "--kernel", "rbf(1.0)", "--noise", "0.01", "--budget", "10", "--tune", "0"]


def rows_with(z, std=2.0, **kwargs):
    """Rows that are z standard deviations from their predictions."""
    z = np.asarray(z, dtype=np.float64)
    predicted = Predicted(
        Gaussian(np.full(len(z), 5.0), np.full(len(z), std)), np.zeros(len(z)), np.ones(len(z), dtype=bool)
    )
    return Rows.of(5.0 + std * z, predicted, level=0.95, **kwargs)


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


def events_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_false_events_are_as_many_as_asked_for_and_planted_faults_are_found(tmp_path):
    """30,000 rows at 0.001: about 30 events; with 10 faults of ten standard deviations, all of them besides."""
    n, faults = 30_000, range(3_000, 30_000, 2_850)
    opened = []
    for name, planted in (("plain", ()), ("faults", faults)):
        write_line(tmp_path / f"{name}.csv", n, faults=planted)
        files = {name: tmp_path / name for name in ("out.csv", "summary.json", "events.jsonl")}
        more = ["--out", files["out.csv"], "--summary", files["summary.json"], "--events", files["events.jsonl"]]
        inside("run", tmp_path / f"{name}.csv", *NOISE, "--flag", "0.001", *more)
        events = events_of(files["events.jsonl"])
        opened.append([event for event in events if event["state"] == "open"])
        assert sum(json.loads(files["summary.json"].read_text())["events"].values()) == len(opened[-1])
        cleared = [event["event"] for event in events if event["state"] == "clear"]
        assert cleared == [event["event"] for event in opened[-1]][: len(cleared)]
        rows = rows_of(files["out.csv"])
        assert {int(row["event"]) for row in rows if row["event"]} == {event["event"] for event in opened[-1]}
        assert all(rows[event["row"] - 1]["event"] == str(event["event"]) for event in opened[-1])
    plain, found = ({event["columns"]["id"] for event in events} for events in opened)
    assert 12 <= len(plain) <= 48
    assert len({f"r{i}" for i in faults} & found) >= 9


def test_columns_say_how_odd_a_row_is(tmp_path):
    write_line(tmp_path / "data.csv", 600, faults=[500])
    out = tmp_path / "out.csv"
    inside("run", tmp_path / "data.csv", *NOISE, "--flag", "0.001", "--out", out)
    rows = rows_of(out)
    assert all(0.0 < float(row["tail"]) <= 1.0 for row in rows)
    assert all(float(row["score"]) == 0.0 for row in rows[:150])
    assert float(rows[500]["score"]) >= 3.0
    assert float(rows[500]["tail"]) < 0.01
    assert rows[500]["event"] != rows[499]["event"]
    plain = tmp_path / "plain.csv"
    inside("run", tmp_path / "data.csv", *NOISE, "--out", plain)
    assert "event" not in rows_of(plain)[0]
    assert [row["mean"] for row in rows_of(plain)] == [row["mean"] for row in rows]  # it only watches


def test_a_target_that_is_missing_for_long_is_an_event(tmp_path):
    text = "time,x,y\n" + "".join(
        f"{i // 60:02}:{i % 60:02},{i % 7},{'' if 400 <= i < 430 else (i % 7) + 0.1 * (i % 3)}\n" for i in range(600)
    )
    (tmp_path / "data.csv").write_text(text)
    more = ["--out", tmp_path / "out.csv", "--events", tmp_path / "events.jsonl"]
    inside("run", tmp_path / "data.csv", "--model", "krlst", "--tune", "100", "--flag", "0.001", *more)
    event = next(event for event in events_of(tmp_path / "events.jsonl") if event["kind"] == "missing")
    assert event["since"] == 401
    assert event["reason"] == "y is missing, since row 401; x as usual"


def test_times_and_inputs_are_in_the_reasons(tmp_path):
    rng = np.random.default_rng(0)
    load, y = rng.normal(5.0, 1.0, 800), np.zeros(800)
    y = load + 0.1 * rng.standard_normal(800)
    load[700:720] += 8.0
    lines = [f"2024-01-01T{i // 60:02}:{i % 60:02}:00,{load[i]:.3f},{y[i]:.3f}" for i in range(800)]
    (tmp_path / "data.csv").write_text("time,load,y\n" + "\n".join(lines) + "\n")
    more = ["--model", "linearrls", "--tune", "200", "--events", tmp_path / "events.jsonl", "--out", tmp_path / "o.csv"]
    inside("run", tmp_path / "data.csv", *more, "--flag", "1/day")
    event = next(event for event in events_of(tmp_path / "events.jsonl") if event["row"] == 701)
    assert event["unusual"] == ["load"]
    assert event["reason"].startswith("y ")
    assert event["reason"].endswith("at 2024-01-01T11:40:00; load is unusual, too")


def test_lags_of_the_target_are_inputs_of_a_table_with_times_where_they_help(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(500)
    told = {}
    slow = 50.0 * np.sin(np.arange(500) / 30.0)
    for name, y in (("slow", 0.1 * x + slow + rng.standard_normal(500)), ("plain", x + rng.standard_normal(500))):
        lines = [f"2024-01-{1 + i // 24:02}T{i % 24:02}:00:00,{x[i]:.3f},{y[i]:.3f}" for i in range(500)]
        for rows in (400, 500):
            (tmp_path / f"{name}.csv").write_text("time,x,y\n" + "\n".join(lines[:rows]) + "\n")
            args = [
                tmp_path / f"{name}.csv",
                "--model",
                "linearrls",
                "--tune",
                "50",
                "--out",
                tmp_path / f"{name}.out.csv",
            ]
            if rows == 400:
                untouched = inside("run", *args, "--lags", "0", "--flag", "0.001").stderr
                assert b"are inputs, too" not in untouched + inside("run", *args).stderr
            args += ["--flag", "0.001", "--checkpoint", tmp_path / name, *(["--resume"] if rows == 500 else [])]
            told[name, rows] = inside("run", *args).stderr
    assert [pair for pair, text in told.items() if b"are inputs, too" in text] == [("slow", 400)]
    rows = rows_of(tmp_path / "slow.out.csv")
    assert len(rows) == 500
    assert np.mean([abs(float(row["mean"]) - float(row["y"])) for row in rows[400:]]) < 2.0


def test_a_budget_per_day_is_a_rate_by_the_times(tmp_path):
    rows = [f"2024-01-{1 + i // 24:02}T{i % 24:02}:00:00,{i % 5}" for i in range(120)]
    (tmp_path / "d.csv").write_text("time,y\n" + "\n".join(rows) + "\n")
    source = open_source(str(tmp_path / "d.csv"))
    source.select(Columns("y", (), ("time",)))
    assert time_column(source, None, None) == "time"
    found = detector_parameters("1/day", source, by=None, time="time")
    assert found == {"rate": pytest.approx(1 / 24), "season": 24, "daily": True}
    assert detector_parameters("2/week", source, by=None, time="time")["rate"] == pytest.approx(2 / 168)
    assert detector_parameters("0.01", source, by=None, time=None) == {"rate": 0.01}
    with pytest.raises(ValueError, match="no column of increasing times"):
        detector_parameters("1/day", source, by=None, time=None)
    with pytest.raises(ValueError, match="less than one event in two rows"):
        detector_parameters("1/minute", source, by=None, time="time")


def test_many_keys_that_report_at_the_same_time_have_no_rate_in_time(tmp_path):
    rows = [f"2024-01-01T00:00:00,d{i},{i % 5}" for i in range(300)]
    (tmp_path / "d.csv").write_text("time,device,y\n" + "\n".join(rows) + "\n")
    source = open_source(str(tmp_path / "d.csv"))
    source.select(Columns("y", (), ("time", "device")))
    with pytest.raises(ValueError, match="as if many keys reported at the same time"):
        detector_parameters("1/day", source, by="device", time="time")


def test_the_command_says_what_a_rate_in_time_is_per_row(tmp_path):
    rows = [f"2024-01-{1 + i // 24:02}T{i % 24:02}:00:00,{i % 7}" for i in range(120)]
    (tmp_path / "d.csv").write_text("time,y\n" + "\n".join(rows) + "\n")
    told = inside(
        "run", tmp_path / "d.csv", "--lags", "2", *FIXED, "--flag", "1/day", "--out", tmp_path / "o.csv"
    ).stderr
    assert b"--flag 1/day is 0.0417 events per row, by the times of the first rows" in told


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("timestamp", lambda i: str(1_704_067_200_000 + 3_600_000 * i)),
        ("time", lambda i: str(1_704_067_200 + 3_600 * i)),
        ("Zeit", lambda i: f"{1 + i // 24:02}.01.2024 {i % 24:02}:00"),
    ],
)
def test_times_of_other_forms_make_a_rate_too(tmp_path, name, text):
    rows = [f"{text(i)},{i % 7},{i % 5}" for i in range(120)]
    (tmp_path / "d.csv").write_text(f"{name},x,y\n" + "\n".join(rows) + "\n")
    source = open_source(str(tmp_path / "d.csv"))
    source.select(Columns("y", ("x",), (name,)))
    assert time_column(source, None, None) == time_column(source, name, None) == name
    found = detector_parameters("1/day", source, by=None, time=name)
    assert found == {"rate": pytest.approx(1 / 24), "season": 24, "daily": True}
    assert time_column(source, "x", None) is None
    assert time_column(source, None, "%Y") is None  # a format that is given is the only one


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_any_blocks_give_the_same_events(size):
    y = np.random.default_rng(0).standard_normal(1000)
    y[300:330] += 5.0
    y[500:560] *= 4.0
    times = {"time": [f"t{i}" for i in range(1000)]}

    def observed(detector, rows, flags):
        part = slice(rows.start, rows.stop)
        predicted = Predicted(detector.detect(y[part]), np.zeros(len(y[part])), np.ones(len(y[part]), dtype=bool))
        keys = {"time": times["time"][part]}
        return flags.add(Rows.of(y[part], predicted, level=0.95, before=part.start, keys=keys))

    whole, parts = Flags(time="time"), Flags(time="time")
    (expected, opened), detector = observed(ogp.Detector(), slice(0, 1000), whole), ogp.Detector()
    got, found, best = [], [], Surprises()
    for i in range(0, 1000, size):
        columns, some = observed(detector, slice(i, min(1000, i + size)), parts)
        got += columns[2]
        found += some
        best.add(rows_with(y[i : i + size], before=i))
        parts, best = stored(parts, Flags(time="time")), stored(best, Surprises())
    assert got == expected[2]
    assert found == opened
    assert parts.to_json() == whole.to_json()
    assert whole.count >= 2
    assert [row["row"] - 1 for row in best.rows] == np.argsort(-np.abs(y), kind="stable")[:MOST].tolist()


def test_each_event_that_clears_was_reported_when_it_opened_and_has_a_time(tmp_path):
    """With keys, models learn the rows of the tuning, in which one event opens and no event is reported."""
    rng = np.random.default_rng(0)
    lines = ["time,key,x,y"]
    for i in range(1000):
        for key in "ab":
            x = rng.standard_normal()
            y = (
                x
                + 0.1 * rng.standard_normal()
                + 3.0 * (key == "a" and i in (295, 600))
                + (key == "b" and 700 < i < 740)
            )
            lines.append(f"2024-01-01T{i // 60:02}:{i % 60:02}:00,{key},{x:.4f},{y:.4f}")
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    more = ["--model", "linearrls", "--tune", "600", "--out", tmp_path / "o.csv", "--events", tmp_path / "events.jsonl"]
    inside("run", tmp_path / "data.csv", "--by", "key", "--flag", "0.001", *more)
    events = events_of(tmp_path / "events.jsonl")
    opened = [(event["key"], event["event"]) for event in events if event["state"] == "open"]
    cleared = [(event["key"], event["event"]) for event in events if event["state"] == "clear"]
    assert cleared == opened[: len(cleared)]
    assert any(event["key"] == "a" and event["start"] == 601 and event["event"] > 1 for event in events)
    assert all("2024-01-01T" in event["reason"] for event in events)


def test_an_event_of_a_key_that_a_larger_one_outdoes_clears_with_the_time_of_that():
    y = np.random.default_rng(0).standard_normal(1100)
    y[1000] += 4.0
    y[1012] += 40.0
    keys = {"time": [f"t{i}" for i in range(1100)], "key": ["a"] * 1100}
    predicted = Predicted(ogp.Detector().detect(y), np.zeros(1100), np.ones(1100, dtype=bool))
    flags = Flags(time="time", by="key")
    flags.add(Rows.of(y, predicted, level=0.95, keys=keys))
    event = flags.events[-1]
    assert [event["state"], event["start"], event["peak"], event["rows"]] == ["clear", 1001, 1013, 1]
    assert event["reason"].endswith(" 12 rows after t1000")


def test_the_most_surprising_rows_keep_their_keys_and_stay_few():
    best = Surprises()
    z = np.r_[np.full(30, 2.0), -50.0, np.inf, 3.0]
    best.add(rows_with(z, before=100, keys={"id": [f"r{i}" for i in range(33)]}))
    assert len(best.rows) == MOST
    assert [row["keys"]["id"] for row in best.rows[:4]] == ["r31", "r30", "r32", "r0"]
    assert best.rows[1]["row"] == 131
    json.dumps(best.to_json(), allow_nan=False)
    best.add(rows_with([99.0], unscored=1, before=133, keys={"id": ["no"]}))
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
        (["--on-flag", "true"], "need --flag RATE"),
        (["--flag-exit"], "need --flag RATE"),
        (["--events", "e.jsonl"], "need --flag RATE"),
        (["--flag", "0"], "--flag must be greater than 0"),
        (["--flag", "often"], "--flag must be a number of events per row"),
        (["--flag", "1/day"], "no column of increasing times"),
        (["--flag", "1/year"], "--flag must be per minute, hour, day, week, month"),
        (["--flag", "0.1", "--on-flag", "no-such-program x"], "there is no such program"),
        (["--flag", "0.1", "--on-flag", "'"], "cannot be split into words"),
        (["--ahead"], "--ahead predicts the next row before it arrives, but then its x would be unknown"),
    ],
)
def test_bad_options_are_refused_before_the_output_is_touched(tmp_path, options, message):
    write_line(tmp_path / "data.csv", 50)
    (tmp_path / "out.csv").write_text("mine")
    done = inside("run", tmp_path / "data.csv", *FIXED, *options, "--out", tmp_path / "out.csv", code=1)
    assert message in done.stderr.decode()
    assert (tmp_path / "out.csv").read_text() == "mine"


def test_an_exit_code_where_it_was_asked_for(tmp_path):
    write_line(tmp_path / "data.csv", 1000, faults=[800])
    args = ["run", tmp_path / "data.csv", *NOISE, "--flag", "0.0001", "--out", tmp_path / "out.csv"]
    inside(*args, code=0)
    inside(*args, "--flag-exit", code=5)
    write_line(tmp_path / "data.csv", 1000)
    inside(*args, "--flag-exit", code=0)


def test_a_run_of_short_series_says_why_it_has_no_events(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "d.csv").write_text(
        "device,x,y\n" + "".join(f"d{i % 9},{rng.normal():.3f},{rng.normal():.3f}\n" for i in range(900))
    )
    args = ["run", "d.csv", *NOISE, "--flag", "0.0001", "--out", "o.csv"]
    told = inside(*args, "--by", "device", cwd=tmp_path).stderr.decode()
    assert "events: none; the first 150 rows of a series open no event" in told
    assert "events: none\n" in inside(*args, cwd=tmp_path).stderr.decode()


def test_coverage_by_level_is_that_of_the_intervals():
    """Also where intervals are stretched and the density is not."""
    y = np.random.default_rng(0).standard_normal(1000)
    model = ogp.Conformal(ogp.LinearRLS(noise=0.01))
    rows, score = Rows.of(y, advance(model, np.zeros((1000, 1)), y), level=0.9), Score(0.9)
    score.add(rows)
    for level, within in zip(LEVELS, score.within, strict=True):
        lower, upper = rows.predictions.interval(level)
        assert within == np.count_nonzero(((lower <= y) & (y <= upper))[rows.scored])
