"""Numbers with a decimal comma: read when that is said, offered when it is not, never misread in silence."""

from __future__ import annotations

import pytest
from outcomes import outcomes
from shell import FIXED, inside, onlinegp, rows_of

from onlinegp.streams.errors import BadData
from onlinegp.streams.reading.formats import open_source


@pytest.mark.parametrize("mark", [";", "\t", " "])
@pytest.mark.parametrize("header", ["", "x{0}y\n"])
def test_decimal_commas(tmp_path, mark, header):
    header = header.format(mark) if mark != " " else ""
    path, same = tmp_path / "comma.csv", tmp_path / "point.csv"
    rows = [(i / 8 - 3.0, (i * 7 % 11) / 16) for i in range(60)]
    same.write_text(header + "".join(f"{x!r}{mark}{y!r}\n" for x, y in rows))
    path.write_text(same.read_text().replace(".", ","))
    first, *others = outcomes(path, decimal=",")
    assert [first] * len(others) == others
    assert first["y"] == [y for _, y in rows]
    assert first["X"] == [[x] for x, _ in rows]
    for other in outcomes(same):
        assert other == first


@pytest.mark.parametrize("text", ["1,5;2,5\n3,5;4,5\n", "1,5\t2,5\n", "1,5 2,5\n", "1;2,5\n", '1,5;2;"3,5"\n'])
def test_commas_in_a_first_line_of_numbers_are_named(tmp_path, text):
    (tmp_path / "data.csv").write_text(text)
    for options in ({}, {"delimiter": {"\t": "tab", " ": "space"}.get(text[3], ";")}):
        with pytest.raises(BadData, match=r"decimal comma.*--decimal ,"):
            open_source(str(tmp_path / "data.csv"), **options)
    assert open_source(str(tmp_path / "data.csv"), decimal=",").names[:2] == ["column1", "column2"]


def test_points_where_commas_were_promised(tmp_path):
    (tmp_path / "data.csv").write_text("1.5;2.5\n3.5;4.5\n")
    with pytest.raises(BadData, match=r"decimal point.*--decimal \."):
        open_source(str(tmp_path / "data.csv"), decimal=",")


def test_commas_below_a_header_are_noted(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x;y;z\n" + "".join(f"{i},5;{i % 4};{i % 3}\n" for i in range(40)))
    told = inside("run", path, *FIXED, "--out", tmp_path / "o.csv").stderr.decode()
    assert "'x' holds numbers with a decimal comma" in told
    assert "--decimal ," in told
    done = inside("run", path, *FIXED, "--decimal", ",")
    assert b"predicted from x, y" in done.stderr
    assert b"decimal" not in done.stderr
    quoted = onlinegp(
        "run", "-", *FIXED, stdin='{"x": 1, "y": 2}\n' * 9 + '{"x": "3.5", "y": 2}\n', code=3
    ).stderr.decode()
    assert "'3.5' is not a number. If it means 3.5, add --decimal . in CSV; in JSON lines, write it without" in quoted
    by_pipe = onlinegp("run", "-", *FIXED, "--target", "x", stdin="x;y\n1,5;2\n", code=3).stderr.decode()
    assert "'1,5' is not a number. If it means 1.5, add --decimal ," in by_pipe


def test_thousands_that_are_set_apart_are_no_decimal_commas(tmp_path):
    path = tmp_path / "data.csv"
    for form, remedy in (("{:,}", "if it is the decimal mark, add --decimal ,"), ("{:,}.5", "")):
        path.write_text("x,y,z\n" + "".join(f'"{form.format(990 + i)}",{i % 4},{i % 3}\n' for i in range(40)))
        told = inside("run", path, *FIXED, "--out", tmp_path / "o.csv").stderr.decode()
        shown = form.format(1000)
        assert f"'x' holds numbers such as '{shown}', which are read as text. If ',' sets thousands apart" in told
        assert ("--decimal" in told) == bool(remedy)
        assert remedy in told
    for field, remedy in (("1,234", "If it means 1234, remove the ','. If it means 1.234, add"), ("1,234.5", "Remove")):
        told = onlinegp("run", "-", *FIXED, "--target", "x", stdin=f"x;y\n{field};2\n", code=3).stderr.decode()
        assert f"'{field}' is not a number. {remedy}" in told


def test_a_number_that_begins_with_zero_has_no_thousands(tmp_path):
    (tmp_path / "data.jsonl").write_text('{"x": 1, "y": 2}\n{"x": "0.802", "y": 2}\n')
    told = inside("run", "data.jsonl", *FIXED, "--target", "x", code=3, cwd=tmp_path).stderr.decode()
    assert "'0.802' is not a number. If it means 0.802, add --decimal ." in told
    (tmp_path / "data.csv").write_text("x;y\n" + "".join(f"0,{500 + i};{i % 7}\n" for i in range(40)))
    told = inside("run", "data.csv", *FIXED, "--out", "o.csv", cwd=tmp_path).stderr.decode()
    assert "'x' holds numbers with a decimal comma" in told


def test_every_command_knows_it(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x;y\n" + "".join(f"{i % 9},5;{i % 7},25\n" for i in range(60)))
    comma = ["--decimal", ","]
    inside("tune", path, *comma, "--tune", "30", "--out", tmp_path / "m.ogp")
    predicted = rows_of(inside("predict", tmp_path / "m.ogp", path, *comma).stdout)
    assert predicted[1]["y"] == "1.25"
    assert b"Recommended" in onlinegp("compare", path, *comma, "--models", "klms", "--tune", "20").stdout
    assert b"--delimiter must" in inside("run", path, *comma, "--delimiter", ",", code=1).stderr


@pytest.mark.parametrize(
    ("head", "mark"),
    [("a,b", ","), ("a;b", ";"), ("a\tb", "\t"), ("T, C;p, Pa;x", ";"), ('"a;b;c",d', ","), ("1 2", " "), ("a b", ","),
     ('x,"a;b;c;d"', ","), ('a;"b, ""c"", d, e";f', ";"), ('a,it"s;b;c', ";")],  # quotes within a field are letters
)  # fmt: skip
def test_delimiters_are_found_in_the_first_line(tmp_path, head, mark):
    (tmp_path / "data.csv").write_text(f"{head}\n")
    source = open_source(str(tmp_path / "data.csv"))
    assert source.delimiter == mark
    source.close()
