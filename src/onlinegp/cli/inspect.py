"""`onlinegp inspect`: show the contents of a model file, a checkpoint or the store of a fleet."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onlinegp.auto import Tuned
from onlinegp.auto.learner import AutoLearner
from onlinegp.cli.options import add_import
from onlinegp.cli.paths import Paths
from onlinegp.columns.plan import Plan
from onlinegp.files.atomic import write_atomically
from onlinegp.files.container import ModelFileError
from onlinegp.fleet.sqlite import stored_facts, stored_model, stored_one
from onlinegp.fleet.sqlite_file import is_store
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import OuterRegressor, working
from onlinegp.streams.errors import printable
from onlinegp.streams.running.checkpoint import SAVED, checked, from_bytes, latest, to_bytes
from onlinegp.streams.running.requested_model import shown

PATHS = Paths(reads=("MODEL",), replaces=("--out",))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="FILE", help="a model (.ogp), the store of a fleet, or the folder of --checkpoint"
    )
    parser.add_argument("--key", metavar="K", help="show the model of one key of a store")
    parser.add_argument("--out", metavar="FILE", help="with --key: write this model to a file, .ogp")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_import(parser)


def main(args: argparse.Namespace) -> int:
    if args.out is not None and args.key is None:
        raise ValueError("--out requires --key K, the key of the model to write.")
    path = Path(args.model)
    path = latest(path) if path.is_dir() else path
    try:
        if is_store(path):
            facts = _stored(args, path)
        elif args.key is not None:
            raise ValueError(f"--key is for the store of a fleet, but {args.model} is not a store.")
        else:
            facts = inspected(path.read_bytes())
    except ModelFileError as error:
        raise ModelFileError(str(error) if str(error).startswith(str(path)) else f"{args.model}: {error}") from None
    if args.json:
        print(json.dumps(facts, indent=2))
    else:
        print("\n".join(map(printable, _lines(facts))))
    return 0


def _stored(args: argparse.Namespace, path: Path) -> dict[str, Any]:
    """Describe a store, or the model of a key in the store."""
    if args.key is None:
        model, compact = stored_model(path)
        facts = {"store": str(path), "bytes": path.stat().st_size, "compact": compact, **stored_facts(path)}
        return facts | _about_model(model)
    data = _one(path, args.key)
    if args.out is not None:
        write_atomically(args.out, [data])
    return {"key": args.key, **inspected(data)}


def _one(path: Path, key: str) -> bytes:
    """Return the model of a key in a store as a file, with its columns if the store contains them."""
    model, note = stored_one(path, key)
    stream = checked(note, model) if isinstance(note, dict) and "columns" in note else {}
    return to_bytes(model, {name: stream[name] for name in SAVED}) if stream else model.to_bytes()


def inspected(data: bytes) -> dict[str, Any]:
    """Describe the model and the stream in a file."""
    model, stream = from_bytes(data)
    trained = model.__sklearn_is_fitted__()
    facts: dict[str, Any] = {
        **_about_model(model),
        "bytes": len(data),
        "centers": model.size_ if trained else 0,
        "learned": model.n_samples_seen_ if trained else 0,
        "inputs": model.n_features_in_ if trained else None,
    }
    if stream:
        facts |= {name: stream["columns"][name] for name in ("target", "features")}
        if stream["columns"]["learned"] is not None:
            plan = Plan.load(stream["columns"]["learned"])
            facts["inputs from"] = {column.column: ", ".join(column.names) for column in plan.columns}
    if "position" in stream:
        facts |= {"rows done": stream["rows"], "position": stream["position"], "output bytes": stream["output"]}
    return facts


def _about_model(model: OnlineRegressor) -> dict[str, Any]:
    parts = list(_layers(model))
    return {
        "model": type(parts[-1]).__name__,
        "inside": [type(part).__name__ for part in parts[:-1]],
        "parameters": {k: shown(v) for part in parts for k, v in _parameters(part)},
    }


def _layers(model: OnlineRegressor) -> Iterator[OnlineRegressor]:
    """Yield the model and its inner models, from the outside in; inside a `Tuned`, those that it chose."""
    learner = working(model) if model.__sklearn_is_fitted__() else None
    while isinstance(model, OuterRegressor | Tuned):
        yield model
        chosen = learner.chosen if isinstance(model, Tuned) and isinstance(learner, AutoLearner) else None
        model = chosen or model.model
    yield model


def _parameters(model: OnlineRegressor) -> Iterator[tuple[str, Any]]:
    """Yield the parameters of a model to show, without the inner model."""
    for name, value in model.get_params(deep=False).items():
        if name not in ("engine", "model") and not (isinstance(model, OuterRegressor | Tuned) and value is None):
            yield name, value


def _lines(facts: dict[str, Any]) -> list[str]:
    """Return the facts as lines of text, without empty lists."""
    lines = []
    for name, value in facts.items():
        if isinstance(value, dict):
            lines.append(f"{name}:")
            lines += [f"  {key}: {inner}" for key, inner in value.items()]
        elif value != []:
            lines.append(f"{name}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
    return lines
