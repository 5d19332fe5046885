"""What a notebook shows of a model that has learned, and of a fleet."""

from __future__ import annotations

from html import escape
from itertools import islice
from typing import Any

from onlinegp.html_tables import table
from onlinegp.trace import Trace

MAX_KEYS = 5  # keys of a fleet that are shown
MAX_NAMES = 8  # names of inputs that are shown
LEAST = 0.01  # the importance of an input that is shown


def learned_html(model: Any, recent: Trace | None) -> str:
    """Return rows, inputs and size, the error and the coverage of the last run, and the inputs that matter, as HTML."""
    names = input_names(model)
    several = "1 input" if model.n_features_in_ == 1 else f"{model.n_features_in_} inputs"
    inputs = escape(", ".join(names)) if 0 < len(names) <= MAX_NAMES else several
    lines = [f"<strong>{type(model).__name__}</strong>: {model.n_samples_seen_} rows of {inputs}, size {model.size_}"]
    if recent is not None:
        lines.append(f"Last run: {recent.summary_line()}")
    if matter := _important(model, names):
        lines.append(f"Importance of inputs: {escape(matter)}")
    return "".join(f"<div>{line}</div>" for line in lines)


def input_names(model: Any) -> list[str]:
    """Return the names of the inputs of the inner model as far as they are known."""
    names = getattr(model, "names_", None)
    return [str(name) for name in (getattr(model, "feature_names_in_", ()) if names is None else names)]


def _important(model: Any, names: list[str]) -> str:
    try:
        found = model.importance_
    except AttributeError:
        return ""
    named = [names[j] if j < len(names) else f"input {j}" for j in range(len(found))]
    largest = sorted(zip(found.tolist(), named, strict=True), reverse=True)[:MAX_NAMES]
    return ", ".join(f"{name} {share:.2f}" for share, name in largest if share >= LEAST)


def fleet_html(fleet: Any) -> str:
    """Return the number of models and what the first of them have learned, as HTML."""
    shown = [(key, fleet[key]) for key in islice(fleet, MAX_KEYS)]
    rows = [(key, model.n_samples_seen_, model.size_) for key, model in shown]
    return f"<div>{escape(repr(fleet))}</div>" + (table(["key", "rows", "size"], rows) if rows else "")
