"""A lock beside a file, held by the one process that may write to the file."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)  # what systems say of a lock that is taken


class OwnerLock:
    """An exclusive lock on an empty file beside another; a process that is killed lets go by itself.

    Parameters
    ----------
    path : Path
        What is locked, free of links; the lock is a file of the same name with ".lock" added.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}.lock")
        while not self._acquired(path):
            self._file.close()

    def _acquired(self, path: Path) -> bool:
        """Lock the file, and return whether it still has its name: its last owner may have removed it meanwhile."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        try:
            self._file: BinaryIO = os.fdopen(os.open(self._path, flags, 0o666), "rb")
        except OSError as error:
            raise OSError(error.errno, f"cannot lock {path} by {self._path.name}: {error.strerror}") from None
        try:
            found = os.fstat(self._file.fileno())
            if found.st_size:
                raise OSError(
                    f"cannot lock {path}: {self._path.name} has {found.st_size} bytes, and a lock is empty. "
                    f"Move that file away, or use another path."
                )
            _lock(self._file.fileno())
            return os.path.samestat(found, os.stat(self._path))
        except FileNotFoundError:
            return False
        except OSError as error:
            self._file.close()
            if error.errno in HELD:
                raise OSError(
                    f"{path} is open for writing in another process, or elsewhere in this one. "
                    f"Close it there first, or use another file."
                ) from None
            raise

    def release(self) -> None:
        """Let others own the file."""
        if not self._file.closed:
            with suppress(OSError):  # where a file that is open cannot be removed
                self._path.unlink()
            self._file.close()


def _lock(handle: int) -> None:
    """Lock a file for this process alone, or raise an OSError at once."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
