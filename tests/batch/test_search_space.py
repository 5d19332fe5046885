"""The search spaces of KAFBOX's algorithms: each has one, and all its values make models."""

from __future__ import annotations

import kafbox
import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.batch.search_space import WIDELY, Each, LengthScales, Times, search_of, suggested, typical_length_scale
from onlinegp.kernels import RBF, Linear

CLASSES = sorted({type(model) for model in kafbox.models().values()} - {ogp.Persistence}, key=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_each_searches_parameters_of_its_own_and_every_value_makes_a_model(cls):
    """Where one is tuned and the other is not, a comparison says nothing."""
    simple = cls(**suggested(cls, 2.0 * RBF((0.7, 1.5)), 0.05, 40)).get_params(deep=False)
    searched = {
        name: moves for name, moves in {**WIDELY, **search_of(cls).tried}.items() if name in cls.parameter_names()
    }
    assert np.prod([1 + len(moves) for moves in searched.values()]) >= 6
    for name, moves in searched.items():
        values = [move.of(simple[name]) for move in moves]
        assert len({repr(value) for value in [simple[name], *values]}) >= len(moves)
        for value in values:
            cls(**{**simple, name: value}).check()


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_what_is_suggested_goes_with_the_units_of_the_inputs(cls):
    """Inputs and length scales ten times as large: the same predictions, but for filters that are linear in x."""
    if {"kernel", "kernels", "length_scales"}.isdisjoint(cls.parameter_names()):
        pytest.skip("linear in x")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    one, other = (ogp.run(cls(**suggested(cls, RBF(0.7 * unit), 0.05, 40)), unit * X, y).mean for unit in (1.0, 10.0))
    if cls is ogp.kafbox.L2S:  # whose Gaussians have unit volume: `epsilon` and the shrinkage are in units of x
        assert np.corrcoef(one, other)[0, 1] > 0.5
    else:
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


def test_a_move_of_each_of_several_values():
    assert Each(Times(2.0)).of((1.0, 0.5)) == (2.0, 1.0)
    assert Each(LengthScales(2.0)).of([RBF(1.0), RBF(3.0)]) == (RBF(2.0), RBF(6.0))


def test_the_typical_length_scale():
    assert typical_length_scale(3.0 * RBF((0.5, 1e9))) == pytest.approx(0.5 * 2**0.5)
    assert typical_length_scale(Linear()) == 1.0
