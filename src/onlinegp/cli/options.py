"""Shared options of the commands that read a stream, and how to open their source."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from onlinegp.batch.parameter_search import BUDGET
from onlinegp.cli.help import add_renamed
from onlinegp.cli.parsing import parse_columns, parse_kernel, parse_lags, parse_setting
from onlinegp.columns.plan import CHOICES, Rules
from onlinegp.models import KRLST
from onlinegp.models.combined.automatic_lags import INPUTS
from onlinegp.streams.errors import listed, printable
from onlinegp.streams.reading.csv_source import CsvSource
from onlinegp.streams.reading.formats import open_source
from onlinegp.streams.reading.source import BLOCK_ROWS, Source, choose_columns
from onlinegp.streams.reading.unused_columns import unused
from onlinegp.streams.running.column_encoding import Encoder
from onlinegp.streams.running.requested_model import FARTHEST

EXIT_CODES = """exit codes:
  0    done
  1    failed: an option has a wrong value, a file cannot be read or written, the disk is full, or a model broke down
  2    the command was not understood
  3    bad data: the message names file, line, column and value
  4    a checkpoint is damaged, missing or from another run
  130  interrupted by Ctrl-C (143: by SIGTERM, 129: by SIGHUP); output and checkpoint are complete up to there
  141  the reader of the output closed the pipe, or there was no standard output
"""

LAGS = 10  # the default if there are no other inputs
CSV = {"delimiter": "auto", "decimal": ".", "encoding": "utf-8"}  # options for CSV and their defaults
CATEGORY_LIMIT = 10
MOST_TUNING = 1_000_000  # limit of --tune, because these rows are stored in memory


def add_source(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    group = parser.add_argument_group("input")
    what = "CSV, CSV.gz, JSON lines, Parquet, or - for standard input"
    group.add_argument("source", metavar="SOURCE", nargs="?" if optional else None, help=what)
    group.add_argument("--target", metavar="NAME", help="the column to predict (the last numeric column)")
    group.add_argument("--features", metavar="A,B", help="the columns to predict from (the other numeric columns)")
    add_renamed(group, "--keys", "--copy", metavar="A,B", help="the columns to copy to the output (text, times, ids)")
    group.add_argument(
        "--lags",
        type=parse_lags,
        metavar="N",
        help="predict from the last N values of the target, 1,2,24 or auto (auto if there is nothing else)",
    )
    group.add_argument("--horizon", type=int, default=1, metavar="H", help="with --lags: predict H rows ahead (1)")
    add_format(group)
    columns = parser.add_argument_group("columns that are not plain numbers")
    columns.add_argument(
        "--categories", choices=CHOICES["categories"], default="ignore", help="text columns as inputs (ignore)"
    )
    columns.add_argument(
        "--category-limit",
        type=int,
        default=CATEGORY_LIMIT,
        metavar="N",
        help=f"largest number of categories per column ({CATEGORY_LIMIT})",
    )
    columns.add_argument("--dates", choices=CHOICES["dates"], default="ignore", help="date columns as inputs (ignore)")
    columns.add_argument("--date-format", metavar="F", help="format of dates, such as %%d.%%m.%%Y (ISO 8601)")
    columns.add_argument(
        "--na-values", metavar="A,B", help="numbers and texts that mean missing, such as -9999,n/a (NA, NaN, null, ...)"
    )
    columns.add_argument(
        "--missing", choices=CHOICES["missing"], default="stop", help="replace missing features by their mean (stop)"
    )


def add_format(group: Any) -> None:
    """Add the options for the format of SOURCE to a parser or a group."""
    group.add_argument(
        "--format", choices=("auto", "csv", "jsonl", "parquet"), default="auto", help="the format of SOURCE (auto)"
    )
    group.add_argument(
        "--delimiter", default="auto", metavar="C", help="delimiter of CSV fields: a character, tab or space (auto)"
    )
    group.add_argument(
        "--decimal", choices=(".", ","), default=".", metavar="C", help="decimal mark in CSV: . or , (.)"
    )
    group.add_argument("--encoding", default="utf-8", metavar="E", help="encoding of CSV, such as latin-1 (utf-8)")


def add_import(parser: Any) -> None:
    parser.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        type=imported,
        metavar="MODULE",
        help="a Python module with your own models, from this folder or installed",
    )


def imported(name: str) -> str:
    """Import a module of the user, so that its models can be found. Return its name."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # at the end, so that other modules are not hidden
    try:
        import_module(name)
    except ImportError as error:
        raise argparse.ArgumentTypeError(f"cannot import {name!r}: {error}") from None
    return name


def add_model(parser: argparse.ArgumentParser) -> Any:
    group = parser.add_argument_group("model")
    add_import(group)
    own = "with --tune 0 the default of the model: {:g} for krlst"
    group.add_argument("--kernel", metavar="K", help="such as 'rbf(0.7)' or '2.0 * matern52(1.5) + linear()' (tuned)")
    group.add_argument(
        "--noise",
        type=float,
        metavar="V",
        help=f"variance of the noise on the target (tuned; {own.format(KRLST().noise)})",
    )
    group.add_argument(
        "--budget", type=int, metavar="M", help=f"largest number of centers ({BUDGET}; {own.format(KRLST().budget)})"
    )
    group.add_argument(
        "--forgetting",
        type=float,
        metavar="L",
        help=f"forgetting factor, 1 for none (tuned; {own.format(KRLST().forgetting)})",
    )
    group.add_argument("--set", action="append", default=[], metavar="P=V", help="another parameter, such as step=0.5")
    group.add_argument(
        "--tune", type=int, metavar="N", help="tune on the first rows, up to N of them (1000; 0 for none)"
    )
    return group


