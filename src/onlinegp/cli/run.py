"""`onlinegp run`: one-step predictions with intervals, from a file or a pipe."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from onlinegp.cli.options import LAGS, checked_level, command_line, open_input, say, source_of
from onlinegp.cli.parsing import parse_every
from onlinegp.cli.paths import Paths
from onlinegp.cli.run_by_key import (
    columns_by_key,
    fleet_of,
    go_on,
    is_resumable,
    made_with,
    open_store,
    refuse_alone,
    saved_place,
    tune_keys,
    type_of_keys,
)
from onlinegp.cli.run_options import add_arguments
from onlinegp.cli.tuning_options import (
    Progress,
    Talk,
    checked_robust,
    from_options,
    set_model,
)
from onlinegp.files.atomic import write_atomically
from onlinegp.fleet.sqlite_file import Store
from onlinegp.models.alarms.around import unwatched, watching
from onlinegp.models.alarms.detector import Detector
from onlinegp.models.combined import Lagged
from onlinegp.streams.errors import CheckpointError, Stopped, listed
from onlinegp.streams.reading.source import BLOCK_ROWS, Columns, Source
from onlinegp.streams.running.checkpoint import Checkpoints, check_resumable, own_files, same_settings
from onlinegp.streams.running.column_encoding import Encoder
from onlinegp.streams.running.event_rate import detector_parameters, time_column
from onlinegp.streams.running.event_scenes import Scenes
from onlinegp.streams.running.flag_commands import Commands
from onlinegp.streams.running.flags import Flags
from onlinegp.streams.running.helpful_lags import lags_help
from onlinegp.streams.running.hints import Hints
from onlinegp.streams.running.key_rules import KeyRules
from onlinegp.streams.running.member_weights import Weights
from onlinegp.streams.running.plausible import CodeWatch
from onlinegp.streams.running.rejects import Rejects
from onlinegp.streams.running.requested_model import past_of
from onlinegp.streams.running.run import Every, Job
from onlinegp.streams.running.run_by_key import ModelPerKey
from onlinegp.streams.running.score import Curves
from onlinegp.streams.running.summary import summary, summary_lines
from onlinegp.streams.running.surprises import Surprises
from onlinegp.streams.writing.report import write_report
from onlinegp.streams.writing.sinks import ADDED, AHEAD, FLAGGED, NoSink, open_sink, output_format

__all__ = ["PATHS", "add_arguments", "main"]

FLAGGED_CODE = 5
SETTINGS = (  # options on which the output depends
    *("source", "out", "model", "kernel", "noise", "budget", "forgetting", "set", "tune", "robust", "level"),
    *("flag", "events", "ahead", "start", "new_series", "format", "delimiter", "encoding", "decimal", "categories"),
    *("delay", "category_limit", "dates", "date_format", "missing", "on_bad_row", "rejects"),
)
PATHS = Paths(
    reads=("SOURCE", "--start"),
    appends=("--out", "--rejects", "--store", "--events"),
    replaces=("--summary", "--save", "--report"),
    folders={"--checkpoint": own_files},
    pipes=("SOURCE", "--out"),
    renewed=("--start", "--save"),
)


def main(args: argparse.Namespace) -> int:
    talk = (lambda text: None) if args.quiet else say
    job, code = None, 0
    try:
        job = set_up(args, talk)
        job.run()
    except BrokenPipeError:
        raise
    except Stopped as stopped:
        assert job is not None
        say(f"onlinegp: {stopped} after {job.rows} rows. {_how_to_go_on(args, job)}")
        code = stopped.exit_code
    except OSError:
        if job is not None and job.checkpoints is not None:
            say(f"onlinegp: {_how_to_go_on(args, job)}")
        raise
    finally:
        if job is not None:
            _close(job)
    if job.model is not None or not code:
        finish(args, job, talk)
    return code or (FLAGGED_CODE if args.flag_exit and job.flags is not None and job.flags.count else 0)


def _close(job: Job) -> None:
    getattr(job.watch, "close", lambda: None)()
    job.close()


def _how_to_go_on(args: argparse.Namespace, job: Job) -> str:
    if job.checkpoints is None and not getattr(args, "store", None):
        if args.save and job.model is not None:
            return f"The model is saved: continue with --start {args.save}."
        return "Without --checkpoint there is nothing to continue from."
    if job.model is None:
        return "The model was still tuning: repeat the command with --resume to start again."
    if not job.saved_rows:
        return "There is no checkpoint yet: repeat the command with --resume to start again."
    return f"The checkpoint at row {job.saved_rows} is safe: repeat the command with --resume."


# Before


def set_up(args: argparse.Namespace, talk: Talk) -> Job:
    """Return the job for the options, at its beginning or at the position of its checkpoint."""
    checked_level(args.level)
    checked_robust(args.robust)
    if args.flag is None and (args.on_flag is not None or args.flag_exit or args.events is not None):
        raise ValueError("--events, --on-flag and --flag-exit need --flag RATE, the rate of events. Add --flag 0.001.")
    every = Every(*parse_every(args.every))
    format = output_format(args.out)
    refuse_alone(args)
    if args.checkpoint is not None:
        check_resumable(args.out, format)
    elif args.resume and args.by is None:
        raise CheckpointError("--resume needs --checkpoint DIR, the folder of the first run.")
    source = _opened(args)
    checkpoints = None if args.checkpoint is None else Checkpoints(args.checkpoint)
    plan = _Plan(args, source, checkpoints, every, talk)
    if args.by is None:
        return plan.one_stream()
    store = open_store(args)  # from now on this run owns the store
    try:
        return plan.by_key(store)
    except BaseException:
        if store is not None:
            store.close()
        raise


def _opened(args: argparse.Namespace) -> Source:
    source = open_input(args, rows=Every(*parse_every(args.every)).rows or BLOCK_ROWS)
    source.skip_bad = args.on_bad_row == "skip"
    return source


@dataclass
class _Plan:
    """Convert options to a job. Outputs are opened last, so that a command with errors changes no file."""

    args: argparse.Namespace
    source: Source
    checkpoints: Checkpoints | None
    every: Every
    talk: Talk

    def one_stream(self) -> Job:
        args, talk = self.args, self.talk
        encoder, past, model = from_options(args, self.source, talk)
        if args.ahead and encoder.columns.features:
            raise ValueError(
                f"--ahead predicts the next row before it arrives, but then its {listed(encoder.columns.features)} "
                f"would be unknown. Use only --lags N."
            )
        watch = self._watch(encoder)
        if model is not None:
            model = unwatched(model) if watch is None else watching(model, **watch)
        settings = _settings(args, encoder.columns, past)
        saved = _saved(args, self.checkpoints, settings, talk)
        place = saved[1] if saved else {}
        job = Job(
            **self._common(encoder, place),
            model=model,
            settings=settings,
            curves=Curves(past["horizon"]) if args.report else None,
            weights=Weights() if args.report else None,
            surprises=Surprises() if args.report else None,
            ahead=args.ahead,
            hints=Hints(),
            screen=args.flag is not None and args.robust is None,
        )
        if saved:
            job.resume(*saved)
        elif model is None:
            set_model(args, job, past | self._more_lags(encoder), talk, watch=watch)
        return self._with_outputs(job, place)

    def by_key(self, store: Store | None) -> Job:
        args = self.args
        encoder, past, start = columns_by_key(args, self.source, self.talk)
        watch = self._watch(encoder)
        if start is not None and watch is not None:
            start = Detector(start, **watch)
        by_key = {name: getattr(args, name) for name in ("by", "order", "late", "tune_by", "compact")}
        settings = _settings(args, encoder.columns, past) | by_key
        model, stream = saved_place(args, store) or (None, {})
        place = stream if args.resume and "position" in stream else {}
        if place:
            same_settings(place["settings"], settings, any_source=args.resume == "next")
        elif model is not None:
            go_on(args, encoder, stream)
        common = self._common(encoder, place)
        models = ModelPerKey(
            rules=KeyRules(common["source"], args.by, args.order, args.late, type_of_keys(args, self.source, store)),
            lags=past["lags"],
            horizon=past["horizon"],
            make_fleet=fleet_of(args, store),
            store=store,
            resumable=is_resumable(args, output_format(args.out)),
        )
        job = Job(
            **common,
            models=models,
            model=start if model is None else model,
            settings=settings | {"made": made_with(settings, stream)},
        )
        if place and model is not None:
            job.resume(model, place)
        elif job.model is None:
            tune_keys(args, job, models, self.talk, watch)
        return self._with_outputs(job, place)

    def _common(self, encoder: Encoder, place: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of all jobs. Move the source to its position before the output is truncated."""
        args = self.args
        return {
            "source": _at_place(args, self.source, place, self.talk) if place else self.source,
            "sink": NoSink(),
            "encoder": encoder,
            "level": args.level,
            "checkpoints": self.checkpoints,
            "every": self.every,
            "codes": CodeWatch(self.talk),
            "watch": Progress(self.talk, quiet=args.quiet),
            "flags": self._flags(encoder),
            "scenes": Scenes(args.by) if args.report and args.flag is not None else None,
            "commands": None if args.on_flag is None else Commands(args.on_flag, say),
        }

    def _time(self) -> str | None:
        return time_column(self.source, self.args.order, self.args.date_format)

    def _watch(self, encoder: Encoder) -> dict[str, Any] | None:
        """Return the parameters of the detector, or None without --flag."""
        args = self.args
        if args.flag is None:
            return None
        found = detector_parameters(args.flag, self.source, by=args.by, time=self._time())
        if "/" in args.flag:
            self.talk(f"--flag {args.flag} is {found['rate']:.3g} events per row, by the times of the first rows")
        return found

    def _more_lags(self, encoder: Encoder) -> dict[str, int]:
        """Return the lags for --flag. Add lags to a table with times if the user chose none and they help."""
        args, columns = self.args, encoder.columns
        chosen = args.flag is None or args.lags is not None or args.horizon > 1
        if chosen or not (columns.features and columns.plain) or self._time() is None or self.source.live:
            return {}
        with closing(source_of(args)) as first:
            if not lags_help(first, columns, LAGS):
                return {}
        self.talk(f"the last {LAGS} values of {columns.target} are inputs, too; --lags 0 leaves them out")
        return {"lags": LAGS}

    def _flags(self, encoder: Encoder) -> Flags | None:
        if self.args.flag is None:
            return None
        time = self._time()
        target, copied = str(encoder.columns.target), time if time in encoder.columns.keys else None
        return Flags(target=target, inputs=encoder.names, time=copied, by=self.args.by)

    def _with_outputs(self, job: Job, place: dict[str, Any]) -> Job:
        args, columns = self.args, job.encoder.columns
        added = (*ADDED, *(FLAGGED if args.flag is not None else ()), *(AHEAD if args.ahead else ()))
        names = (*columns.keys, str(columns.target))
        if job.flags is not None:
            job.flags.write_to(args.events)
        job.sink = open_sink(_output(args), names, added=added, keep=place.get("output", 0))
        rejected = place.get("rejects", {"count": 0, "length": 0})
        job.rejects = Rejects(args.rejects, count=rejected["count"], keep=rejected["length"])
        return job


