"""The errors of streams, with their exit codes on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SHOWN = 20  # names in a message
LONG = 200  # characters of one text in a message


class BadData(ValueError):
    """The input holds a row that cannot be read. The message names file, line, column and value."""

    exit_code = 3


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, or that belongs to another run."""

    exit_code = 4


class StreamBreakdownError(ValueError):
    """The predictions of a model are no longer valid; `predicted` holds those of the earlier rows of the block."""

    def __init__(self, model: object, reason: str, *, where: str = "", predicted: Any = ()) -> None:
        super().__init__(
            f"the model {model} broke down{where}: {reason}. "
            f"Use a larger --noise, a smaller step, another --kernel or another --model."
        )
        self.model, self.reason, self.predicted = model, reason, predicted


class Stopped(Exception):
    """A signal ended the run. The work done so far is safe."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used: where it is, and why."""

    line: int
    column: str
    value: str
    reason: str
    text: str

    def message(self, path: str) -> str:
        column = f", column {short(self.column)!r}" if self.column else ""
        value = f": {short(self.value)!r}" if self.column else ":"
        return (
            f"{path}, line {self.line}{column}{value} {self.reason}. "
            f"Correct the row; `run` and `predict` leave such rows out with --on-bad-row skip --rejects FILE."
        )


def other_input(path: str, why: str) -> CheckpointError:
    """Return the error for a checkpoint that was made from another input."""
    return CheckpointError(
        f"{path} is not the input that the checkpoint belongs to: {why}. "
        f"Restore that input, continue with this one by --resume next, or start again with an empty checkpoint folder."
    )


def printable(text: str) -> str:
    """Return a text that is safe on a terminal: escape unprintable characters, keep line ends.

    Text from the data may hold sequences that move the cursor, change colors or reverse the order of letters.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def short(text: str) -> str:
    """Return a text, cut to the length that a message can hold."""
    return text if len(text) <= LONG else f"{text[:LONG]}..."


def listed(names: Sequence[str]) -> str:
    """Return names with commas; only the first ones if there are many."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(short, names[:SHOWN])) + more
