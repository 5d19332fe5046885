"""Text, dates and missing values in streams: one rule whoever reads, nothing from the future, all kept."""

from __future__ import annotations

import gzip
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
from outcomes import outcomes
from shell import FIXED, inside, onlinegp, rows_of

from onlinegp.columns.plan import Plan, Rules
from onlinegp.files.container import ModelFileError
from onlinegp.streams.reading.cell_types import label
from onlinegp.streams.reading.formats import open_source
from onlinegp.streams.reading.source import Columns, choose_columns
from onlinegp.streams.reading.unused_columns import unused
from onlinegp.streams.running.checkpoint import checked, from_bytes

ALL = ["--categories", "onehot", "--dates", "calendar", "--missing", "impute"]
TUNED = ["--model", "krlst", "--budget", "15", "--tune", "60"]
EVERYTHING = Rules("onehot", dates="calendar", missing="impute")
NAMES = ("when", "state", "x", "y")


def rows(n: int = 150, seed: int = 0) -> list[tuple[str, str | None, float | None, float]]:
    """Return a table: a time every five hours, a category that is now and then missing or new, a number, a target."""
    rng = random.Random(seed)
    table = []
    for i in range(n):
        state = None if i % 23 == 7 else "new" if i > 90 and i % 31 == 0 else rng.choice(["on", "off"])
        x = None if i % 17 == 5 else rng.randrange(-8, 9) / 8
        when = f"2024-0{1 + i // 120}-{1 + i // 5 % 24:02d}T{i % 5 * 5:02d}:30:00"
        y = 2.0 * (state == "on") + (x or 0.0) + math.sin(2 * math.pi * (i % 5 * 5) / 24)
        table.append((when, state, x, round(y * 64) / 64))
    return table


