"""Describe an event in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, log10

from onlinegp.models.alarms.events import Event

MOST = 3  # largest number of inputs to name
SLIGHT = 0.05  # a mean that differs from the expected value by a smaller share of its bounds says nothing by its digits


def sentence(
    event: Event,
    target: str = "the target",
    inputs: Sequence[str] | None = None,
    when: Callable[[int], str] | None = None,
) -> str:
    """Describe what happened to the target, since when, and which inputs are unusual.

    Parameters
    ----------
    target, inputs : names; if None, inputs are "input 1", "input 2", ...
    when : a function that names a row, such as "14:03"; if None, "row 17"
    """
    named = when or (lambda row: f"row {row}")
    names = [f"input {j + 1}" for j in range(event.inputs)] if inputs is None else list(inputs)
    since = "at" if event.kind == "spike" and event.rows <= 1 else "since"
    row = event.peak if since == "at" else event.since
    return f"{_what(event, target)}, {since} {named(row)}{_about(event, names)}"


def _what(event: Event, target: str) -> str:
    if event.kind == "missing":
        return f"{target} is missing"
    if event.kind == "variance":
        much = f"{event.factor:.2g} times as much as" if event.factor >= 1.2 else "slightly more than"
        return f"{target} varies {much} usual"
    y, step = event.observed, event.high - event.low
    inside = y is not None and event.low <= y <= event.high
    if y is not None and inside and event.kind in ("level", "trend") and abs(y - event.expected) < SLIGHT * step:
        less = event.statistic.endswith(" down")
        return f"{target} averages slightly {'less' if less else 'more'} than expected"
    if y is not None:  # enough digits to see the difference from the expected value
        apart = min(abs(y - bound) for bound in ([event.expected] if inside else [event.low, event.high]))
        step = min(step, max(10.0 * apart, 1e-3 * step))
    observed = "missing" if y is None else number(y, step)
    if event.kind == "stuck":
        return f"{target} is stuck at {observed}"
    usual = f"instead of {number(event.low, step)} to {number(event.high, step)}"
    if inside:
        usual = f"where {number(event.expected, step)} was expected"
    way = "down" if y is not None and y < event.expected else "up"
    verbs = {
        "level": " averages" if inside else "",
        "trend": f" drifts {way}:",
        "season broken": " breaks its usual pattern:",
    }
    return f"{target}{verbs.get(event.kind, '')} {observed} {usual}"


def _about(event: Event, names: list[str]) -> str:
    """Describe which inputs are unusual, if any."""
    odd = [names[j] for j in event.unusual[:MOST]]
    if odd:
        return f"; {_list(odd)} {'is' if len(odd) == 1 else 'are'} unusual, too"
    if not names:
        return ""
    return f"; {_list(names)} as usual" if len(names) <= MOST else "; all inputs as usual"


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def number(value: float, step: float) -> str:
    """Format a number with enough digits to show differences of `step`."""
    if not (step > 0.0 and abs(value) < 1e15):
        return f"{value:.6g}"
    digits = max(0, 1 - floor(log10(step)))
    return f"{value:.{digits}f}" if digits < 12 else f"{value:.6g}"
