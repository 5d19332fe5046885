"""Laws that every estimator obeys."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import onlinegp as ogp
from models import MODELS, stream
from onlinegp.recipes.state import KINDS, MATRICES

every = pytest.mark.parametrize("name", MODELS)


def fresh(name):
    return copy.deepcopy(MODELS[name])


def assert_same_state(one, other):
    """Equal to the last bit, in what is in use."""
    a, b = one._state, other._state
    for name, kind in KINDS.items():
        if kind in ("integer", "number"):
            assert getattr(a, name) == getattr(b, name), name
    for name in a.arrays():
        assert np.array_equal(a.used(name), b.used(name)), name


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
def test_predicting_changes_nothing(name):
    model = fresh(name).fit(*stream())
    before = copy.deepcopy(model)
    X, _ = stream(30, seed=1)
    first = model.predict(X, return_std=True)
    model.predict_one(X[0], return_std=True)
    model.score(*stream(20, seed=2))
    assert_same_state(model, before)
    assert np.array_equal(first, model.predict(X, return_std=True))


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
def test_a_block_is_the_same_as_one_by_one(name):
    X, y = stream()
    block = fresh(name).partial_fit(X, y)
    one_by_one = fresh(name)
    for x, target in zip(X, y, strict=True):
        one_by_one.learn_one(x, target)
    assert_same_state(block, one_by_one)


@every
def test_run_predicts_then_learns(name):
    X, y = stream(60)
    trace = ogp.run(fresh(name), X, y)
    model = fresh(name)
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        mean, std = model.predict_one(x, return_std=True)
        model.learn_one(x, target)
        assert mean == pytest.approx(trace.mean[i], rel=1e-12, abs=1e-14)
        assert std == pytest.approx(trace.std[i], rel=1e-12)
        assert model.size_ == trace.size[i]
    expected = -0.5 * np.log(2 * np.pi * trace.std**2) - 0.5 * ((y - trace.mean) / trace.std) ** 2
    np.testing.assert_allclose(trace.log_density, expected, rtol=1e-12)
    again = ogp.run(fresh(name), X, y)
    y[:] = 0.0  # a trace keeps what came, whatever becomes of the caller's array
    np.testing.assert_array_equal(again.log_density, trace.log_density)


@every
@pytest.mark.parametrize("cut", [1, 17, 90])
def test_saving_and_continuing_is_the_same_as_going_on(name, cut, tmp_path):
    X, y = stream()
    uninterrupted = fresh(name).partial_fit(X, y)
    model = fresh(name).partial_fit(X[:cut], y[:cut])
    model.save(tmp_path / "model.ogp")
    for other in (
        ogp.load(tmp_path / "model.ogp"),
        ogp.from_bytes(model.to_bytes()),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
    ):
        assert type(other) is type(model)
        other.partial_fit(X[cut:], y[cut:])
        assert_same_state(other, uninterrupted)
        assert np.array_equal(other.predict(X, return_std=True), uninterrupted.predict(X, return_std=True))


@every
def test_a_copy_with_the_same_parameters_learns_the_same(name):
    X, y = stream()
    model = fresh(name).fit(X, y)
    twin = type(model)(**model.get_params(deep=False))
    assert repr(twin) == repr(model)
    assert_same_state(twin.fit(X, y), model)
    assert_same_state(model.fit(X, y), twin)  # fit forgets what was there


@every
def test_the_order_of_the_centers_does_not_matter(name):
    X, y = stream()
    model = fresh(name).fit(X[:80], y[:80])
    permuted = copy.deepcopy(model)
    state = permuted._state
    order = np.random.default_rng(0).permutation(state.size)
    if state.L is not None:  # P L = L+ E with L+ lower triangular: u becomes E u
        E, R = np.linalg.qr(state.square("L")[order].T)
        signs = np.sign(np.diag(R))
        E, factor = E * signs, (R.T * signs)
        state.b[:] = E.T @ state.b
        if state.S is not None:
            S = E.T @ state.square("S") @ E
            state.square("S")[:] = 0.5 * (S + S.T)
    for key in state.arrays():
        if key not in MATRICES and not (key == "alpha" and state.L is not None):
            state.used(key)[:] = state.used(key)[order]
    if state.L is not None:
        state.square("L")[:] = np.tril(factor)
    permuted._adopt(permuted._recipe, state, single=True)
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


BAD = {
    "a NaN": (lambda X, y: (np.where(np.arange(X.size).reshape(X.shape) == 3, np.nan, X), y), "NaN"),
    "an infinity": (lambda X, y: (X, np.where(np.arange(y.size) == 2, np.inf, y)), "inf"),
    "a huge value": (lambda X, y: (X * 1e200, y), "1e150"),
    "text": (lambda X, y: (X.astype(object) + 0.0, ["1", "two", "3", "4", "5"]), "'1'|two"),
    "the wrong width": (lambda X, y: (np.hstack([X, X]), y), "4 features.*2 features"),
    "one dimension": (lambda X, y: (X[:, 0], y), "two dimensions"),
    "nothing": (lambda X, y: (X[:0], y[:0]), "at least one sample"),
    "no target": (lambda X, y: (X, None), "y must be given"),
    "unequal lengths": (lambda X, y: (X, y[:-1]), "5 and 4"),
    "ragged rows": (lambda X, y: ([[1.0, 2.0], [3.0]], y[:2]), "X must"),
    "complex numbers": (lambda X, y: (X + 1j, y), "[Cc]omplex"),
    "two outputs instead of one": (lambda X, y: (X, np.column_stack([y, y])), r"\(n,\)"),
}


@every
@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused_and_changes_nothing(name, what):
    model = fresh(name).fit(*stream(40))
    before = copy.deepcopy(model)
    spoil, message = BAD[what]
    X, y = spoil(*stream(5, seed=4))
    with pytest.raises((ValueError, TypeError), match=message):
        model.partial_fit(X, y)
    with pytest.raises((ValueError, TypeError), match=message):
        ogp.run(model, X, y)
    assert_same_state(model, before)


@every
def test_bad_single_samples_are_refused_and_change_nothing(name):
    model = fresh(name).fit(*stream(40))
    before = copy.deepcopy(model)
    for x, y in (
        ([np.nan, 0.0], 0.0),
        ([0.0, 0.0], np.inf),
        ([0.0], 0.0),
        ([0.0, 0.0, 0.0], 0.0),
        ([], 0.0),
        (["a", "b"], 0.0),
        ([0.0, 0.0], "a"),
        ([0.0, 0.0], None),
        (None, 0.0),
        ([0.0, 1e300], 0.0),
    ):
        with pytest.raises((ValueError, TypeError), match=r"must|contains|features"):
            model.learn_one(x, y)
    with pytest.raises(ValueError, match="NaN"):
        model.predict_one([np.nan, 0.0])
    with pytest.raises(ValueError, match="at least one sample"):
        model.predict(np.empty((0, 2)))
    assert_same_state(model, before)


@every
def test_large_but_finite_values_are_handled(name):
    X, y = stream(40)
    model = fresh(name).fit(X, y)
    model.learn_one([1e140, -1e140], 1e3)
    mean, std = model.predict(np.vstack([X, [[1e140, 0.0]]]), return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


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


@every
def test_score_is_r_squared(name):
    X, y = stream(100)
    model = fresh(name).fit(X, y)
    expected = 1 - ((y - model.predict(X)) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert model.score(X, y) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ogp.KLMS(step=0.0), "step must be positive"),
        (ogp.KLMS(step="fast"), "step must be a number"),
        (ogp.KLMS("rbf"), "kernel must be a kernel"),
        (ogp.QKLMS(radius=-1.0), "radius must be zero or more"),
        (ogp.KNLMS(coherence=1.5), "coherence must be greater than 0 and at most 1"),
        (ogp.KNLMS(epsilon=0.0), "epsilon must be positive"),
        (ogp.NORMA(leak=3.0, step=0.5), "leak must be less than 1 / step"),
        (ogp.NORMA(budget=0), "budget must be at least 1, got 0"),
        (ogp.BetaKLMS(beta="most"), "beta must be one of 'auto'"),
        (ogp.BetaKLMS(beta=np.nan), "beta must be finite"),
        (ogp.OnlineGP(noise=0.0), "noise must be positive"),
        (ogp.OnlineGP(budget=0), "budget must be at least 1, got 0. Use budget=None"),
        (ogp.KRLS(threshold=0.0), "threshold must be greater than 0"),
        (ogp.KRLST(forgetting=1.5), "forgetting must be greater than 0 and at most 1"),
        (ogp.KRLST(budget=2.5), "budget must be a whole number"),
        (ogp.KRLST(power="wild"), "power must be one of"),
        (ogp.SWKRLS(noise=-1.0), "noise must be positive"),
        (ogp.FBKRLS(engine="steam"), "engine must be one of"),
    ],
)
def test_bad_parameters_are_named(model, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(*stream(5))


def test_a_trace_of_one_output_of_several():
    X, y = stream(40)
    both = ogp.run(ogp.KRLST(budget=10), X, np.stack([y, -2.0 * y], axis=1))
    for i in range(2):
        one = both.output(i)
        for name in ("mean", "std", "y", "log_density"):
            np.testing.assert_array_equal(getattr(one, name), getattr(both, name)[:, i])
    alone = ogp.run(ogp.KRLST(budget=10), X, y)
    np.testing.assert_allclose(alone.std, both.output(0).std, rtol=1e-12)
