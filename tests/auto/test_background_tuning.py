"""Tuning in the background: a result is adopted at the same row on any machine, and nothing is left behind."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter, sleep

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp import background
from onlinegp.auto import composed
from onlinegp.auto.members import Parts
from onlinegp.background import child
from onlinegp.engine.compiled import outer
from onlinegp.models.combined.base import innermost_learner


def raw(n: int = 300, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and a target in odd units, far from zero."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 1000, n), rng.normal(5e-3, 1e-3, n)])
    y = 70.0 + 8.0 * np.sin(X[:, 0] / 150.0) + 2000.0 * X[:, 1] + rng.normal(0.0, 1.0, n)
    return X, y


BEHIND = {"rows": 60, "earliest": 20, "tuning_delay": 0.5, "budget": 30}


def test_a_tuning_in_the_background_is_adopted_at_the_same_row_on_a_slow_and_on_a_fast_stream():
    X, y = raw(120)
    trace = ogp.Auto(**BEHIND).run(X, y)
    slow_one = ogp.Auto(**BEHIND)
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        if i:
            mean, std = slow_one.predict_one(x, return_std=True)
            assert (mean, std) == (trace.mean[i], trace.std[i])
        slow_one.learn_one(x, target)
        if i in (20, 40, 62):
            sleep(0.3)  # the tuning may be ready long before it is adopted
    at_once = ogp.Auto(**BEHIND).fit(X, y)
    np.testing.assert_array_equal(at_once.predict(X, return_std=True), slow_one.predict(X, return_std=True))


def changing(n: int, at: int) -> tuple[np.ndarray, np.ndarray]:
    """A function that is replaced by another one, with a few outliers."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-2.0, 2.0, (n, 2))
    y = np.where(np.arange(n) < at, np.sin(2.0 * X[:, 0]), 5.0 * np.cos(3.0 * X[:, 1])) + 0.1 * rng.normal(size=n)
    return X, y + np.where(rng.uniform(size=n) < 0.02, 40.0, 0.0)


@pytest.mark.parametrize("behind", [True, False])
def test_a_member_is_tuned_by_the_last_model_alone(behind, monkeypatch):
    """Before it is adopted, it learns the change and tunes the member as its rows come, however fast they come."""
    X, y = changing(900, 310)
    asked = []
    retuning = composed.Retuning

    def ask(parts, X, Y, **options):
        asked.append(len(X))
        return retuning(parts, X, Y, **options)

    monkeypatch.setattr(composed, "Retuning", ask)
    options = {"rows": 300, "earliest": 100, "budget": 20, "members": ["residual-linear", "local-recent", "fresh"]}
    model = ogp.Auto(**options, tuning_delay=1.0 if behind else 0.0)
    trace, slow_one = copy.deepcopy(model).run(X, y), copy.deepcopy(model)
    assert len(asked) == 1
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        if i:
            assert slow_one.predict_one(x, return_std=True) == (trace.mean[i], trace.std[i])
        slow_one.learn_one(x, target)
        if behind and i in (420, 500):
            sleep(1.0)  # so that it catches up, and does not find all rows at once
    assert asked[1:] == asked[:1]
    assert "retuned" in slow_one.weights_


@pytest.mark.parametrize("since", [160, 249, 255, 299, 301])
def test_saved_while_a_member_is_tuned_it_is_adopted_at_the_same_row(since):
    X, y = changing(700, 200)
    options = {"rows": 150, "earliest": 150, "tuning_delay": 0.0, "budget": 20}
    model = ogp.Auto(**options, members=["residual-linear", "local-recent", "fresh"]).fit(X[:260], y[:260])
    mixture = innermost_learner(outer(model.learner.inner))
    n = 260 - mixture.detector.age + since
    model.partial_fit(X[260:n], y[260:n])
    loaded, copied = ogp.from_bytes(model.to_bytes()), copy.deepcopy(model)
    expected = model.run(X[n:], y[n:]).mean
    np.testing.assert_array_equal(loaded.run(X[n:], y[n:]).mean, expected)
    np.testing.assert_array_equal(copied.run(X[n:], y[n:]).mean, expected)
    assert "retuned" in model.weights_
    assert loaded.to_bytes() == copied.to_bytes() == model.to_bytes()


def test_rows_before_the_first_tuning_are_predicted_by_members_that_need_none():
    X, y = raw(30)
    model = ogp.Auto(**BEHIND)
    model.partial_fit(X[:10], y[:10])
    assert set(model.weights_) == {"linear", "persistence", "local", "local-linear"}
    model.partial_fit(X[10:30], y[10:30])
    assert "krlst" in model.weights_


@pytest.mark.parametrize("n", [12, 25, 45, 70])
def test_saved_while_a_tuning_is_under_way_it_is_adopted_at_the_same_row(n):
    X, y = raw(120)
    model = ogp.Auto(**BEHIND).fit(X[:n], y[:n])
    loaded, copied = ogp.from_bytes(model.to_bytes()), copy.deepcopy(model)
    expected = model.run(X[n:], y[n:]).mean
    np.testing.assert_array_equal(loaded.run(X[n:], y[n:]).mean, expected)
    np.testing.assert_array_equal(copied.run(X[n:], y[n:]).mean, expected)


