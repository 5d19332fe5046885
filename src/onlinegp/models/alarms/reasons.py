"""Describe an event in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, log10

from onlinegp.models.alarms.events import Event

MOST = 3  # inputs that are named


def sentence(
    event: Event,
    target: str = "the target",
    inputs: Sequence[str] | None = None,
    when: Callable[[int], str] | None = None,
) -> str:
    """Describe what happened to the target, since when, and which inputs are unusual.

    Parameters
    ----------
    target, inputs : names; inputs are "input 1" ... if None
    when : names a row, such as "14:03"; "row 17" if None
    """
    named = when or (lambda row: f"row {row}")
    names = [f"input {j + 1}" for j in range(event.inputs)] if inputs is None else list(inputs)
    since = "at" if event.kind == "spike" and event.rows <= 1 else "since"
    row = event.peak if since == "at" else event.since
    return f"{_what(event, target)}, {since} {named(row)}{_about(event, names)}"


def _what(event: Event, target: str) -> str:
    step = event.high - event.low
    if event.observed is not None:  # as many digits as tell it from the nearer bound
        apart = min(abs(event.observed - event.low), abs(event.observed - event.high))
        step = min(step, max(10.0 * apart, 1e-3 * step))
    low, high = number(event.low, step), number(event.high, step)
    observed = "missing" if event.observed is None else number(event.observed, step)
    if event.kind == "missing":
        return f"{target} is missing"
    if event.kind == "stuck":
        return f"{target} is stuck at {observed}"
    if event.kind == "variance":
        much = f"varies {event.factor:.2g} times as much as usual" if event.factor >= 1.2 else "is slightly unusual"
        return f"{target} {much}"
    if event.observed is not None and event.low <= event.observed <= event.high:
        if event.kind == "spike":
            return f"{target} {observed} where {number(event.expected, step)} was expected"
        side = "lower" if event.observed < event.expected else "higher"
        return f"{target} is slightly but persistently {side} than expected: {observed}, within {low} to {high}"
    if event.kind == "season broken":
        return f"{target} breaks its usual pattern: {observed} instead of {low} to {high}"
    if event.kind == "trend":
        way = "down" if event.observed is not None and event.observed < event.expected else "up"
        return f"{target} drifts {way}: {observed} instead of {low} to {high}"
    return f"{target} {observed} instead of {low} to {high}"


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
    """Return a number with the digits that matter for differences of `step`."""
    if not (step > 0.0 and abs(value) < 1e15):
        return f"{value:.6g}"
    digits = max(0, 1 - floor(log10(step)))
    return f"{value:.{digits}f}" if digits < 12 else f"{value:.6g}"