def _settings(args: argparse.Namespace, columns: Columns, past: dict[str, int]) -> dict[str, Any]:
    """Return the options on which the output depends, for checkpoints and the report."""
    settings = {name: getattr(args, name) for name in SETTINGS}
    lists = {name: ",".join(value) for name, value in asdict(columns).items() if isinstance(value, tuple)}
    return settings | {"target": columns.target} | lists | past


def _saved(args: argparse.Namespace, checkpoints: Checkpoints | None, settings: dict[str, Any], talk: Talk) -> Any:
    """Return model and stream of the checkpoint of --resume, or None."""
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
    if wrong and args.resume == "next":
        raise CheckpointError(
            f"refused {wrong[0]} It is not known which files it had finished, so --resume next could leave rows out. "
            f"Resume {stream['settings']['source']} with --resume alone, and then the files after it."
        )
    for reason in wrong:
        say(f"onlinegp: {reason} Using the previous checkpoint.")
    same_settings(stream["settings"], settings, any_source=args.resume == "next")
    return model, stream


def _at_place(args: argparse.Namespace, source: Source, stream: dict[str, Any], talk: Talk) -> Source:
    """Return the source at the position of a checkpoint or, for pipes and new inputs, at the next row."""
    where = f"resuming at row {stream['rows']}"
    if source.live and args.resume != "check":
        talk(f"{where} with the next row of {source.path}; earlier rows are not checked")
        return source
    try:
        source.seek(stream["position"])
    except CheckpointError:
        if args.resume != "next":
            raise
        source.close()
        fresh = _opened(args)
        fresh.select(source.columns)
        talk(f"{where} with the first row of {source.path}, a new input")
        return fresh
    talk(where)
    return source


