"""The options of `onlinegp run --by KEY`, a run with one model per key."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from onlinegp.checks import count
from onlinegp.cli.options import LAGS, chosen_columns, given_parameters, typed
from onlinegp.cli.parsing import parse_columns, parse_model
from onlinegp.cli.tuning_options import SETTLED, Talk, first_rows, from_options, told, tuning_rows
from onlinegp.files.container import ModelFileError
from onlinegp.fleet import Fleet
from onlinegp.fleet.sqlite import TYPES, stored_place
from onlinegp.fleet.sqlite_file import Store
from onlinegp.models.alarms.around import unwatched
from onlinegp.models.base import OnlineRegressor
from onlinegp.streams.errors import BadData, CheckpointError, listed
from onlinegp.streams.reading.source import Columns, Source, refuse_unknown, stored_columns
from onlinegp.streams.running.checkpoint import DATABASE, check_resumable, checked
from onlinegp.streams.running.column_encoding import Encoder
from onlinegp.streams.running.first_rows import FirstRows
from onlinegp.streams.running.requested_model import Requested
from onlinegp.streams.running.run import Job
from onlinegp.streams.running.run_by_key import ModelPerKey

MADE_BY: dict[str, Any] = {  # options that determine the model of a key, and their default values
    **{name: default for name, default in SETTLED.items() if name not in ("target", "features", "copy")},
    **dict.fromkeys(("start", "by", "order", "flag")),
    "tune_by": "together",
}
ROWS_OF_A_KEY = 100  # rows to tune on with --tune-by key
ENOUGH_OF_A_KEY = 10  # smallest number of rows of a key, beside its lags, to tune all keys together


def add_by_key(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("one model per key")
    group.add_argument("--by", metavar="NAME", help="the column of the key: sensor, customer, link, ...")
    group.add_argument("--order", metavar="NAME", help="a column that increases over the rows of a key, such as a time")
    group.add_argument(
        "--late",
        choices=("stop", "drop"),
        default="stop",
        help="how to treat a row that is not newer than the row before (stop)",
    )
    group.add_argument(
        "--tune-by",
        choices=("together", "key"),
        default="together",
        help="tune once on the first rows of all keys, or each key on its own rows (together)",
    )
    group.add_argument("--store", metavar="FILE", help="store the models in FILE, which may be larger than memory")
    group.add_argument("--keep", type=int, default=10_000, metavar="N", help="with --store: models in memory (10000)")
    group.add_argument(
        "--compact", action="store_true", help="store models in a third of the bytes, rounded after each block"
    )


def refuse_alone(args: argparse.Namespace) -> None:
    """Raise an error for options that need --by, and for options that --by excludes."""
    if args.by is None:
        alone = {"order": None, "store": None, "compact": False, "late": "stop", "tune_by": "together"}
        for option in typed(args, alone):
            raise ValueError(f"{option} needs --by NAME, the column of the key.")
        return
    for name, why in (
        ("save", "each key has its own model; use --store, and `onlinegp inspect FILE --key K --out MODEL`"),
        ("ahead", "the key of the next row is unknown; run the rows of a single key with --ahead, without --by"),
        ("new_series", "all keys start without past values; leave it out"),
    ):
        if getattr(args, name):
            raise ValueError(f"--{name.replace('_', '-')} cannot be used with --by: {why}.")
    if args.start is not None and args.tune_by == "key":
        raise ValueError("--start and --tune-by key exclude each other: a saved model is tuned already. Leave one out.")
    if args.store is not None and args.checkpoint is not None:
        raise ValueError("--store and --checkpoint exclude each other, because a store is a checkpoint. Leave one out.")
    if args.resume and store_of(args) is None:
        raise CheckpointError("--resume needs --checkpoint DIR or --store FILE of the first run.")
    count("Each model in memory takes space.", keep=args.keep)


def store_of(args: argparse.Namespace) -> Path | None:
    """Return the file that stores the models, if there is one."""
    if args.checkpoint is not None:
        return Path(args.checkpoint) / DATABASE
    return None if args.store is None else Path(args.store)


def columns_by_key(
    args: argparse.Namespace, source: Source, talk: Talk
) -> tuple[Encoder, dict[str, int], OnlineRegressor | None]:
    """Select the columns. Return their encoder, lags and horizon, and the initial model of --start.

    Key and order are copied to the output. They are features only if --features names them.
    """
    apart = [args.by, *([args.order] if args.order is not None else [])]
    refuse_unknown(source, *apart)
    if args.target in apart:
        raise ValueError(f"--target {args.target} is the column of the key or its order. Predict another column.")
    if args.start is not None:
        encoder, past, model = from_options(args, source, talk)
        assert model is not None
        talk("each key starts with its parameters, but without what it has learned")
        _select(encoder, source, apart, encoder.columns.features)
        return encoder, past, unwatched(model).unfitted()
    asked = {*apart, *(parse_columns(args.features) or ()), *(parse_columns(args.copy) or ())}
    if args.target is None:
        free = [name for name in source.names if name not in asked and not source.is_key(name)]
        numbers = [name for name in free if source.numeric[name]]
        if not numbers:
            raise BadData(
                f"{source.path} has no column of numbers to predict other than {listed(apart)}. "
                f"Its columns: {listed(source.names)}."
            )
        args.target = numbers[-1]
    encoder, lags = chosen_columns(args, source, apart=apart)
    features = encoder.columns.features
    if args.features is None:
        if args.order in features and not source.numeric[args.order]:
            talk(f"not used: {args.order} (the order of rows: name it in --features, with all other inputs)")
        features = tuple(name for name in features if name not in apart)
    lags = lags or (0 if features else LAGS)
    _select(encoder, source, apart, features)
    past = {"lags": lags, "horizon": args.horizon}
    talk(f"{told(encoder.columns, **past)}, for each {args.by}")
    return encoder, past, None


def _select(encoder: Encoder, source: Source, apart: list[str], features: tuple[str, ...]) -> None:
    """Select features, and copy the key and order columns to the output."""
    columns = encoder.columns
    kinds = dict(zip(columns.features, columns.kinds_of_features, strict=True))
    used = tuple(kinds[name] for name in features)
    encoder.columns = replace(
        columns,
        features=features,
        keys=tuple(dict.fromkeys([*apart, *columns.keys])),
        kinds=() if all(kind == "number" for kind in used) else used,
    )
    source.select(encoder.columns)


def open_store(args: argparse.Namespace) -> Store | None:
    """Open the file of the models, if there is one."""
    path = store_of(args)
    return None if path is None else Store(path)


def type_of_keys(args: argparse.Namespace, source: Source, store: Store | None) -> Any:
    """Return the type of the keys, or None if unknown. Raise an error if the keys of the store have another type."""
    found, known = source.type_of(args.by), set() if store is None else store.types()
    if found is not None and found not in TYPES:
        raise ValueError(
            f"--by {args.by} must name a column of strings or whole numbers, but in {source.path} it holds values of "
            f"the type {found.__name__}. Convert the column to strings."
        )
    if store is not None and found is not None and len(known) == 1 and found not in known:
        raise ValueError(
            f"the keys in {store.path} are {TYPES[next(iter(known))]}, but --by {args.by} in {source.path} contains "
            f"{TYPES[found]}, which are different keys. Convert the column (CSV contains only strings), or use "
            f"another store."
        )
    return found or (next(iter(known)) if len(known) == 1 else None)


def saved_place(args: argparse.Namespace, store: Store | None) -> tuple[OnlineRegressor, dict[str, Any]] | None:
    """Return the model of a store, and the description of the run that created it (empty for a store from Python)."""
    found = None if store is None else stored_place(store)
    if store is None or found is None:
        return None
    model, note = found
    if not args.resume and args.checkpoint is not None:
        raise CheckpointError(f"{args.checkpoint} holds the checkpoint of a run. Add --resume, or empty the folder.")
    try:
        return model, {} if note is None else checked(note, model.unfitted())
    except ModelFileError as error:
        raise CheckpointError(f"{store.path}: {error}") from None


def go_on(args: argparse.Namespace, encoder: Encoder, stream: dict[str, Any]) -> None:
    """Load the column encoding of a store. Raise an error if the store was created with other columns or options."""
    store = store_of(args)
    _refuse_other_options(args, store, made_with({}, stream))
    if not stream:  # a fleet from Python, without names of columns
        if not encoder.columns.plain:
            raise ValueError(f"{store} was created without these columns. Use plain numbers, or another store.")
        return
    before, now = stored_columns(stream), encoder.columns
    if (before.target, before.features) != (now.target, now.features):
        raise ValueError(
            f"{store} predicts {_from(before)}, but these options predict {_from(now)}. "
            f"Name these columns in --target and --features in this order, or use another store."
        )
    if (before.kinds, before.missing) != (now.kinds, now.missing):
        raise ValueError(f"{store} was created from other columns. Use the columns of the first run, or another store.")
    encoder.load(stream)


def _from(columns: Columns) -> str:
    return f"{columns.target} from {listed(columns.features) or 'its past'}"


def _refuse_other_options(args: argparse.Namespace, store: Path | None, made: dict[str, Any]) -> None:
    """Raise an error for options that differ from the options of the models in a store."""
    for name, default in MADE_BY.items():
        typed, before, option = getattr(args, name), made[name], f"--{name.replace('_', '-')}"
        columns = name in ("by", "order")
        if typed in (default, before) or (columns and before is None):
            continue
        was = "without it" if before == default else f"with {option} {before}"
        remedy = "Use that" if columns else f"The models in the store keep their options: leave {option} out"
        raise ValueError(
            f"{option} {typed} cannot be used with {store}, which was created {was}. {remedy}, or use another store."
        )


def made_with(settings: dict[str, Any], stream: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the models in a store. For a new store, return the options of this run."""
    before = stream.get("settings", settings)
    made = before.get("made", before)
    made = made if isinstance(made, dict) else {}
    return {name: made.get(name, default) for name, default in MADE_BY.items()}


