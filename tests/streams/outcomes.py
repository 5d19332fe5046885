"""What reading some bytes gives, whoever reads and however they come in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onlinegp.streams import number_text as numbers
from onlinegp.streams.reading import csv_source
from onlinegp.streams.reading.formats import open_source
from onlinegp.streams.reading.source import Columns, choose_columns
from onlinegp.streams.writing import sinks

SIZES = (7, 33, 64, 4096)  # rows of a block


@contextmanager
def without_arrow() -> Iterator[None]:
    """Read and write as where pyarrow is not installed."""
    modules, real = (numbers, csv_source, sinks), numbers.arrow
    for module in modules:
        module.arrow = lambda: None
    try:
        yield
    finally:
        for module in modules:
            module.arrow = real


def outcome(
    path: Path, *, rows: int, skip: bool = True, columns: Columns | None = None, finite: bool = True, **options: Any
) -> dict:
    """Return the names, the rows that were accepted and rejected, and the error, all as plain values.

    Unless X may hold anything but numbers, they are `finite`.
    """
    X, y, keys, rejected, error, names = [], [], [], [], None, None
    try:
        source = open_source(str(path), rows=rows, **options)
        names, source.skip_bad = source.names, skip
        source.select(columns or choose_columns(source))
        for block in source:
            X += block.X.tolist() if finite else [list(map(repr, row)) for row in block.X.tolist()]
            y += block.y.tolist()
            keys += zip(*(k if isinstance(k, list) else k.to_pylist() for k in block.keys), strict=True)
            rejected += block.rejected
            error = block.error
            if error:
                break
        source.close()
    except (ValueError, OSError) as exception:
        error = f"{type(exception).__name__}: {exception}"
    assert not finite or np.isfinite(np.array(X, dtype=float)).all()
    assert not np.isinf(np.array(y, dtype=float)).any()
    y = [None if value != value else value for value in y]
    return {"names": names, "X": X, "y": y, "keys": keys, "rejected": rejected, "error": error}


def outcomes(path: Path, sizes: tuple[int, ...] = SIZES, **options: Any) -> list[dict]:
    """Return the outcome for every size of a block with pyarrow, and without it for the largest and for one row."""
    found = [outcome(path, rows=rows, **options) for rows in sizes]
    with without_arrow():
        return found + [outcome(path, rows=rows, **options) for rows in (1, sizes[-1])]
