"""Stores with bytes cut off, changed or overwritten, and with forged rows: no hang, and no error that is not ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from processes import report


def attacked(folder: Path, seed: int, count: int) -> dict[str, int]:
    """Use damaged stores in a process of its own, which ends by itself if one of them hangs."""
    script = Path(__file__).with_name("damage.py")
    done = subprocess.run([sys.executable, script, folder, str(seed), str(count)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    report(f"damaged stores, seed {seed}: {found}")
    assert found["stores"] == count
    return found


def test_damaged_stores(tmp_path):
    found = attacked(tmp_path, 1, 25)
    assert found["refused"] >= 10
    assert found["usable"] >= 2


@pytest.mark.attack
@pytest.mark.parametrize("seed", range(10, 20))
def test_a_thousand_damaged_stores(tmp_path, seed):
    assert attacked(tmp_path, seed, 100)["refused"] > 40
