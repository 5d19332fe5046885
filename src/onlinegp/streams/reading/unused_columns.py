"""Which columns nobody predicts from, why, and how to use them: one line for the user."""

from __future__ import annotations

from onlinegp.columns.dates import likely_format
from onlinegp.columns.plan import Rules
from onlinegp.streams.errors import listed
from onlinegp.streams.reading.cell_types import is_missing
from onlinegp.streams.reading.source import Columns, Source


def unused(source: Source, columns: Columns, rules: Rules, *, chosen: tuple[str, ...] = (), lags: int = 0) -> str:
    """Return what to say of the columns that are no inputs, nothing if there is no such column.

    Those that the user has `chosen` for something, by name, need no word; nor do numbers where lags are the inputs.
    """
    taken = {columns.target, *columns.features, *chosen}
    groups: dict[str, list[str]] = {}
    for name in source.names:
        if name not in taken and (why := _why(source, name, rules, lags)):
            groups.setdefault(why, []).append(name)
    return "; ".join(f"{listed(names)} ({why})" for why, names in groups.items())


def _why(source: Source, name: str, rules: Rules, lags: int) -> str:
    kind = source.kind(name, rules.date_format)
    if kind == "number":
        how = "has no name" if name in source.unnamed else "by its name no input"
        return "" if lags else f"{how}: --features uses it"
    if kind == "date":
        return "dates: --dates calendar uses them"
    if kind == "category":
        if format := likely_format([value for value in source.samples[name] if not is_missing(value)]):
            return f"dates of another form: --dates calendar --date-format '{format}' uses them"
        return "by its name no input: --features uses it" if source.is_key(name) and rules.uses(kind) else _TEXT
    return "neither numbers nor text"


_TEXT = "text: --categories onehot uses it"
