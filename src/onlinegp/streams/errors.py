"""The errors of streams, with their exit codes on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SHOWN = 20  # largest number of names in a message
LONG = 200  # largest number of characters of a text in a message


class BadData(ValueError):
    """The input holds a row that cannot be read. The message names file, line, column and value."""

    exit_code = 3


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, or that belongs to another run."""

    exit_code = 4


class StreamBreakdownError(ValueError):
    """A model has diverged. `predicted` holds the predictions of the earlier rows of the block."""

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
    """A row that cannot be used, with its place and the reason."""

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
            f"Correct the row, or leave such rows out with --on-bad-row skip --rejects FILE (in `run` and `predict`)."
        )


def other_input(path: str, why: str) -> CheckpointError:
    """Return the error for a checkpoint that was made from another input."""
    return CheckpointError(
        f"{path} is not the input that the checkpoint belongs to: {why}. "
        f"Restore the first input, continue with this input by --resume next, or start again with an empty folder."
    )


def printable(text: str) -> str:
    """Escape unprintable characters except line ends, so that a text is safe on a terminal.

    Data may contain sequences that move the cursor, change colors or reverse the order of letters.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def short(text: str) -> str:
    """Shorten a text for a message."""
    return text if len(text) <= LONG else f"{text[:LONG]}..."


def listed(names: Sequence[str]) -> str:
    """Join names with commas. If there are many names, list only the first."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(short, names[:SHOWN])) + more
