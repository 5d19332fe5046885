"""Thousands of interruptions of every model on both engines: each leaves the state of the rows that it counts."""

from __future__ import annotations

import signal

import pytest
from processes import report

import transactions
from transactions import CASES

SIGNALS, EVENTS = 16, 10  # for each model and engine; Auto, which tunes itself, gets fewer

pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that sends signals"),
]


@pytest.mark.parametrize(("name", "engine"), CASES)
def test_thousands_of_interruptions(name, engine):
    signals, events = (3, 3) if "Auto" in name else (SIGNALS, EVENTS)
    with transactions.small_pieces():
        heard = transactions.by_signals(name, engine, signals, seed=1)
        raised = transactions.by_events(name, engine, events, seed=2)
        failed = transactions.by_layers(name, engine, seed=3)
    assert heard > 0
    assert raised > 0
    report(f"{name}, {engine}: {heard} signals, {raised} exceptions at random moments, {failed} in its layers")
