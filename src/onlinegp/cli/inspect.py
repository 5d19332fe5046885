"""`onlinegp inspect`: what is in a model file or a checkpoint."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onlinegp.cli.options import add_import
from onlinegp.cli.paths import Paths
from onlinegp.columns.plan import Plan
from onlinegp.files.container import ModelFileError
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.base import OuterRegressor
from onlinegp.streams.errors import printable
from onlinegp.streams.running.checkpoint import latest, unpack
from onlinegp.streams.running.prepare import shown

PATHS = Paths(reads=("MODEL",))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="FILE", help="a model (.ogp), or the folder of a run's checkpoints")
    parser.add_argument("--json", action="store_true", help="for programs")
    add_import(parser)


def main(args: argparse.Namespace) -> int:
    path = Path(args.model)
    try:
        facts = inspected((latest(path) if path.is_dir() else path).read_bytes())
    except ModelFileError as error:
        raise ModelFileError(f"{args.model}: {error}") from None
    if args.json:
        print(json.dumps(facts, indent=2))
    else:
        print("\n".join(map(printable, _lines(facts))))
    return 0


def inspected(data: bytes) -> dict[str, Any]:
    """Return what a file says of its model and of the stream that it comes from."""
    model, stream = unpack(data)
    trained = model.__sklearn_is_fitted__()
    parts = list(_layers(model))
    facts: dict[str, Any] = {
        "model": type(parts[-1]).__name__,
        "inside": [type(part).__name__ for part in parts[:-1]],
        "bytes": len(data),
        "parameters": {k: shown(v) for part in parts for k, v in _parameters(part)},
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


def _layers(model: OnlineRegressor) -> Iterator[OnlineRegressor]:
    """Yield a model made of models from the outside in."""
    while isinstance(model, OuterRegressor):
        yield model
        model = model.model
    yield model


def _parameters(model: OnlineRegressor) -> Iterator[tuple[str, Any]]:
    """Yield the parameters of one layer that say something."""
    for name, value in model.get_params(deep=False).items():
        if name not in ("engine", "model") and not (isinstance(model, OuterRegressor) and value is None):
            yield name, value


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = []
    for name, value in facts.items():
        if isinstance(value, dict):
            lines.append(f"{name}:")
            lines += [f"  {key}: {inner}" for key, inner in value.items()]
        else:
            lines.append(f"{name}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
    return lines
