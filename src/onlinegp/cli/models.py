"""`onlinegp models`: every algorithm with its parameters, cost and citation."""

from __future__ import annotations

import argparse
import inspect
import json

from onlinegp.streams.running.prepare import shown
from onlinegp.streams.running.registry import Algorithm, algorithm, algorithms


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="explain one of them in full")
    parser.add_argument("--json", action="store_true", help="print JSON, for other programs")


def main(args: argparse.Namespace) -> int:
    chosen = [algorithm(args.name)] if args.name else list(algorithms().values())
    if args.json:
        print(json.dumps([_plain(one) for one in chosen], indent=2))
    elif args.name:
        print(_in_full(chosen[0]))
    else:
        print("\n\n".join(map(_short, chosen)))
        print(
            "\n`onlinegp models NAME` explains the parameters. Use one with --model NAME or --model 'NAME(budget=50)'."
        )
    return 0


def _short(one: Algorithm) -> str:
    parameters = ", ".join(f"{name}={shown(default)}" for name, default in one.parameters.items())
    lines = (one.summary, f"cost: {one.estimator.cost}", f"parameters: {parameters}", f"cite: {one.estimator.citation}")
    return "\n  ".join((one.name, *lines))


def _in_full(one: Algorithm) -> str:
    return f"{one.name}: onlinegp.{one.estimator.__name__}\n\n{inspect.getdoc(one.estimator)}"


def _plain(one: Algorithm) -> dict[str, object]:
    defaults = {name: shown(default) for name, default in one.parameters.items()}
    return {
        "name": one.name,
        "class": one.estimator.__name__,
        "summary": one.summary,
        "cost": one.estimator.cost,
        "parameters": defaults,
        "citation": one.estimator.citation,
    }
