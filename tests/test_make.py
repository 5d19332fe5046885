"""What `make` does, and what its tests inherit from whoever runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot ignore SIGINT there")
def test_the_suite_hears_control_c_where_its_parent_ignores_it(tmp_path):
    """As under nohup, in a background job of a shell, and on some runners of CI."""
    (tmp_path / "test_signals.py").write_text(
        textwrap.dedent(
            """
            import signal, subprocess, sys

            def test_heard_here_and_by_child_processes():
                assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
                child = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGINT)"]
                assert "KeyboardInterrupt" in subprocess.run(child, capture_output=True, text=True).stderr
            """
        )
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "test_signals.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert done.returncode == 0, done.stdout[-2000:]
