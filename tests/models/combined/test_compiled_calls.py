"""Calls on compiled trees that other calls, threads or a lack of memory come between: all layers have the same rows."""

from __future__ import annotations

import os
import subprocess
import sys
from threading import Thread
from typing import Any

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.engine import available
from onlinegp.engine.compiled import nodes
from onlinegp.kernels import RBF
from onlinegp.learner import Outcome

RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=400)

native = pytest.mark.skipif(not available(), reason="the compiled engine was not built")


def rows_of(contents: dict[str, Any]) -> set[int]:
    """Return the numbers of rows that the layers of what was dumped have seen."""
    seen = set()
    for name, value in contents.items():
        if isinstance(value, dict):
            seen |= rows_of(value)
        elif name.split(".")[-1] == "seen":
            seen.add(int(value))
    return seen


@pytest.mark.parametrize(("known", "stop"), [(1, 200), (3, 200), (17, 200), (2, 7), (4, 9)])
def test_a_prediction_of_the_first_row_of_a_block_changes_nothing(known: int, stop: int) -> None:
    traces = []
    for asks in (False, True):
        model = ogp.Calibrated(ogp.ResidualGP()).fit(X[:known], Y[:known])
        if asks:
            model.predict_one(X[known])
        traces.append(model.run(X[known:stop], Y[known:stop]))
    assert np.array_equal(traces[0].mean, traces[1].mean)


def tree() -> ogp.Scaled:
    return ogp.Scaled(ogp.Mixture([ogp.Calibrated(ogp.KRLST(budget=5)), ogp.KRLST(budget=8)]), rows=20)


def test_a_row_that_comes_while_the_model_is_saved_is_learned_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tree().fit(X[:100], Y[:100])
    model.learn_one(X[100], Y[100])
    leaf = nodes(model.learner)[-1]
    threads = []

    def dump_slowly(dump: Any = leaf.dump) -> Any:
        threads.append(Thread(target=model.learn_one, args=(X[101], Y[101])))
        threads[0].start()
        threads[0].join(0.2)
        return dump()

    monkeypatch.setattr(leaf, "dump", dump_slowly)
    contents = model.dump()
    threads[0].join()
    assert contents is not None
    assert rows_of(contents) == {101}
    assert model.n_samples_seen_ == 102


@native
def test_a_sample_without_the_lock_of_the_model_makes_no_compiled_twin() -> None:
    model = tree().fit(X[:100], Y[:100]).begin_series()
    assert model._learner is not None
    assert (
        model._learner.learn_one(X[100], Y[100]) == Outcome.UNSUPPORTED
    )  # two threads would make two, on the same leaves
    assert model.learn_one(X[100], Y[100]).n_samples_seen_ == 101


class Slow:
    """A compiled twin, and what other threads do while it is asked for its fields."""

    def __init__(self, core: Any, meanwhile: Any) -> None:
        self._core, self._meanwhile = core, meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)

    def dump(self) -> Any:
        saved, meanwhile, self._meanwhile = self._core.dump(), self._meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return saved


@native
def test_members_learn_their_scales_at_the_same_row_on_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = []
    for threads in ("1", "2"):  # a thread sanitizer checks the second
        monkeypatch.setenv("ONLINEGP_THREADS", threads)
        members = [ogp.Scaled(ogp.KLMS(RBF(0.5 + 0.01 * i)), rows=320) for i in range(100)]  # enough work for two
        contents.append(ogp.Mixture(members).fit(X, Y).dump()["learned"])  # type: ignore[index]
    for name, value in contents[0].items():
        assert np.array_equal(value, contents[1][name]), name


@native
def test_a_thread_that_reads_late_does_not_bring_back_what_was_before() -> None:
    model, twin = tree().fit(X[:100], Y[:100]), tree().fit(X[:150], Y[:150])
    learner: Any = model._learner
    outer = getattr(learner, "learner", learner)
    outer._core = Slow(outer._core, lambda: model.partial_fit(X[100:150], Y[100:150]).begin_series())
    _ = model.learner
    assert np.array_equal(model.predict(X[:50]), twin.predict(X[:50]))


SHORT_OF_MEMORY = """
import resource, sys
import numpy as np
import onlinegp as ogp

rng = np.random.default_rng(0)
X, y = rng.normal(size=(3000, 1500)), rng.normal(size=3000)
def model():
    big = {"local": ogp.LocalGP(neighbors=4), "residual": ogp.ResidualGP(neighbors=4), "steps": ogp.kafbox.MXKLMS()}
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
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the address sanitizer aborts without memory")
@pytest.mark.parametrize("leaf", ["local", "residual", "steps"])
def test_where_memory_ends_all_members_have_the_same_rows(leaf: str) -> None:
    done = subprocess.run([sys.executable, "-c", SHORT_OF_MEMORY, leaf], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["refused", "True"], done.stderr[-1000:]
