"""A lock file for the one process that can write to a store."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)  # how systems report a lock that is taken


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
        """Lock the file, and return whether it still exists: its last owner may have removed it in the meantime."""
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
