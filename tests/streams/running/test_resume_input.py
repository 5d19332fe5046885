"""A resumed run goes on with the input that it knows, and never learns half a line."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from shell import FIXED, inside, onlinegp, rows_of

from marks import slow
from onlinegp.streams.errors import CheckpointError
from onlinegp.streams.reading.formats import open_source
from onlinegp.streams.reading.source import choose_columns

RESUMED = ["--out", "out.csv", "--checkpoint", "safe", "--every", "100", "--resume"]


def lines(n, seed=0):
    rng = np.random.default_rng(seed)
    return ["x,y", *(f"{a:.6f},{b:.6f}" for a, b in rng.standard_normal((n, 2)))]


def test_half_a_line_of_a_file_that_grows_is_left_unread(tmp_path):
    """0.39 now and 0.397348 later is one row, and it is 0.397348."""
    data, args = tmp_path / "data.csv", ["run", "data.csv", *FIXED, *RESUMED]
    data.write_text("x,y\n0.1,0.2\n0.3,0.39")
    told = inside(*args, "--quiet", cwd=tmp_path).stderr.decode()
    assert told.count("\n") == 1
    assert "data.csv is incomplete and was not read" in told
    assert len(rows_of(tmp_path / "out.csv")) == 1
    for more, rows in (("73", 1), ("48\n", 2), ("0.5,0.6\n", 3)):
        with open(data, "a") as file:
            file.write(more)
        inside(*args, cwd=tmp_path)
        assert len(rows_of(tmp_path / "out.csv")) == rows
    inside("run", "data.csv", *FIXED, "--out", "whole.csv", cwd=tmp_path)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert rows_of(tmp_path / "out.csv")[1]["y"] == "0.397348"


def test_a_file_that_grows_byte_by_byte(tmp_path):
    """Resumed at whatever moment, quoted line ends and JSON included."""
    for name, text in (
        ("csv", 'x,key,y\n1,a,2\n3,"b\nc",4\n5,"d ""e""",6\n'),
        ("jsonl", '{"x": 1, "key": "a", "y": 2}\n{"x": 3, "key": "b", "y": 4}\n'),
    ):
        path, position, got = tmp_path / f"data.{name}", None, []
        for end in range(1, len(text) + 1):
            path.write_text(text[:end])
            if "\n" not in text[:end]:
                with pytest.raises(ValueError, match="is incomplete"):
                    open_source(str(path), resumable=True)
                continue
            source = open_source(str(path), resumable=True)
            source.select(choose_columns(source, target="y", features=("x",), keys=("key",)))
            if position is not None:
                source.seek(position)
            for block in source:
                got += zip(block.X[:, 0].tolist(), list(map(str, block.keys[0])), block.y.tolist(), strict=True)
            position = source.position
            source.close()
        assert [row[::2] for row in got] == [(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)][: len(got)]
        assert len(got) == (3 if name == "csv" else 2)


def test_a_last_line_without_its_end_is_a_row_unless_the_file_may_grow(tmp_path):
    (tmp_path / "data.csv").write_text("x,y\n1,2\n3,4")
    assert len(rows_of(inside("run", tmp_path / "data.csv", *FIXED).stdout)) == 2
    assert len(rows_of(onlinegp("run", "-", *FIXED, stdin="x,y\n1,2\n3,4").stdout)) == 2


@pytest.mark.slow
def test_the_end_of_a_pipe_is_final(tmp_path):
    """Its last line is learned as it is; sent again with a longer one, it is another input."""
    args = ["run", "-", *FIXED, *RESUMED, "check"]
    onlinegp(*args, stdin="x,y\n1,2\n3,0.39", cwd=tmp_path)
    assert len(rows_of(tmp_path / "out.csv")) == 2
    before = (tmp_path / "out.csv").read_bytes()
    assert b"has become longer" in onlinegp(*args, stdin="x,y\n1,2\n3,0.397348\n5,6\n", code=4, cwd=tmp_path).stderr
    assert (tmp_path / "out.csv").read_bytes() == before
    for end in ("", "\r\n5,6", "\r\n5,6\n7,8\n"):
        onlinegp(*args, stdin="x,y\n1,2\n3,0.39" + end, cwd=tmp_path)
    assert [row["y"] for row in rows_of(tmp_path / "out.csv")] == ["2", "0.39", "6", "8"]


