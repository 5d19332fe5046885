"""Many columns and long lines: work that grows with them, and no faster."""

from __future__ import annotations

import pytest
from shell import FIXED, inside, rows_of

from onlinegp.streams.errors import BadData
from onlinegp.streams.reading import lines as lines_module
from onlinegp.streams.reading.csv_source import CsvSource
from onlinegp.streams.reading.lines import Lines
from onlinegp.streams.reading.raw import CHUNK
from onlinegp.streams.reading.source import choose_columns
from onlinegp.streams.writing.sinks import open_sink


class Names(list):
    """A list that nobody may search: with n names each search would take n steps."""

    def __contains__(self, name):
        raise AssertionError("a search through all the names")

    count = index = __contains__


def test_choosing_among_many_columns_searches_no_list(tmp_path):
    (tmp_path / "data.csv").write_text("a,b,c,time,y\n1,2,x,4,5\n")
    source = CsvSource(Lines(str(tmp_path / "data.csv")))
    source.names = Names(source.names)
    for options in ({}, {"target": "y", "features": ("a",)}, {"keys": ("c",)}, {"lags": 3}):
        assert choose_columns(source, **options).target == "y"
    source.close()


class Name(str):
    """A name that counts how often it is compared."""

    compared = 0

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__

    def strip(self, *chars):
        return self


def test_names_are_compared_a_few_times_each(tmp_path):
    from onlinegp.streams.reading.csv_source import _checked_header
    from onlinegp.streams.reading.quoting import Quoting

    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    lines = Lines(str(tmp_path / "data.csv"))
    names = [Name(f"column{i}") for i in range(500)]
    _checked_header("data.csv", names, lines, Quoting(","))
    lines.close()
    open_sink(None, (*names, "y"))
    assert Name.compared < 5 * len(names)


def test_many_columns_through_the_command(tmp_path):
    n = 40_000
    rows = [",".join(f"column{i}" for i in range(n)), *[",".join(str((i + r) % 9) for i in range(n)) for r in range(3)]]
    (tmp_path / "data.csv").write_text("\n".join(rows) + "\n")
    done = inside("run", tmp_path / "data.csv", *FIXED)
    assert len(rows_of(done.stdout)) == 3
    assert len(done.stderr) < 2000  # not every name is printed
    assert len(inside("run", tmp_path / "data.csv", "--target", "none", code=1).stderr) < 2000


def test_a_line_that_never_ends_is_refused_at_once(tmp_path, monkeypatch):
    """After every row before it; the bytes are looked at once, not again whenever more arrive."""
    monkeypatch.setattr(lines_module, "LONGEST", 5 * CHUNK)
    with open(tmp_path / "data.csv", "wb") as file:
        file.write(b"x,y\n1,2\n3,4\n")
        for _ in range(40):
            file.write(b"a" * CHUNK)
    done = inside("run", tmp_path / "data.csv", *FIXED, code=3)
    assert b"line 4: is longer than" in done.stderr
    assert len(rows_of(done.stdout)) == 2
    read = []
    monkeypatch.setattr(lines_module.Raw, "read", lambda self: read.append(1) or b"a" * CHUNK)
    lines = Lines(str(tmp_path / "data.csv"))
    with pytest.raises(BadData, match="line 1: is longer"):
        lines.peek(1)
    lines.close()
    assert len(read) == 6


@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("rows", [1, 4096])
def test_the_limit_is_exact(tmp_path, monkeypatch, extra, rows):
    """Whatever chunk the line's end comes with."""
    limit = CHUNK + 1000
    monkeypatch.setattr(lines_module, "LONGEST", limit)
    for before in (0, 500, CHUNK - 3):
        (tmp_path / "data").write_bytes(b"b" * before + b"\n" + b"a" * (limit + extra) + b"\nc\n")
        lines, got = Lines(str(tmp_path / "data"), rows=rows), []
        try:
            for part in lines:
                got += part.data.splitlines()
        except BadData:
            assert extra
        assert len(got) == (1 if extra else 3)
        lines.close()
