"""Read the data set KIN40K from a copy of the user. The data are not part of this package."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np

from onlinegp.checks import Array

PARTS = ("train_data", "train_labels", "test_data", "test_labels")
ROWS = {"train": 10_000, "test": 30_000}
REMEDY = (
    "The four kin40k_*.asc files are in the folder data/kin40k of github.com/trungngv/fgp; "
    "without them, use robot_arm(n), which simulates an equally difficult task."
)

# Sums of the columns x1 ... x8, y with weights that rise linearly from 1 (first row) to 2 (last row)
CHECKSUM = np.array([513.39197, -375.41746, 498.84755, 46.77974, 116.63695, 101.69599, -28.69921, -194.2603, 973.64973])
TOLERANCE = 5e-3


def kin40k(path: str | os.PathLike[str]) -> tuple[Array, Array]:
    """Read KIN40K: eight joint angles of a robot arm and a distance, 40,000 times.

    The path is a folder with the four files of the classic distribution, ``kin40k_train_data.asc`` (10,000 x 8),
    ``kin40k_train_labels.asc``, ``kin40k_test_data.asc`` (30,000 x 8) and ``kin40k_test_labels.asc``, or
    one CSV or CSV.gz file with the same rows in that order, ``x1, ..., x8, y``, with or without a header.

    The function checks the shape and a checksum of the values: column sums weighted by row number, which detect
    missing, other, rescaled and reordered data. The checksum uses numbers, not bytes, with a tolerance of 5e-3, because
    there are several text formats of the same values. Six significant digits or single precision are enough.

    Parameters
    ----------
    path : path-like
        The folder or the file.

    Returns
    -------
    X : ndarray of shape (40000, 8)
    y : ndarray of shape (40000,)
        In the original order: the first 10,000 rows are the classic training set.

    Raises
    ------
    FileNotFoundError
        If there is no such file or folder, or one of the four files is missing. The message says where to get them.
    ValueError
        If a file cannot be read as numbers, or if shape or checksum differ from KIN40K.
    """
    path = Path(path)
    if path.is_dir():
        data = _read_folder(path)
    elif path.exists():
        data = _read(path, delimiter=",")
    else:
        raise FileNotFoundError(f"path must be a folder or a file with KIN40K, got {str(path)!r}. {REMEDY}")
    _check_shape(path, data, (sum(ROWS.values()), 9))
    _check_sums(path, data)
    return np.ascontiguousarray(data[:, :8]), data[:, 8].copy()


def _read_folder(folder: Path) -> Array:
    files = {part: folder / f"kin40k_{part}.asc" for part in PARTS}
    missing = [file.name for file in files.values() if not file.exists()]
    if missing:
        raise FileNotFoundError(f"path {str(folder)!r} has no {', '.join(missing)}. {REMEDY}")
    halves = []
    for half, rows in ROWS.items():
        X, y = _read(files[f"{half}_data"]), _read(files[f"{half}_labels"])
        _check_shape(files[f"{half}_data"], X, (rows, 8))
        _check_shape(files[f"{half}_labels"], y, (rows, 1))
        halves.append(np.hstack([X, y]))
    return np.vstack(halves)


def _read(file: Path, delimiter: str | None = None) -> Array:
    """Read the numbers of a text file as a matrix. A first line that is not all numbers is a header."""
    opener = gzip.open if file.suffix == ".gz" else open
    try:
        with opener(file, "rt", encoding="ascii") as lines:
            header = not _are_numbers(lines.readline().split(delimiter))
            lines.seek(0)
            return np.loadtxt(lines, delimiter=delimiter, skiprows=int(header), ndmin=2)
    except (ValueError, EOFError, gzip.BadGzipFile) as error:
        raise ValueError(f"{str(file)!r} must hold rows of numbers: {error}. {REMEDY}") from error


def _are_numbers(words: list[str]) -> bool:
    try:
        [float(word) for word in words]
    except ValueError:
        return False
    return True


def _check_shape(file: Path, data: Array, shape: tuple[int, int]) -> None:
    if data.shape != shape:
        raise ValueError(
            f"{str(file)!r} must have {shape[0]} rows and {shape[1]} columns, got {data.shape[0]} and "
            f"{data.shape[1]}: it is not KIN40K. {REMEDY}"
        )


def _weighted_sums(data: Array) -> Array:
    return np.linspace(1.0, 2.0, len(data)) @ data


def _check_sums(file: Path, data: Array) -> None:
    error = np.abs(_weighted_sums(data) - CHECKSUM)
    wrong = [int(column) + 1 for column in np.flatnonzero(~(error <= TOLERANCE))]  # also true for NaN
    if wrong:
        raise ValueError(
            f"{str(file)!r} has the shape of KIN40K but other values: the checksum differs in column(s) "
            f"{', '.join(map(str, wrong))} of 9. Rows must come in the original order, unscaled. {REMEDY}"
        )
