"""A disk that becomes full under a store: the file is at its last commit, and nothing is let in until it is opened."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from processes import report

pytest.importorskip("resource")


def attacked(folder: Path, seed: int, count: int) -> dict[str, int]:
    """Fill the disk at points of chance, in a process of its own, as its limits are those of the whole process."""
    script = Path(__file__).with_name("full_disk.py")
    done = subprocess.run([sys.executable, script, folder, str(seed), str(count)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    report(f"full disk, seed {seed}: {found}")
    return found


def test_a_full_disk_leaves_the_last_commit(tmp_path):
    assert attacked(tmp_path, 0, 6)["full"] == 6


@pytest.mark.attack
def test_two_hundred_full_disks(tmp_path):
    assert attacked(tmp_path, 1, 200)["full"] == 200