def test_a_tuning_that_fails_in_the_background_fails_where_it_is_adopted(monkeypatch):
    X, y = raw(90)
    calls = []

    def compose(self, *rows):
        calls.append(len(rows[1]))
        raise MemoryError("no memory")

    monkeypatch.setattr(Parts, "compose_quickly", compose)
    monkeypatch.setattr(background, "_child", None)  # which has the original
    model = ogp.Auto(**BEHIND).partial_fit(X[:29], y[:29])
    with pytest.raises(MemoryError):
        model.learn_one(X[29], y[29])
    assert model.n_samples_seen_ == 29
    monkeypatch.undo()
    model.partial_fit(X[29:], y[29:])
    np.testing.assert_array_equal(model.predict(X), ogp.Auto(**BEHIND).fit(X, y).predict(X))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_does_what_was_under_way_itself():
    X, y = raw(120)
    model = ogp.Auto(**BEHIND).fit(X[:25], y[:25])
    expected = copy.deepcopy(model).fit(X, y).predict(X).tobytes()
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writer, model.partial_fit(X[25:], y[25:]).predict(X).tobytes())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert pipe.read() == expected
    os.waitpid(child, 0)


def test_a_script_ends_while_a_tuning_is_under_way():
    script = "import numpy as np, onlinegp as ogp\nX = np.random.default_rng(0).normal(size=(700, 8))\n"
    script += "ogp.Auto(earliest=640).fit(X, X[:, 0])\nprint('done')"
    began = perf_counter()
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")
    assert perf_counter() - began < 30


def test_the_child_does_what_this_process_would_do():
    """It tunes like the thread; without it, or where it cannot be told what to do, results are the same."""
    X, y = raw(120)
    expected = ogp.Auto(**BEHIND).fit(X, y).predict(X, return_std=True)
    background.prepare()
    deadline = perf_counter() + 30
    while background._child is None and perf_counter() < deadline:
        sleep(0.05)
    child = background._child
    for _ in range(2):
        model = ogp.Auto(**BEHIND)
        for x, target in zip(X, y, strict=True):
            model.learn_one(x, target)
            sleep(0.002)
        np.testing.assert_array_equal(model.predict(X, return_std=True), expected)
        if child is not None:
            child.kill()  # the thread goes on alone


def test_no_row_waits_for_an_import():
    code = """if True:
        import numpy as np, onlinegp as ogp, sys
        model, before = ogp.Auto(), set(sys.modules)
        rng = np.random.default_rng(0)
        for x in rng.normal(size=(30, 2)):
            if model.__sklearn_is_fitted__():
                model.predict_interval(x[None])
            model.learn_one(x, float(np.exp(x[0])))
        print(*set(sys.modules) - before)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")


def submit_another(progress) -> bool:
    return background.submit(len, then=bool) is not None and background._thread is None


def test_the_child_starts_no_child():
    """A candidate that finds a change in its rows tunes a member; in the child it does so itself."""
    code = """if True:
        import time
        from onlinegp import background
        from test_background_tuning import submit_another
        job = background.submit(submit_another, then=bool)
        while not job.ready:  # else it would be done here
            time.sleep(0.01)
        print(job.result(print))
    """
    here = Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


@pytest.mark.parametrize("rows", [300, 450])
def test_a_change_in_the_rows_of_the_last_tuning_is_followed_by_the_child(rows):
    """It tunes the member itself, or leaves that to this process if the member is adopted later."""
    X, y = changing(950, 100)
    options = {"rows": rows, "earliest": rows, "budget": 20, "members": ["residual-linear", "local-recent", "fresh"]}
    model, alone = ogp.Auto(**options), ogp.Auto(**options | {"tuning_delay": 0.0})
    background.prepare()
    for part in np.array_split(np.arange(950), 100):
        model.partial_fit(X[part], y[part])
        sleep(0.02)
    assert "retuned" in model.weights_
    np.testing.assert_array_equal(model.predict(X), alone.fit(X, y).predict(X))


def test_the_child_imports_what_it_will_call_before_it_is_ready():
    code = """if True:
        import onlinegp as ogp, time
        from onlinegp import background
        ogp.Auto().learn_one([1.0], 2.0)
        while background._child is None:
            time.sleep(0.01)
        print(background._child.args[-1])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "onlinegp.auto.members\n", "")
    command = [sys.executable, "-P", background.CHILD, "this"]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=60)
    assert b"ready" in done.stdout
    assert b"Zen" not in done.stdout
    assert b"Zen" in done.stderr  # what a module prints does not mix with results


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread has no priority of its own")
def test_the_child_imports_at_a_low_priority_and_tunes_at_the_priority_of_its_parent(monkeypatch):
    """The first rows of a live stream waited for a processor while the child imported its modules."""
    own, found = os.getpriority(os.PRIO_PROCESS, 0), []
    monkeypatch.setattr(child, "import_module", lambda name: found.append(os.getpriority(os.PRIO_PROCESS, 0)))
    child.import_at_low_priority("this")
    assert found == [min(own + child.LOW, 19)]
    assert os.getpriority(os.PRIO_PROCESS, 0) == own


def test_the_interpreter_ends_while_a_tuning_is_under_way():
    """The thread stops before the interpreter is gone; compiled code would abort the process otherwise."""
    code = """if True:
        import numpy as np, onlinegp as ogp
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 4))
        model = ogp.Auto()
        for x in X[:161]:
            model.learn_one(x, float(np.sin(x[0]) + x[1]))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
