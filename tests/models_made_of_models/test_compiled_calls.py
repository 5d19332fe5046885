"""Calls on compiled trees that other calls, threads or a lack of memory come between: all layers have the same rows."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.engine import available

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=400)

native = pytest.mark.skipif(not available(), reason="the compiled engine was not built")


@pytest.mark.parametrize("known", [1, 3, 17])
def test_a_prediction_of_the_first_row_of_a_block_changes_nothing(known: int) -> None:
    traces = []
    for asks in (False, True):
        model = ogp.Calibrated(ogp.ResidualGP())
        for x, y in zip(X[:known], Y[:known], strict=True):
            model.learn_one(x, y)
        if asks:
            model.predict_one(X[known])
        traces.append(model.run(X[known:200], Y[known:200]))
    assert np.array_equal(traces[0].mean, traces[1].mean)


SHORT_OF_MEMORY = """
import resource, sys
import numpy as np
import onlinegp as ogp

rng = np.random.default_rng(0)
X, y = rng.normal(size=(3000, 1500)), rng.normal(size=3000)
def model():
    big = {"local": ogp.LocalGP(neighbors=4), "residual": ogp.ResidualGP(neighbors=4), "steps": ogp.MXKLMS()}
    return ogp.Mixture([ogp.Calibrated(ogp.KRLST(budget=5)), big[sys.argv[1]]])
one = model().fit(X[:100], y[:100])
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (24 << 20), -1))
try:
    one.run(X[100:], y[100:])
except MemoryError:
    print("refused")
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
n = one.n_samples_seen_
twin = model().fit(X[:n], y[:n])
more = slice(n, n + 20)
print(np.array_equal(one.run(X[more], y[more]).mean, twin.run(X[more], y[more]).mean))
"""


@native
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and RLIMIT_AS")
@pytest.mark.parametrize("leaf", ["local", "residual", "steps"])
def test_where_memory_ends_all_members_have_the_same_rows(leaf: str) -> None:
    done = subprocess.run([sys.executable, "-c", SHORT_OF_MEMORY, leaf], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["refused", "True"], done.stderr[-1000:]
