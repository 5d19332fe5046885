"""The likelihood of a Gaussian process over time, compiled with its gradient, and the fit by it."""

import numpy as np
import pytest

from onlinegp.models.temporal import structure as module
from onlinegp.models.temporal.structure import MOST_STATES, Structure
from onlinegp.native_module import available, native

needs_compiled = pytest.mark.skipif(not available(), reason="the compiled module was not built")


def rows(n, inputs, share_known, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    z = rng.normal(size=n).cumsum() + 3 * np.sin(2 * np.pi * t / 12) + rng.standard_t(2, size=n)
    known = rng.random(n) < share_known
    known[0] = True
    return np.column_stack([t[known], rng.normal(size=(n, inputs))[known]]).astype(float), z[known]


@needs_compiled
@pytest.mark.parametrize("share_known", [1.0, 0.7])
@pytest.mark.parametrize("drift", [False, True])
@pytest.mark.parametrize(("seasons", "inputs"), [((), 0), ((12.0,), 2), ((12.0, 36.0), 0), ((52.18,), 0)])
def test_the_compiled_likelihood_and_its_gradient_are_those_of_the_readable_filter(seasons, inputs, drift, share_known):
    X, z = rows(120, inputs, share_known, seed=len(seasons) + inputs)
    one = Structure(seasons, drift, 4.0, inputs)
    mean, deviation = one.prior
    u = np.random.default_rng(1).normal(scale=0.5, size=len(mean))
    value, gradient, sigma2 = one.objective(u, X, z, 20)
    expected, expected_sigma2 = one.likelihood(mean + deviation * u, X, z, 20)
    assert value == pytest.approx(expected + 0.5 * u @ u, rel=1e-11)
    assert sigma2 == pytest.approx(expected_sigma2, rel=1e-11)

    def posterior(u):
        return one.likelihood(mean + deviation * u, X, z, 20)[0] + 0.5 * u @ u

    steps = 1e-5 * np.eye(len(u))
    differences = [(posterior(u + step) - posterior(u - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-5)


@needs_compiled
@pytest.mark.parametrize("inputs", [60, 150, 300])
def test_many_inputs_are_fitted_too(inputs):
    X, z = rows(90, inputs, 1.0, seed=0)
    one = Structure((), False, 4.0, inputs)
    table = one.table(one.prior[0])
    if one.states > MOST_STATES:
        with pytest.raises(ValueError, match="too many states"):
            native().temporal_likelihood(table, X, z, 20, 2.0)
    else:
        assert native().temporal_likelihood(table, X, z, 20, 2.0)[0] == pytest.approx(
            one.likelihood(one.prior[0], X, z, 20)[0], rel=1e-9
        )


@needs_compiled
def test_a_fit_without_compiled_code_finds_the_same_parameters(monkeypatch):
    X, z = rows(80, 0, 1.0, seed=3)
    one = Structure((12.0,), True, 4.0)
    compiled, sigma2 = one.fit(X, z, 12)
    monkeypatch.setattr(module, "available", lambda: False)
    readable, readable_sigma2 = one.fit(X, z, 12)
    np.testing.assert_allclose(compiled, readable, rtol=0.01, atol=0.01)
    assert sigma2 == pytest.approx(readable_sigma2, rel=0.01)


def test_a_fit_climbs_to_where_the_gradient_vanishes():
    X, z = rows(150, 0, 1.0, seed=4)
    one = Structure((12.0,), False, 4.0)
    theta, _ = one.fit(X, z, 60)
    _, gradient, _ = one.objective((theta - one.prior[0]) / one.prior[1], X, z, one.states)
    assert np.abs(gradient).max() < 0.5
    again, _ = one.fit(X, z, 2, theta)
    np.testing.assert_allclose(again, theta, atol=0.2)
