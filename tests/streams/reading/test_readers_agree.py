"""One rule for what a row is: the same bytes give the same rows, rejects and errors, whoever reads, in which blocks."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from outcomes import outcome, outcomes

from marks import slow
from onlinegp.streams.number_text import number
from onlinegp.streams.reading.source import Columns

ODD = [
    *("nan(1)", "NAN(1)", "nAn", "+nan", "-NaN", "NaN", " NA ", "null", "None", "", " ", "\t"),
    *("inf", "-Infinity", "infinity", "1e400", "-1e400", "1e-400", "1e200", "5e-324"),
    *("+1", " 1", "1 ", "\t1", "1\t", "\x0c1", "1\x0b", "\x1c1", "1\x85", "1\xa0", "1\u2003"),
    *("0x10", "0x1p3", "1d5", "1f", "1e5", "1E+05", "1.", ".5", "1.e3", ".", "-", "1e", "1_000", "1'000", "1 000"),
    *('"1"', '"1" ', ' "1"', '1"2"', '"1"2', '"1', '1"', '""', '"1""2"', '"1,5"', '"a\nb"', '"\n"', '"a\r\nb"'),
    *("1\x00", "\x00", "\ufeff1", "\ufeff", "\uff11", "\u0661", "#", "# comment", "1#", "\x1b[31m1", "true"),
    *("1\r2", "\r", "1\r", b"\xff", b"1\xff", b"\xc3", b"\xed\xa0\x80", "\ud7ff\ue000", "1,2", "1,2,3", ",", "1;2"),
]


def as_bytes(field: str | bytes) -> bytes:
    return field if isinstance(field, bytes) else field.encode()


def table(field: bytes, place: int, good: int, end: bytes = b"\n") -> bytes:
    """Return many good rows, in the middle one with this field: 0 the feature, 1 the target, 2 a text, 3 not wanted."""
    row = [b"0.5", b"1.5", b"word", b"more"]
    odd = [*row[:place], field, *row[place + 1 :]]
    lines = [b"x,y,key,unused", *[b",".join(row)] * good, b",".join(odd), *[b",".join(row)] * good, b""]
    return end.join(lines)


@pytest.mark.parametrize(
    ("place", "end"),
    [*((place, b"\n") for place in (0, 1)), *(slow(place, b"\n") for place in (2, 3)), slow(2, b"\r\n")],
)
def test_every_odd_field_in_every_place(tmp_path, place, end):
    columns = Columns("y", ("x",), ("key",))
    for i, field in enumerate(ODD):
        path = tmp_path / f"{i}.csv"
        path.write_bytes(table(as_bytes(field), place, 33, end))
        for skip in (True, False):
            first, *others = outcomes(path, (41, 4096), columns=columns, skip=skip)
            assert [first] * len(others) == others, field
            assert len(first["y"]) + len(first["rejected"]) + 33 * (not skip) >= 66


LINES = [
    *(b"", b"\r", b" ", b"\t", b",", b",,", b",,,", b"0.5", b"0.5,1.5,word", b"0.5,1.5,word,more,", b",0.5,1.5,word"),
    *(b"# a comment", b'"', b'""', b'"""', b'"a', b'a"', b'"0.5,1.5,word,more', b'0.5,1.5,"wo\nrd",more'),
    *(b"\xef\xbb\xbf0.5,1.5,word,more", b"\xef\xbb\xbf", b"\x00", b"0.5,1.5,word,more\r0.5,1.5,word,more"),
    *(b'0.5,1.5,a"b,"c"', b'0.5,1.5,"a""b",c', b'0.5,1.5,"a"b"c",d', b'0.5,1.5,"a"b,c"', b'0.5,1.5,5" pipe,x', b"\x1a"),
]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("twice", [False, True])
def test_every_odd_line(tmp_path, line, twice):
    good = b"0.5,1.5,word,more"
    lines = [b"x,y,key,unused", *[good] * 40, line, *[good] * 30, *[line] * twice, *[good] * 40, b""]
    (tmp_path / "data.csv").write_bytes(b"\n".join(lines))
    for skip in (True, False):
        for target in (("x",), ()):
            columns = Columns("y", target, ("key",))
            first, *others = outcomes(tmp_path / "data.csv", columns=columns, skip=skip)
            assert [first] * len(others) == others


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    end=st.sampled_from(["\n", "\r\n"]),
    delimiter=st.sampled_from([",", ";", "\t", " ", "|"]),
    decimal=st.sampled_from([".", ","]),
)
def test_mixed_tables(tmp_path, seed, end, delimiter, decimal):
    """Tables of good and odd fields, each with its own mixture."""
    if decimal == delimiter:
        delimiter = ";"
    rng = random.Random(seed)
    share = rng.choice([0.0, 0.002, 0.05, 0.5])

    def field(j: int) -> bytes:
        if rng.random() < share:
            return as_bytes(rng.choice(ODD))
        if j < 2:
            return f"{rng.gauss(0, 1):.{rng.randrange(8)}f}".replace(".", decimal).encode()
        return rng.choice([b"word", b'"two words"', "M\u00fcnchen".encode(), b'"a ""b"""'])

    mark = delimiter.encode()
    lines = [mark.join([b"x", b"y", b"key", b"unused"])]
    lines += [mark.join(field(j) for j in range(4)) for _ in range(rng.choice([5, 80, 150]))]
    data = end.encode().join(lines) + rng.choice([b"", end.encode()])
    path = tmp_path / "data.csv"
    path.write_bytes(data)
    columns = Columns("y", ("x",), ("key",))
    options = {"delimiter": delimiter, "decimal": decimal, "columns": columns, "skip": rng.random() < 0.5}
    first, *others = outcomes(path, (5, 50, 4096), **options)
    assert [first] * len(others) == others