def write(path: Path, table: list, *, mark: str = ",", decimal: str = ".") -> Path:
    """Write a table as the name of the file says."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in table))
    elif path.suffix == ".parquet":
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pa.table(dict(zip(NAMES, map(list, zip(*table, strict=True)), strict=True))), path)
    else:
        text = mark.join(NAMES) + "\n"
        for row in table:
            fields = ["" if v is None else repr(v).replace(".", decimal) if isinstance(v, float) else v for v in row]
            text += mark.join(fields) + "\n"
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def columns(rules: Rules = EVERYTHING) -> Columns:
    kinds = tuple(kind if rules.uses(kind) else "number" for kind in ("date", "category", "number"))
    return Columns("y", ("when", "state", "x"), ("when",), kinds, rules.missing, rules.date_format)


def encoded(path: Path, **options) -> list[list[float]]:
    """Return X of all rows, by a plan that is learned from the first 60."""
    from onlinegp.streams.running.column_encoding import Encoder

    source = open_source(str(path), rows=7, **options)
    source.select(choose_columns(source, rules=EVERYTHING))
    cells = np.concatenate([block.X for block in source])
    encoder = Encoder(source.columns, EVERYTHING)
    encoder.learn(cells[:60])
    return encoder(cells).tolist()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.parquet"])
def test_every_format_gives_the_same_inputs(tmp_path, name):
    plain = encoded(write(tmp_path / "plain.csv", rows()))
    assert len(plain) == 150
    assert len(plain[0]) == 7 + 3 + 2  # hour, weekday, month, days; off, on, missing; x, missing
    assert encoded(write(tmp_path / name, rows())) == plain
    comma = write(tmp_path / "comma.csv", rows(), mark=";", decimal=",")
    assert encoded(comma, decimal=",") == plain


def test_parquet_dates_have_their_own_type(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pc = pytest.importorskip("pyarrow.compute")
    table = parquet.read_table(write(tmp_path / "text.parquet", rows()))
    for unit in ("s", "ns"):
        moments = pc.cast(table["when"].cast(pa.timestamp("s")), pa.timestamp(unit))
        parquet.write_table(table.set_column(0, "when", moments), tmp_path / f"{unit}.parquet")
        assert encoded(tmp_path / f"{unit}.parquet") == encoded(tmp_path / "text.parquet")


ODD = [
    *("", " ", "NA", " NA ", "null", "on", " on ", "on\t", '"on"', '"o""n"', '"on, off"', "ON", "1", "1.0", "true"),
    *("2024-01-01", "2024-01-01 05:00", " 2024-01-01", "2024-13-01", "31.12.2024", "20240101", "2024-W01-1", "noon"),
    *("2024-01-01T05:00:00Z", "2024-01-01T05:00:00+25:00", "\u0661", "M\u00fcnchen", "1e400", "-inf", "0x10", "nAn"),
]


@pytest.mark.parametrize("missing", ["impute", "stop"])
@pytest.mark.parametrize("place", range(4))
def test_readers_agree_on_odd_fields(tmp_path, place, missing):
    """With pyarrow and without, in short blocks and long ones: the same cells, rejects and errors."""
    good = ["2024-01-01", "on", "0.5", "1.5"]
    rules = Rules("onehot", dates="calendar", missing=missing)
    for i, field in enumerate(ODD):
        odd = [*good[:place], field, *good[place + 1 :]]
        lines = [",".join(row) for row in (NAMES, *[good] * 33, odd, *[good] * 33)]
        path = tmp_path / f"{i}.csv"
        path.write_text("\n".join(lines) + "\n", "utf-8")
        for skip in (True, False):
            first, *others = outcomes(path, (41, 4096), columns=columns(rules), skip=skip, finite=False)
            assert [first] * len(others) == others, field
            assert len(first["y"]) + len(first["rejected"]) + 33 * (not skip) >= 66


def test_plain_numbers_stay_plain(tmp_path):
    """Nobody who has numbers pays for those who have not."""
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "0.5,1.5\n" * 40)
    source = open_source(str(path))
    source.select(choose_columns(source, rules=Rules("onehot", dates="calendar")))
    assert source.columns.plain
    assert next(iter(source)).X.dtype == np.float64


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (False, "false"), (3, "3"), (2.5, "2.5"), (" a b ", "a b")]
)
def test_labels(value, text):
    assert label(value) == text


@pytest.mark.parametrize("value", [[1], {}, None, math.nan])
def test_no_labels(value):
    with pytest.raises(ValueError, match=r".*"):
        label(value)


# What is said


def test_what_is_not_used_is_said_with_the_remedy(tmp_path):
    path = tmp_path / "a.csv"
    table = [
        f"{i},2024-01-{1 + i % 28:02d},{1 + i % 28:02d}.12.2024,{'ab'[i % 2]},{i},{i % 7},{i % 5}" for i in range(60)
    ]
    path.write_text("\n".join([",day,other day,class,id,x,y", *table]) + "\n")
    told = inside("run", path, *FIXED, "--out", tmp_path / "o.csv").stderr.decode()
    assert "not used: column1 (has no name: --features uses it)" in told
    assert "; day (dates: --dates calendar uses them)" in told
    assert "other day (dates in another format: --dates calendar --date-format '%d.%m.%Y' uses them)" in told
    assert "class (text: --categories onehot uses it)" in told
    assert "id (named like a key: --features uses it)" in told
    assert "predicted from x\n" in told
    told = inside("run", path, *FIXED, "--categories", "onehot", "--out", tmp_path / "o.csv").stderr.decode()
    assert "other day (dates in another format" in told
    assert "predicted from class, x\n" in told
    told = inside("run", path, *FIXED, "--features", "x", "--out", tmp_path / "o.csv").stderr.decode()
    assert "not used" not in told
    assert b"not used" not in inside("run", path, *FIXED, "--quiet", "--out", tmp_path / "o.csv").stderr
    told = inside("run", path, *FIXED, "--lags", "2", "--copy", "id,day", "--out", tmp_path / "o.csv").stderr.decode()
    assert "not used: other day (dates in another format" in told
    assert "class (text" in told
    assert "column1" not in told


def test_nothing_is_said_where_all_is_used(tmp_path):
    source = open_source(str(write(tmp_path / "a.csv", rows())))
    assert unused(source, choose_columns(source, rules=EVERYTHING), EVERYTHING) == ""


def test_text_that_is_asked_for_without_a_rule_is_refused_with_the_remedy(tmp_path):
    path = write(tmp_path / "a.csv", rows())
    for name, option in (("state", "--categories onehot"), ("when", "--dates calendar")):
        told = inside("run", path, *FIXED, "--features", name, code=3).stderr.decode()
        assert f"'{name}' does not contain numbers. Add {option}" in told


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_value_that_is_no_date(tmp_path, name):
    table = rows()
    table[99] = ("31.01.2024", *table[99][1:])
    path = write(tmp_path / name, table)
    args = ["run", path, *TUNED, *ALL, "--out", tmp_path / "o.csv"]
    told = inside(*args, code=3).stderr.decode()
    line = {"a.csv": 101, "a.jsonl": 100, "a.parquet": 100}[name]
    assert f"line {line}, column 'when': '31.01.2024' is not a date by ISO 8601" in told
    assert "If it is a date, add --date-format '%d.%m.%Y'" in told
    assert len(rows_of(tmp_path / "o.csv")) == 99
    inside(*args, "--on-bad-row", "skip", "--rejects", tmp_path / "r.csv")
    (rejected,) = rows_of(tmp_path / "r.csv")
    assert (rejected["line"], rejected["column"], rejected["value"]) == (str(line), "when", "31.01.2024")
    assert "31.01.2024" in rejected["text"]
    assert len(rows_of(tmp_path / "o.csv")) == 149


def test_other_formats_of_dates(tmp_path):
    other = tmp_path / "other.csv"
    iso = write(tmp_path / "iso.csv", [(when, "on", 0.5, y) for when, _, _, y in rows()])
    lines = iso.read_text().splitlines()
    changed = [f"{w[8:10]}.{w[5:7]}.{w[:4]} {w[11:16]}{w[19:]}" for w in lines[1:]]
    other.write_text("\n".join([lines[0], *changed]) + "\n")
    outputs = []
    for path, more in ((iso, []), (other, ["--date-format", "%d.%m.%Y %H:%M"])):
        inside("run", path, *TUNED, *ALL, *more, "--copy", "x", "--out", tmp_path / "o.csv")
        outputs.append((tmp_path / "o.csv").read_bytes())
    assert outputs[0] == outputs[1]
    told = inside("run", other, *ALL, "--date-format", "dd.mm.yyyy", code=1).stderr.decode()
    assert "date_format must name day, month and year" in told


def test_digits_are_dates_if_a_format_says_so(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("day,x,y\n" + "".join(f"202401{1 + i % 28:02d},{i},{i % 7}\n" for i in range(50)))
    source = open_source(str(path))
    assert choose_columns(source).features == ("day", "x")
    chosen = choose_columns(source, rules=Rules(dates="calendar", date_format="%Y%m%d"))
    assert chosen.kinds == ("date", "number")


def test_missing_features_stop_unless_they_are_imputed(tmp_path):
    path = write(tmp_path / "a.csv", rows())
    told = inside("run", path, *TUNED, *ALL[:4], code=3).stderr.decode()
    assert "line 7, column 'x': '' means that the value is missing" in told
    assert "--missing impute" in told
    inside("run", path, *TUNED, *ALL, "--out", tmp_path / "o.csv")
    assert len(rows_of(tmp_path / "o.csv")) == 150


def test_a_column_that_is_empty_in_the_first_rows_is_named(tmp_path):
    path = write(tmp_path / "a.csv", [(when, state, None, y) for when, state, _, y in rows()])
    told = inside("run", path, *TUNED, *ALL, "--features", "when,state,x", code=1).stderr.decode()
    assert "'x' has no value in the first 60 rows" in told


# What is learned


def predictions(path: Path, folder: Path, *more: object) -> bytes:
    inside("run", path, *TUNED, *ALL, *more, "--out", folder / "o.csv")
    return (folder / "o.csv").read_bytes()


def test_categories_and_dates_make_predictions_better(tmp_path):
    path = write(tmp_path / "a.csv", rows(400))
    errors = []
    for more in (["--missing", "impute"], ALL):
        inside("run", path, *TUNED, *more, "--out", tmp_path / "o.csv", "--summary", tmp_path / "s.json")
        errors.append(json.loads((tmp_path / "s.json").read_text())["rmse"])
    assert errors[1] < 0.5 * errors[0]


def test_with_lags_numbers_are_inputs_only_by_name(tmp_path):
    """As the guide says: text and dates are inputs whenever their options say so."""
    lines = [f"2024-01-{i + 1:02d},{'ab'[i % 2]},{i},{i % 5}" for i in range(28)]
    (tmp_path / "d.csv").write_text("\n".join(["day,kind,x,y", *lines]) + "\n")
    args = ["run", tmp_path / "d.csv", *FIXED, "--tune", "0", "--lags", "2", "--out", tmp_path / "o.csv"]
    for more, features in (
        ([], ""),
        (["--dates", "calendar"], "day and "),
        (["--dates", "calendar", "--categories", "onehot"], "day, kind and "),
        (["--dates", "calendar", "--features", "x"], "x and "),
    ):
        assert f"target: y, predicted from {features}its last 2 values\n" in inside(*args, *more).stderr.decode()


@pytest.mark.parametrize("model", [[], ["--lags", "2"], FIXED, ["--tune", "0", *FIXED]])
def test_the_size_of_blocks_and_pipes_change_nothing(tmp_path, model):
    path = write(tmp_path / "a.csv", rows())
    first = ["--tune", "60"] if model == FIXED else []
    args = [*model, *first]
    whole = predictions(path, tmp_path, *args)
    assert predictions(path, tmp_path, *args, "--every", "7") == whole
    if "--tune" not in model:  # a pipe has no length, so that it learns the columns from more rows
        done = onlinegp("run", "-", *TUNED, *ALL, *args, stdin=path.read_bytes())
        assert done.stdout == whole


def test_no_row_changes_what_is_said_before_it(tmp_path):
    table = rows()
    before = predictions(write(tmp_path / "a.csv", table), tmp_path).splitlines()
    for cut in (100, 61):
        other = [*table[:cut], *((when, "elsewhere", 1e6, -y) for when, _, _, y in table[cut:])]
        after = predictions(write(tmp_path / "b.csv", other), tmp_path).splitlines()
        assert after[: cut + 1] == before[: cut + 1]
        assert after[cut + 2 :] != before[cut + 2 :]


def test_a_pipe_is_answered_line_by_line_while_the_columns_are_learned():
    from shell import started

    lines = ["when,state,y", *(f"2024-01-{1 + i:02d},{'ab'[i % 2]},{i % 3}" for i in range(12))]
    process = started("run", "-", *FIXED, *ALL, "--tune", "5", "--quiet")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write((lines[0] + "\n").encode())
    for i, line in enumerate(lines[1:]):
        process.stdin.write((line + "\n").encode())
        process.stdin.flush()
        if i == 0:
            assert process.stdout.readline().startswith(b"when,state,y,mean")
        assert process.stdout.readline().startswith(line.split(",")[0].encode())
    process.communicate(timeout=30)
    assert process.returncode == 0


# What is kept


def test_saved_models_know_their_columns(tmp_path):
    table = rows()
    write(tmp_path / "a.csv", table[:100])
    write(tmp_path / "b.csv", table[100:])
    said = inside("run", "a.csv", *TUNED, *ALL, "--save", "m.ogp", "--out", "o.csv", cwd=tmp_path).stderr.decode()
    assert "inputs from state: state=off, state=on, state=missing" in said
    shown = inside("inspect", "m.ogp", cwd=tmp_path).stdout.decode()
    assert "state: state=off, state=on, state=missing" in shown
    assert "x: x, x=missing" in shown
    inside("run", "b.csv", "--start", "m.ogp", "--out", "started.csv", cwd=tmp_path)
    inside("run", write(tmp_path / "all.csv", table), *TUNED, *ALL, "--out", "all_out.csv", cwd=tmp_path)
    whole, after = (tmp_path / "all_out.csv").read_text(), (tmp_path / "started.csv").read_text()
    assert whole.splitlines()[101:] == after.splitlines()[1:]
    predicted = inside("predict", "m.ogp", "b.csv", cwd=tmp_path).stdout
    first, again = rows_of(predicted)[0], rows_of(after)[0]
    assert float(first["mean"]) == pytest.approx(float(again["mean"]), rel=1e-9)  # rounded in another order
    write(tmp_path / "c.jsonl", table[100:])
    assert [r["mean"] for r in rows_of(inside("predict", "m.ogp", "c.jsonl", cwd=tmp_path).stdout)] == [
        r["mean"] for r in rows_of(predicted)
    ]


def test_tune_and_compare_know_the_options(tmp_path):
    path = write(tmp_path / "a.csv", rows())
    told = inside("tune", path, *ALL, "--tune", "80", "--out", tmp_path / "m.ogp")
    assert b"relevance beyond linear effects: when.hour_sin" in told.stdout
    assert b"state=on" in told.stdout
    inside("run", path, "--start", tmp_path / "m.ogp", "--out", tmp_path / "o.csv")
    assert len(rows_of(tmp_path / "o.csv")) == 150
    told = onlinegp("compare", path, *ALL, "--models", "qklms", "--tune", "20", "--time", "100")
    assert b"Recommended: qklms" in told.stdout


def test_a_resumed_run_has_the_same_columns(tmp_path):
    table = rows(300)
    whole = predictions(write(tmp_path / "a.csv", table), tmp_path)
    args = [*TUNED, *ALL, "--out", "c.csv", "--checkpoint", "safe", "--every", "20", "--resume"]
    for n in (110, 170, 300):  # a file that grows
        write(tmp_path / "a.csv", table[:n])
        inside("run", "a.csv", *args, cwd=tmp_path)
    assert (tmp_path / "c.csv").read_bytes() == whole
    for other in (["--categories", "ordinal"], ["--dates", "ignore"], ["--category-limit", "3"]):
        assert b"was made with --" in inside("run", "a.csv", *args, *other, code=4, cwd=tmp_path).stderr


WRONG = [
    (("kinds",), ["date", "category"]),
    (("kinds",), ["date", "date", "number"]),
    (("kinds",), ["date", "category", "other"]),
    (("kinds",), []),
    (("kinds",), [[], {}, 1]),
    (("missing",), "stop"),
    (("missing",), []),
    (("date_format",), "%"),
    (("date_format",), 5),
    (("learned",), None),
    (("learned",), []),
    (("learned", 1, "values"), ["on"]),
    (("learned", 1, "values"), []),
    (("learned", 1, "column"), "x"),
    (("learned", 2, "means"), [math.inf]),
    (("learned", 2, "means"), None),
    (("learned", 0, "start"), "now"),
    (("learned", 0, "hours"), 1),
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> bytes:
    folder = tmp_path_factory.mktemp("saved")
    inside("run", write(folder / "a.csv", rows()), *TUNED, *ALL, "--save", folder / "m.ogp", "--out", folder / "o.csv")
    return (folder / "m.ogp").read_bytes()


@pytest.mark.parametrize(("path", "value"), WRONG, ids=lambda value: str(value)[:40])
def test_what_a_file_says_of_columns_is_checked(saved, path, value):
    model, stream = from_bytes(saved)
    assert Plan.load(stream["columns"]["learned"]).names[-2:] == ["x", "x=missing"]
    stream = json.loads(json.dumps(stream))
    inner = stream["columns"]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(ModelFileError, match="the entry 'stream' is not valid"):
        checked(stream, model)
