"""Allocations of compiled trees that fail, each of them once: all layers keep the same rows, and no row is lost."""

import os
import shutil
import subprocess
import sys

import pytest
from processes import report, run_script

from onlinegp.engine import available

pytestmark = [
    pytest.mark.skipif(not available(), reason="the compiled engine was not built"),
    pytest.mark.skipif(sys.platform != "linux", reason="replaces functions as Linux does"),
    pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler"),
]

# Preloaded: after `arm(first, one)`, allocation number `first` fails, and all later ones unless `one`
FAILING = """
#include <cstdlib>
#include <new>
static long next_number = 0, first_number = -1;
static bool armed = false, only_one = false;
static bool fails() {
    if (!armed) return false;
    const long number = next_number++;
    return first_number >= 0 && (only_one ? number == first_number : number >= first_number);
}
extern "C" void arm(long first, bool one) { next_number = 0, first_number = first, only_one = one, armed = true; }
extern "C" long disarm() { armed = false; return next_number; }
extern "C" void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
    void* memory = nullptr;
    return fails() || posix_memalign(&memory, alignment, bytes) ? nullptr : memory;
}
void* operator new(size_t bytes) {
    void* memory = fails() ? nullptr : std::malloc(bytes ? bytes : 1);
    return memory ? memory : throw std::bad_alloc();
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
"""

ATTACK = """
import copy, ctypes, warnings
from onlinegp.engine.compiled import CompiledTree
from random_trees import draw
warnings.simplefilter("ignore")
failing = ctypes.CDLL(os.environ["LD_PRELOAD"])
failing.arm.argtypes, failing.disarm.restype = [ctypes.c_long, ctypes.c_bool], ctypes.c_long

def call(core, name, X, Y):
    if name == "predict":
        core.predict(X, 1)
    elif name == "learn_one":
        for x, y in zip(X, Y):
            core.learn_one(x, y if len(y) > 1 else y[0])
    else:
        getattr(core, name)(X, Y)

def fails(core, first, one, *what):
    failing.arm(first, one)
    try:
        call(core, *what)
    except MemoryError:
        return True
    finally:
        failing.disarm()
    return False

def fail_each(model, name, X, Y, start, stop, most=40):
    "Let allocations of a call fail that learns rows from `start` to `stop`, and return how many did."
    y, rows, rng = Y[:, 0] if Y.shape[1] == 1 else Y, slice(start, stop), np.random.default_rng(start)
    before, came = copy.deepcopy(model).partial_fit(X[:start], y[:start]), 0
    if not isinstance(before._learner, CompiledTree) or not before._learner.atomic:
        return 0

    def core_of(one):
        return one._learner._working()

    one = copy.deepcopy(before)  # it keeps the leaves of the core alive
    core = core_of(one)
    failing.arm(-1, True)
    call(core, name, X[rows], Y[rows])
    count = failing.disarm()
    for first in range(count) if count <= most else rng.choice(count, most, replace=False).tolist():
        one, twin = copy.deepcopy(before), copy.deepcopy(before)
        raised = fails(core_of(one), first, bool(rng.random() < 0.6), name, X[rows], Y[rows])
        came, seen = came + raised, one.n_samples_seen_
        assert start <= seen <= stop and (raised or seen == stop or name == "predict"), (name, first, seen)
        if seen > start:
            twin.partial_fit(X[start:seen], y[start:seen])
        if first % 2:  # what waits for memory is done before a prediction, and before a copy
            np.testing.assert_array_equal(one.predict(X), twin.predict(X))
        elif first % 4:
            same(one, twin)
        if seen < len(X):
            one.partial_fit(X[seen:], y[seen:]), twin.partial_fit(X[seen:], y[seen:])
        same(one, twin)
    return came
"""


@pytest.fixture
def attack(tmp_path, monkeypatch):
    """Run a script whose allocations may fail, and return what it prints."""
    source, library = tmp_path / "failing.cpp", tmp_path / "failing.so"
    source.write_text(FAILING)
    subprocess.run(["c++", "-O1", "-fPIC", "-shared", "-o", str(library), str(source)], check=True)
    monkeypatch.setitem(os.environ, "LD_PRELOAD", str(library))
    return lambda script: run_script(ATTACK + script)


@pytest.mark.parametrize("name", ["learn", "run", "learn_one"])
def test_scales_that_are_learned_without_memory(attack, name):
    """The node inside learns the first rows again: if memory ends then, the next call does it."""
    attack(
        f"""
X, y = stream(60)
inside = ogp.Scaled(ogp.KNLMS(RBF(0.7)), rows=6)  # whose scales are final when the outer ones are not
model = ogp.Calibrated(ogp.Scaled(ogp.Calibrated(inside), rows=22))
assert fail_each(model, {name!r}, X, y[:, None], 6, 30, most=80) > 40
assert fail_each(model, {name!r}, X, y[:, None], 21, 22, most=80) > 10
"""
    )


@pytest.mark.attack
@pytest.mark.parametrize("first", range(0, 400, 100))
def test_random_trees_without_memory(attack, first):
    out = attack(
        f"""
came = 0
for seed in range({first}, {first + 100}):
    case, rng = draw(seed), np.random.default_rng(seed)
    start = int(rng.integers(1, 50))
    stop = min(len(case.X), start + int(rng.choice([1, 3, 8, 29])))
    name = str(rng.choice(["learn", "run", "learn_one", "predict"]))
    try:
        came += fail_each(case.model, name, case.X, case.y.reshape(len(case.X), -1), start, stop)
    except AssertionError as error:
        error.add_note(str(case))
        raise
print(f"{{came}} failing allocations in random trees, seeds {first} to {first + 99}")
"""
    )
    report(out)
    assert int(out.split()[0]) > 500
