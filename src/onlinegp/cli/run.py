"""`onlinegp run`: one-step predictions with intervals, from a file or a pipe."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from onlinegp.checks import positive
from onlinegp.cli.bars import Progress, TuningBar
from onlinegp.cli.by_key import (
    add_by_key,
    columns_by_key,
    fleet_of,
    is_resumable,
    preparation,
    refuse_alone,
    saved_place,
)
from onlinegp.cli.options import (
    EXIT_CODES,
    add_model,
    add_source,
    checked_level,
    chosen_columns,
    given_parameters,
    opened,
    say,
)
from onlinegp.cli.parsing import parse_every, parse_model
from onlinegp.cli.paths import Paths
from onlinegp.files.atomic import write_atomically
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import innermost
from onlinegp.streams.errors import CheckpointError, Stopped, listed
from onlinegp.streams.reading.source import ROWS, Columns, Source, columns_of
from onlinegp.streams.running.advance import size_of
from onlinegp.streams.running.checkpoint import Checkpoints, own_files, unpack
from onlinegp.streams.running.job import Every, Job, Rejects, check_resumable, same_settings
from onlinegp.streams.running.keyed import KeyedJob
from onlinegp.streams.running.prepare import Preparation, described, past_of
from onlinegp.streams.running.score import Curves
from onlinegp.streams.running.summary import summary, summary_lines
from onlinegp.streams.running.warm_up import WarmUp
from onlinegp.streams.writing.sinks import NoSink, open_sink, output_format

EPILOG = f"""examples:
  onlinegp run data.csv                                   choose everything, print predictions
  onlinegp run series.txt --lags 10 --out forecast.csv    a column of numbers, from its own past
  onlinegp run data.csv --target y --features a,b --model krlst --budget 200 --tune 1000 --out out.jsonl
  sensor | onlinegp run - --target y --tune 200           each line is answered before the next is read
  onlinegp run big.csv.gz --out out.csv --checkpoint safe --resume
  onlinegp run events.csv --by sensor --order time --out out.csv --store fleet.db

Every row of the input gives one row of output: its key columns, the target, then mean, std (of the target, noise
included), lower, upper and log_density of the prediction made before the target was learned. Rows used for tuning are
predicted by the mean of those before them and are not scored. A missing target is predicted and not learned.

After a crash, repeat the command with --resume: the output becomes what an uninterrupted run gives. A pipe must then
be sent again from its beginning; what was done is skipped. With --checkpoint, a last line of a file that has no end yet
is left unread, as it may still become longer.

