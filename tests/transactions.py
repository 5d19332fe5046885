"""Interruptions of models at any moment, and the law about what they leave: all layers with the same rows."""

from __future__ import annotations

import copy
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import onlinegp as ogp
from models import EVERY, stream
from onlinegp.engine import available
from onlinegp.models import undo

SOURCES = str(Path(ogp.__file__).parent)
ENGINES = ("native", "python") if available() else ("python",)
METHODS = ("learn", "run", "learn_one", "predict", "predict_one", "skip", "along", "now", "look", "correct")
CASES = [
    (name, engine)
    for name, model in EVERY.items()
    for engine in ENGINES
    if engine == ENGINES[0] or any(key.endswith("engine") for key in model.get_params())
]


class Injected(BaseException):
    """Raised where a signal might be heard; like KeyboardInterrupt, no `except Exception` catches it."""


def fresh(name: str, engine: str) -> Any:
    """Return a model of that name, all parts of which run on an engine; those with one of their own keep it."""
    model = copy.deepcopy(EVERY[name])
    params = model.get_params()
    return model.set_params(**{key: engine for key in params if key.endswith("engine") and params[key] == "auto"})


def contents(model: Any) -> dict[str, Any]:
    """Return all that a model has learned, flat; before learning, nothing."""
    dump = model.dump()
    return {} if dump is None else {**dump.pop("learned"), **dump}