def given_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the model that the user has set."""
    given: dict[str, Any] = {}
    if args.kernel is not None:
        given["kernel"] = parse_kernel(args.kernel)
    for name in ("noise", "budget", "forgetting"):
        if getattr(args, name) is not None:
            given[name] = getattr(args, name)
    return given | dict(map(parse_setting, args.set))


def open_input(args: argparse.Namespace, *, rows: int = BLOCK_ROWS) -> Source:
    """Open the source from the options, and print its notes."""
    source = source_of(args, rows=rows)
    for note in [] if getattr(args, "quiet", False) else source.notes:
        say(note)
    return source


def source_of(args: argparse.Namespace, *, rows: int = BLOCK_ROWS) -> Source:
    resumable = getattr(args, "checkpoint", None) is not None
    source = opened(args, args.source, rows=max(1, min(rows, BLOCK_ROWS)), resumable=resumable)
    unread = [] if isinstance(source, CsvSource) or getattr(args, "future", None) else typed(args, CSV)
    if unread:
        source.close()
        raise ValueError(f"{args.source} is not CSV, so {listed(unread)} would have no effect. Leave it out.")
    return source


def opened(args: argparse.Namespace, path: str, **more: Any) -> Source:
    """Open a path with the options for the format of SOURCE."""
    na_values = parse_columns(getattr(args, "na_values", None)) or ()
    form = {name: getattr(args, name) for name in ("format", *CSV)}
    return open_source(path, na_values=na_values, **form, **more)


def typed(args: argparse.Namespace, defaults: dict[str, Any]) -> list[str]:
    """Return the options with values that differ from their defaults."""
    given = (name for name, default in defaults.items() if getattr(args, name, default) != default)
    return [f"--{name.replace('_', '-')}" for name in given]


def chosen_columns(
    args: argparse.Namespace, source: Source, *, apart: Sequence[str] = (), any_lags: bool = False
) -> tuple[Encoder, int]:
    """Select the columns. Return their encoder and the longest lag. Without features, lags are automatic or `LAGS`.

    Print which columns are not used and how to use them, except for columns in `apart`.
    """
    if not any_lags and isinstance(args.lags, str | list):
        raise ValueError("--lags auto and lists of lags work only for a single series. Use --lags N.")
    lags = longest_lag(args)
    if not 0 <= lags <= FARTHEST:
        raise ValueError(f"--lags must be from 0 to {FARTHEST}, got {lags}. 10 is a usual choice.")
    if not 1 <= args.horizon <= FARTHEST:
        raise ValueError(f"--horizon must be from 1 to {FARTHEST} rows, got {args.horizon}.")
    if not 0 <= getattr(args, "delay", 0) <= FARTHEST:
        raise ValueError(f"--delay must be from 0 to {FARTHEST} rows, got {args.delay}.")
    if args.tune is not None and not 0 <= args.tune <= MOST_TUNING:
        raise ValueError(f"--tune must be from 0 to {MOST_TUNING} rows, got {args.tune}. 1000 is a usual choice.")
    if args.categories == "ignore" and args.category_limit != CATEGORY_LIMIT:
        raise ValueError(
            f"--category-limit {args.category_limit} has no effect, because categories are ignored. "
            f"Add --categories onehot or ordinal, or leave it out."
        )
    rules = Rules(args.categories, args.category_limit, args.dates, args.date_format, args.missing)
    features, keys = parse_columns(args.features), parse_columns(args.copy)
    columns = choose_columns(source, target=args.target, features=features, keys=keys, lags=lags, rules=rules)
    talk = silent if getattr(args, "quiet", False) else say
    if features is None and (left := unused(source, columns, rules, chosen=(*(keys or ()), *apart), lags=lags)):
        talk(f"not used: {left}")
    if not columns.features and lags == 0:
        if any_lags and args.lags is None and getattr(args, "flag", None) is None and args.horizon == 1:
            args.lags = "auto"
        lags = longest_lag(args) or LAGS
    if (late := getattr(args, "delay", 0)) > 1:
        if lags:
            raise ValueError(f"--delay {late} cannot be used with --lags. Use --horizon {late}.")
        args.horizon = late
    elif args.horizon > 1 and lags == 0:
        raise ValueError(f"--horizon {args.horizon} requires --lags N. For targets that come late, use --delay N.")
    source.select(columns)
    return Encoder(columns, rules, talk), lags


def longest_lag(args: argparse.Namespace) -> int:
    """Return the longest lag: the number of lags, or the last lag of a list."""
    if args.lags == "auto":
        return INPUTS  # until a season is found
    longest: int = args.lags[-1] if isinstance(args.lags, list) else args.lags or 0
    return longest


def checked_level(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise ValueError(f"--level must be greater than 0 and less than 1, got {level}. Use 0.99 for a wide interval.")
    return level


def silent(*parts: object) -> None:
    """Print nothing."""


def say(*parts: object) -> None:
    """Print a message to standard error."""
    print(*(printable(str(part)) for part in parts), file=sys.stderr, flush=True)


def command_line() -> str:
    """Return the current command, quoted for a shell."""
    return shlex.join(["onlinegp", *sys.argv[1:]])
