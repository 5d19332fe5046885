"""Checkpoints: model, position and output of a run at one moment, in one file that is there or is not.

A checkpoint is a model file with one more entry in its header, "stream": columns, scaling, the place in the input, the
length of the output, the scores so far. So `onlinegp.load` opens it, and what `--save` writes is the same format
without a place. The output reaches the disk first and the checkpoint after it, so the output on disk is never
shorter than the checkpoint says; on resuming, what is longer is cut off and made again.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

from onlinegp.filters.base import OnlineRegressor
from onlinegp.model_file import PREFIX, ModelFileError, from_bytes
from onlinegp.model_file import _open as open_model_file
from onlinegp.streams.errors import CheckpointError

LATEST, PREVIOUS = "checkpoint.ogp", "checkpoint-previous.ogp"


def pack(model: OnlineRegressor, stream: dict[str, Any]) -> bytes:
    """Return a model file that also holds what a stream needs to go on."""
    data = model.to_bytes()
    magic, version, length, _ = PREFIX.unpack_from(data)
    start = PREFIX.size
    header = json.loads(data[start : start + length]) | {"stream": stream}
    text = json.dumps(header).encode()
    body = data[start + length :]
    return PREFIX.pack(magic, version, len(text), zlib.crc32(body, zlib.crc32(text))) + text + body


def unpack(data: bytes) -> tuple[OnlineRegressor, dict[str, Any]]:
    """Return a model and its stream's entry, which is empty for a plain model file; or raise a ModelFileError."""
    header, _ = open_model_file(data)
    stream = header.get("stream", {})
    if not isinstance(stream, dict):
        raise ModelFileError("the stream's entry is not an object.")
    return from_bytes(data), stream


def write_atomically(path: Path, data: bytes, *, previous: Path | None = None) -> None:
    """Put data at a path, all of it or nothing; what was there becomes `previous`."""
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if previous is not None and path.exists():
        os.replace(path, previous)
    os.replace(part, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class Checkpoints:
    """The folder of a run's checkpoints: the latest and the one before it."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self.folder)

    def write(self, data: bytes) -> None:
        write_atomically(self.folder / LATEST, data, previous=self.folder / PREVIOUS)

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


def _locked(folder: Path) -> Any:
    """Hold the folder for this process; a killed one lets go by itself."""
    try:
        import fcntl
    except ImportError:  # no such locks here
        return None
    lock = open(folder / "lock", "w")  # noqa: SIM115
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise CheckpointError(
            f"another run is using the checkpoints in {folder}. Wait for it, or use another folder."
        ) from None
    return lock
