"""What `make` does, and what its tests inherit from whoever runs it."""

from __future__ import annotations

import os
import shutil
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


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_spark_is_installed_by_its_own_target_only(tmp_path):
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    java.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}

    def commands(target: str) -> str:
        return subprocess.run(
            ["make", "--dry-run", "--always-make", target],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    for target in ("test", "test-slow", "attack", "lint"):
        assert "spark]" not in commands(target)
    assert "'.[test,spark]'" in commands("test-spark")
    assert "'.[test,spark]'" in commands("check")
