"""`onlinegp run --by KEY`: one model per key. The options that differ from a run over one stream."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from onlinegp.checks import count
from onlinegp.cli.options import LAGS, chosen_columns, given_parameters
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

MADE_BY: dict[str, Any] = {  # options that determine the model of a key, with their default values
    **{name: default for name, default in SETTLED.items() if name not in ("target", "features", "copy")},
    **dict.fromkeys(("start", "by", "order", "flag")),
    "tune_by": "together",
}
ROWS_OF_A_KEY = 100  # for tuning, where each key is tuned by itself
ENOUGH_OF_A_KEY = 10  # rows of a key on which keys are tuned together, and its lags


def add_by_key(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("a model per key")
    group.add_argument("--by", metavar="NAME", help="the column of the key: sensor, customer, link, ...")
    group.add_argument(
        "--order", metavar="NAME", help="the column that increases from row to row of a key, such as a time"
    )
    group.add_argument(
        "--late",
        choices=("stop", "drop"),
        default="stop",
        help="what to do with a row that is not newer than the one before it (stop)",
    )
    group.add_argument(
        "--tune-by",
        choices=("together", "key"),
        default="together",
        help="tune once, on the first rows of all keys, or each key on its own first rows (together)",
    )
    group.add_argument("--store", metavar="FILE", help="keep the models in FILE, which may be larger than memory")
    group.add_argument("--keep", type=int, default=10_000, metavar="N", help="models in memory, with a store (10000)")
    group.add_argument(
        "--compact", action="store_true", help="store states in a third of the bytes, rounded after each block"
    )


def refuse_alone(args: argparse.Namespace) -> None:
    """Refuse options that make no sense without --by, or with it."""
    if args.by is None:
        for name in ("order", "store", "compact"):
            if getattr(args, name):
                raise ValueError(f"--{name} needs --by NAME, the column of the key.")
        return
    for name, why in (
        ("save", "there is a model per key; use --store, and `onlinegp inspect FILE --key K --out MODEL`"),
        ("ahead", "the key of the next row is not known; run the rows of one key with --ahead, without --by"),
        ("new_series", "every key starts without past values; leave it out"),
    ):
        if getattr(args, name):
            raise ValueError(f"--{name.replace('_', '-')} cannot be used with --by: {why}.")
    if args.start is not None and args.tune_by == "key":
        raise ValueError("--start and --tune-by key exclude each other: the model says what is tuned. Use one.")
    if args.store is not None and args.checkpoint is not None:
        raise ValueError("--store and --checkpoint exclude each other with --by: a store is a checkpoint. Use one.")
    if args.resume and store_of(args) is None:
        raise CheckpointError("--resume needs --checkpoint DIR or --store FILE of the first run.")
    count("Each of them takes some memory.", keep=args.keep)


def store_of(args: argparse.Namespace) -> Path | None:
    """Return the file that stores the models, if there is one."""
    if args.checkpoint is not None:
        return Path(args.checkpoint) / DATABASE
    return None if args.store is None else Path(args.store)


def columns_by_key(
    args: argparse.Namespace, source: Source, talk: Talk
) -> tuple[Encoder, dict[str, int], OnlineRegressor | None]:
    """Select the columns and return their encoder, lags and horizon, and with --start the model that keys start from.

    Key and order are copied to the output. They are features only if --features names them.
    """
    apart = [args.by, *([args.order] if args.order is not None else [])]
    refuse_unknown(source, *apart)
    if args.target in apart:
        raise ValueError(f"--target {args.target} is the column of the key or its order. Predict another one.")
    if args.start is not None:
        encoder, past, model = from_options(args, source, talk)
        assert model is not None
        talk("each key starts with its parameters, and with nothing that it has learned")
        _select(encoder, source, apart, encoder.columns.features)
        return encoder, past, unwatched(model).unfitted()
    asked = {*apart, *(parse_columns(args.features) or ()), *(parse_columns(args.copy) or ())}
    if args.target is None:
        numbers = [name for name in source.names if source.numeric[name] and name not in asked]
        if not numbers:
            raise BadData(
                f"{source.path} has no column of numbers to predict other than {listed(apart)}. "
                f"Its columns: {listed(source.names)}."
            )
        args.target = numbers[-1]
    encoder, lags = chosen_columns(args, source, apart=apart)
    features = encoder.columns.features
    if args.features is None:
        features = tuple(name for name in features if name not in apart)
    lags = lags or (0 if features else LAGS)
    _select(encoder, source, apart, features)
    past = {"lags": lags, "horizon": args.horizon}
    talk(f"{told(encoder.columns, **past)}, for each {args.by}")
    return encoder, past, None


def _select(encoder: Encoder, source: Source, apart: list[str], features: tuple[str, ...]) -> None:
    """Select these features of an encoder and its source, and copy the key and order columns to the output."""
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
    """Return the type of the keys, None if it is not known yet. Refuse a type that differs from that of the store."""
    found, known = source.type_of(args.by), set() if store is None else store.types()
    if found is not None and found not in TYPES:
        raise ValueError(
            f"--by {args.by} must name a column of strings or whole numbers, but in {source.path} it holds values of "
            f"the type {found.__name__}. Convert the column to strings."
        )
    if store is not None and found is not None and len(known) == 1 and found not in known:
        raise ValueError(
            f"the keys in {store.path} are {TYPES[next(iter(known))]}, and --by {args.by} in {source.path} holds "
            f"{TYPES[found]}: they are different keys. Convert the column (CSV holds strings only), or use another "
            f"store."
        )
    return found or (next(iter(known)) if len(known) == 1 else None)


def saved_place(args: argparse.Namespace, store: Store | None) -> tuple[OnlineRegressor, dict[str, Any]] | None:
    """Return the model of a store and the description of the run that made it, empty if there is only the model."""
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
    """Load the column encoding of a store. Refuse other columns or options than those that it was made with."""
    store = store_of(args)
    _refuse_other_options(args, store, made_with({}, stream))
    if not stream:  # a fleet that was made in Python, which knows no names
        if not encoder.columns.plain:
            raise ValueError(f"{store} was not made from these columns. Use plain numbers, or another store.")
        return
    before, now = stored_columns(stream), encoder.columns
    if (before.target, before.features) != (now.target, now.features):
        raise ValueError(
            f"{store} predicts {_from(before)}, but these options predict {_from(now)}. "
            f"Name the columns by --target and --features in that order, or use another store."
        )
    if (before.kinds, before.missing) != (now.kinds, now.missing):
        raise ValueError(f"{store} was not made from these columns. Use those of the first run, or another store.")
    encoder.load(stream)


def _from(columns: Columns) -> str:
    return f"{columns.target} from {listed(columns.features) or 'its past'}"


def _refuse_other_options(args: argparse.Namespace, store: Path | None, made: dict[str, Any]) -> None:
    """Refuse typed options that differ from those that the models of a store were made with."""
    for name, default in MADE_BY.items():
        typed, before, option = getattr(args, name), made[name], f"--{name.replace('_', '-')}"
        columns = name in ("by", "order")
        if typed in (default, before) or (columns and before is None):
            continue
        was = "without it" if before == default else f"with {option} {before}"
        remedy = "Use that" if columns else f"Its models keep their options: leave {option} out"
        raise ValueError(
            f"{option} {typed} cannot be used with {store}, which was made {was}. {remedy}, or use another store."
        )


def made_with(settings: dict[str, Any], stream: dict[str, Any]) -> dict[str, Any]:
    """Return the options that the models of a store were made with: those of this run if the store is new."""
    before = stream.get("settings", settings)
    made = before.get("made", before)
    made = made if isinstance(made, dict) else {}
    return {name: made.get(name, default) for name, default in MADE_BY.items()}


def fleet_of(args: argparse.Namespace, store: Store | None) -> Any:
    """Return a function that makes a fleet from a model."""
    return lambda model: Fleet(model, store=store, keep=args.keep, compact=args.compact)


def requested_by_key(args: argparse.Namespace, past: dict[str, int], **around: Any) -> Requested:
    """Return the model that every key starts from: tuned on all keys, or one that tunes itself."""
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
    """Set how models are tuned: one on the first rows of all keys, each key by itself, or not at all."""
    asked = requested_by_key(args, {"lags": models.lags, "horizon": models.horizon}, watch=watch)
    tuned = args.tune_by != "key" and asked.tune != 0
    if not tuned:
        model = asked.build()
        if job.encoder.columns.plain:
            job.model = model
            return
    first = first_rows(args, job.source)
    talk(f"{'tuning on' if tuned else 'learning the columns from'} the first {first} rows, of all keys together")
    enough: dict[str, int] = {}
    if tuned and not args.tune:
        enough = {
            "of_key": ENOUGH_OF_A_KEY + models.lags + models.horizon - 1,
            "most": min(100 * first, job.source.rows_at_most(200 * first) // 2),
        }
    job.first = FirstRows(first, job.encoder, varied=tuned, **enough)
    job.begin = models.tuned_on(asked, job, talk) if tuned else lambda X, y: model


def is_resumable(args: argparse.Namespace, format: str) -> bool:
    """Return whether the position can be saved with the models; --checkpoint requires it."""
    if store_of(args) is None:
        return False
    try:
        check_resumable(args.out, format)
    except CheckpointError:
        if args.checkpoint is not None or args.resume:
            raise
        return False
    return True
