"""States move in and out of the compiled engine at any step, and blocks change nothing."""

import itertools
import os
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import FEATURES, KERNELS, assert_same_state, assert_same_steps, native, python_steps, recipes, stream

import onlinegp as ogp
from onlinegp.engine import available
from onlinegp.kernels import RBF
from onlinegp.learner import Outcome
from onlinegp.recipes.update import learn

pytestmark = pytest.mark.skipif(not available(), reason="the compiled engine was not built")


def drawn_recipe(data):
    made = recipes(KERNELS[data.draw(st.sampled_from(sorted(KERNELS)))])
    return made[data.draw(st.sampled_from(sorted(made)))]


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(0, 90), st.integers(1, 2))
def test_export_and_import_continue_bit_for_bit(data, split, outputs):
    recipe = drawn_recipe(data)
    X, Y = stream(110, outputs=outputs)
    whole, first = native(recipe, recipe.start(FEATURES, outputs)), native(recipe, recipe.start(FEATURES, outputs))
    expected = whole.run(X, Y)
    parts = [first.run(X[:split], Y[:split])]
    second = native(recipe, first.state)
    parts.append(second.run(X[split:], Y[split:]))
    for got, want in zip(map(np.concatenate, zip(*parts, strict=True)), expected, strict=True):
        np.testing.assert_array_equal(got, want)
    assert_same_state(second.state, whole.state)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.lists(st.integers(0, 30), max_size=6))
def test_blocks_equal_one_by_one_bit_for_bit(data, lengths):
    recipe = drawn_recipe(data)
    X, Y = stream(100)
    single, blocks = native(recipe, recipe.start(FEATURES)), native(recipe, recipe.start(FEATURES))
    for x, y in zip(X, Y[:, 0], strict=True):
        assert single.learn_one(x, float(y)) != Outcome.UNSUPPORTED
    starts = [0, *np.minimum(np.cumsum(lengths, dtype=int), 100), 100]
    for i, j in itertools.pairwise(starts):
        blocks.learn(X[i:j], Y[i:j])
    assert_same_state(blocks.state, single.state)


LARGE = {
    "KRLST": partial(ogp.KRLST, RBF(0.5), noise=0.01, forgetting=0.99),
    "EXKRLS": partial(ogp.kafbox.EXKRLS, RBF(0.5), noise=0.01),
    "FBKRLS": partial(ogp.kafbox.FBKRLS, RBF(0.5), noise=0.01),
    "SWKRLS": partial(ogp.kafbox.SWKRLS, RBF(0.5), noise=0.01),
}


@pytest.mark.parametrize("budget", [128, 129, 130, 131, 135, 205])
@pytest.mark.parametrize("name", LARGE)
def test_solving_ahead_changes_nothing(name, budget):
    """With many centers a removal solves for the row that comes next, if it is known: not one by one, nor at an end."""
    recipe = LARGE[name](budget=budget).recipe()
    X, Y = stream(budget + 160, outputs=2)
    single, blocks, steps = (native(recipe, recipe.start(FEATURES, 2)) for _ in range(3))
    for x, y in zip(X, Y, strict=True):
        assert single.learn_one(x, y) != Outcome.UNSUPPORTED
    last = 0
    for end in (budget + 30, budget + 31, budget + 97, budget + 160):
        blocks.learn(X[last:end], Y[last:end])
        blocks.predict_one(X[end % len(X)]), blocks.predict_one(-X[0]), blocks.predict(X[:20])
        last = end
    trace = steps.decisions(X, Y)
    assert_same_state(blocks.state, single.state)
    assert_same_state(steps.state, single.state)
    expected = python_steps(recipe, recipe.start(FEATURES, 2), X, Y)
    assert_same_steps(expected, trace, rtol=1e-7)
    left = {step.left for step in expected[budget + 1 :] if step.admitted}
    assert left == {0} if name == "SWKRLS" else len(left) > 20


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_looking_changes_nothing(data):
    recipe = drawn_recipe(data)
    X, Y = stream(80)
    quiet, asked = native(recipe, recipe.start(FEATURES)), native(recipe, recipe.start(FEATURES))
    for i, (x, y) in enumerate(zip(X, Y[:, 0], strict=True)):
        quiet.learn_one(x, float(y))
        if i % 3 == 0:
            assert asked.predict_one(x) is not None  # and it is learned next
        if i % 5 == 0:
            asked.predict_one(-x)
        if i % 7 == 0:
            asked.predict(X)
        if i % 11 == 0:
            _ = asked.state
        asked.learn_one(x, float(y))
    assert_same_state(asked.state, quiet.state)


