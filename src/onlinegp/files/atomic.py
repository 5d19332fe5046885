"""Write files atomically: a crash leaves either the old file or the complete new file."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

LONGEST_NAME = 255  # largest number of bytes in a file name on all common file systems
ENDING = ".{}.part"  # ending of an unfinished file, with eight random hexadecimal digits
PART = re.compile(r"(.+)\.[0-9a-f]{8}\.part")
STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}  # not opened by name, which would truncate the file behind the stream


def is_special(path: str | Path) -> bool:
    """Return whether a path is a device, a pipe, a socket or a standard stream, which cannot be replaced."""
    if str(path) in STREAMS:
        return True
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def check_writable(path: str | Path, *, beside: bool = True) -> None:
    """Raise an error if a path cannot be written: a folder, a read-only file, or a file without an existing folder.

    With `beside`, the folder must be writable, too, because the new file is written next to the old file.
    """
    if is_special(path):
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder. Use a file in this folder.")
    if not target.parent.exists():
        raise FileNotFoundError(f"cannot write {path}: its folder does not exist. Create it first.")
    if not target.parent.is_dir():
        raise NotADirectoryError(f"cannot write {path}: {target.parent} is a file, not a folder. Use another path.")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"cannot write {path}: it is read-only. Use another path, or change its permissions.")
    if (beside or not target.exists()) and not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"cannot write {path}: its folder is read-only. Use another folder.")


def check_folder(path: str | Path) -> None:
    """Raise an error if a folder cannot be created or written."""
    there = Path(os.path.realpath(path))
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise NotADirectoryError(f"cannot use {path} as a folder: {there} is a file. Use another path.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"cannot write in {path}: {there} is read-only. Use another folder.")


class Replacement:
    """A new file that replaces an old one when it is complete. Until then the old file is unchanged.

    If the path is a link, its target is replaced. Permissions are kept. Devices are written directly.
    """

    def __init__(self, path: str | Path) -> None:
        check_writable(path)
        self.path, self.part = Path(path), None
        if is_special(path):
            stream = STREAMS.get(str(path))
            self.file: BinaryIO = open(path if stream is None else os.dup(stream), "wb")  # noqa: SIM115
            return
        self.path = Path(os.path.realpath(path))
        self.part = self.path.with_name(_part_name(self.path.name))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        known = os.stat(self.path).st_mode & 0o777 if self.path.exists() else None
        try:
            self.file = open(os.open(self.part, flags, 0o666 if known is None else 0o600), "wb")  # noqa: SIM115
        except OSError as error:
            raise OSError(error.errno, f"cannot write {path}: {error.strerror}") from None
        if known is not None:
            os.chmod(self.part, known)

    def complete(self) -> None:
        """Replace the old file."""
        self.file.flush()
        if self.part is None:
            self.file.close()
            return
        os.fsync(self.file.fileno())
        self.file.close()
        os.replace(self.part, self.path)
        _sync_folder(self.path.parent)

    def discard(self) -> None:
        """Remove what was written so far."""
        with suppress(OSError):
            self.file.close()
        if self.part is not None:
            self.part.unlink(missing_ok=True)


def write_atomically(path: str | Path, chunks: Iterable[bytes]) -> None:
    """Write bytes to a file. A crash leaves either the old file or the complete new file.

    Parameters
    ----------
    path : str or Path
        Links are followed, and the permissions of an old file are kept.
    chunks : iterable of bytes
        Written one after the other.
    """
    new = Replacement(path)
    try:
        new.file.writelines(chunks)
        new.complete()
    except BaseException as error:
        new.discard()
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, f"cannot write {path}: {error.strerror}") from error
        raise


class Folder:
    """An open folder. Its files are opened by name and never through links.

    The folder stays the same even if a link or another folder replaces it while it is open.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        relative = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")
        self._handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY) if relative else None

    def open(self, name: str, flags: int) -> int:
        """Return the descriptor of a file. Raise an error for a link."""
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        return os.open(self._at(name), flags, 0o666, dir_fd=self._handle)

    def read(self, name: str) -> bytes:
        with open(self.open(name, os.O_RDONLY), "rb") as file:
            return file.read()

    def mode(self, name: str) -> int | None:
        """Return the type and permissions of the file or link with this name, or None."""
        try:
            return os.stat(self._at(name), dir_fd=self._handle, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None

    def names(self) -> list[str]:
        return os.listdir(self.path if self._handle is None else self._handle)

    def remove(self, name: str) -> None:
        os.unlink(self._at(name), dir_fd=self._handle)

    def write(self, name: str, data: bytes, *, previous: str) -> None:
        """Write bytes to a file like `write_atomically`. The old file is renamed to `previous`."""
        part, known = _part_name(name), self.mode(name)
        is_file = known is not None and stat.S_ISREG(known)
        try:
            with open(self.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                if known is not None and is_file and hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), known & 0o777)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if is_file:
                self._rename(name, previous)
            self._rename(part, name)
            if self._handle is not None:
                os.fsync(self._handle)
        except BaseException as error:
            with suppress(OSError):
                self.remove(part)
            if isinstance(error, OSError):
                raise OSError(error.errno, f"cannot write {self.path / name}: {error.strerror}") from error
            raise

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _rename(self, old: str, new: str) -> None:
        os.replace(self._at(old), self._at(new), src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def _at(self, name: str) -> str:
        return str(self.path / name) if self._handle is None else name


def _part_name(name: str) -> str:
    """Return a name for the unfinished file: the name of the file, shortened if necessary, with an ending."""
    ending = ENDING.format(secrets.token_hex(4))
    room = LONGEST_NAME - len(ending)
    return os.fsencode(name)[:room].decode(errors="ignore") + ending


def _sync_folder(folder: Path) -> None:
    """Write the entry of a file in its folder to disk, on systems that can open folders."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # a folder that can be written but not listed
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
