"""Every command of the README and of the guide to streams runs, in a shell."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from shell import COMMAND, environment, write_csv

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
PAGES = [ROOT / "README.md", *(GUIDE / f"{name}.md" for name in ("streams", "iterated_forecasts", "anomalies"))]
QUICK = ("onlinegp run", "printf")  # no forecast, no search


def marks(page: Path, block: str) -> tuple[pytest.MarkDecorator, ...]:
    return () if page.name == "streams.md" and block.startswith(QUICK) else (pytest.mark.slow,)


BLOCKS = [
    pytest.param(block, marks=marks(page, block))
    for page in PAGES
    for block in re.findall(r"^```shell\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: " ".join(block.split()[:3]))
def test_guide(block, tmp_path):
    write_csv(tmp_path / "data.csv", 200)
    (tmp_path / "series.txt").write_text("".join(f"{v:.5f}\n" for v in np.sin(np.arange(160) / 3.0)))
    (tmp_path / "onlinegp").write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    (tmp_path / "onlinegp").chmod(0o755)
    path = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", "-euo", "pipefail", "-c", block]
    done = subprocess.run(command, cwd=tmp_path, env=environment() | path, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()


def test_the_guide_has_examples():
    assert len(BLOCKS) >= 7
