"""`onlinegp confirm`: tell a saved detector that an event was real."""

from __future__ import annotations

import argparse

from onlinegp.cli.options import add_import
from onlinegp.cli.paths import Paths
from onlinegp.files.atomic import write_atomically
from onlinegp.models.alarms.detector import Detector
from onlinegp.models.alarms.reasons import sentence
from onlinegp.streams.errors import printable
from onlinegp.streams.reading.source import stored_columns
from onlinegp.streams.running.checkpoint import read_model, to_bytes
from onlinegp.streams.running.column_encoding import Encoder

PATHS = Paths(replaces=("MODEL",))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model saved by a run with --flag (.ogp); it is updated")
    parser.add_argument("event", metavar="EVENT", type=int, nargs="+", help="the number of an event that was real")
    add_import(parser)


def main(args: argparse.Namespace) -> int:
    model, stream = read_model(args.model)
    if not isinstance(model, Detector):
        raise ValueError(f"{args.model} has no detector. Save a detector: onlinegp run DATA --flag 0.001 --save MODEL.")
    known = {event.number: event for event in model.events_}
    target = stream["columns"]["target"] if stream else "the target"
    inputs = Encoder.restored(stored_columns(stream), stream).names if stream else None
    for number in args.event:
        model.confirm(number)
    write_atomically(args.model, [to_bytes(model, stream) if stream else model.to_bytes()])
    for number in args.event:
        reason = sentence(known[number], target, inputs, _row)
        print(printable(f"event {number} confirmed: {known[number].kind}, {reason}"))
    return 0


def _row(row: int) -> str:
    return f"row {row + 1}"
