"""Checkpoints: files with the model of a run, its position in the input, and the length of its output.

A checkpoint is a model file with the additional entry "stream" in its header: columns, position in the input, length of
the output, and scores. `onlinegp.load` opens it as a model in the units of the data. `--save` writes the same format
without a position.

The output is written to disk before the checkpoint, so it is never shorter than the checkpoint says. A resumed run
truncates the output to this length and computes the rest again.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from onlinegp.files.atomic import PART, Folder, check_folder, is_special
from onlinegp.files.container import ModelFileError
from onlinegp.models import model_file
from onlinegp.models.base import OnlineRegressor
from onlinegp.state import integer
from onlinegp.state.fields import LARGEST_COUNT
from onlinegp.streams.errors import CheckpointError
from onlinegp.streams.running.column_encoding import checked_columns
from onlinegp.streams.running.flag_commands import WAITING
from onlinegp.streams.running.observers import OBSERVERS
from onlinegp.streams.writing.sinks import ParquetSink

LATEST, PREVIOUS, LOCK = "checkpoint.ogp", "checkpoint-previous.ogp", "checkpoint.lock"
SAVED = ("columns", "level", "settings")  # items of the entry "stream" in a model file
PLACE = ("position", "output", "rejects", "rows", *OBSERVERS, "commands")  # additional items in a checkpoint
DATABASE = "checkpoint.db"  # the store of a run with a model per key
DATABASES = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}.lock")


def own_files(folder: Path) -> list[Path]:
    """Return the files in a folder that belong to a run."""
    return [*(folder / name for name in (LATEST, PREVIOUS, LOCK, *DATABASES)), *_unfinished(folder)]


def latest(folder: Path) -> Path:
    """Return the path of the newest checkpoint in a folder, or of the store of a run with a model per key."""
    found = [folder / name for name in (LATEST, PREVIOUS, DATABASE) if (folder / name).is_file()]
    if not found:
        raise CheckpointError(
            f"{folder} is a folder without a checkpoint ({LATEST}). Pass a model file, or the folder of --checkpoint."
        )
    return found[0]


def _unfinished(folder: Path) -> list[Path]:
    """Return the partial checkpoints of killed runs."""
    parts = [path for path in folder.glob(f"{LATEST}.*") if PART.fullmatch(path.name)]
    return [path for path in parts if path.is_file() and not path.is_symlink()]


def to_bytes(model: OnlineRegressor, stream: dict[str, Any]) -> bytes:
    """Return the bytes of a model file with the entry "stream"."""
    return model_file.to_bytes(model, extra={"stream": stream})


def from_bytes(data: bytes) -> tuple[OnlineRegressor, dict[str, Any]]:
    """Return a model and its entry "stream", which may be empty. Raise a ModelFileError if the file is not valid."""
    model, extra = model_file.with_extra(data)
    return model, checked(extra.get("stream", {}), model)


def checked(stream: Any, model: OnlineRegressor) -> dict[str, Any]:
    """Return the entry "stream" of a model file (empty if there is none), or raise a ModelFileError.

    Everything is checked, because files may be damaged or untrusted. Observers check their own entries when loading.
    """
    try:
        if stream != {}:
            _check(_object("stream", stream, (*SAVED, *(PLACE if "position" in stream else ()))), model)
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"the entry 'stream' is not valid: {error}") from None
    return stream


def _check(stream: dict[str, Any], model: OnlineRegressor) -> None:
    inputs, features = checked_columns(stream["columns"]), getattr(model, "n_features_in_", None)
    if features not in (None, inputs):
        raise ValueError(f"columns must give {features} inputs like the model, got {inputs}.")
    if not isinstance(stream["level"], float) or not 0.0 < stream["level"] < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {stream['level']!r}.")
    _object("settings", stream["settings"])
    if "position" not in stream:
        return
    position, rejects, commands = _object("position", stream["position"]), stream["rejects"], stream["commands"]
    place = ("row", "checksum") if "row" in position else ("offset", "line", "checksum")
    _object("position", position, (*place, *(["behind"] if "behind" in position else [])))
    counts = {name: _object("rejects", rejects).get(name) for name in ("count", "length")}
    for name, value in {**position, **counts, "output": stream["output"], "rows": stream["rows"]}.items():
        integer().checked(name, value, (), 0, LARGEST_COUNT)
    if not isinstance(commands, list) or len(commands) > WAITING or not all(isinstance(row, str) for row in commands):
        raise ValueError(f"commands must be a list of at most {WAITING} rows.")


def _object(name: str, value: Any, names: tuple[str, ...] | None = None) -> dict[str, Any]:
    if not isinstance(value, dict) or (names is not None and set(value) != set(names)):
        raise ValueError(f"{name} must be an object" + (f" made of {', '.join(names)}." if names else "."))
    return value


def read_model(path: str) -> tuple[OnlineRegressor, dict[str, Any]]:
    """Return the model and the entry "stream" of a file. Raise a ModelFileError that names the file."""
    try:
        return from_bytes(Path(path).read_bytes())
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None


class Checkpoints:
    """The folder with the checkpoints of a run: the latest and the previous one."""

    def __init__(self, folder: str | Path) -> None:
        check_folder(folder)
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._folder = Folder(folder)
        try:
            for name in (LATEST, PREVIOUS, LOCK, *DATABASES):
                mode = self._folder.mode(name)
                if mode is not None and not stat.S_ISREG(mode):
                    path = self._folder.path / name
                    raise CheckpointError(f"{path} is not a regular file, so no run wrote it. Use another folder.")
            self._lock = _locked(self._folder)
        except BaseException:
            self._folder.close()
            raise
        for name in self._folder.names():
            part = PART.fullmatch(name)
            if part is not None and part[1] == LATEST and stat.S_ISREG(self._folder.mode(name) or 0):
                self._folder.remove(name)

    def write(self, data: bytes) -> None:
        self._folder.write(LATEST, data, previous=PREVIOUS)

    def close(self) -> None:
        """Release the folder."""
        self._folder.close()
        if self._lock is not None:
            self._lock.close()

    def exist(self) -> bool:
        return any(self._folder.mode(name) is not None for name in (LATEST, PREVIOUS))

    def read(self) -> tuple[OnlineRegressor, dict[str, Any], list[str]] | None:
        """Return model and stream of the newest valid checkpoint, and errors of newer checkpoints. None if empty.

        Raises
        ------
        CheckpointError
            If there are checkpoints and all of them are damaged.
        """
        wrong: list[str] = []
        for name in (LATEST, PREVIOUS):
            path = self._folder.path / name
            if self._folder.mode(name) is None:
                continue
            try:
                model, stream = from_bytes(self._folder.read(name))
                if "position" not in stream:
                    raise ModelFileError("it is a model, but not the checkpoint of a run.")
            except ModelFileError as error:
                wrong.append(f"{path}: {error}")
            else:
                return model, stream, wrong
        if wrong:
            raise CheckpointError(
                f"no checkpoint can be used. {' '.join(wrong)} Empty {self._folder.path} to start from scratch."
            )
        return None


def _locked(folder: Folder) -> BinaryIO | None:
    """Lock the folder for this process with an empty file. If the process is killed, the system releases the lock."""
    try:
        import fcntl
    except ImportError:  # not available on this system
        return None
    path = folder.path / LOCK
    lock = os.fdopen(folder.open(LOCK, os.O_RDWR | os.O_CREAT), "rb")
    if size := os.fstat(lock.fileno()).st_size:
        raise CheckpointError(
            f"{path} has {size} bytes, but the lock file of a run is empty, so another program wrote it. "
            f"Use another folder."
        )
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise CheckpointError(
            f"another run is using the checkpoints in {path.parent}. Wait for it, or use another folder."
        ) from None
    return lock


def check_resumable(sink_path: str | None, format: str) -> None:
    """Raise an error for outputs that a resumed run could not continue."""
    if sink_path in (None, "-") or is_special(str(sink_path)):
        raise CheckpointError("--checkpoint needs --out FILE: output to a pipe cannot be corrected after a crash.")
    if format == "parquet":
        ParquetSink.sync(None)  # type: ignore[arg-type]


def same_settings(stored: dict[str, Any], given: dict[str, Any], *, any_source: bool = False) -> None:
    """Raise an error if a run is resumed with other settings. With `any_source`, the name of the source may differ."""
    for name, value in given.items():
        new = name not in stored and not value  # a new option that is not used
        if stored.get(name) != value and not new and not (any_source and name == "source"):
            option = "SOURCE" if name == "source" else "--" + name.replace("_", "-")
            remedy = "Resume with the options of the first run"
            remedy = "Name the columns as in the first run" if name in ("target", "features", "keys") else remedy
            remedy += ", continue with another file by --resume next" if name == "source" else ""
            made = f"without {option}" if stored.get(name) is None else f"with {option} {stored[name]!r}"
            now = "without it" if value is None else repr(value)
            raise CheckpointError(
                f"the checkpoint was made {made}, not {now}. "
                f"{remedy}, or start from scratch with an empty checkpoint folder."
            )
