"""The columns of a stream as numbers: learned from its first rows, then the same to the end, kept with the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from onlinegp.checks import Array
from onlinegp.columns.plan import Plan, Rules, learn
from onlinegp.streams.reading.source import NUMBERS_ONLY, Columns


class Encoder:
    """Features of a block to the inputs of a model; plain numbers are left as they are.

    `plan` is None for plain numbers, and until the first rows have been seen.
    """

    def __init__(
        self, columns: Columns, rules: Rules = NUMBERS_ONLY, say: Callable[[str], None] = lambda text: None
    ) -> None:
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
        """Learn from the first rows, unless it is known already, and say what becomes of the columns."""
        if self.columns.plain or self.plan is not None:
            return
        columns = self.columns
        self.plan = learn(columns.features, columns.kinds_of_features, X, self.rules, self.say)
        for line in self.plan.told():
            self.say(f"inputs from {line}")

    def __call__(self, X: Any) -> Array:
        """Return the inputs of a model for the features of some rows, (n, len(names))."""
        if self.columns.plain:
            return X
        assert self.plan is not None
        return self.plan(X)

    def dump(self) -> dict[str, Any]:
        """Return the columns and what was learned of them, for a file."""
        return asdict(self.columns) | {"learned": None if self.plan is None else self.plan.dump()}

    def load(self, stream: dict[str, Any]) -> None:
        """Go on with what a checked entry of a file has learned."""
        learned = stream["columns"]["learned"]
        self.plan = None if learned is None else Plan.load(learned)