def assert_equal(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert one.keys() == two.keys()
    for name, value in one.items():
        if name != "largest":  # which learning one sample at once does not follow
            assert np.array_equal(value, two[name]), name


def assert_prefix(model: Any, twin: Any, X: np.ndarray, y: np.ndarray) -> int:
    """The model is what `twin` becomes by learning the next rows, up to as many as the model has learned."""
    if not model.__sklearn_is_fitted__():
        assert not twin.__sklearn_is_fitted__()
        return 0
    before = twin.n_samples_seen_ if twin.__sklearn_is_fitted__() else 0
    count = model.n_samples_seen_
    assert before <= count <= len(X)
    if count > before:
        twin.partial_fit(X[before:count], y[before:count])
    if twin.__sklearn_is_fitted__():
        assert_equal(contents(model), contents(twin))
    else:
        assert count == 0
    return count


# Moments


@contextmanager
def small_pieces() -> Iterator[None]:
    """Let pieces, dumps and repeated calls come within some rows instead of a thousand."""
    first, rows = undo.FIRST, undo.MIN_DUMP_ROWS
    undo.FIRST, undo.MIN_DUMP_ROWS = 8, 20
    try:
        yield
    finally:
        undo.FIRST, undo.MIN_DUMP_ROWS = first, rows


def interrupted(call: Callable[[], Any], after: float) -> bool:
    """Make a call, and send a signal so many seconds later, which raises KeyboardInterrupt; return whether it did."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        call()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return False


class Events:
    """Counts calls and returns of functions of the package, and returns of compiled ones, in this thread.

    At these moments signals are heard. At the event number `at` an exception is raised.
    """

    def __init__(self, at: int | None = None) -> None:
        self.count, self.at = 0, at

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if frame.f_code.co_name == "<genexpr>":  # if it is not used up, Python ignores what is raised as it closes
            return
        if event != "c_call" and frame.f_code.co_filename.startswith(SOURCES):  # Python hears none before such a call
            self.count += 1
            if self.count == self.at:
                raise Injected(f"{frame.f_code.co_qualname}, {event}")

    def during(self, call: Callable[[], Any]) -> bool:
        """Make a call; return whether the exception came through."""
        sys.setprofile(self)
        try:
            call()
        except Injected:
            return True
        finally:
            sys.setprofile(None)
        return False


def _is_learner(one: Any) -> bool:
    return type(one).__module__.startswith("onlinegp.") and hasattr(one, "learn") and hasattr(one, "__dict__")


def layers(learner: Any) -> list[Any]:
    """Return a learner, the learners that it holds, and so on."""
    found, todo = [], [learner]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo += one.values()
        elif isinstance(one, list | tuple):
            todo += one
        elif _is_learner(one) and all(one is not other for other in found):
            found.append(one)
            todo += vars(one).values()
    return found


@contextmanager
def failing(layer: Any, method: str, call: int, *, after: bool) -> Iterator[None]:
    """Let a method of a learner raise at a call of this number, before it does anything or when it has done all."""
    original, calls = getattr(layer, method), 0

    def fail(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call and not after:
            raise Injected(method)
        answer = original(*arguments)
        if calls == call:
            raise Injected(method)
        return answer

    own = vars(layer).get(method)
    setattr(layer, method, fail)
    try:
        yield
    finally:
        vars(layer).pop(method)
        if own is not None:
            setattr(layer, method, own)


# What is interrupted


def learn_rows(model: Any, call: str, X: np.ndarray, y: np.ndarray) -> Callable[[], Any]:
    if call == "learn_one":
        return lambda: [model.learn_one(x, target) for x, target in zip(X, y, strict=True)]
    return lambda: getattr(model, call)(X, y)


def by_signals(name: str, engine: str, count: int, seed: int) -> int:
    """Interrupt a model so many times by signals at random moments, and check it each time; return how often it was."""
    rng, (X, y) = np.random.default_rng(seed), stream(160, seed=seed)
    heard = tries = 0
    while heard < count and tries < 20 * count:
        model, twin, seen = fresh(name, engine), fresh(name, engine), 0
        while seen < len(X) and heard < count:
            tries += 1
            call = str(rng.choice(["partial_fit", "run", "learn_one"]))
            rows = slice(seen, seen + int(rng.integers(1, 80)))
            began = perf_counter()
            learn_rows(copy.deepcopy(model), call, X[rows], y[rows])()
            took = perf_counter() - began
            heard += interrupted(learn_rows(model, call, X[rows], y[rows]), max(1e-6, float(rng.uniform(0.0, took))))
            seen = assert_prefix(model, twin, X, y)
    return heard


def by_events(name: str, engine: str, count: int, seed: int) -> int:
    """Raise an exception at so many random events of a call, and check what is left; return how often it was raised."""
    rng, (X, y) = np.random.default_rng(seed), stream(120, seed=seed)
    start = int(rng.integers(0, 45))
    first = fresh(name, engine)
    if start:
        first.partial_fit(X[:start], y[:start])
    raised = 0
    for i in range(count):
        call = ("partial_fit", "run", "learn_one")[i % 3]
        rows = slice(start, start + int(rng.integers(1, 60)))
        events = Events()
        events.during(learn_rows(copy.deepcopy(first), call, X[rows], y[rows]))
        model, twin = copy.deepcopy(first), copy.deepcopy(first)
        at = int(rng.integers(1, events.count + 1))
        raised += Events(at).during(learn_rows(model, call, X[rows], y[rows]))
        seen = assert_prefix(model, twin, X, y)
        model.partial_fit(X[seen:], y[seen:])
        if not twin.__sklearn_is_fitted__() or seen < len(X):
            assert assert_prefix(model, twin, X, y) == len(X)
    return raised


def by_layers(name: str, engine: str, seed: int) -> int:
    """Let each method of each layer raise at a random call of it; return how often one did."""
    rng, (X, y) = np.random.default_rng(seed), stream(70, seed=seed)
    first, raised = fresh(name, engine).partial_fit(X[:25], y[:25]), 0
    for number, layer in enumerate(layers(copy.deepcopy(first).learner)):
        for method in filter(lambda method, layer=layer: hasattr(layer, method), METHODS):
            model, twin = copy.deepcopy(first), copy.deepcopy(first)
            rows = slice(25, 25 + int(rng.integers(1, 40)))
            learn = learn_rows(model, str(rng.choice(["partial_fit", "run", "learn_one"])), X[rows], y[rows])
            with failing(layers(model.learner)[number], method, int(rng.integers(1, 4)), after=rng.random() < 0.5):
                try:
                    learn()
                except Injected:
                    raised += 1
            seen = assert_prefix(model, twin, X, y)
            assert assert_prefix(model.partial_fit(X[seen:], y[seen:]), twin, X, y) == len(X)
    return raised