@pytest.mark.parametrize("kernel", KERNELS)
def test_states_move_between_engines(kernel):
    """Native, Python, native, ... : the same decisions and numbers as Python alone."""
    X, Y = stream(300)
    for name, recipe in list(recipes(KERNELS[kernel]).items())[::13]:
        state, alone = recipe.start(FEATURES), recipe.start(FEATURES)
        for i in range(0, 300, 60):
            steps = python_steps(recipe, alone, X[i : i + 60], Y[i : i + 60])
            engine = native(recipe, state)
            try:
                assert_same_steps(steps[:30], engine.decisions(X[i : i + 30], Y[i : i + 30]))
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None
            state = engine.state
            for x, y in zip(X[i + 30 : i + 60], Y[i + 30 : i + 60], strict=True):
                learn(recipe, state, x, y)


def test_matrices_come_out_symmetric_or_triangular_to_the_last_bit():
    X, Y = stream(300)
    for name, recipe in recipes(KERNELS["composed"]).items():
        if name.startswith(("Posterior", "Exact", "LeastSquares")):
            engine = native(recipe, recipe.start(FEATURES))
            engine.learn(X, Y)
            state = engine.state
            if state.S is not None:
                np.testing.assert_array_equal(state.square("S"), state.square("S").T, err_msg=name)
            np.testing.assert_array_equal(np.triu(state.square("L"), 1), 0.0, err_msg=name)


def test_threads_give_the_same_bits():
    X, Y = stream(500)
    new = np.random.default_rng(3).uniform(-2, 2, (20_000, FEATURES))
    for name in ("Prior-Growing-Keep-None", "Posterior-Growing-Keep-LeastError", "BetaAuto-Growing-Keep-None"):
        recipe = recipes(KERNELS["RBF"])[name]
        engine = native(recipe, recipe.start(FEATURES))
        engine.learn(X, Y)
        for one, many in zip(engine.predict(new, threads=1), engine.predict(new, threads=4), strict=True):
            np.testing.assert_allclose(one, many, rtol=1e-12)


def test_one_model_in_many_python_threads():
    """Learning and predicting at once is serialized, never torn."""
    recipe = recipes(KERNELS["RBF"])["Posterior-ALD-BackToPrior-LeastError"]
    engine = native(recipe, recipe.start(FEATURES))
    X, Y = stream(400)
    failures = []

    def work(i: int) -> None:
        for _ in range(5):
            engine.learn(X[i::4], Y[i::4])
            mean, variance = engine.predict(X)
            if not (np.isfinite(mean).all() and (variance > 0).all()):
                failures.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert engine.state.seen == 2000


STARVED = """
import resource, sys
import numpy as np
import onlinegp as ogp
from onlinegp.kernels import RBF

rng = np.random.default_rng(0)
model = ogp.OnlineGP(RBF(1.0), noise=0.1, engine="native")
X = rng.standard_normal((2060, 2))
model.partial_fit(X[:2000], np.sin(X[:2000, 0]))
taken = 4096 * int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (taken + (24 << 20), -1))
try:
    for x in X[2000:]:
        model.learn_one(x, float(np.sin(x[0])))
except MemoryError:
    pass
else:
    sys.exit("there was memory enough")
assert model.size_ == model.n_samples_seen_ == 2048, (model.size_, model.n_samples_seen_)
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
model.partial_fit(X[2048:], np.sin(X[2048:, 0]))
assert model.size_ == model.n_samples_seen_ == 2060
mean, std = model.predict(X, return_std=True)
assert np.abs(mean - np.sin(X[:, 0])).max() < 0.5 and (std > 0).all()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits its own memory as Linux does")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer needs all the address space")
def test_a_model_that_finds_no_memory_stays_as_it_was():
    done = subprocess.run([sys.executable, "-c", STARVED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
