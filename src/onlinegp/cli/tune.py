"""`onlinegp tune`: tune a model on the first rows of a stream."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from onlinegp.batch.parameter_search import prequential
from onlinegp.batch.tuning import NOTHING
from onlinegp.cli.options import EXIT_CODES, add_model, add_source, chosen_columns, given_parameters, open_input, say
from onlinegp.cli.parsing import parse_model
from onlinegp.cli.paths import Paths
from onlinegp.files.atomic import write_atomically
from onlinegp.kernels import Sum
from onlinegp.models.combined.base import innermost
from onlinegp.progress import ShareBar
from onlinegp.streams.errors import printable
from onlinegp.streams.running.first_rows import FirstRows, with_lags
from onlinegp.streams.running.requested_model import NOTHING_EXPLAINED, Requested, described, first_rows
from onlinegp.streams.running.run import Job
from onlinegp.streams.writing.sinks import NoSink

EPILOG = f"""examples:
  onlinegp tune data.csv --tune 1000
  onlinegp tune data.csv --model krlst --out tuned.ogp && onlinegp run data.csv --start tuned.ogp

Inputs and target are standardized first, and length scales are in standard units: the larger a length scale, the less
its column matters. If the kernel has a linear part, a column with a large length scale may still have a linear effect.
The file of --out contains scaling, columns and the unfitted model.

{EXIT_CODES}"""
PATHS = Paths(reads=("SOURCE",), replaces=("--out",), pipes=("SOURCE",))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    add_source(parser)
    model = add_model(parser)
    model.add_argument("--model", default="krlst", metavar="NAME", help="the model to tune (krlst)")
    parser.add_argument("--out", metavar="FILE", help="write the tuned model to a file, .ogp")


def main(args: argparse.Namespace) -> int:
    source = open_input(args)
    encoder, lags = chosen_columns(args, source)
    rows = args.tune or source.rows_at_most(1000)
    first = first_rows(source, FirstRows(rows, encoder, varied=True))
    X, y = with_lags(*first.encoded(), lags, args.horizon)
    choice = parse_model(args.model, given_parameters(args))
    if choice.algorithm.estimator.tunes_itself:
        raise ValueError(f"{choice.algorithm.name} tunes itself while it runs. Use `onlinegp run`.")
    asked = Requested(choice.algorithm.name, choice.given, lags=lags, horizon=args.horizon)
    model = asked.tuned(X, y, ShareBar())
    outcome = prequential(model.model if lags else model, X, y)  # type: ignore[attr-defined]
    if outcome.squared_error > NOTHING * np.var(y[len(y) // 2 :]):
        say(NOTHING_EXPLAINED)
    names = [*encoder.names, *(f"{encoder.columns.target}[-{lag + args.horizon}]" for lag in range(lags))]
    print(f"{choice.algorithm.name} on {len(y)} rows, log density {outcome.log_density:.3f} per row in the second half")
    inside = innermost(model)
    for line in (*described(inside), *_relevance(names, getattr(inside, "kernel", None))):
        print(f"  {printable(line)}")
    if args.out:
        job = Job(source, NoSink(), encoder, model=model)
        write_atomically(args.out, [job.model_file()])
        say(f"model: {args.out}")
    return 0


def _relevance(names: list[str], kernel: Any) -> list[str]:
    """Return the relevance of each input: the inverse length scale, relative to the largest."""
    if kernel is None:
        return []
    theta = [v for name, v in zip(kernel.names, kernel.theta, strict=True) if "length_scale" in name]
    if len(theta) != len(names) or len(names) < 2:
        return []
    relevance = np.exp(min(theta) - np.asarray(theta))
    title = "relevance beyond linear effects" if isinstance(kernel, Sum) else "relevance"
    return [f"{title}: " + ", ".join(f"{name} {value:.2f}" for name, value in zip(names, relevance, strict=True))]
