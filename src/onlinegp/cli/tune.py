"""`onlinegp tune`: tune a model on the first rows of a stream."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from onlinegp.cli.options import EXIT_CODES, add_model, add_source, chosen_columns, given_parameters, opened, say
from onlinegp.cli.parsing import parse_model
from onlinegp.cli.paths import Paths
from onlinegp.files.atomic import write_atomically
from onlinegp.models.combined.scaled import Scaling
from onlinegp.progress import ShareBar
from onlinegp.streams.errors import printable
from onlinegp.streams.running.prepare import Preparation, described, first_rows
from onlinegp.streams.running.run import Job
from onlinegp.streams.running.warm_up import WarmUp
from onlinegp.streams.writing.sinks import NoSink

EPILOG = f"""examples:
  onlinegp tune data.csv --tune 1000
  onlinegp tune data.csv --model krlst --out tuned.ogp && onlinegp run data.csv --start tuned.ogp

Inputs and target are standardized first, and length scales are in these units: the larger a length scale, the less its
column matters. The file that --out writes contains scaling, columns and the model, which has not learned anything yet.

{EXIT_CODES}"""
PATHS = Paths(reads=("SOURCE",), replaces=("--out",), pipes=("SOURCE",))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    add_source(parser)
    model = add_model(parser)
    model.add_argument("--model", default="krlst", metavar="NAME", help="the model to tune (krlst)")
    parser.add_argument("--out", metavar="FILE", help="write the tuned model to a file, .ogp")


def main(args: argparse.Namespace) -> int:
    source = opened(args)
    encoder, lags = chosen_columns(args, source)
    rows = args.tune or source.rows_at_most(1000)
    X, y = first_rows(source, WarmUp(rows, lags=lags, horizon=args.horizon, encoder=encoder, say=say)).data()
    choice = parse_model(args.model, given_parameters(args))
    scaling = Scaling.of(X, y)
    preparation = Preparation(
        choice.algorithm.name, choice.given, lags=lags, horizon=args.horizon, warn=say, progress=ShareBar()
    )
    trial = preparation.choose(*scaling(X, y))
    model = trial.build()
    names = [*encoder.names, *(f"{encoder.columns.target}[-{lag + args.horizon}]" for lag in range(lags))]
    print(f"{choice.algorithm.name} on {len(y)} rows, log density {trial.log_density:.3f} per row in the second half")
    for line in (*described(model), *_relevance(names, trial.params.get("kernel"))):
        print(f"  {printable(line)}")
    if args.out:
        job = Job(source, NoSink(), encoder, model=preparation.wrapped(model, scaling))
        write_atomically(args.out, [job.model_file()])
        say(f"model: {args.out}")
    return 0


def _relevance(names: list[str], kernel: Any) -> list[str]:
    """Return the relevance of each input: the inverse of its length scale, scaled to a largest value of 1."""
    if kernel is None:
        return []
    theta = [v for name, v in zip(kernel.names, kernel.theta, strict=True) if "length_scale" in name]
    if len(theta) != len(names) or len(names) < 2:
        return []
    relevance = np.exp(min(theta) - np.asarray(theta))
    return ["relevance: " + ", ".join(f"{name} {value:.2f}" for name, value in zip(names, relevance, strict=True))]
