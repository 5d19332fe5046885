"""`onlinegp models`: list all models by family, or explain one model."""

from __future__ import annotations

import argparse
import json
import re
from functools import partial
from shutil import get_terminal_size
from textwrap import fill

import onlinegp
from onlinegp.models.facts import bibtex, without_facts
from onlinegp.models.families import family
from onlinegp.streams.running.algorithms import Algorithm, algorithm, algorithms, by_family
from onlinegp.streams.running.requested_model import shown

ROLE = re.compile(r":\w+:`(?:~[\w.]*\.)?([^`]+)`")  # Sphinx roles such as :class:`~onlinegp.KRLST`


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="explain one algorithm")
    parser.add_argument("--bibtex", action="store_true", help="print the sources as BibTeX")
    parser.add_argument("--json", action="store_true", help="print JSON")


def main(args: argparse.Namespace) -> int:
    chosen = [algorithm(args.name)] if args.name else list(algorithms().values())
    if args.bibtex:
        print(
            "\n\n".join(
                entry for one in chosen if (entry := bibtex(one.estimator.__name__, one.estimator.facts.citation))
            )
        )
    elif args.json:
        print(json.dumps([_plain(one) for one in chosen], indent=2))
    elif args.name:
        print(_in_full(chosen[0]))
    else:
        print("\n\n".join(_listed(title, members) for title, members in by_family().items()))
        print("\n`onlinegp models NAME` explains an algorithm: parameters, variance and source.")
        print("To use it, pass --model NAME or --model 'NAME(budget=50)'.")
    return 0


def _listed(title: str, members: list[Algorithm]) -> str:
    wrap = partial(fill, width=get_terminal_size((120, 24)).columns, subsequent_indent=" " * 19)
    costs = [wrap(one.estimator.facts.cost, initial_indent=f"  {one.name:<16} ") for one in members]
    lines = [f"{cost}\n{wrap(one.summary, initial_indent=' ' * 19)}" for cost, one in zip(costs, members, strict=True)]
    return "\n".join([title, *lines])


def _in_full(one: Algorithm) -> str:
    cls = one.estimator
    text = ROLE.sub(r"`\1`", without_facts(cls.__doc__ or "")).replace("``", "`")
    facts = {"Cost": cls.facts.cost, "Memory": cls.facts.memory, "Variance of y": cls.facts.variance}
    told = "\n".join(f"{label}: {fact}." for label, fact in facts.items() if fact)
    return f"{one.name}: {place(cls)}\n\n{told}\n\n{text}"


def place(cls: type) -> str:
    """Return the full name for importing a model."""
    return f"onlinegp.{'' if cls.__name__ in onlinegp.__all__ else 'kafbox.'}{cls.__name__}"


def _plain(one: Algorithm) -> dict[str, object]:
    defaults = {name: shown(default) for name, default in one.parameters.items()}
    return {
        "name": one.name,
        "class": one.estimator.__name__,
        "family": family(one.estimator),
        "summary": one.summary,
        "cost": one.estimator.facts.cost,
        "memory": one.estimator.facts.memory,
        "equation": one.estimator.facts.equation,
        "variance": one.estimator.facts.variance,
        "parameters": defaults,
        "citation": one.estimator.facts.citation,
    }
