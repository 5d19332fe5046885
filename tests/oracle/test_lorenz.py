"""On the Lorenz series every algorithm is at least as good as KAFBOX states for it: benchmarks/lorenz.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import lorenz  # noqa: E402

DATA = Path(os.environ.get("ONLINEGP_DATA", ROOT.parent / "shared" / "data"))


def test_inputs_are_the_values_before(tmp_path):
    np.savetxt(tmp_path / "lorenz.txt", np.arange(1.0, 21.0))
    X, y = lorenz.rows(tmp_path)
    assert X[0].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert X[-1].tolist() == [19.0, 18.0, 17.0, 16.0, 15.0, 14.0]
    np.testing.assert_array_equal(y, np.arange(2.0, 21.0))


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "lorenz.txt").exists(), reason="no lorenz.txt: ONLINEGP_DATA names its folder")
@pytest.mark.parametrize("name", lorenz.cases())
def test_as_good_as_kafbox(name):
    case = lorenz.cases()[name]
    assert lorenz.error(case.model, *lorenz.rows(DATA)) <= case.kafbox + case.room
