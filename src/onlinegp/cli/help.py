"""Parsers whose --help fits one screen, and options that were renamed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """An argument parser that refuses abbreviated options.

    If there are `main_options`, --help shows only these, with `short_epilog` below them; --help-all shows everything.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.allow_abbrev = False
        self.main_options: tuple[str, ...] = ()
        self.short_epilog = ""

    def show_first(self, options: Sequence[str], epilog: str) -> None:
        """Let --help show these options only, in this order."""
        self.main_options, self.short_epilog = tuple(options), epilog
        self.add_argument("--help-all", action=_HelpAll, help="show all options and what they do")

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments"):
            meant = self._meant(message.split()[2:])
            message += f". Write the names of options in full; `onlinegp COMMAND --help` lists them.{meant}"
        super().error(message)

    def _meant(self, words: Sequence[str]) -> str:
        """Return the options of the command that unknown ones resemble, as a question, or ""."""
        commands = [action.choices for action in self._actions if isinstance(action, argparse._SubParsersAction)]
        known = [
            option for command in commands for parser in command.values() for option in parser._option_string_actions
        ]
        found = [
            close for word in words if word[:1] == "-" for close in get_close_matches(word.split("=")[0], known, 2, 0.7)
        ]
        return f" Did you mean {' or '.join(found)}?" if found else ""

    def format_help(self) -> str:
        if not self.main_options:
            return super().format_help()
        formatter = self._get_formatter()
        formatter.add_usage("%(prog)s SOURCE [options]", (), ())
        formatter.add_text(self.description)
        known = {action.option_strings[0]: action for action in self._actions if action.option_strings}
        sources = [action for action in self._actions if not action.option_strings]
        formatter.start_section("the options that matter")
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
    """An option under its old name, which still works and says the new one."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        new = f"--{self.dest.replace('_', '-')}"
        print(f"onlinegp: {option_string} is now called {new}; the old name still works.", file=sys.stderr)
        setattr(namespace, self.dest, values)


def add_renamed(group: Any, old: str, new: str, **options: Any) -> None:
    """Add an option by its new name, and by an old one that is not shown."""
    group.add_argument(new, **options)
    hidden = {name: value for name, value in options.items() if name not in ("help", "default")}
    default = options.get("default")
    group.add_argument(old, dest=new[2:], action=_Renamed, help=argparse.SUPPRESS, default=default, **hidden)