def fleet_of(args: argparse.Namespace, store: Store | None) -> Any:
    """Return a function that creates a fleet from a model."""
    return lambda model: Fleet(model, store=store, keep=args.keep, compact=args.compact)


def requested_by_key(args: argparse.Namespace, past: dict[str, int], **around: Any) -> Requested:
    """Return the initial model of all keys, which is tuned on all keys or tunes itself."""
    alone = args.tune_by == "key"
    choice = parse_model(args.model or ("auto" if alone else "krlst"), given_parameters(args))
    if alone != choice.algorithm.estimator.tunes_itself:
        remedy = "Leave --model out" if alone else "Use --tune-by key"
        raise ValueError(f"--tune-by {args.tune_by} cannot tune --model {choice.algorithm.name}. {remedy}.")
    given, rows = dict(choice.given), tuning_rows(args)
    if alone:
        rows = args.tune or ROWS_OF_A_KEY
        given = {"rows": rows, "earliest": rows, "tuning_delay": 0.0} | given
    return Requested(choice.algorithm.name, given, rows, args.robust, past["lags"], past["horizon"], **around)


def tune_keys(
    args: argparse.Namespace, job: Job, models: ModelPerKey, talk: Talk, watch: dict[str, Any] | None
) -> None:
    """Prepare the tuning: once on the first rows of all keys, each key by itself, or no tuning."""
    asked = requested_by_key(args, {"lags": models.lags, "horizon": models.horizon}, watch=watch)
    tuned = args.tune_by != "key" and asked.tune != 0
    if not tuned:
        model = asked.build()
        if job.encoder.columns.plain:
            job.model = model
            return
    first = first_rows(args, job.source)
    talk(f"{'tuning on' if tuned else 'learning the columns from'} the first {first} rows of all keys together")
    enough: dict[str, int] = {}
    if tuned and not args.tune:
        enough = {
            "of_key": ENOUGH_OF_A_KEY + models.lags + models.horizon - 1,
            "most": min(100 * first, job.source.rows_at_most(200 * first) // 2),
        }
    job.first = FirstRows(first, job.encoder, varied=tuned, **enough)
    job.begin = models.tuned_on(asked, job, talk) if tuned else lambda X, y: model


def is_resumable(args: argparse.Namespace, format: str) -> bool:
    """Return whether the position can be stored with the models. Raise an error if --checkpoint needs this."""
    if store_of(args) is None:
        return False
    try:
        check_resumable(args.out, format)
    except CheckpointError:
        if args.checkpoint is not None or args.resume:
            raise
        return False
    return True
