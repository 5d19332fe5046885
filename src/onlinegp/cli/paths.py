"""Check the files of a command: all options name different files, and all outputs can be written."""

from __future__ import annotations

import argparse
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from onlinegp.files.atomic import check_folder, check_writable
from onlinegp.streams.writing.sinks import STANDARD

Identity = tuple[object, ...] | None  # identifies a file; None for a device, a pipe or no file


@dataclass(frozen=True)
class Paths:
    """The options of a command that name files, as on the command line.

    Attributes
    ----------
    reads : tuple of str
        Files to read.
    appends : tuple of str
        Files that grow row by row.
    replaces : tuple of str
        Files that are replaced in one step when the new file is complete.
    folders : mapping from str to callable
        Folders, each with a function that returns the files of the command in the folder.
    pipes : tuple of str
        Options for which - means standard input or output; jsonl is output as JSON lines.
    renewed : tuple of str
        Two options that may name the same file, which is read at the beginning and replaced at the end.
    """

    reads: tuple[str, ...] = ()
    appends: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    folders: Mapping[str, Callable[[Path], list[Path]]] = field(default_factory=dict)
    pipes: tuple[str, ...] = ()
    renewed: tuple[str, ...] = ()

    def check(self, args: argparse.Namespace) -> None:
        """Raise an error if two options name the same file or an output cannot be written. Change nothing."""
        files = list(self._files(args))
        for (one, path, mine), (other, second, its) in combinations(files, 2):
            harmless = one == other or (one in self.reads and other in self.reads) or {one, other} == {*self.renewed}
            if mine is not None and mine == its and not harmless:
                raise ValueError(
                    f"{one} {path} and {other} {second} are the same file, so one would destroy the other. "
                    f"Use another name for {other}."
                )
        for option, path, _ in files:
            if option in (*self.appends, *self.replaces) and path != "-":
                check_writable(path, beside=option in self.replaces)
        for option in self.folders:
            if (folder := _value(args, option)) is not None:
                check_folder(folder)

    def _files(self, args: argparse.Namespace) -> Iterator[tuple[str, str, Identity]]:
        """Yield option, path and identity of each file."""
        for option in (*self.reads, *self.appends, *self.replaces):
            path = _value(args, option)
            if option in self.pipes and (path in (None, "-") or (option not in self.reads and path in STANDARD)):
                yield option, "-", _stream(0 if option in self.reads else 1)
            elif path == "-":
                raise ValueError(f"{option} - is not possible, a file is required. Use ./- for a file of this name.")
            elif path is not None:
                yield option, path, identity(path)
        for option, kept in self.folders.items():
            folder = _value(args, option)
            if folder is not None:
                for file in (Path(folder), *kept(Path(folder))):
                    yield option, str(file), identity(file)


def identity(path: str | Path) -> Identity:
    """Return a value that is equal for all names and links of a file. None for a device or a pipe."""
    try:
        return _of(os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return (os.path.realpath(path),)


def _stream(number: int) -> Identity:
    """Return the identity of the file behind standard input (0) or standard output (1)."""
    try:
        return _of(os.fstat(number))
    except OSError:  # closed
        return None


def _of(found: os.stat_result) -> Identity:
    mode = found.st_mode
    return (found.st_dev, found.st_ino) if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else None


def _value(args: argparse.Namespace, option: str) -> str | None:
    value = getattr(args, option.lstrip("-").lower())
    return None if value is None else str(value)
