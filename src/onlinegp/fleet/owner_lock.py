"""A lock file, because only one process can write to a store."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

# Error codes of different systems for a lock that another process has
HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)


class OwnerLock:
    """An exclusive lock on an empty file next to the store. The system releases it if the process is killed.

    Parameters
    ----------
    path : Path
        The file to lock, with links resolved. The lock file has ".lock" added to its name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}.lock")
        while not self._acquired(path):
            self._file.close()

    def _acquired(self, path: Path) -> bool:
        """Lock the file. Return False if its last owner has removed the file in the meantime."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        try:
            self._file: BinaryIO = os.fdopen(os.open(self._path, flags, 0o666), "rb")
        except OSError as error:
            raise OSError(error.errno, f"cannot lock {path} by {self._path.name}: {error.strerror}") from None
        try:
            found = os.fstat(self._file.fileno())
            if found.st_size:
                raise OSError(
                    f"cannot lock {path}: {self._path.name} has {found.st_size} bytes, but a lock file is empty. "
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
                    f"{path} is open for writing in another process, or elsewhere in this process. "
                    f"Close it there first, or use another file."
                ) from None
            raise

    def release(self) -> None:
        """Release the lock."""
        if not self._file.closed:
            with suppress(OSError):  # some systems cannot remove an open file
                self._path.unlink()
            self._file.close()


def _lock(handle: int) -> None:
    """Lock a file for this process, or raise an OSError immediately."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
