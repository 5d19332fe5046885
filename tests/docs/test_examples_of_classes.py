"""The examples in the docstrings of models do what they say."""

from __future__ import annotations

import doctest
import inspect

import pytest

import onlinegp
from onlinegp import kafbox
from onlinegp.models.estimator import Estimator

NAMES = {name: getattr(module, name) for module in (kafbox, onlinegp) for name in module.__all__}
CLASSES = {name: one for name, one in NAMES.items() if inspect.isclass(one)}
MODELS = [name for name, one in CLASSES.items() if issubclass(one, Estimator) and one is not onlinegp.OnlineRegressor]


@pytest.mark.parametrize("name", MODELS)
def test_examples_run(name):
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    for test in finder.find(CLASSES[name], name):
        assert runner.run(test).failed == 0
    assert runner.tries > 0


@pytest.mark.parametrize("name", [name for name in MODELS if name != "GPRegression"])
def test_the_catalogue_has_every_fact(name):
    """Cost, memory, equation and the meaning of the variance stand in the class; the documentation lists them."""
    model = CLASSES[name]
    assert "facts" in vars(model)  # its own, not those of a base class
    assert model.facts.cost
    assert model.facts.memory
    assert model.facts.equation
    assert model.facts.variance
