"""Checkpoints: model, position and output of a run at one moment, in one file that is there or is not.

A checkpoint is a model file with one more entry in its header, "stream": columns, the place in the input, the length of
the output, the scores so far. So `onlinegp.load` opens it, as a model that takes and predicts values in the units of
the data, and what `--save` writes is the same format without a place. The output reaches the disk first and the
checkpoint after it, so the output on disk is never shorter than the checkpoint says; on resuming, what is longer is cut
off and made again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO

from onlinegp.files.atomic import PART, check_folder, write_atomically
from onlinegp.files.container import ModelFileError
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.saving import to_bytes, with_extra
from onlinegp.streams.errors import CheckpointError
from onlinegp.streams.running.stored import checked

LATEST, PREVIOUS, LOCK = "checkpoint.ogp", "checkpoint-previous.ogp", "checkpoint.lock"
DATABASE = "checkpoint.db"  # of a run with a model per key, with the files that are kept beside it
DATABASES = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}.lock")


def own_files(folder: Path) -> list[Path]:
    """Return the files that a run keeps in its folder; everything else in there is somebody else's."""
    return [*(folder / name for name in (LATEST, PREVIOUS, LOCK, *DATABASES)), *_unfinished(folder)]


def latest(folder: Path) -> Path:
    """Return the newest checkpoint in a folder, or the store of a run with a model per key."""
    found = [folder / name for name in (LATEST, PREVIOUS, DATABASE) if (folder / name).is_file()]
    if not found:
        raise CheckpointError(
            f"{folder} is a folder without a checkpoint ({LATEST}). Name a model file, or the folder of --checkpoint."
        )
    return found[0]


def _unfinished(folder: Path) -> list[Path]:
    """Return what a killed run left of a checkpoint that it was writing: by its name, and no link."""
    parts = [path for path in folder.glob(f"{LATEST}.*") if PART.fullmatch(path.name)]
    return [path for path in parts if path.is_file() and not path.is_symlink()]


def pack(model: OnlineRegressor, stream: dict[str, Any]) -> bytes:
    """Return a model file that also holds what a stream needs to go on."""
    return to_bytes(model, extra={"stream": stream})


def unpack(data: bytes) -> tuple[OnlineRegressor, dict[str, Any]]:
    """Return a model and its stream's entry, which is empty for a plain model file; or raise a ModelFileError."""
    model, extra = with_extra(data)
    return model, checked(extra.get("stream", {}), model)


def read_model(path: str) -> tuple[OnlineRegressor, dict[str, Any]]:
    """Return what `unpack` finds in a file, or raise a ModelFileError that names it."""
    try:
        return unpack(Path(path).read_bytes())
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


class Checkpoints:
    """The folder of a run's checkpoints: the latest and the one before it."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        check_folder(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in own_files(self.folder):
            if path.is_symlink() or (path.exists() and not path.is_file()):
                raise CheckpointError(f"{path} is no plain file, so it is not of a run. Use another folder.")
        self._lock = _locked(self.folder / LOCK)
        for path in _unfinished(self.folder):
            path.unlink()

    def write(self, data: bytes) -> None:
        write_atomically(self.folder / LATEST, [data], previous=self.folder / PREVIOUS)

    def close(self) -> None:
        """Let others use the folder."""
        if self._lock is not None:
            self._lock.close()

    def exist(self) -> bool:
        return any((self.folder / name).exists() for name in (LATEST, PREVIOUS))

    def read(self) -> tuple[OnlineRegressor, dict[str, Any], list[str]] | None:
        """Return model and stream of the newest good checkpoint, with what was wrong with newer ones; None if none is.

        Raises
        ------
        CheckpointError
            If there are checkpoints, and all are damaged.
        """
        wrong: list[str] = []
        for name in (LATEST, PREVIOUS):
            path = self.folder / name
            if not path.exists():
                continue
            try:
                model, stream = unpack(path.read_bytes())
                if "position" not in stream:
                    raise ModelFileError("it is a model, but no checkpoint of a run.")
            except ModelFileError as error:
                wrong.append(f"{path}: {error}")
            else:
                return model, stream, wrong
        if wrong:
            raise CheckpointError(f"no checkpoint can be used. {' '.join(wrong)} Empty {self.folder} to start anew.")
        return None


def _locked(path: Path) -> BinaryIO | None:
    """Hold the folder for this process by its lock, an empty file; a killed process lets go by itself."""
    try:
        import fcntl
    except ImportError:  # no such locks here
        return None
    lock = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "rb")
    if size := os.fstat(lock.fileno()).st_size:
        raise CheckpointError(
            f"{path} has {size} bytes, but the lock of a run is empty: it is another program's. Use another folder."
        )
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise CheckpointError(
            f"another run is using the checkpoints in {path.parent}. Wait for it, or use another folder."
        ) from None
    return lock