@pytest.mark.parametrize("more", [[], ["--by", "k", "--order", "t", "--target", "y", "--features", "x"]])
def test_a_pipe_goes_on_with_the_next_row(tmp_path, more):
    """After a reboot nobody has the rows that were sent: two pipes give the rows of one, model and output included."""
    table = [f"{i % 2},{i},{x},{y}" for i, (x, y) in enumerate(line.split(",") for line in lines(60)[1:])]
    head = ["k,t,x,y"]
    (tmp_path / "data.csv").write_text("\n".join(head + table) + "\n")
    plain = [*FIXED, *(more or ["--features", "x,t"])]
    inside("run", "data.csv", *plain, "--out", "whole.csv", cwd=tmp_path)
    args = ["run", "-", *plain, *RESUMED]
    onlinegp(*args, stdin="\n".join(head + table[:35]) + "\n", cwd=tmp_path)
    told = onlinegp(*args, stdin="\n".join(head + table[35:50]) + "\n", cwd=tmp_path).stderr.decode()
    assert "resuming at row 35 with the next row of standard input" in told
    onlinegp(*args, stdin="\n".join(head + table[50:]) + "\n", cwd=tmp_path)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


@pytest.mark.parametrize("more", [[], ["--by", "x", "--lags", "1"]])
def test_a_file_of_another_name_goes_on_on_request(tmp_path, more):
    text = lines(60)
    for name, rows in (("whole.csv", text[1:]), ("monday.csv", text[1:40]), ("tuesday.csv", text[40:])):
        (tmp_path / name).write_text("\n".join([text[0], *rows]) + "\n")
    fixed = [*FIXED, "--target", "y", *more]
    inside("run", "whole.csv", *fixed, "--out", "expected.csv", cwd=tmp_path)
    inside("run", "monday.csv", *fixed, *RESUMED, cwd=tmp_path)
    told = inside("run", "tuesday.csv", *fixed, *RESUMED, code=4, cwd=tmp_path).stderr.decode()
    assert "made with SOURCE 'monday.csv', not 'tuesday.csv'" in told
    assert "--resume next" in told
    inside("run", "tuesday.csv", *fixed, *RESUMED, "next", cwd=tmp_path)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()


def test_next_is_refused_if_it_is_not_known_which_file_was_last(tmp_path):
    """Tuesday's checkpoint is damaged. Wednesday after Monday would cut Tuesday's rows off the output."""
    text = lines(60)
    for name, rows in (("monday", text[1:20]), ("tuesday", text[20:40]), ("wednesday", text[40:])):
        (tmp_path / f"{name}.csv").write_text("\n".join([text[0], *rows]) + "\n")
    inside("run", "monday.csv", *FIXED, *RESUMED, cwd=tmp_path)
    inside("run", "tuesday.csv", *FIXED, *RESUMED, "next", cwd=tmp_path)
    before, safe = (tmp_path / "out.csv").read_bytes(), tmp_path / RESUMED[RESUMED.index("--checkpoint") + 1]
    (safe / "checkpoint.ogp").write_bytes((safe / "checkpoint.ogp").read_bytes()[:-9])
    told = inside("run", "wednesday.csv", *FIXED, *RESUMED, "next", code=4, cwd=tmp_path).stderr.decode()
    assert "Resume monday.csv with --resume alone, and then the files after it" in told
    assert (tmp_path / "out.csv").read_bytes() == before
    inside("run", "monday.csv", *FIXED, *RESUMED, cwd=tmp_path)
    for name in ("tuesday", "wednesday"):
        inside("run", f"{name}.csv", *FIXED, *RESUMED, "next", cwd=tmp_path)
    assert len(rows_of(tmp_path / "out.csv")) == 60
    assert (tmp_path / "out.csv").read_bytes().startswith(before)


