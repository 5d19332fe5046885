"""Argument parsers with a short --help, and aliases of renamed options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """An argument parser without abbreviated options, and with a short --help.

    With `main_options`, --help shows only these options, followed by `short_epilog`. --help-all shows everything.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.allow_abbrev = False
        self.main_options: tuple[str, ...] = ()
        self.short_epilog = ""

    def show_first(self, options: Sequence[str], epilog: str) -> None:
        """Let --help show only these options, in this order."""
        self.main_options, self.short_epilog = tuple(options), epilog
        self.add_argument("--help-all", action=_HelpAll, help="show all options with explanations")

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse unknown options here, where the options of the command are known."""
        found, unknown = super().parse_known_args(*args, **kwargs)
        if unknown and self._subparsers is None:
            self.error(f"unrecognized arguments: {' '.join(unknown)}. {self._hint(unknown)}")
        return found, unknown

    def _hint(self, unknown: list[str]) -> str:
        """Return what the unknown arguments may mean."""
        name = unknown[0].partition("=")[0]
        if not name.startswith("-"):
            return "Put quotes around a name with blanks."
        options = [one.partition("=")[0] for one in unknown if one.startswith("-")]
        near = [meant for one in options for meant in get_close_matches(one, self._option_string_actions, 2, 0.8)]
        if near:
            return f"Write the names of options in full. Did you mean {' or '.join(near)}?"
        if "--set" in self._option_string_actions:
            return f"If it is a parameter of the model: --set {name.lstrip('-')}=VALUE."
        return "Write the names of options in full."

    def error(self, message: str) -> NoReturn:
        """End with the message and where to find help, without the usage, which may be twenty lines."""
        what = "options" if self._subparsers is None else "commands"
        message = message if message.endswith((".", "?")) else f"{message}."
        self.exit(2, f"{self.prog}: error: {message} `{self.prog} --help` lists the {what}.\n")

    def format_help(self) -> str:
        if not self.main_options:
            return super().format_help()
        formatter = self._get_formatter()
        formatter.add_usage("%(prog)s SOURCE [options]", (), ())
        formatter.add_text(self.description)
        known = {action.option_strings[0]: action for action in self._actions if action.option_strings}
        sources = [action for action in self._actions if not action.option_strings]
        formatter.start_section("most important options")
        formatter.add_arguments([*sources, *(known[name] for name in (*self.main_options, "--help-all"))])
        formatter.end_section()
        return f"{formatter.format_help()}\n{self.short_epilog}"


class _HelpAll(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        assert isinstance(parser, Parser)
        parser.main_options = ()
        parser.print_help()
        parser.exit()


class _Renamed(argparse.Action):
    """The old name of an option. It still works, and prints the new name."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        new = f"--{self.dest.replace('_', '-')}"
        print(f"onlinegp: {option_string} is now called {new}; the old name still works.", file=sys.stderr)
        setattr(namespace, self.dest, values)


def add_renamed(group: Any, old: str, new: str, **options: Any) -> None:
    """Add an option with its new name and a hidden old name."""
    group.add_argument(new, **options)
    hidden = {name: value for name, value in options.items() if name not in ("help", "default")}
    default = options.get("default")
    group.add_argument(old, dest=new[2:], action=_Renamed, help=argparse.SUPPRESS, default=default, **hidden)
