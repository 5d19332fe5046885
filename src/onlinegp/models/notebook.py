"""HTML for notebooks: what a model or a fleet has learned."""

from __future__ import annotations

from html import escape
from itertools import islice
from typing import Any

from onlinegp.html_tables import table
from onlinegp.trace import Trace

MAX_KEYS = 5  # largest number of keys of a fleet to show
MAX_NAMES = 8  # largest number of input names to show
LEAST = 0.01  # smallest importance to show


def learned_html(model: Any, recent: Trace | None) -> str:
    """Return HTML with rows, inputs and size, error and coverage of the last run, and importance of inputs."""
    names = input_names(model)
    several = "1 input" if model.n_features_in_ == 1 else f"{model.n_features_in_} inputs"
    inputs = escape(", ".join(names)) if 0 < len(names) <= MAX_NAMES else several
    lines = [f"<strong>{type(model).__name__}</strong>: {model.n_samples_seen_} rows of {inputs}, size {model.size_}"]
    if recent is not None:
        lines.append(f"Last run: {recent.summary_line()}")
    if matter := _important(model, names):
        lines.append(f"Importance of inputs, by length scales: {escape(matter)}")
    return "".join(f"<div>{line}</div>" for line in lines)


def input_names(model: Any) -> list[str]:
    """Return the names of the inputs of the inner model, if they are known."""
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
    """Return HTML with the number of models, and what the first models have learned."""
    shown = [(key, fleet[key]) for key in islice(fleet, MAX_KEYS)]
    rows = [(key, model.n_samples_seen_, model.size_) for key, model in shown]
    return f"<div>{escape(repr(fleet))}</div>" + (table(["key", "rows", "size"], rows) if rows else "")
