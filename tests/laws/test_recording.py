"""Models predict what they predicted when they were recorded; `record.py` beside this says when that may change."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import assert_close, deviation
from record import ELSEWHERE, LOOSER, PATH, TOLERANCE, cases, machine, recordable, recorded


@pytest.mark.parametrize(("name", "engine"), cases())
def test_what_was_recorded_is_predicted_again(name, engine):
    with np.load(PATH) as file:
        same_machine = str(file["machine"]) == machine()
        before = recorded(file, name, engine)
    tolerance = LOOSER.get(name, TOLERANCE) * (1.0 if same_machine else ELSEWHERE)
    assert_close(recordable(name, engine), before, tolerance)


@pytest.mark.parametrize("name", ["KRLST", "Conformal", "Scaled-Conformal-Mixture-gate", "Mixture-Mixture"])
def test_a_small_change_is_noticed(name):
    engine = cases()[0][1]
    assert 1e-12 < deviation(recordable(name, engine), recordable(name, engine, change=1e-10)) < 1e-8