@pytest.mark.parametrize("size", [1, 40, 4096])
def test_a_quote_that_is_not_closed_spoils_its_line_only(tmp_path, monkeypatch, size):
    """Whether it is closed never, or too far away; and one that spans lines within the limit is one row."""
    for module in ("quoting", "lines"):
        monkeypatch.setattr(f"onlinegp.streams.reading.{module}.SPAN", 300)
    good = ["1,2,word"] * 50
    columns = Columns("y", ("x",), ("key",))
    path = tmp_path / "data.csv"
    for after in ("", '1,2,word"', '3,4,"other"'):
        path.write_text("\n".join(["x,y,key", *good, '1,2,"wo', *good, *([after] if after else []), *good, ""]))
        got = outcome(path, rows=size, columns=columns)
        assert len(got["rejected"]) == 1
        assert "quote is not closed" in got["rejected"][0].reason
        assert got["rejected"][0].line == 52
        assert len(got["y"]) == 150 + bool(after)
    path.write_text("\n".join(["x,y,key", *good, '1,2,"w\no\nr\nd"', *good, ""]))
    got = outcome(path, rows=size, columns=columns)
    assert len(got["y"]) == 101
    assert got["keys"][50] == ("w\no\nr\nd",)


@pytest.mark.parametrize(("text", "value"), [("+1", 1.0), (" 1 ", 1.0), ("1.", 1.0), (".5", 0.5), ("1E+05", 1e5)])
def test_numbers(text, value):
    assert number(text) == value
    assert number(text.replace(".", ","), ",") == value


@pytest.mark.parametrize("text", ["nAn", "+nan", "nan(1)", "1_0", "\uff11", "\x0c1", "0x10", "1d5", "1,5", "1e", "."])
def test_no_numbers(text):
    with pytest.raises(ValueError, match=r".*"):
        number(text)


def test_wanted_text_is_not_cut_by_a_limit_of_the_reader(tmp_path):
    """A long field is one in short blocks as in long ones."""
    long = "a" * 200_000
    (tmp_path / "data.csv").write_text("x,y,key\n" + f"1,2,{long}\n" * 40)
    first, *others = outcomes(tmp_path / "data.csv", (1, 40), columns=Columns("y", ("x",), ("key",)))
    assert [first] * len(others) == others
    assert first["keys"] == [(long,)] * 40
