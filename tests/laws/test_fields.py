"""Readable and compiled learners have the same fields: the names, their order, kinds and shapes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from models import EVERY, ONE_OUTPUT, stream
from onlinegp.engine import available
from onlinegp.engine.compiled import nodes, outer, readable
from onlinegp.engine.compiled_leaf import Compiled
from onlinegp.models.base import OnlineRegressor

pytestmark = pytest.mark.skipif(not available(), reason="the compiled engine was not built")
every = pytest.mark.parametrize("name", EVERY)


def leaves(model: OnlineRegressor) -> Iterator[Compiled]:
    """Yield the compiled leaves of a model that has learned."""
    return (one for one in nodes(outer(model.learner)) if isinstance(one, Compiled))


def schema(contents: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return the fields in order, each with its kind and its shape."""
    return [(name, np.asarray(value).dtype.kind, np.shape(value)) for name, value in contents.items()]


@every
@pytest.mark.parametrize("outputs", [1, 2])
def test_compiled_leaves_list_the_fields_of_their_readable_twins(name: str, outputs: int) -> None:
    if outputs > 1 and name in ONE_OUTPUT:
        pytest.skip("it predicts one series")
    X, y = stream()
    Y = y if outputs == 1 else np.column_stack([y, -0.5 * y])
    model = copy.deepcopy(EVERY[name]).fit(X, Y)
    for leaf in leaves(model):
        contents, twin = leaf.dump(), readable(leaf)
        assert schema(contents) == schema(twin.dump())
        for field, value in twin.dump().items():
            assert np.array_equal(value, contents[field]), field


@every
def test_a_leaf_that_has_learned_nothing_is_its_readable_twin(name: str) -> None:
    learner = copy.deepcopy(EVERY[name]).start(2, 1)
    for leaf in (one for one in nodes(learner) if isinstance(one, Compiled)):
        before = leaf.dump()
        leaf.predict(np.zeros((3, leaf.features)))  # for which the compiled learner is made
        after = leaf.dump()
        assert schema(after) == schema(before)
        assert all(np.array_equal(after[field], value) for field, value in before.items())
