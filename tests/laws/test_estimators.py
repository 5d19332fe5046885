"""Laws of the models made of parts, about what is inside them. Those of `test_every_model.py` hold for them too."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import onlinegp as ogp
from models import MODELS, stream
from onlinegp.engine import available
from onlinegp.recipes.beliefs import Isotropic, Prior
from onlinegp.recipes.contents import dump_state
from onlinegp.recipes.state import MATRICES

every = pytest.mark.parametrize("name", MODELS)


def fresh(name):
    return copy.deepcopy(MODELS[name])


@every
def test_before_learning_the_prediction_is_the_prior(name):
    model = fresh(name)
    recipe = model.recipe()
    X, _ = stream(5)
    mean, std = model.predict(X, return_std=True)
    assert np.array_equal(mean, np.zeros(5))
    prior = recipe.kernel.diag(X)
    assert (std**2 >= prior * (1 - 1e-12)).all()
    if hasattr(recipe.belief, "noise"):
        np.testing.assert_allclose(std**2, prior + recipe.belief.noise, rtol=1e-11)  # jitter


@every
def test_learning_a_point_reduces_its_error(name):
    X, y = stream(100)
    model = fresh(name).fit(X, y)
    new, _ = stream(20, seed=3)
    for x in new:
        surprising = model.predict_one(x) + 1.0
        learned = copy.deepcopy(model).learn_one(x, surprising)
        assert abs(surprising - learned.predict_one(x)) < 1.0


@every
def test_the_order_of_the_centers_does_not_matter(name):
    X, y = stream()
    model = fresh(name).fit(X[:80], y[:80])
    state = copy.deepcopy(model)._state
    order = np.random.default_rng(0).permutation(state.size)
    whitened = "L" in model._recipe.belief.tracks
    if state.L is not None:  # P L = L+ E with L+ lower triangular: u becomes E u
        E, R = np.linalg.qr(state.square("L")[order].T)
        signs = np.sign(np.diag(R))
        E, factor = E * signs, (R.T * signs)
        if whitened:
            state.b[:] = E.T @ state.b
        if state.S is not None:
            S = E.T @ state.square("S") @ E
            state.square("S")[:] = 0.5 * (S + S.T)
    for key in state.arrays():
        if key not in MATRICES and not (key == "alpha" and whitened):
            state.used(key)[:] = state.used(key)[order]
    if state.L is not None:
        state.square("L")[:] = np.tril(factor)
    permuted = fresh(name).load(model.dump() | {"learned": dump_state(state)})
    np.testing.assert_allclose(permuted.predict(X, True), model.predict(X, True), rtol=1e-9, atol=1e-10)
    permuted.partial_fit(X[80:], y[80:])
    model.partial_fit(X[80:], y[80:])
    np.testing.assert_allclose(permuted.predict(X, True), model.predict(X, True), rtol=1e-6, atol=1e-7)


@every
def test_variances_are_never_negative(name):
    X, y = stream()
    model = fresh(name)
    for i in range(0, 120, 20):
        model.partial_fit(X[i : i + 20], y[i : i + 20])
        _, std = model.predict(np.vstack([X, 1e3 * X]), return_std=True)
        assert (std > 0).all()
        assert np.linalg.eigvalsh(model.posterior_cov_).min() > -1e-9 * max(1.0, np.abs(model.posterior_cov_).max())


@every
def test_posterior_mean_is_the_prediction_at_the_centers(name):
    X, y = stream(60)
    model = fresh(name).fit(X, y)
    np.testing.assert_allclose(model.posterior_mean_, model.predict(model.centers_), rtol=1e-9, atol=1e-12)
    assert model.centers_.shape == (model.size_, 2)
    assert model.n_samples_seen_ == 60


def noise_variance(model) -> np.ndarray:
    """The variance of the noise at each center: a parameter, or what the step implies."""
    belief, C = model._recipe.belief, model.centers_
    kxx, k2 = model._recipe.kernel.diag(C), (model._recipe.kernel(C) ** 2).sum(axis=1)
    if isinstance(belief, Prior):  # step = 1 / (noise + k(x, x)), paper, eq. 16
        return np.maximum(1 / belief.step - kxx, 0.0)
    if isinstance(belief, Isotropic):  # step / (epsilon + |k|^2 + k(x, x)^2) = 1 / (noise + k(x, x) + |k|^2)
        return np.maximum((belief.epsilon + k2 + kxx**2) / belief.step - kxx - k2, 0.0)
    power = model._state.power if model._recipe.learn_power else 1.0  # a learned power scales the noise, too
    return np.full(len(C), power * belief.noise)


@pytest.mark.parametrize("engine", ["python", "native"])
@every
def test_the_posterior_covariance_at_the_centers_is_the_variance_there_without_the_noise(name, engine):
    if engine == "native" and not available():
        pytest.skip("the compiled engine was not built")
    model = fresh(name).set_params(engine=engine).fit(*stream(80))
    prior = model._recipe.kernel.diag(model.centers_)
    Sigma = np.diag(model.posterior_cov_)
    v = model.predict(model.centers_, True)[1] ** 2 - noise_variance(model)
    if getattr(model, "beta", None) == "auto":  # counts x as one center more: conservative by design
        assert (Sigma <= v + 1e-12).all()
        assert (v <= prior).all()
        assert (Sigma < v).any()
    else:
        np.testing.assert_allclose(Sigma, v, rtol=1e-9, atol=1e-11 * prior.max())  # jitter


@every
def test_two_outputs_share_the_dictionary_and_keep_their_own_weights(name):
    X, y = stream(60)
    both = fresh(name).fit(X, np.column_stack([y, y]))
    one = fresh(name).fit(X, y)
    mean, std = both.predict(X, return_std=True)
    assert mean.shape == std.shape == (60, 2)
    np.testing.assert_allclose(mean[:, 0], mean[:, 1], rtol=1e-12)
    np.testing.assert_allclose(mean[:, 0], one.predict(X), rtol=1e-9, atol=1e-12)
    assert both.alpha_.shape == (both.size_, 2)


@every
def test_buffers_do_not_grow_with_the_stream(name):
    X, y = stream(300)
    model = fresh(name).fit(X, y)
    state = model._state
    budget = model._recipe.budget
    assert state.capacity < 2 * state.size + 16 if budget is None else state.capacity <= max(budget + 1, 16)


@every
def test_parameters_go_in_and_out(name):
    model = fresh(name)
    params = model.get_params()
    assert params["kernel"] is model.kernel
    nested = [key for key in params if key.endswith("length_scale")]
    assert nested
    model.set_params(**{nested[0]: 0.123})
    assert model.get_params()[nested[0]] == 0.123
    with pytest.raises(ValueError, match="Valid parameters are"):
        model.set_params(nonsense=1)
    with pytest.raises(AttributeError, match="has not learned"):
        model.alpha_  # noqa: B018


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ogp.KLMS(step=0.0), "step must be positive"),
        (ogp.KLMS(step="fast"), "step must be a number"),
        (ogp.KLMS("rbf"), "kernel must be a kernel"),
        (ogp.QKLMS(radius=-1.0), "radius must be zero or more"),
        (ogp.KNLMS(coherence=1.5), "coherence must be greater than 0 and at most 1"),
        (ogp.KNLMS(epsilon=0.0), "epsilon must be positive"),
        (ogp.kafbox.NORMA(leak=3.0, step=0.5), "leak must be less than 1 / step"),
        (ogp.kafbox.NORMA(budget=0), "budget must be at least 1, got 0"),
        (ogp.BetaKLMS(beta="most"), "beta must be one of 'auto'"),
        (ogp.BetaKLMS(beta=np.nan), "beta must be finite"),
        (ogp.OnlineGP(noise=0.0), "noise must be positive"),
        (ogp.OnlineGP(budget=0), "budget must be at least 1, got 0. Use budget=None"),
        (ogp.KRLS(threshold=0.0), "threshold must be greater than 0"),
        (ogp.KRLST(forgetting=1.5), "forgetting must be greater than 0 and at most 1"),
        (ogp.KRLST(budget=2.5), "budget must be a whole number"),
        (ogp.KRLST(power="wild"), "power must be one of"),
        (ogp.kafbox.SWKRLS(noise=-1.0), "noise must be positive"),
        (ogp.kafbox.FBKRLS(engine="steam"), "engine must be one of"),
    ],
)
def test_bad_parameters_are_named(model, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(*stream(5))
