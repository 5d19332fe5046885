"""`onlinegp predict`: predict with a saved model, without learning."""

from __future__ import annotations

import argparse
from typing import Any

from onlinegp.cli.options import EXIT_CODES, add_format, add_import, checked_level, open_input, say
from onlinegp.cli.paths import Paths
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined import Columns as EncodedModel
from onlinegp.streams.errors import Stopped, listed
from onlinegp.streams.reading.source import Columns, Source, columns_of, need, stored_columns
from onlinegp.streams.running.checkpoint import read_model
from onlinegp.streams.running.column_encoding import Encoder
from onlinegp.streams.running.rejects import Rejects
from onlinegp.streams.running.run import Job
from onlinegp.streams.running.summary import summary, summary_lines
from onlinegp.streams.writing.sinks import open_sink

EPILOG = f"""examples:
  onlinegp run train.csv --save model.ogp
  onlinegp predict model.ogp new.csv --out predicted.csv

The file must have the columns that the model was trained with. The target may be missing, unless the model has lags.
By default the rows continue the series that the model has learned: their first lags are the last values in the model
file. Use --new-series if they belong to another series. Predictions replace missing targets in later lags; for
intervals that widen with the steps use `onlinegp forecast`.

{EXIT_CODES}"""
PATHS = Paths(reads=("MODEL", "SOURCE"), appends=("--out", "--rejects"), pipes=("SOURCE", "--out"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    parser.add_argument("model", metavar="MODEL", help="a file from --save or model.save(path), or a checkpoint")
    parser.add_argument("source", metavar="SOURCE", help="CSV, CSV.gz, JSON lines, Parquet, or - for standard input")
    parser.add_argument(
        "--out", default="-", metavar="FILE", help=".csv, .jsonl or .parquet; - or jsonl for standard output (-)"
    )
    parser.add_argument("--level", type=float, default=0.95, metavar="P", help="probability of the interval (0.95)")
    parser.add_argument(
        "--on-bad-row",
        choices=("stop", "skip"),
        default="stop",
        help="how to treat a bad row (stop)",
    )
    parser.add_argument("--rejects", metavar="FILE", help="with skip: write bad rows and the reasons to a CSV file")
    parser.add_argument("--new-series", action="store_true", help="the rows do not continue the learned series")
    add_format(parser)
    parser.add_argument("--quiet", action="store_true", help="print only errors")
    add_import(parser)


def main(args: argparse.Namespace) -> int:
    checked_level(args.level)
    if args.rejects is not None and args.on_bad_row != "skip":
        raise ValueError(
            f"--rejects {args.rejects} would stay empty, because the first bad row ends the command. "
            f"Add --on-bad-row skip, or leave it out."
        )
    model, stream = read_model(args.model)
    source = open_input(args)
    source.skip_bad = args.on_bad_row == "skip"
    if args.new_series:
        model.begin_series()
    columns = columns_of(stream, source, target_needed=model.features_optional) if stream else _by_itself(model, source)
    encoder = Encoder.restored(columns, stream) if stream else Encoder(columns)
    if not stream and isinstance(model, EncodedModel) and (encoding := model.encoding()) is not None:
        encoder.plan = encoding.plan_
    if not stream and not args.quiet:
        target = "no target" if columns.target is None else f"target {columns.target}"
        say(f"{args.model} has no names of columns: predicting from {listed(columns.features)}, {target}")
    source.select(columns)
    target = columns.target or (stored_columns(stream).target if stream else None) or "target"
    sink = open_sink(args.out, (*columns.keys, target))
    job = Job(source, sink, encoder, level=args.level, model=model, learn=False, rejects=Rejects(args.rejects))
    try:
        job.run()
    except Stopped as stopped:
        say(f"onlinegp: {stopped} after {job.rows} rows.")
        return stopped.exit_code
    finally:
        job.close()
    for line in [] if args.quiet else summary_lines(summary(job)):
        say(line)
    return 0


def _by_itself(model: OnlineRegressor, source: Source) -> Columns:
    """Return the columns for a model from Python: the columns of the training data, if they had names.

    Otherwise its inputs are the first numeric columns. The target is the next numeric column, if there is one.
    """
    encoding = model.encoding() if isinstance(model, EncodedModel) else None
    if not model.__sklearn_is_fitted__():
        raise ValueError("the model has not learned anything yet, so its inputs are unknown. Train it first.")
    if model.n_outputs_ > 1:
        raise ValueError(f"the model has {model.n_outputs_} outputs, but a table has one target. Use Python.")
    width, numbers = model.n_features_in_, [name for name in source.names if source.numeric[name]]
    features = tuple(map(str, getattr(model, "feature_names_in_", numbers[:width])))
    how: dict[str, Any] = {}
    if encoding is not None:
        features, kinds = tuple(encoding.kinds), tuple(encoding.kinds.values())
        rules, width = encoding.rules, len(features)
        how = {"missing": rules.missing, "date_format": rules.date_format, "na_values": encoding.na_values}
        how["kinds"] = kinds if set(kinds) != {"number"} else ()
    need(source, *features)
    if len(features) < width:
        raise ValueError(f"the model has {width} inputs, but {source.path} has {len(numbers)} numeric columns.")
    target = next((name for name in numbers if name not in features), None)
    taken = {*features, target}
    keys = tuple(name for name in source.names if name not in taken)
    return Columns(target, features, keys, **how)
