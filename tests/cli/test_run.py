"""`onlinegp run` with files and with pipes: formats, defaults, bad rows, missing targets, reports."""

from __future__ import annotations

import gzip
import json
import subprocess

import numpy as np
import pytest
from shell import FIXED, inside, onlinegp, rows_of, started, write_csv

import onlinegp as ogp
from onlinegp.kernels import RBF
from onlinegp.metrics import log_density

TABLE = "x,y\n0.5,1.0\n1.5,2.0\n0.7,\n-0.4,0.1\n"


def numbers(rows, name):
    return np.array([float(row[name]) if row[name] else np.nan for row in rows])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("data") / "data.csv", 250)


def expected(path):
    """The same stream through the library."""
    rows = rows_of(path)
    X = np.column_stack([numbers(rows, "x0"), numbers(rows, "x1")])
    return X, numbers(rows, "y"), ogp.KRLST(RBF(1.0), noise=0.01, budget=20)


def test_output_is_what_the_library_gives(data):
    predicted = rows_of(inside("run", data, *FIXED).stdout)
    X, y, model = expected(data)
    trace = ogp.run(model, X, y)
    assert list(predicted[0]) == ["time", "place", "y", "mean", "std", "lower", "upper", "log_density"]
    np.testing.assert_array_equal(numbers(predicted, "mean"), trace.mean)
    np.testing.assert_array_equal(numbers(predicted, "std"), trace.std)
    np.testing.assert_array_equal(numbers(predicted, "y"), y)
    np.testing.assert_allclose(numbers(predicted, "log_density"), log_density(y, trace.mean, trace.std))
    np.testing.assert_allclose(numbers(predicted, "upper") - trace.mean, 1.959963984540054 * trace.std)
    assert predicted[0]["place"] == "Rome, IT"
    assert predicted[1]["time"] == "2024-01-01T00:00:01"


def test_every_format_in_and_out(data, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    csv = pytest.importorskip("pyarrow.csv")
    table = csv.read_csv(data)
    pq.write_table(table, tmp_path / "data.parquet")
    (tmp_path / "data.csv.gz").write_bytes(gzip.compress(data.read_bytes()))
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist()))
    means = numbers(rows_of(inside("run", data, *FIXED).stdout), "mean")
    for name in ("data.parquet", "data.csv.gz", "data.jsonl"):
        for suffix in ("csv", "jsonl", "parquet"):
            out = tmp_path / f"{name}.out.{suffix}"
            inside("run", tmp_path / name, *FIXED, "--out", out)
            if suffix == "csv":
                got = numbers(rows_of(out), "mean")
            elif suffix == "jsonl":
                lines = [json.loads(line) for line in out.read_text().splitlines()]
                got = np.array([line["mean"] for line in lines])
                assert lines[0]["place"] == "Rome, IT"
            else:
                got = pq.read_table(out)["mean"].to_numpy()
            np.testing.assert_array_equal(got, means)


def test_pipe_answers_each_line_before_the_next(tmp_path):
    process = started("run", "-", *FIXED)
    answers = []
    for line in TABLE.splitlines(keepends=True):
        process.stdin.write(line.encode())
        process.stdin.flush()
        if line != "x,y\n":
            if not answers:
                assert process.stdout.readline() == b"y,mean,std,lower,upper,log_density\n"
            answers.append(process.stdout.readline().decode())
    process.communicate()
    assert process.returncode == 0
    (tmp_path / "table.csv").write_text(TABLE)
    assert answers == inside("run", tmp_path / "table.csv", *FIXED).stdout.decode().splitlines(keepends=True)[1:]
    assert answers[2].startswith(",1.")  # no target: predicted all the same
    assert answers[2].endswith(",\n")


def test_pipe_without_header_and_of_json():
    for lines in (["0.5,1.0\n", "1.5,2.0\n"], ['{"x": 0.5, "y": 1.0}\n', '{"x": 1.5, "y": 2.0}\n']):
        process = started("run", "-", *FIXED)
        for i, line in enumerate(lines):
            process.stdin.write(line.encode())
            process.stdin.flush()
            if i == 0:
                process.stdout.readline()
            assert process.stdout.readline().count(b",") == 5
        process.communicate()


