"""`onlinegp inspect`: what is in a model file or a checkpoint."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from onlinegp.cli.options import add_import
from onlinegp.cli.paths import Paths
from onlinegp.files.container import ModelFileError
from onlinegp.streams.errors import printable
from onlinegp.streams.running.checkpoint import unpack
from onlinegp.streams.running.prepare import shown

PATHS = Paths(reads=("MODEL",))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="FILE", help="a model (.ogp) or a checkpoint of a run")
    parser.add_argument("--json", action="store_true", help="for programs")
    add_import(parser)


def main(args: argparse.Namespace) -> int:
    try:
        facts = inspected(Path(args.model).read_bytes())
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
    facts: dict[str, Any] = {
        "model": type(model).__name__,
        "bytes": len(data),
        "parameters": {name: shown(value) for name, value in model.get_params(deep=False).items() if name != "engine"},
        "centers": model.size_ if trained else 0,
        "learned": model.n_samples_seen_ if trained else 0,
        "inputs": model.n_features_in_ if trained else None,
    }
    if "predictor" in stream:
        embedding, scaling = stream["predictor"]["embedding"], stream["predictor"]["scaling"]
        facts |= {
            "target": stream["columns"]["target"],
            "features": stream["columns"]["features"],
            "lags": embedding["lags"],
            "horizon": embedding["horizon"],
            "target center and scale": [scaling["y_center"], scaling["y_scale"]],
            "robust": stream["predictor"]["robust"],
        }
    if "position" in stream:
        facts |= {"rows done": stream["rows"], "position": stream["position"], "output bytes": stream["output"]}
    return facts


def _lines(facts: dict[str, Any]) -> list[str]:
    lines = []
    for name, value in facts.items():
        if isinstance(value, dict):
            lines.append(f"{name}:")
            lines += [f"  {key}: {inner}" for key, inner in value.items()]
        else:
            lines.append(f"{name}: {', '.join(map(str, value)) if isinstance(value, list) else value}")
    return lines
