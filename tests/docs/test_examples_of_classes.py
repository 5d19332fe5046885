"""The examples in the docstrings of models do what they say."""

from __future__ import annotations

import doctest
import inspect

import pytest

import onlinegp

CLASSES = {name: one for name in onlinegp.__all__ if inspect.isclass(one := getattr(onlinegp, name))}
MODELS = [name for name, one in CLASSES.items() if issubclass(one, onlinegp.OnlineRegressor) and ">>>" in one.__doc__]


@pytest.mark.parametrize("name", MODELS)
def test_examples_run(name):
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    for test in finder.find(getattr(onlinegp, name), name):
        assert runner.run(test).failed == 0
    assert runner.tries > 0