def test_another_file_goes_on_on_request(tmp_path):
    """Rotated: refused, and with `next` the first row of the new file follows the last of the old one."""
    text, args = lines(60), ["run", "data.csv", *FIXED, *RESUMED]
    for name, rows in (("whole.csv", text[1:]), ("data.csv", text[1:40])):
        (tmp_path / name).write_text("\n".join([text[0], *rows]) + "\n")
    inside("run", "whole.csv", *FIXED, "--out", "expected.csv", cwd=tmp_path)
    inside(*args, cwd=tmp_path)
    (tmp_path / "data.csv").write_text("\n".join([text[0], *text[40:50]]) + "\n")
    assert b"--resume next" in inside(*args, code=4, cwd=tmp_path).stderr
    told = inside(*args, "next", cwd=tmp_path).stderr.decode()
    assert "resuming at row 39 with the first row of data.csv, a new input" in told
    with open(tmp_path / "data.csv", "a") as file:
        file.write("\n".join(text[50:]) + "\n")
    assert b"resuming at row 49\n" in inside(*args, "next", cwd=tmp_path).stderr  # the same file, which grew
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()


@pytest.mark.parametrize("kind", ["csv", "pipe", "parquet", *map(slow, ("csv.gz", "jsonl"))])
@pytest.mark.parametrize("change", ["late", "longer", slow("shorter")])
def test_another_input_is_refused_and_the_output_kept(tmp_path, kind, change):
    """A value that changed anywhere before the place, or fewer rows than were done."""
    text = lines(9000)
    write(tmp_path, kind, text)
    run(tmp_path, kind, text, 0)
    before = (tmp_path / "out.csv").read_bytes()
    if change == "late":
        text[8000] = "0.000001," + text[8000].split(",")[1]  # far behind the first blocks
    elif change == "shorter":
        text = text[:5000]
    elif change == "longer":
        text = [*text, "0.5,0.5", "0.6,0.6"]
    good = change == "longer" and kind != "parquet"
    told = run(tmp_path, kind, text, 0 if good else 4)
    if good:
        assert len(rows_of(tmp_path / "out.csv")) == len(text) - 1
    else:
        assert "is not the input that the checkpoint belongs to" in told
        assert (tmp_path / "out.csv").read_bytes() == before


def run(folder, kind, text, code):
    """Run it, or run it again."""
    options = ["--model", "qklms(radius=100.0, step=0.001)", "--kernel", "rbf(1.0)", "--tune", "0", *RESUMED]
    if kind == "pipe":
        done = onlinegp("run", "-", *options, "check", stdin="\n".join(text) + "\n", code=code, cwd=folder)
    else:
        write(folder, kind, text)
        done = inside("run", f"data.{kind}", *options, code=code, cwd=folder)
    return done.stderr.decode()


def write(folder, kind, text):
    data, path = ("\n".join(text) + "\n").encode(), folder / f"data.{kind}"
    rows = [list(map(float, line.split(","))) for line in text[1:]]
    if kind == "csv.gz":
        path.write_bytes(gzip.compress(data))
    elif kind == "jsonl":
        path.write_text("".join(json.dumps({"x": x, "y": y}) + "\n" for x, y in rows))
    elif kind == "parquet":
        pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
        x, y = zip(*rows, strict=True)
        pq.write_table(pa.table({"x": x, "y": y}), path)
    elif kind == "csv":
        path.write_bytes(data)


def test_a_place_that_is_no_place_is_refused(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x,y\n1,2\n3,4\n")
    for place in ({"offset": 0, "line": 0, "checksum": 0}, {"offset": 8, "line": 1, "checksum": 0}):
        source = open_source(str(path))
        with pytest.raises(CheckpointError, match="is not the input"):
            source.seek(place)
        source.close()
