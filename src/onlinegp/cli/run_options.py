"""The options of `onlinegp run`, and its help."""

from __future__ import annotations

import argparse

from onlinegp.cli.help import Parser
from onlinegp.cli.options import EXIT_CODES, add_source
from onlinegp.cli.run_by_key import add_by_key
from onlinegp.cli.tuning_options import add_learned

EPILOG = f"""examples:
  onlinegp run data.csv                                   choose everything, print predictions
  onlinegp run series.txt --lags 10 --out forecast.csv    a column of numbers, from its own past
  onlinegp run data.csv --target y --features a,b --model krlst --budget 200 --tune 1000 --out out.jsonl
  sensor | onlinegp run - --target y --tune 200           each line is answered before the next is read
  sensor | onlinegp run - --lags 10 --ahead               each answer holds the prediction of the next line
  onlinegp run data.csv --flag 1/day --events events.jsonl --report page.html --out out.csv
  onlinegp run big.csv.gz --out out.csv --checkpoint safe --resume
  onlinegp run events.csv --by sensor --order time --out out.csv --store fleet.db

Every row of the input gives one row of output: its key columns, the target, then mean, std (of the target, noise
included), lower, upper and log_density of the prediction made before the target was learned. The first
rows are predicted by the mean of those before them, and soon by models that need no tuning. A missing target is
predicted and not learned.

After a crash, repeat the command with --resume: the output becomes that of an uninterrupted run. A file is read again
up to the position of the checkpoint, and refused if these rows have changed; --resume next continues with the first row
of another file. A pipe continues with its next row, after a header. With --resume check the pipe must be sent again
from the beginning; the rows that were done are checked and skipped. With --checkpoint, an incomplete last line of a
file is not read, because it may still grow.

With --flag RATE a detector watches the predictions. The output has score (-log10 of the rate of such events, where
one opens or grows), tail (the probability of a row that is at least as odd) and event (its number while it is open).
--events writes each event when it opens and when it clears: its kind (spike, level, trend, variance, season broken,
stuck, missing), rows, severity, and the reason in words. RATE is what to expect if all is well: 0.001 per row, or 1/day
over all keys. A target far outside the range of all earlier ones is not learned, or bounded by --robust.

{EXIT_CODES}  5    with --flag-exit: done, and there was an event
"""
SHORT_EPILOG = """examples:
  onlinegp run data.csv                                  choose everything, print predictions
  onlinegp run series.txt --lags 10 --out forecast.csv   a column of numbers, from its own past
  onlinegp run data.csv --flag 0.001 --out out.csv       report what is odd
  onlinegp run big.csv.gz --out out.csv --checkpoint safe --resume
  onlinegp run events.csv --by sensor --order time --out out.csv

Each row is predicted before it is learned: the output has mean, std, lower, upper
and log_density. The model tunes itself on the first rows as it runs.
"""
MAIN_OPTIONS = (
    *("--target", "--features", "--lags", "--model", "--by"),
    *("--flag", "--out", "--report", "--save", "--checkpoint"),
)


def add_arguments(parser: Parser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    parser.show_first(MAIN_OPTIONS, SHORT_EPILOG)
    add_source(parser)
    add_learned(parser).add_argument(
        "--delay",
        type=int,
        default=0,
        metavar="N",
        help="for targets that come late: a row is learned just before the Nth row after it is predicted (0)",
    )
    add_by_key(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--out", metavar="FILE", help=".csv, .jsonl or .parquet; - for CSV on standard output")
    output.add_argument("--level", type=float, default=0.95, metavar="P", help="probability of the interval (0.95)")
    output.add_argument("--report", metavar="FILE", help="an interactive page about the run, .html")
    output.add_argument("--summary", metavar="FILE", help="the figures of the run as JSON")
    output.add_argument("--save", metavar="FILE", help="the model at the end, .ogp")
    output.add_argument("--ahead", action="store_true", help="write the prediction of the next row with each row")
    output.add_argument("--quiet", action="store_true", help="print only errors")
    flags = parser.add_argument_group("alarms")
    flags.add_argument(
        "--flag",
        metavar="RATE",
        help="report what is odd as events; RATE of them are expected if all is well: 0.001 per row, or 1/day",
    )
    flags.add_argument("--events", metavar="FILE", help="each event as it opens and clears, .jsonl")
    flags.add_argument("--on-flag", metavar="CMD", help="run this for each event that opens, as JSON on standard input")
    flags.add_argument("--flag-exit", action="store_true", help="end with exit code 5 if there was an event")
    safety = parser.add_argument_group("safety")
    safety.add_argument(
        "--on-bad-row",
        choices=("stop", "skip"),
        default="stop",
        help="what to do with a row that cannot be used (stop)",
    )
    safety.add_argument("--rejects", metavar="FILE", help="with skip or --late drop: where to write such rows, CSV")
    safety.add_argument("--checkpoint", metavar="DIR", help="keep model, position and output together in DIR")
    safety.add_argument(
        "--every", default="10000", metavar="N", help="rows, or time such as '30 s', between two checkpoints (10000)"
    )
    safety.add_argument(
        "--resume",
        nargs="?",
        const="place",
        choices=("place", "next", "check"),
        help="continue from the checkpoint, if there is one: a file at its position, a pipe with its next row (place); "
        "next: another file, with its first row; check: a pipe that is sent again",
    )