{EXIT_CODES}"""
PIPE_ROWS = 200  # for tuning, where nobody knows how many rows will come
PATHS = Paths(
    reads=("SOURCE", "--start"),
    appends=("--out", "--rejects", "--store"),
    replaces=("--summary", "--save", "--report"),
    folders={"--checkpoint": own_files},
    pipes=("SOURCE", "--out"),
    renewed=("--start", "--save"),
)
Talk = Callable[[str], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    add_source(parser)
    model = add_model(parser)
    model.add_argument("--model", metavar="NAME", help="see `onlinegp models` (auto: a mixture that tunes itself)")
    model.add_argument("--start", metavar="FILE", help="go on with a model that --save or `onlinegp tune` wrote")
    model.add_argument(
        "--robust", nargs="?", type=float, const=3.0, metavar="C", help="bound what one sample can do, to C stds (3)"
    )
    add_by_key(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--out", metavar="FILE", help=".csv, .jsonl or .parquet; - for CSV on standard output")
    output.add_argument("--level", type=float, default=0.95, metavar="P", help="probability of the interval (0.95)")
    output.add_argument("--report", metavar="FILE", help="an interactive page about the run, .html")
    output.add_argument("--summary", metavar="FILE", help="the figures of the run as JSON")
    output.add_argument("--save", metavar="FILE", help="the model at the end, .ogp")
    output.add_argument("--quiet", action="store_true", help="say nothing but errors")
    safety = parser.add_argument_group("safety")
    safety.add_argument("--on-bad-row", choices=("stop", "skip"), default="stop", help="(stop)")
    safety.add_argument("--rejects", metavar="FILE", help="with skip: where to write such rows and why, CSV")
    safety.add_argument("--checkpoint", metavar="DIR", help="keep model, position and output together in DIR")
    safety.add_argument("--every", default="10000", metavar="N", help="rows, or seconds such as '30 s' (10000)")
    safety.add_argument("--resume", action="store_true", help="go on from the checkpoint, if there is one")


def main(args: argparse.Namespace) -> int:
    talk = (lambda text: None) if args.quiet else say
    job = None
    try:
        job = set_up(args, talk)
        job.run()
    except BrokenPipeError:
        raise
    except Stopped as stopped:
        assert job is not None
        say(f"onlinegp: {stopped} after {job.rows} rows. {_how_to_go_on(args, job)}")
        return stopped.exit_code
    except OSError:
        if job is not None and job.checkpoints is not None:
            say(f"onlinegp: {_how_to_go_on(args, job)}")
        raise
    finally:
        if job is not None:
            _close(job)
    finish(args, job, talk)
    return 0


def _close(job: Job) -> None:
    getattr(job.watch, "close", lambda: None)()
    job.close()


def _how_to_go_on(args: argparse.Namespace, job: Job) -> str:
    if job.checkpoints is None and not getattr(args, "store", None):
        return "Without --checkpoint there is nothing to go on from."
    if job.model is None:
        return "It was still tuning: repeat the command with --resume to start again."
    return f"The checkpoint at row {job.saved_rows} is safe: repeat the command with --resume."


# Before


def set_up(args: argparse.Namespace, talk: Talk) -> Job:
    """Return the job that the options describe, at its beginning or where its checkpoint says."""
    checked_level(args.level)
    if args.robust is not None:
        positive("3 is a usual choice.", robust=args.robust)
    every = Every(*parse_every(args.every))
    format = output_format(args.out)
    refuse_alone(args)
    if args.checkpoint is not None:
        check_resumable(args.out, format)
    elif args.resume and args.by is None:
        raise CheckpointError("--resume needs --checkpoint DIR, the folder of the first run.")
    source = opened(args, rows=every.rows or ROWS)
    source.skip_bad = args.on_bad_row == "skip"
    checkpoints = None if args.checkpoint is None else Checkpoints(args.checkpoint)
    if args.by is not None:
        return _keyed_job(args, source, checkpoints, every, talk)
    return _job(args, source, checkpoints, every, talk)


def _job(args: argparse.Namespace, source: Source, checkpoints: Checkpoints | None, every: Every, talk: Talk) -> Job:
    """Return the job. Its outputs are opened last, so that nothing that is refused before has touched them."""
    columns, past, model = _from_options(args, source, talk)
    source.select(columns)
    settings = _settings(args, columns, past)
    saved = _saved(args, checkpoints, settings, talk)
    if saved:
        source.seek(saved[1]["position"])  # before the output is cut: it refuses another input
    job = Job(
        source=source,
        sink=NoSink(),
        level=args.level,
        model=model,
        checkpoints=checkpoints,
        every=every,
        settings=settings,
        curves=Curves() if args.report else None,
        watch=Progress(quiet=args.quiet),
    )
    if saved:
        job.resume(*saved)
    elif model is None:
        _tune_first(args, job, past, talk)
    rejected = saved[1]["rejects"] if saved else {"count": 0, "length": 0}
    job.sink = open_sink(_output(args), columns.keys, str(columns.target), keep=saved[1]["output"] if saved else 0)
    job.rejects = Rejects(args.rejects, count=rejected["count"], keep=rejected["length"])
    return job


def _keyed_job(
    args: argparse.Namespace, source: Source, checkpoints: Checkpoints | None, every: Every, talk: Talk
) -> Job:
    """Return the job of a run with a model per key."""
    columns = columns_by_key(args, source)
    talk(f"target: {columns.target}, predicted from {listed(columns.features)}, for each {args.by}")
    source.select(columns)
    by_key = {name: getattr(args, name) for name in ("by", "order", "late", "tune_by")}
    settings = _settings(args, columns, {"lags": 0, "horizon": 1}) | by_key
    model, place = saved_place(args) or (None, {})
    if place:
        same_settings(place["settings"], settings)
        source.seek(place["position"])
        talk(f"resuming at row {place['rows']}")
    job = KeyedJob(
        source=source,
        sink=NoSink(),
        level=args.level,
        model=model,
        checkpoints=checkpoints,
        every=every,
        settings=settings,
        watch=Progress(quiet=args.quiet),
        by=args.by,
        order=args.order,
        late=args.late,
        hire=fleet_of(args),
        resumable=is_resumable(args, output_format(args.out)),
    )
    if place and model is not None:
        job.resume(model, place)
    elif model is None:
        _tune_keys(args, job, talk)
    rejected = place["rejects"] if place else {"count": 0, "length": 0}
    job.sink = open_sink(_output(args), columns.keys, str(columns.target), keep=place.get("output", 0))
    job.rejects = Rejects(args.rejects, count=rejected["count"], keep=rejected["length"])
    return job


def _tune_keys(args: argparse.Namespace, job: KeyedJob, talk: Talk) -> None:
    """Let the job tune on the first rows of all keys, or have models that tune themselves, or that are not tuned."""
    prepared = preparation(args, say=talk, warn=talk, progress=TuningBar(quiet=args.quiet))
    rows = 0 if args.tune_by == "key" else _tuning_rows(args, job.source)
    if rows == 0:
        job.model = prepared.untuned()
        return
    talk(f"tuning on the first {rows} rows, of all keys together")
    job.warm_up, job.prepare = WarmUp(rows, say=talk), prepared.chosen


def _tune_first(args: argparse.Namespace, job: Job, past: dict[str, int], talk: Talk) -> None:
    """Let the job tune on its first rows, or not at all."""
    rows = _tuning_rows(args, job.source)
    choice = parse_model(args.model or ("auto" if rows else "krlst"), given_parameters(args))
    preparation = Preparation(
        choice.algorithm.name,
        choice.given,
        args.robust,
        **past,
        say=talk,
        warn=talk,
        progress=TuningBar(quiet=args.quiet),
    )
    if rows == 0:
        job.model = preparation.untuned()
        talk("model: " + "; ".join(described(innermost(job.model))) + " (no tuning: inputs and target as they are)")
        return
    warm_up = WarmUp(rows, **past, say=talk)
    if past["lags"] and rows <= warm_up.memory + 1:
        raise ValueError(f"--tune {rows} leaves no row to tune on with --lags {past['lags']}. Use more rows.")
    talk(f"tuning on the first {rows} rows")
    job.warm_up, job.prepare = warm_up, preparation.tuned


def _tuning_rows(args: argparse.Namespace, source: Source) -> int:
    if args.tune is not None:
        if args.tune < 0:
            raise ValueError(f"--tune must be 0 or more rows, got {args.tune}.")
        return args.tune
    if args.kernel is not None and args.noise is not None:
        return 0
    if source.live:
        return PIPE_ROWS
    lags = args.lags or 0
    return max(min(1000, source.rows_at_most(5000) // 5), min(50, 5 + 2 * lags))


def _from_options(
    args: argparse.Namespace, source: Source, talk: Talk
) -> tuple[Columns, dict[str, int], OnlineRegressor | None]:
    """Return the columns, lags and horizon, and with --start the model."""
    if args.start is None:
        columns, lags = chosen_columns(args, source)
        past = f"its last {lags} values" + (f", {args.horizon} rows ahead" if args.horizon > 1 else "")
        from_what = [*([listed(columns.features)] if columns.features else []), *([past] if lags else [])]
        talk(f"target: {columns.target}, predicted from {' and '.join(from_what)}")
        return columns, {"lags": lags, "horizon": args.horizon}, None
    model, stream = unpack(Path(args.start).read_bytes())
    if not stream:
        raise ValueError(f"{args.start} does not say which columns it was made for. Use a file that --save wrote.")
    columns = columns_of(stream, source)
    model.begin_series()  # another stream has another past
    talk(f"model: {type(innermost(model)).__name__} from {args.start}, {size_of(model)} centers")
    return columns, past_of(model), model


def _settings(args: argparse.Namespace, columns: Columns, past: dict[str, int]) -> dict[str, Any]:
    """Return the options on which the output depends, to be kept in checkpoints and shown in the report."""
    plain = (
        "source",
        "out",
        "model",
        "kernel",
        "noise",
        "budget",
        "forgetting",
        "set",
        "tune",
        "robust",
        "level",
        "start",
        "format",
        "delimiter",
        "encoding",
        "decimal",
    )
    settings = {name: getattr(args, name) for name in (*plain, "on_bad_row", "rejects")}
    lists = {name: ",".join(value) for name, value in asdict(columns).items() if isinstance(value, tuple)}
    return settings | {"target": columns.target} | lists | past


def _saved(args: argparse.Namespace, checkpoints: Checkpoints | None, settings: dict[str, Any], talk: Talk) -> Any:
    """Return model and stream of the checkpoint to go on from, or None."""
    if checkpoints is None:
        return None
    if not args.resume:
        if checkpoints.exist():
            raise CheckpointError(
                f"{args.checkpoint} holds the checkpoint of a run. Add --resume, or empty the folder."
            )
        return None
    found = checkpoints.read()
    if found is None:
        talk(f"no checkpoint in {args.checkpoint} yet: starting from the first row")
        return None
    model, stream, wrong = found
    for reason in wrong:
        say(f"onlinegp: refused {reason} Using the one before it.")
    same_settings(stream["settings"], settings)
    talk(f"resuming at row {stream['rows']}")
    return model, stream


def _output(args: argparse.Namespace) -> str | None:
    if args.out is None and args.source != "-" and sys.stdout.isatty():
        return None  # nobody reads thousands of rows; the summary says how to keep them
    return args.out or "-"


# During and after


def finish(args: argparse.Namespace, job: Job, talk: Talk) -> None:
    """Tell how it went, and write what else was asked for."""
    figures = summary(job)
    for line in summary_lines(figures):
        talk(line)
    if job.source.unfinished:
        say(f"onlinegp: the last line of {job.source.path} has no end yet and was left unread: resume when it has one.")
    if _output(args) is None:
        talk("The predictions were not kept: add --out FILE, or a pipe.")
    if args.summary:
        write_atomically(args.summary, [json.dumps(figures, indent=2).encode() + b"\n"])
    if job.model is None and job.warm_up is not None:
        talk(f"{job.warm_up.constant()} in every row: there is nothing to learn, and no model")
    elif args.save:
        write_atomically(args.save, [job.model_file()])
        talk(f"model: {args.save}")
    if args.report and job.curves is not None:
        from onlinegp.streams.writing.report import write_report

        chosen = [] if job.model is None else described(innermost(job.model))
        write_report(args.report, figures, job.score, job.curves, command=_command(), model=chosen)
        talk(f"report: {args.report}")


def _command() -> str:
    import shlex

    return shlex.join(["onlinegp", *sys.argv[1:]])
