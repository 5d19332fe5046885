"""Laws of models made of models, over random trees of them: `random_trees.py` draws them, a failure names its tree."""

from __future__ import annotations

import copy
import pickle
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import numpy as np
import pytest
from agreement import assert_close, assert_one_by_one, deviation, observed

import onlinegp as ogp
import transactions
from onlinegp.engine import available
from random_trees import Case, draw
from transactions import Events, Injected, assert_equal, assert_prefix, contents, failing, layers, learn_rows

QUICK, ALL = 500, 10_000  # trees in the suite, and in `make attack`: about 35 minutes of one core
TOLERANCE = 1e-9  # of engines, relative to the largest value; nearly all trees agree to 1e-13
NUDGE = 1e-12  # of y, by which a tree at a tie is known

trees = pytest.mark.parametrize(
    "seeds",
    [range(first, first + 20) for first in range(0, QUICK, 20)]
    + [pytest.param(range(first, min(ALL, first + 240)), marks=pytest.mark.attack) for first in range(QUICK, ALL, 240)],
    ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}",
)


@contextmanager
def named(case: Case) -> Iterator[None]:
    """Add the tree to the message of an exception."""
    try:
        yield
    except BaseException as error:
        error.add_note(str(case))
        raise


def exact(case: Case, share: int) -> str:
    """Return the engine of a law about bits: the readable one for a tenth of the seeds, chosen by `share`."""
    inexact = re.search(r"\b(Kalman|LMS)\(", repr(case.model))  # see `INEXACT` in test_every_model.py
    return "python" if case.seed % 10 == share and not inexact else "auto"


# Engines


def at_a_tie(case: Case, found: dict[str, np.ndarray]) -> bool:
    """Whether a decision hangs on the last digits of y: if they change, what is predicted changes as much."""
    nudged = case.y * (1.0 + NUDGE * np.random.default_rng(case.seed).choice([-1.0, 1.0], case.y.shape))
    return deviation(found, observed(case.with_engine("auto"), case.X, nudged)) > TOLERANCE


@pytest.mark.skipif(not available(), reason="the compiled engine was not built")
@trees
def test_engines_agree(seeds):
    """Decisions first, which are in the sizes, then numbers; but for trees at a tie, which are rare."""
    ties = 0
    for case in map(draw, seeds):
        with named(case):
            found, expected = (observed(case.with_engine(engine), case.X, case.y) for engine in ("auto", "python"))
            if deviation(expected, found) > TOLERANCE and at_a_tie(case, found):
                ties += 1
                continue
            assert_close(found, expected, TOLERANCE)
    assert ties <= len(seeds) // 20


# Pieces


@trees
def test_one_by_one_is_the_same_as_a_block(seeds):
    for case in map(draw, seeds):
        with named(case):
            engine = exact(case, 0)
            assert_one_by_one(case.with_engine(engine), case.with_engine(engine), case.X, case.y)


COPIES = {
    "file": lambda model, path: (model.save(path), ogp.load(path))[1],
    "bytes": lambda model, _: ogp.from_bytes(model.to_bytes()),
    "dump": lambda model, _: model.unfitted().load(model.dump()),
    "copy": lambda model, _: copy.deepcopy(model),
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
}


@trees
def test_pieces_with_a_copy_after_each_are_the_same_as_a_block(seeds, tmp_path):
    """Saved anywhere, in any way, and gone on with: the bits of not saving."""
    for case in map(draw, seeds):
        with named(case):
            engine, X, y = exact(case, 1), case.X, case.y
            rng, block, model = np.random.default_rng(case.seed), case.with_engine(engine), case.with_engine(engine)
            expected = observed(block, X, y, intervals=False)
            cuts = [0, *np.sort(rng.choice(np.arange(1, len(X)), len(COPIES), replace=False)).tolist(), len(X)]
            ways, found = [*rng.permutation(list(COPIES)), "copy"], []
            for way, start, stop in zip(ways, cuts[:-1], cuts[1:], strict=True):
                found.append(observed(model, X[start:stop], y[start:stop], intervals=False))
                before, model = model, COPIES[way](model, tmp_path / "model.ogp")
                assert_equal(contents(model), contents(before))
            for name, values in expected.items():
                np.testing.assert_array_equal(np.concatenate([part[name] for part in found]), values, err_msg=name)
            assert_equal(contents(model), contents(block))


# Failures


def calls_within(model, learn) -> list[tuple[int, str, int]]:
    """Learn, and return the calls that layers of a model got: number of the layer, method, number of the call."""
    found: list[tuple[int, str]] = []

    def noted(number: int, method: str, original):
        return lambda *arguments: (found.append((number, method)), original(*arguments))[1]

    for number, layer in enumerate(layers(model.learner)):
        for method in filter(lambda method, layer=layer: hasattr(layer, method), transactions.METHODS):
            setattr(layer, method, noted(number, method, getattr(layer, method)))
    learn()
    return [(number, method, found[: i + 1].count((number, method))) for i, (number, method) in enumerate(found)]


def disturbed(rng, first, call, X, y) -> tuple[object, bool]:
    """Learn rows by a copy of a model, with a failure, an exception or a signal; return it, and whether one came."""
    model, rehearsal, kind = copy.deepcopy(first), copy.deepcopy(first), rng.choice(["layer", "event", "signal"])
    learn, rehearse = learn_rows(model, call, X, y), learn_rows(rehearsal, call, X, y)
    calls = calls_within(rehearsal, rehearse) if kind == "layer" or not hasattr(signal, "setitimer") else []
    if calls:  # none where the whole tree is compiled
        layer, method, number = calls[int(rng.integers(len(calls)))]
        with failing(layers(model.learner)[layer], method, number, after=bool(rng.random() < 0.5)):
            try:
                learn()
            except Injected:
                return model, True
        return model, False
    if kind in ("event", "layer"):
        events = Events()
        events.during(rehearse)
        return model, Events(int(rng.integers(1, events.count + 1))).during(learn)
    began = perf_counter()
    rehearse()
    return model, transactions.interrupted(learn, max(1e-6, rng.uniform(0.0, perf_counter() - began)))


@trees
def test_a_failing_call_leaves_all_layers_with_the_same_rows(seeds):
    came = 0
    for case in map(draw, seeds):
        with named(case), transactions.small_pieces():
            rng, X, y = np.random.default_rng(case.seed), case.X, case.y
            start, call = int(rng.integers(1, len(X) - 10)), str(rng.choice(["partial_fit", "run", "learn_one"]))
            stop = min(len(X), start + int(rng.integers(1, 30)))
            before = case.with_engine(exact(case, 2)).partial_fit(X[:start], y[:start])
            model, raised = disturbed(rng, before, call, X[start:stop], y[start:stop])
            twin, came = copy.deepcopy(before), came + raised
            seen = assert_prefix(model, twin, X, y)
            assert raised or seen == stop
            if seen < len(X):
                model.partial_fit(X[seen:], y[seen:])
                assert assert_prefix(model, twin, X, y) == len(X)
    assert came >= len(seeds) // 4  # of the signals, some come too late
