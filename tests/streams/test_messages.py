"""What the command says of odd input and odd options: messages for a person, never a traceback or control codes."""

from __future__ import annotations

import pytest
from shell import FIXED, inside, onlinegp, rows_of

from onlinegp.streams.errors import LONG, SHOWN, listed, printable, short

ESCAPE = "\x1b[31m\x07\x9b2J\u202e"


def test_printable_keeps_what_can_be_seen():
    assert printable("M\u00fcnchen \u4e2d, 'x'\n") == "M\u00fcnchen \u4e2d, 'x'\n"
    assert printable(ESCAPE + "\udcff\t\r\x00") == "\\x1b[31m\\x07\\x9b2J\\u202e\\udcff\\t\\r\\x00"


def test_long_lists_are_cut():
    assert listed(["a", "b"]) == "a, b"
    assert listed([f"c{i}" for i in range(SHOWN + 7)]).endswith(f"c{SHOWN - 1} and 7 more")
    assert len(short("a" * 10_000)) == LONG + 3


@pytest.mark.parametrize(
    ("text", "code", "args"),
    [
        (f"x{ESCAPE},y\n1,2\n1,2\n", 0, []),
        (f"x{ESCAPE},y\n1,2\n1,2\n{ESCAPE},2\n", 3, []),
        (f"x{ESCAPE},x{ESCAPE}\n1,2\n", 3, []),
        (f"x{ESCAPE},y\n1,2\n", 1, ["--target", "z"]),
        (f"x{ESCAPE}\nabc\n", 3, []),
        ("x,y\n1,2\n", 1, ["--target", ESCAPE]),
        (f'{{"x{ESCAPE}": 1, "y": 2}}\n{{"x{ESCAPE}": "{ESCAPE}", "y": 2}}\n'.replace("\x1b", "\\u001b"), 3, []),
    ],
)
def test_control_codes_of_the_data_do_not_reach_the_terminal(tmp_path, text, code, args):
    path = tmp_path / f"da{ESCAPE}ta.csv"
    path.write_text(text)
    told = inside("run", path, *FIXED, *args, "--out", tmp_path / "out.csv", code=code).stderr.decode()
    assert told.strip()
    assert printable(told) == told


def test_inspect_tune_and_compare_print_names_as_text(tmp_path):
    rows = "".join(f"{i % 7},{i % 3},{i % 5}\n" for i in range(60))
    (tmp_path / "data.csv").write_text(f"a{ESCAPE},b{ESCAPE},y{ESCAPE}\n{rows}")
    saved = ["tune", "data.csv", "--tune", "40", "--out", "model.ogp"]
    for args in (saved, ["inspect", "model.ogp"], ["compare", "data.csv", "--models", "klms", "--tune", "20"]):
        done = inside(*args, cwd=tmp_path)
        for told in (done.stdout.decode(), done.stderr.decode()):
            assert printable(told) == told


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--every", ["1e400", "nan", "0", "-5", "inf s", "", "1e300"]),
        ("--tune", ["-1", "100000000000000000000"]),
        ("--lags", ["-1", "100000000000000000000"]),
        ("--horizon", ["0", "-1", "100000000000000000000"]),
        ("--level", ["0", "1", "nan", "-1", "1e400"]),
        ("--robust", ["0", "-1", "nan", "1e400"]),
        ("--delimiter", ["", "ab", '"', "\n", "5", ".", "\u00e9"]),
        ("--encoding", ["none", "utf-16", "rot13", "utf-7", "punycode", ""]),
        ("--features", ["x,x"]),
    ],
)
def test_absurd_options(tmp_path, option, values):
    """The message names the option, the value and the rule."""
    (tmp_path / "data.csv").write_text("x,y\n" + "1,2\n" * 30)
    for value in values:
        told = inside("run", tmp_path / "data.csv", f"{option}={value}", "--out", tmp_path / "o.csv", code=1).stderr
        assert option.strip("-").encode() in told
        assert b"must" in told


def test_words_where_numbers_belong(tmp_path):
    (tmp_path / "data.csv").write_text("x,y\n" + "1,2\n" * 30)
    refusals = {"--tune": b"invalid int value", "--lags": b"a list such as 1,2,24", "--horizon": b"invalid int value"}
    for option, refusal in refusals.items():
        for value in ("1e400", "nan", "x", "1.5"):
            assert refusal in inside("run", tmp_path / "data.csv", option, value, code=2).stderr


def test_absurd_options_of_the_other_commands(tmp_path):
    (tmp_path / "data.csv").write_text("x,y\n" + "".join(f"{i % 7},{i % 5}\n" for i in range(60)))
    for jobs, code in (("0", 1), ("-3", 1)):
        told = inside("compare", tmp_path / "data.csv", f"--jobs={jobs}", code=code).stderr
        assert b"jobs must be at least 1" in told
    onlinegp("compare", tmp_path / "data.csv", "--models", "klms", "--jobs", "1" + "0" * 20)
    assert b"at least one model" in inside("compare", tmp_path / "data.csv", "--models", ",", code=1).stderr
    inside("tune", tmp_path / "data.csv", "--tune", "30", "--out", tmp_path / "m.ogp")
    for level in ("0", "1", "2", "nan"):
        args = ["predict", tmp_path / "m.ogp", tmp_path / "data.csv", "--level", level]
        assert b"--level must" in inside(*args, code=1).stderr


def test_old_line_ends_are_named(tmp_path):
    path = tmp_path / "data.csv"
    for text in ("x,y\r1,2\r3,4\r", "1,2\r3,4\r", '{"x": 1}\r{"x": 2}\r'):
        path.write_bytes(text.encode())
        assert b"carriage return" in inside("run", path, *FIXED, code=3).stderr
    path.write_bytes(b"x,y\r\n1,2\r\n3,4\r\n")
    assert len(rows_of(inside("run", path, *FIXED).stdout)) == 2
    path.write_bytes(b"x,y\n1,2\n3,4\r5,6\n")
    assert b"line 3: the row holds a carriage return" in inside("run", path, *FIXED, code=3).stderr


def test_odd_json_lines(tmp_path):
    """A field named twice, half a character, other encodings, and a byte order mark."""
    good, path = '{"x": 1, "k": "a", "y": 2}\n', tmp_path / "data.jsonl"
    for odd in ('{"x": 1, "x": 2, "k": "a", "y": 2}', '{"x": 1, "k": "\\ud800", "y": 2}', "\ufeff" + good.strip()):
        path.write_text(good + odd + "\n" + good)
        assert b"line 2: the line is not a JSON object" in inside("run", path, *FIXED, code=3).stderr
    path.write_bytes((good + good).encode("utf-16"))
    assert b"UTF-16" in inside("run", path, *FIXED, "--format", "jsonl", code=3).stderr
    path.write_text("\ufeff" + good + good)
    assert len(rows_of(inside("run", path, *FIXED).stdout)) == 2
