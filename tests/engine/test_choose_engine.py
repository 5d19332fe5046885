"""Which engine runs, what it accepts, and what it says when it does not."""

import array
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from pairs import FEATURES, KERNELS, assert_same_state, native, recipes, stream

import onlinegp.engine
from engines import make_engine
from onlinegp.engine import available, info
from onlinegp.kernels import RBF, Kernel
from onlinegp.learner import Outcome
from onlinegp.recipes.beliefs import Posterior, Prior
from onlinegp.recipes.state import NEW
from onlinegp.recipes.update import Recipe

needs_native = pytest.mark.skipif(not available(), reason="the compiled engine was not built")


@dataclass(frozen=True, eq=False)
class Brownian(Kernel):
    rate: float = 1.0

    def __call__(self, X, Z=None):
        return self.rate * np.minimum(X, (X if Z is None else Z).T)


def test_info_names_the_engine():
    facts = info()
    assert facts["engine"] == ("native" if available() else "python")
    assert all(isinstance(value, str) for value in facts.values())


def test_without_the_module_auto_warns_once(monkeypatch):
    recipe = Recipe(RBF(), Prior(0.5))
    monkeypatch.setattr(onlinegp.engine, "available", lambda: False)
    monkeypatch.setattr(onlinegp.engine, "_warned", False)
    with pytest.warns(UserWarning, match="Python engine"):
        assert make_engine("auto", recipe, recipe.start(1)).name == "python"
    assert make_engine("auto", recipe, recipe.start(1)).name == "python"
    with pytest.raises(ValueError, match="was not built"):
        make_engine("native", recipe, recipe.start(1))


@needs_native
def test_auto_takes_what_fits():
    for kernel, name in ((RBF(), "native"), (Brownian(), "python"), (RBF() + Brownian(), "python")):
        recipe = Recipe(kernel, Prior(0.5))
        assert make_engine("auto", recipe, recipe.start(1)).name == name


@needs_native
def test_native_refuses_a_kernel_of_your_own():
    recipe = Recipe(RBF() * Brownian(), Prior(0.5))
    with pytest.raises(TypeError, match="Brownian"):
        make_engine("native", recipe, recipe.start(1))


@dataclass(frozen=True)
class Novelty:
    """Has the name and the parameters of a part of ours, and decides otherwise."""

    radius: float
    error: float

    def place(self, state, x, prediction, e):
        return NEW if state.size < 3 else 0


@needs_native
def test_parts_are_known_by_what_they_are_and_not_by_their_names():
    X, Y = stream(60)
    recipe = Recipe(RBF(0.5), Prior(0.5), dictionary=Novelty(0.5, 0.0))
    engine = make_engine("auto", recipe, recipe.start(FEATURES))
    engine.learn(X, Y)
    assert (engine.name, engine.size) == ("python", 3)
    with pytest.raises(TypeError, match="no dictionary Novelty"):
        make_engine("native", recipe, recipe.start(FEATURES))


@needs_native
def test_a_state_of_the_wrong_shape_is_named():
    recipe = recipes(KERNELS["RBF"])["Posterior-ALD-Keep-LeastError"]
    engine = native(recipe, recipe.start(FEATURES))
    engine.learn(*stream(50))
    contents = engine.dump()
    for name in ("L", "S", "dQ", "centers", "born"):
        with pytest.raises(ValueError, match=name):
            engine.core.load({**contents, name: contents[name][:-1].copy()})
    with pytest.raises(KeyError, match="evidence"):
        engine.core.load({name: value for name, value in contents.items() if name != "evidence"})


@needs_native
def test_deep_kernels_go_to_python():
    kernel: Kernel = RBF()
    for _ in range(40):
        kernel = RBF() + kernel
    recipe = Recipe(kernel, Prior(0.5))
    assert make_engine("auto", recipe, recipe.start(1)).name == "python"


@needs_native
def test_float32_is_for_fixed_covariances():
    recipe = Recipe(RBF(), Posterior(0.01))
    with pytest.raises(ValueError, match="float64"):
        make_engine("native", recipe, recipe.start(1), dtype="float32")
    X, Y = stream(200)
    for name, recipe in recipes(KERNELS["Matern32-ARD"]).items():
        if name.startswith(("Prior-Growing", "Isotropic-Growing", "Beta-Growing", "BetaAuto-Growing")):
            single, double = (native(recipe, recipe.start(FEATURES), dtype=dtype) for dtype in ("float32", "float64"))
            if "Least" in name:  # which center leaves may hang on the last digits
                assert np.isfinite(single.run(X, Y)[0]).all()
                continue
            for one, two in zip(single.run(X, Y), double.run(X, Y), strict=True):
                np.testing.assert_allclose(one, two, rtol=2e-3, atol=2e-4, err_msg=name)