def test_tuning_from_a_pipe_answers_at_once_and_equals_the_file(data):
    from_file = onlinegp("run", data, "--model", "krlst", "--budget", "20", "--tune", "40").stdout
    process = started("run", "-", "--model", "krlst", "--budget", "20", "--tune", "40", stderr=subprocess.DEVNULL)
    got = b""
    for i, line in enumerate(data.read_bytes().splitlines(keepends=True)[:60]):
        process.stdin.write(line)
        process.stdin.flush()
        if i:
            got += process.stdout.readline() + (process.stdout.readline() if i == 1 else b"")
    process.communicate()
    assert got == b"".join(from_file.splitlines(keepends=True)[:60])
    assert from_file.count(b"\n") == 251


def test_a_row_that_is_predicted_before_any_data_is_not_scored(tmp_path):
    x = np.random.default_rng(0).uniform(-3, 3, 50)
    data = tmp_path / "seventy.csv"
    data.write_text("x,y\n" + "".join(f"{a},{70 + np.sin(a)}\n" for a in x))
    options = ["--tune", "0", "--model", "krlst", "--noise", "0.01", "--summary", tmp_path / "figures.json"]
    done = inside("run", data, *options, "--flag", "0.001", "--report", tmp_path / "report.html")
    assert "scored 49 rows (1 not: " in done.stderr.decode()
    figures, predicted = json.loads((tmp_path / "figures.json").read_text()), rows_of(done.stdout)
    assert figures["scored"] == 49
    assert abs(numbers(predicted, "mean")[0] - 70) > 60
    error = (numbers(predicted, "y") - numbers(predicted, "mean"))[1:]
    assert figures["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert predicted[0]["event"] == ""
    assert figures["surprises"][0]["row"] != 1


def test_no_option_at_all(data, tmp_path):
    done = inside("run", data, "--summary", tmp_path / "figures.json")
    told = done.stderr.decode()
    assert "target: y, predicted from x0, x1" in told
    assert "model: auto, tuned on 160 rows" in told
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["rows"] == 250
    assert figures["scored"] == 249
    assert figures["nmse_db"] < -8.0
    assert 0.85 < figures["coverage"] <= 1.0
    predicted = rows_of(done.stdout)
    y, mean = numbers(predicted, "y")[1:], numbers(predicted, "mean")[1:]
    assert figures["rmse"] == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lags", "db"), [("mg30", 10, -45.3), ("santafe", 10, -23.0), ("lorenz", 6, -54.8)])
def test_series_files(data, name, lags, db):
    """At least as good as a 300-base KRLS-T, and 95% intervals that hold what they say."""
    predicted = rows_of(inside("run", data / f"{name}.txt", "--lags", lags).stdout)[1000:5000]
    y, mean = numbers(predicted, "value"), numbers(predicted, "mean")
    assert len(y) == 4000
    assert 10 * np.log10(np.mean((y - mean) ** 2) / np.var(y)) <= db
    covered = np.mean((numbers(predicted, "lower") <= y) & (y <= numbers(predicted, "upper")))
    assert covered >= 0.90
    assert name != "santafe" or covered <= 0.99


def test_lags_and_horizon_are_honest(tmp_path):
    """What comes later changes nothing: the rows up to t are predicted alike whatever follows."""
    rng = np.random.default_rng(0)
    series = np.sin(np.arange(120) / 4.0) + 0.05 * rng.standard_normal(120)
    for horizon in (1, 3):
        outputs = []
        for end in (60, 120):
            values = series.copy()
            values[end - 1] += 5.0  # the last value of the shorter one: it must not show before it came
            text = "".join(f"{v!r}\n" for v in values[:end].tolist())
            args = ["run", "-", "--lags", "4", "--horizon", horizon, *FIXED]
            outputs.append(rows_of(onlinegp(*args, stdin=text).stdout))
        first, second = (numbers(rows[:59], "mean") for rows in outputs)
        np.testing.assert_array_equal(first, second)
        assert not np.isnan(first).any()


def test_horizon_does_not_know_the_rows_in_between():
    """With a horizon of 2, the value just before a row does not change its prediction."""
    series = np.sin(np.arange(40) / 4.0)
    outputs = []
    for bump in (0.0, 3.0):
        values = series.copy()
        values[29] += bump
        text = "".join(f"{v!r}\n" for v in values.tolist())
        outputs.append(
            numbers(rows_of(onlinegp("run", "-", "--lags", "3", "--horizon", "2", *FIXED, stdin=text).stdout), "mean")
        )
    assert outputs[0][30] == outputs[1][30]
    assert outputs[0][31] != outputs[1][31]


def test_missing_values_of_a_series_are_bridged():
    text = "".join("\n" if i in (20, 21) else f"{np.sin(i / 4.0)!r}\n" for i in range(60))
    predicted = rows_of(
        onlinegp("run", "-", "--lags", "3", *FIXED, stdin=text.replace("np.float64(", "").replace(")", "")).stdout
    )
    assert len(predicted) == 60
    assert predicted[20]["value"] == ""
    assert predicted[20]["mean"] != ""
    assert abs(float(predicted[21]["mean"]) - np.sin(21 / 4.0)) < 0.5


BAD = {
    "a missing value": ("x,y\n1,2\n,3\n4,5\n", 3, "x", "missing"),
    "text": ("x,y\n1,2\nabc,3\n4,5\n", 3, "x", "not a number"),
    "text as target": ("x,y\n1,2\n3,abc\n4,5\n", 3, "y", "not a number"),
    "infinity": ("x,y\n1,2\ninf,3\n4,5\n", 3, "x", "infinity"),
    "a huge number": ("x,y\n1,2\n1e200,3\n4,5\n", 3, "x", "1e+150"),
    "an underscore": ("x,y\n1,2\n1_0,3\n4,5\n", 3, "x", "not a number"),
    "a short line": ("x,y\n1,2\n3\n4,5\n", 3, "", "fields"),
    "a long line": ("x,y\n1,2\n3,4,5\n4,5\n", 3, "", "fields"),
    "another encoding": ("x,place,y\n1,a,2\n3,Z\udcfcrich,3\n4,b,5\n", 3, "place", "utf-8"),
    "not JSON": ('{"x": 1, "y": 2}\nabc\n{"x": 4, "y": 5}\n', 2, "", "JSON"),
    "text in JSON": ('{"x": 1, "y": 2}\n{"x": "abc", "y": 2}\n{"x": 4, "y": 5}\n', 2, "x", "not a number"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("rows", [0, 200])
def test_bad_rows(tmp_path, kind, rows):
    """Stop and say where; or skip, count, and write down why. In short files and in fast blocks alike."""
    text, line, column, reason = BAD[kind]
    if rows:  # many good rows before the bad one, so that the fast reader meets it
        lines = text.splitlines(keepends=True)
        good = [lines[-1]] * rows
        text, line = "".join([*lines[: line - 1], *good, *lines[line - 1 :]]), line + rows
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    if rows:
        done = inside("run", path, *FIXED, code=3)
        told = done.stderr.decode()
        assert f"data.csv, line {line}" in told
        assert reason in told
        assert not column or f"column {column!r}" in told
        assert done.stdout.count(b"\n") == line - 1 + ("JSON" in kind)  # every row before it, and the header
    args = [
        "run",
        path,
        *FIXED,
        "--on-bad-row",
        "skip",
        "--rejects",
        tmp_path / "bad.csv",
        "--out",
        tmp_path / "out.csv",
    ]
    assert b"1 rejected" in inside(*args).stderr
    (bad,) = rows_of(tmp_path / "bad.csv")
    assert bad["line"] == str(line)
    assert bad["column"] == column
    assert reason in bad["reason"]
    assert len(rows_of(tmp_path / "out.csv")) == 2 + rows


def test_duplicate_header_and_other_first_lines():
    assert b"'x' more than once" in onlinegp("run", "-", *FIXED, stdin="x,x,y\n1,2,3\n", code=3).stderr
    assert b"is empty" in onlinegp("run", "-", *FIXED, code=3).stderr
    assert b"UTF-16" in onlinegp("run", "-", *FIXED, stdin="x,y\n1,2\n".encode("utf-16"), code=3).stderr
    assert onlinegp("run", "-", *FIXED, stdin=b"\xef\xbb\xbfx,y\n1,2\n").stdout.startswith(b"y,mean")
    latin = onlinegp("run", "-", *FIXED, "--encoding", "latin-1", stdin="Z\xfcrich,x,y\na,1,2\n".encode("latin-1"))
    assert latin.stdout.decode().startswith("Z\xfcrich,y,mean")


@pytest.mark.parametrize("text", ["x;y\r\n1;2\r\n3;4\r\n", "x\ty\n1\t2\n3\t4\n", " 1  2\n 3  4\n", "x, y\n1, 2\n3, 4"])
def test_delimiters(text):
    assert onlinegp("run", "-", *FIXED, stdin=text).stdout.decode().splitlines()[2].startswith("4,")


def test_quoted_line_ends(tmp_path):
    rows = "".join(f'"a\nb, ""c""",{i % 5},{i % 3}\n' for i in range(5000))
    (tmp_path / "data.csv").write_text("note,x,y\n" + rows)
    out = tmp_path / "out.csv"
    inside("run", tmp_path / "data.csv", *FIXED, "--budget", "5", "--out", out)
    import csv

    with open(out, newline="") as file:
        predicted = list(csv.DictReader(file))
    assert len(predicted) == 5000
    assert {row["note"] for row in predicted} == {'a\nb, "c"'}


def test_robust_bounds_an_outlier():
    x = np.linspace(0.0, 6.0, 60)
    y = np.sin(x)
    y[40] = 1000.0
    text = "x,y\n" + "".join(f"{a},{b}\n" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    args = ["run", "-", "--kernel", "rbf(1.0)", "--noise", "0.01", "--model", "krlst"]
    plain = numbers(rows_of(onlinegp(*args, stdin=text).stdout), "mean")
    robust = numbers(rows_of(onlinegp(*args, "--robust", stdin=text).stdout), "mean")
    np.testing.assert_allclose(plain[:41], robust[:41], atol=1e-9)
    assert abs(plain[41] - np.sin(x[41])) > 10.0
    assert abs(robust[41] - np.sin(x[41])) < 0.5


def test_level_and_wrong_options(data):
    narrow = rows_of(inside("run", data, *FIXED, "--level", "0.5").stdout)
    ratio = (numbers(narrow, "upper") - numbers(narrow, "mean")) / numbers(narrow, "std")
    np.testing.assert_allclose(ratio, 0.6744897501960817)
    for args, told in (
        (["--level", "2"], "level"),
        (["--model", "none"], "there is no model"),
        (["--model", "klms", "--set", "radius=1"], "has no parameter"),
        (["--target", "z"], "there is no column 'z'"),
        (["--out", "out.xyz"], ".csv, .jsonl or .parquet"),
        (["--horizon", "2"], "--lags"),
        (["--kernel", "__import__('os')"], "cannot read"),
        (["--every", "soon"], "--every"),
    ):
        assert told in inside("run", data, *args, code=1).stderr.decode()
    assert inside("run", data, "--no-such-option", code=2).stderr


def test_closed_pipe(data):
    process = started("run", data, *FIXED, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(timeout=60) in (0, 141)  # 0 if all had been written before
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()


def test_help_explains_itself():
    told = inside("run", "--help-all").stdout.decode()
    for word in ("examples:", "exit codes:", "--resume", "130"):
        assert word in told
