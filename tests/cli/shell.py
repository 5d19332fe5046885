"""Running the command line as a user does: in a process of its own."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import onlinegp as onlinegp_package
from onlinegp.cli import main

SOURCE = Path(onlinegp_package.__file__).parents[1]  # so that the processes run what this one has imported
COMMAND = [sys.executable, "-W", "ignore", "-m", "onlinegp"]
FIXED = ["--kernel", "rbf(1.0)", "--noise", "0.01", "--budget", "20", "--model", "krlst"]  # no tuning: quick


def environment() -> dict[str, str]:
    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}


def onlinegp(*args: Any, stdin: str | bytes = b"", code: int | None = 0, cwd: Path | None = None) -> Any:
    """Run a command to its end and return what it wrote; fail if its exit code is another one."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [*COMMAND, *map(str, args)], input=data, capture_output=True, env=environment(), cwd=cwd, timeout=120
    )
    assert code is None or done.returncode == code, done.stderr.decode()
    return done


def inside(*args: Any, code: int | None = 0, cwd: Path | None = None) -> Any:
    """Run a command in this process, which is quicker; files only. Returns what `onlinegp` returns."""
    out, errors = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    folder = contextlib.chdir(cwd or ".")
    with folder, contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got = main([str(arg) for arg in args])
        except SystemExit as end:
            got = end.code
        out.flush()
        stdout = out.buffer.getvalue()
    assert code is None or got == code, errors.getvalue()
    return subprocess.CompletedProcess(args, got, stdout, errors.getvalue().encode())


def started(*args: Any, **kwargs: Any) -> subprocess.Popen[bytes]:
    """Start a command and return its process."""
    usual: dict[str, Any] = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
    return subprocess.Popen([*COMMAND, *map(str, args)], **(usual | {"env": environment()} | kwargs))


def wait_for(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait until something is so; fail if it takes longer."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def rows_of(text: str | bytes | Path) -> list[dict[str, str]]:
    """Return the rows of CSV output."""
    if isinstance(text, Path):
        text = text.read_bytes()
    return list(csv.DictReader((text.decode() if isinstance(text, bytes) else text).splitlines()))


def write_csv(path: Path, n: int = 300, *, seed: int = 0, features: int = 2) -> Path:
    """Write a table with a time, a text, features and a target."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, features))
    y = np.sin(X[:, 0]) + 0.3 * X.sum(axis=1) + 0.1 * rng.standard_normal(n)
    names = ["time", "place", *(f"x{j}" for j in range(features)), "y"]
    with open(path, "w") as file:
        file.write(",".join(names) + "\n")
        for i in range(n):
            numbers = [*X[i].tolist(), float(y[i])]
            place = '"Rome, IT"' if i % 7 == 0 else "Bern"
            file.write(f"2024-01-01T00:{i // 60 % 60:02d}:{i % 60:02d},{place}," + ",".join(map(repr, numbers)) + "\n")
    return path
