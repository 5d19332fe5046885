"""Files that are there in full or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path


def write_atomically(path: str | Path, chunks: Iterable[bytes], *, previous: str | Path | None = None) -> None:
    """Put these bytes at a path: beside it first, then renamed, so that a crash leaves the old file or the new one.

    Parameters
    ----------
    path : str or Path
    chunks : iterable of bytes
        Written one after the other.
    previous : str or Path, optional
        Where to leave what was at `path`.
    """
    path = Path(path)
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        if previous is not None and path.exists():
            os.replace(path, previous)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Let the new name reach the disk too, where folders can be opened for that."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
