"""`onlinegp info`: show the engine, the instruction set and the versions."""

from __future__ import annotations

import argparse

from onlinegp import __version__
from onlinegp.engine import info


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no options: this command has none."""


def main(args: argparse.Namespace) -> int:
    for name, value in {"onlinegp": __version__, **info()}.items():
        print(f"{name:<16} {value}")
    return 0
