"""Whatever comes, within the range where an algorithm is stable: every prediction is a number, or an error says so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import onlinegp as ogp
from models import AFFINE, FEATURES, LINEAR, LOCAL, MODELS, STEPS

PLAIN = MODELS | STEPS | AFFINE | LINEAR | FEATURES | LOCAL
# few values, so that inputs and targets come again, and some that are tiny or zero
inputs = st.sampled_from([-2.0, -1.0, -1e-9, 0.0, 1e-160, 0.5, 0.5 + 1e-12, 1.7])
targets = st.sampled_from([-1e3, -1.0, 0.0, 1e-200, 0.3, 1.0, 50.0])
streams = st.lists(st.tuples(inputs, inputs, targets), min_size=1, max_size=25)


@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(rows=streams)
def test_every_prediction_is_a_number_or_an_error_says_so(name, rows):
    table = np.array(rows)
    model = PLAIN[name].unfitted()
    try:
        trace = ogp.run(model, table[:, :2], table[:, 2])
        mean, std = model.predict(table[:, :2], return_std=True)
    except ogp.BreakdownError:
        return  # it says so
    for numbers in (trace.mean, trace.std, mean, std):
        assert np.isfinite(numbers).all()
    assert (trace.std > 0.0).all()
    assert (std > 0.0).all()
