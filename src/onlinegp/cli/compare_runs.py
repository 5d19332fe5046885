"""`onlinegp compare --runs`: models over blocks or permutations of a stream, with confidence intervals."""

from __future__ import annotations

import argparse
import io
import json
from math import isfinite
from pathlib import Path
from typing import Any

from onlinegp.checks import Array
from onlinegp.cli.options import MOST_TUNING, chosen_columns, open_input, say, source_of
from onlinegp.comparing import Blocks, Permutations, compare
from onlinegp.comparing.compare import EFFORT
from onlinegp.comparing.entrants import Entrant
from onlinegp.comparing.runs import Source, tuning_rows
from onlinegp.files.atomic import write_atomically
from onlinegp.processes import worker_pool
from onlinegp.streams.running.first_rows import FirstRows, with_lags
from onlinegp.streams.running.requested_model import first_rows


def compare_over_runs(args: argparse.Namespace, taking_part: list[Entrant]) -> int:
    """Compare the models, print the table, and write the requested files."""
    if args.time is not None:
        raise ValueError("--time is for a single run: with --runs every model finishes. Leave out one option.")
    with worker_pool(args.jobs) as pool:
        found = compare(
            taking_part,
            runs_of(args),
            runs=args.runs,
            by=args.rank,
            effort=EFFORT if args.effort is None else args.effort,
            jobs=1 if args.jobs == 1 else pool,
            say=say,
        )
    print(found)
    for path, text in ((args.csv, found.csv), (args.latex, found.latex)):
        if path:
            write_atomically(path, [text().encode()])
    if args.json:
        write_atomically(args.json, [json.dumps(list(map(numbers_of, found.figures())), indent=2).encode() + b"\n"])
    if not found.ranked:
        raise ValueError("no model finished all runs. Lower the step, use a larger --noise, or other --models.")
    if args.out:
        from matplotlib.figure import Figure

        save_picture(found.plot(figure=Figure(figsize=(10.5, 4.6), layout="constrained")), args.out)
    return 0


def numbers_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the table for JSON, with null for infinite numbers (an error of zero in dB)."""
    return {name: None if isinstance(value, float) and not isfinite(value) else value for name, value in row.items()}


def runs_of(args: argparse.Namespace) -> Source:
    """Divide the rows of the source into runs. The encoding of the columns is learned from the rows for tuning."""
    source = open_input(args)
    encoder, lags = chosen_columns(args, source)
    rows = source.rows_at_most(MOST_TUNING)
    source.close()
    if args.horizon > 1:
        raise ValueError(f"--runs predicts one row ahead, got --horizon {args.horizon}. Leave out one option.")
    if args.runs_by == "permutations" and lags:
        raise ValueError("--runs-by permutations changes the order of rows, but --lags needs this order. Use blocks.")
    say(f"{encoder.columns.target}: reading all rows")

    def read(rows: int) -> tuple[Array, Array]:
        source = source_of(args)
        source.select(encoder.columns)
        try:
            return with_lags(*first_rows(source, FirstRows(rows, encoder, varied=True)).encoded(), lags, 1)
        finally:
            source.close()

    if not encoder.columns.plain:
        read(tuning_rows(rows, args.tune))
    X, y = read(MOST_TUNING)
    if len(y) == MOST_TUNING:
        say(f"only the first {MOST_TUNING} rows are used, to fit in memory")
    return Permutations(X, y, args.tune) if args.runs_by == "permutations" else Blocks(X, y, args.tune)


def save_picture(figure: Any, path: str) -> None:
    """Write a figure in the format of its file name, and print the name."""
    picture = io.BytesIO()
    figure.savefig(picture, format=Path(path).suffix[1:], dpi=150)
    write_atomically(path, [picture.getvalue()])
    say(f"plot: {path}")
