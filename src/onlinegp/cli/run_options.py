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
  sensor | onlinegp run - --target y --tune 200           predict each line before the next line is read
  sensor | onlinegp run - --lags 10 --ahead               answer each line with the prediction of the next line
  onlinegp run data.csv --flag 1/day --events events.jsonl --report page.html --out out.csv
  onlinegp run big.csv.gz --out out.csv --checkpoint safe --resume
  onlinegp run events.csv --by sensor --order time --out out.csv --store fleet.db

Each row of the input gives one row of output: the key columns, the target, then mean, std (including the noise), lower,
upper and log_density of the prediction before the target was learned. The first rows are predicted by the mean of
earlier targets, and soon by models that need no tuning. Rows with a missing target are predicted but not learned.

After a crash, repeat the command with --resume: the final output is the same as without the crash. A file is read again
up to the position of the checkpoint, and the command fails if these rows have changed; --resume next continues with the
first row of another file. A pipe continues with its next row, after a header. With --resume check the pipe must be sent
again from the beginning; finished rows are checked and skipped. With --checkpoint, an incomplete last line of a file is
not read, because it may still grow.

With --flag RATE a detector checks each row and reports events. The output has the columns score (-log10 of the rate of
such events, in rows where an event opens or grows), tail (the probability of a row that is at least as unusual) and
event (the number of the open event). --events writes each event when it opens and when it clears: its kind (spike,
level, trend, variance, season broken, stuck, missing), rows, severity, and a reason in words. RATE is the expected rate
of false events: 0.001 per row, or 1/day over all keys. A target far outside the range of all earlier targets is not
learned, or limited by --robust.

{EXIT_CODES}  5    with --flag-exit: done, with at least one event
"""
SHORT_EPILOG = """examples:
  onlinegp run data.csv                                  choose everything, print predictions
  onlinegp run series.txt --lags 10 --out forecast.csv   a column of numbers, from its own past
  onlinegp run data.csv --flag 0.001 --out out.csv       report unusual rows
  onlinegp run big.csv.gz --out out.csv --checkpoint safe --resume
  onlinegp run events.csv --by sensor --order time --out out.csv

Each row is predicted before it is learned. The output has mean, std, lower, upper and log_density. The model tunes
itself on the first rows.
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
        help="for late targets: learn each row just before predicting the Nth row after it (0)",
    )
    add_by_key(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--out", metavar="FILE", help=".csv, .jsonl or .parquet; - or jsonl for standard output")
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
        help="report unusual rows as events, with an expected RATE of false events: 0.001 per row, or 1/day",
    )
    flags.add_argument("--events", metavar="FILE", help="write each event when it opens and clears, .jsonl")
    flags.add_argument(
        "--on-flag", metavar="CMD", help="run CMD for each event that opens, with the event as JSON on stdin"
    )
    flags.add_argument("--flag-exit", action="store_true", help="end with exit code 5 if there was an event")
    safety = parser.add_argument_group("safety")
    safety.add_argument(
        "--on-bad-row",
        choices=("stop", "skip"),
        default="stop",
        help="how to treat a row that cannot be used (stop)",
    )
    safety.add_argument("--rejects", metavar="FILE", help="with skip or --late drop: write such rows to a CSV file")
    safety.add_argument("--checkpoint", metavar="DIR", help="save the model and the position in DIR, for --resume")
    safety.add_argument(
        "--every", default="10000", metavar="N", help="rows or time between two checkpoints, such as '30 s' (10000)"
    )
    safety.add_argument(
        "--resume",
        nargs="?",
        const="place",
        choices=("place", "next", "check"),
        help="continue from the checkpoint, if there is one. place (default): a file at its position, a pipe with its "
        "next row; next: another file with its first row; check: a pipe that is sent again",
    )
