"""Explain which columns are not used as inputs, why, and which option uses them."""

from __future__ import annotations

from onlinegp.columns.plan import Rules
from onlinegp.streams.errors import listed
from onlinegp.streams.reading.source import Columns, Source


def unused(source: Source, columns: Columns, rules: Rules, *, chosen: tuple[str, ...] = (), lags: int = 0) -> str:
    """Return a message about the columns that are not used as inputs, or "" if all columns are.

    The message omits columns that the user has `chosen` by name and, if the inputs are lags, columns of numbers.
    """
    taken = {columns.target, *columns.features, *chosen}
    groups: dict[str, list[str]] = {}
    for name in source.names:
        if name not in taken and (why := _why(source, name, rules, lags)):
            groups.setdefault(why, []).append(name)
    return "; ".join(f"{listed(names)} ({why})" for why, names in groups.items())


def _why(source: Source, name: str, rules: Rules, lags: int) -> str:
    if source.is_empty(name):
        return "no value in the first rows"
    kind = source.kind(name, rules.date_format)
    if kind == "number":
        how = "has no name" if name in source.unnamed else "named like a key"
        return "" if lags else f"{how}: --features uses it"
    if kind == "date":
        return "dates: --dates calendar uses them"
    if kind == "category":
        if format := source.likely_dates(name):
            return f"dates in another format: --dates calendar --date-format '{format}' uses them"
        return "named like a key: --features uses it" if source.is_key(name) and rules.uses(kind) else _TEXT
    return "neither numbers nor text"


_TEXT = "text: --categories onehot uses it"