PLAIN = [0.1] * FEATURES
ODD = [
    [0.1],
    [0.1] * (FEATURES + 1),
    [np.nan] * FEATURES,
    [*PLAIN[1:], np.inf],
    [*PLAIN[1:], 1e151],
    [10**400] * FEATURES,
    [True] * FEATURES,
    "abcd",
    None,
    np.array(PLAIN, dtype=np.float16),
    np.array([PLAIN]),
    [np.array([0.1])] * FEATURES,
    np.array(PLAIN, dtype=">f8"),
    np.array(["a"] * FEATURES),
    {0.1: 0.2},
]


@needs_native
@pytest.mark.parametrize("x", ODD, ids=range(len(ODD)))
def test_odd_samples_are_left_to_python(x):
    recipe = recipes(KERNELS["RBF"])["Posterior-ALD-Keep-LeastError"]
    engine = native(recipe, recipe.start(FEATURES))
    X, Y = stream(50)
    engine.learn(X, Y)
    before = engine.state
    assert engine.learn_one(x, 0.5) == Outcome.UNSUPPORTED
    assert engine.predict_one(x) is None
    for y in (np.nan, np.inf, "a", None, [0.5], 1e151, 10**400, True, np.array([0.5]), 0.5j):
        assert engine.learn_one(PLAIN, y) == Outcome.UNSUPPORTED
    assert_same_state(engine.state, before)


@needs_native
def test_plain_samples_are_learned_at_once():
    recipe = recipes(KERNELS["RBF"])["Posterior-ALD-Keep-LeastError"]
    engine = native(recipe, recipe.start(FEATURES))
    samples = [
        PLAIN,
        tuple(PLAIN),
        [1, -2, 0.5, np.float32(0.3)],
        np.array(PLAIN),
        np.array(PLAIN, dtype=np.float32),
        np.linspace(-1.0, 1.0, 7 * FEATURES)[::-7],
        np.linspace(-1.0, 1.0, 3 * FEATURES, dtype=np.float32).reshape(FEATURES, 3)[:, 1],
        array.array("f", PLAIN),
    ]
    assert engine.learn_one(PLAIN, 1.0) == Outcome.CHECK  # no y of this size came before: Python looks at it too
    for x in samples:
        for y in (0.5, np.float64(0.5), np.float32(0.5), 1):
            assert engine.learn_one(x, y) == Outcome.OK
        plain = [float(value) for value in x]
        assert engine.predict_one(x) == engine.predict_one(plain)
    assert engine.state.seen == 1 + 4 * len(samples)


@needs_native
def test_several_outputs_are_learned_at_once():
    recipe = recipes(KERNELS["RBF"])["Posterior-ALD-Keep-LeastError"]
    X, Y = stream(40, outputs=2)
    block, single = native(recipe, recipe.start(FEATURES, 2)), native(recipe, recipe.start(FEATURES, 2))
    block.learn(X, Y)
    for x, y in zip(X, Y, strict=True):
        assert single.learn_one(x, y.tolist()) != Outcome.UNSUPPORTED
    assert_same_state(single.state, block.state)
    for y in (0.5, [0.5], [0.5, np.nan], [0.5, 0.5, 0.5], [0.5, "a"], None):
        assert single.learn_one(X[0], y) == Outcome.UNSUPPORTED


WITH_ANOTHER_SET = """
import numpy as np, onlinegp as ogp
from onlinegp.engine import info
X = np.random.default_rng(0).normal(size=(200, 3))
trace = ogp.run(ogp.KRLST(budget=20, engine="native"), X, np.sin(X[:, 0]))
print(info()["instruction set"], trace.mean.tolist())
"""


@needs_native
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="other machines have one instruction set")
def test_instruction_sets_agree():
    """ONLINEGP_ISA may lower the instruction set; the numbers stay, but for the last digits."""
    found = {}
    for wanted in ("", "sse2"):
        environment = {**os.environ, "ONLINEGP_ISA": wanted}
        command = [sys.executable, "-c", WITH_ANOTHER_SET]
        output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        name, _, means = output.partition(" ")
        found[name] = json.loads(means)
    assert "sse2" in found
    for means in found.values():
        np.testing.assert_allclose(means, found["sse2"], rtol=1e-9, atol=1e-9)


@needs_native
def test_wrong_shapes_are_refused():
    recipe = Recipe(RBF(), Prior(0.5))
    engine = native(recipe, recipe.start(FEATURES))
    with pytest.raises(ValueError, match="columns"):
        engine.learn(np.zeros((3, 1)), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="row"):
        engine.learn(np.zeros((3, FEATURES)), np.zeros((2, 1)))
    with pytest.raises(ValueError, match="columns"):
        engine.predict(np.zeros((3, 1)))
