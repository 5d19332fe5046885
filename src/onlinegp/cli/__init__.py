"""The command line: `onlinegp COMMAND`. One module a command, no maths; each is imported only when it is called."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

# command: the line that --help shows. The module of that name has add_arguments(parser) and main(args) -> exit code.
COMMANDS = {
    "demo": "stream a channel that changes through four filters; a table and a picture",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 failed, 2 not understood, 130 interrupted."""
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = argparse.ArgumentParser(
        prog="onlinegp",
        description="Regression on streams with honest uncertainty.",
        epilog="`onlinegp COMMAND --help` explains a command.",
    )
    parser.add_argument("--version", action="version", version=f"onlinegp {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, line in COMMANDS.items():
        command = commands.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".")
        if name in argv[:1]:
            module = import_module(f"onlinegp.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(main=module.main)
    args = parser.parse_args(argv)
    try:
        return args.main(args)
    except KeyboardInterrupt:
        print("onlinegp: interrupted.", file=sys.stderr)
        return 130
    except (ValueError, TypeError, OSError) as error:
        print(f"onlinegp: {error}", file=sys.stderr)
        return 1


def _version() -> str:
    from onlinegp import __version__

    return __version__
