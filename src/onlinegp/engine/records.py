"""What one learner has learned as few bytes, without the model: for stores that hold many models of one kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinegp.files.container import ModelFileError
from onlinegp.files.records import check_sizes, pack_record, unpack_record
from onlinegp.learner import Contents
from onlinegp.recipes.records import MAGIC, about_state, is_state, pack_state, unpack_state

ABOUT = ("features", "outputs", "single")  # entries of a record beside what was learned, whose names have a dot before


def packed(features: int, outputs: int, single: bool, learned: Contents) -> bytes:
    """Return what a learner has learned as bytes, with features and outputs, and whether y is (n,)."""
    if is_state(learned):
        return pack_state(features, outputs, single, learned)
    about = {"features": features, "outputs": outputs, "single": single}
    return pack_record(about | {f".{name}": value for name, value in learned.items()})


def unpacked(data: bytes) -> Contents:
    """Return features, outputs, single and learned of what `packed` wrote, or raise a ModelFileError."""
    if data[: len(MAGIC)] == MAGIC:
        about, learned = unpack_state(data)
    else:
        about, learned = _parts(unpack_record(data))
    check_sizes(about, sum(value.nbytes for value in learned.values() if isinstance(value, np.ndarray)) // 8)
    return about | {"learned": learned}


def about_of(data: bytes) -> Contents:
    """Return features, outputs and single of what `packed` wrote, or raise a ModelFileError."""
    if data[: len(MAGIC)] != MAGIC:
        return unpacked(data)
    about = about_state(data)
    check_sizes(about, len(data) // 8)
    return about


def _parts(contents: dict[str, Any]) -> tuple[dict[str, Any], Contents]:
    learned = {name[1:]: value for name, value in contents.items() if name.startswith(".")}
    about = {name: value for name, value in contents.items() if not name.startswith(".")}
    if about.keys() != set(ABOUT):
        raise ModelFileError(f"the state must say {', '.join(ABOUT)}, and no more beside what was learned.")
    return about, learned
