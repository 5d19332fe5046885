"""Encode the columns of a stream as numbers, with an encoding that is learned from the first rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from onlinegp.checks import Array
from onlinegp.columns.dates import checked_format
from onlinegp.columns.plan import CHOICES, Plan, Rules, learn
from onlinegp.streams.reading.source import NUMBERS_ONLY, Columns

MADE_BY = {"number": ("number",), "category": ("onehot", "ordinal"), "date": ("calendar",)}  # encodings of each kind
STORED = ("target", "features", "keys", "kinds", "missing", "date_format", "na_values", "learned")


def silent(text: str) -> None:
    """Do nothing. (A lambda could not be pickled with an encoder.)"""


class Encoder:
    """Convert the features of a block to inputs of a model. Plain numbers are not changed.

    `plan` is None if all features are plain numbers, and before the first rows have been read.
    """

    def __init__(self, columns: Columns, rules: Rules = NUMBERS_ONLY, say: Callable[[str], None] = silent) -> None:
        self.columns, self.rules, self.say = columns, rules, say
        self.plan: Plan | None = None

    @classmethod
    def restored(cls, columns: Columns, stream: dict[str, Any]) -> Encoder:
        """Return the encoder of a saved stream."""
        encoder = cls(columns)
        encoder.load(stream)
        return encoder

    @property
    def names(self) -> list[str]:
        """The names of the inputs."""
        return list(self.columns.features) if self.plan is None else self.plan.names

    def learn(self, X: Any) -> None:
        """Learn the encoding from the first rows, if it is not known yet, and print a message about it."""
        if self.columns.plain or self.plan is not None:
            return
        columns = self.columns
        self.plan = learn(columns.features, columns.kinds_of_features, X, self.rules, self.say)
        for line in self.plan.summary():
            self.say(f"inputs from {line}")

    def __call__(self, X: Any) -> Array:
        """Convert features to inputs of a model, (n, len(names))."""
        if self.columns.plain:
            return X
        assert self.plan is not None
        return self.plan(X)

    def dump(self) -> dict[str, Any]:
        """Return the columns and their encoding for a file."""
        return asdict(self.columns) | {"learned": None if self.plan is None else self.plan.dump()}

    def load(self, stream: dict[str, Any]) -> None:
        """Continue with the encoding in a file. The entry must have been checked."""
        learned = stream["columns"]["learned"]
        self.plan = None if learned is None else Plan.load(learned)


def checked_columns(columns: Any) -> int:
    """Return the number of inputs from the columns of a file. Raise a ValueError if the columns are not valid."""
    _need(isinstance(columns, dict) and set(columns) == set(STORED), "columns", f"made of {', '.join(STORED)}")
    features, keys, kinds, learned = (columns[name] for name in ("features", "keys", "kinds", "learned"))
    for names in (features, keys, kinds, columns["na_values"]):
        _need(isinstance(names, list) and all(isinstance(one, str) for one in names), "columns", "made of names")
    target = [] if columns["target"] is None else [columns["target"]]
    _need(all(isinstance(name, str) for name in target), "target", "a name")
    for names in ([*features, *target], keys):
        _need(len(set(names)) == len(names), "columns", "without a name twice")
    _need(set(kinds) <= set(MADE_BY), "kinds", f"made of {', '.join(MADE_BY)}")
    _need(len(kinds) in (0, len(features)), "kinds", "one for each feature, or none")
    _need(columns["missing"] in CHOICES["missing"], "missing", f"one of {', '.join(CHOICES['missing'])}")
    checked_format(columns["date_format"])
    plain = not kinds and columns["missing"] == "stop"
    _need((learned is None) == plain, "learned", "there if, and only if, some columns are not plain numbers")
    if plain:
        return len(features)
    plan = Plan.load(learned)
    _need([column.column for column in plan.columns] == features, "learned", "about the features, in their order")
    for column, kind in zip(plan.columns, kinds or ["number"] * len(features), strict=True):
        _need(column.part.kind in MADE_BY[kind], "learned", f"of a kind that a {kind} can become")
        _need((column.means is None) == (columns["missing"] == "stop"), "means", "there if values may be missing")
    return len(plan.names)


def _need(good: bool, name: str, what: str) -> None:
    if not good:
        raise ValueError(f"{name} must be {what}.")