def _output(args: argparse.Namespace) -> str | None:
    if args.out is None and args.source != "-" and sys.stdout.isatty():
        return None  # too many rows for a terminal; the summary says how to save them
    return args.out or "-"


# During and after


def finish(args: argparse.Namespace, job: Job, talk: Talk) -> None:
    """Print the summary and hints, and write the requested files."""
    figures = summary(job)
    if args.by is None:
        getattr(job.watch, "tuned", lambda *_, **__: None)(job.model, seconds=job.idle, end=True)
    for line in summary_lines(figures):
        talk(line)
    if odd := job.range.count if args.by is None else 0:
        many = f"{odd} targets are" if odd > 1 else "1 target is"
        what = "flagged and not learned" if job.screen else "learned: add --flag 0.001, --robust or --na-values"
        if args.robust is not None:
            what = f"learned as errors of at most {args.robust:g} standard deviations (--robust)"
        talk(f"{many} far outside the range of all earlier targets, and {what}")
    if isinstance(job.model, Lagged) and job.model.lags == "auto" and job.model.__sklearn_is_fitted__():
        seasons = [f"{season:g}" for season in job.model.seasons_]
        talk(f"seasons: every {listed(seasons)} rows" if seasons else "seasons: none; the last values are the inputs")
    if job.hints is not None:
        automatic = isinstance(job.model, Lagged) and job.model.lags == "auto"
        past = past_of(job.model) if job.model else {"lags": 0, "horizon": 1}
        for hint in job.hints.sentences(job.encoder.names, **(past | {"lags": None} if automatic else past)):
            talk(f"hint: {hint}")
    if job.source.unfinished:
        say(f"onlinegp: the last line of {job.source.path} is incomplete and was not read. Resume when it is complete.")
    if _output(args) is None:
        talk("The predictions were not saved: add --out FILE, or a pipe.")
    if args.summary:
        write_atomically(args.summary, [json.dumps(figures, indent=2).encode() + b"\n"])
    if job.model is None:
        talk("the target is the same in every row, or missing: there is nothing to learn, and no model")
    elif args.save:
        write_atomically(args.save, [job.model_file()])
        talk(f"model: {args.save}")
    if args.report:
        write_report(args.report, job, figures, command=command_line())
        talk(f"report: {args.report}")
