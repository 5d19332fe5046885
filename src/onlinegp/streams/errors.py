"""What can go wrong with a stream, each with the exit code that the command line gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SHOWN = 20  # names in a message
LONG = 200  # characters of one text in a message


class BadData(ValueError):
    """The input holds something that is no row: which file, line, column and value."""

    exit_code = 3


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, or that belongs to another run."""

    exit_code = 4


class BrokeDown(ValueError):
    """A model whose predictions mean nothing any more; `said` is what it said of the rows of a block before that."""

    def __init__(self, model: object, reason: str, *, where: str = "", said: Any = ()) -> None:
        super().__init__(
            f"the model {model} broke down{where}: {reason}. "
            f"Use a larger --noise, a smaller step, another --kernel or another --model."
        )
        self.model, self.reason, self.said = model, reason, said


class Stopped(Exception):
    """A signal asked the run to end; what it did is safe."""

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
    """Return the error of a checkpoint that was made from another input than the one at hand."""
    return CheckpointError(
        f"{path} is not the input that the checkpoint belongs to: {why}. "
        f"Restore it, go on with it by --resume next, or start again with an empty checkpoint folder."
    )


def printable(text: str) -> str:
    """Return a text that is safe on a terminal: whatever is not printable becomes its escape, line ends stay.

    Text from the data may hold sequences that move the cursor, change colors or reverse the order of letters.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def short(text: str) -> str:
    """Return a text, or the beginning of one that is too long for a message."""
    return text if len(text) <= LONG else f"{text[:LONG]}..."


def listed(names: Sequence[str]) -> str:
    """Return names with commas, the first ones if there are many."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(short, names[:SHOWN])) + more
