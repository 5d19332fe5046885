"""Scripts in a process of their own: what they do to themselves ends with them. And the counts of an attack, shown."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

TESTS = Path(__file__).parents[1]  # for what scripts import by name
TIMEOUT = 120  # seconds; far more than any script takes, since a deadlock never ends

PREAMBLE = """
import os, resource, signal, sys, threading, time
import numpy as np
import onlinegp as ogp
from onlinegp.kernels import RBF

def stream(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(3.0 * X[:, 0]) + 0.1 * rng.standard_normal(n)

def virtual_memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()

def limit_memory(more=None):
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    soft = hard if more is None else virtual_memory() + more
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

def same(one, two):
    learned, expected = one.dump()["learned"], two.dump()["learned"]
    assert learned.keys() == expected.keys()
    for name in learned:
        np.testing.assert_array_equal(learned[name], expected[name], err_msg=name)
"""


def report(text: str) -> None:
    """Show what an attack did; on the standard error, the only stream that processes of pytest pass on."""
    print(f"\n{text.strip()}", file=sys.stderr, flush=True)


def need(good: bool, what: object) -> None:
    """Fail unless it is good; for errors, whose texts are not asserted where they are caught."""
    if not good:
        raise AssertionError(what)


def run_script(script: str) -> str:
    """Return what a script printed; it must end by itself, and well."""
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)},
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr[-3000:]}"
    return done.stdout
