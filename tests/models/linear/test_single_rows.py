"""One row at a time, the models of fixed memory take plain numbers at once: with all checks, and the bits of blocks."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.engine import available
from onlinegp.kernels import RBF
from onlinegp.learner import Outcome
from onlinegp.river import RiverRegressor

pytestmark = pytest.mark.skipif(not available(), reason="not built")

FIXED = {
    "LMS": ogp.LMS(step=0.04),
    "NLMS": ogp.NLMS(step=0.7, intercept=False),
    "ProbLMS": ogp.kafbox.ProbLMS(noise=0.09, drift=1e-3, forgetting=0.99),
    "Kalman": ogp.Kalman(noise=0.09, drift=1e-2),
    "Kalman-still": ogp.Kalman(noise=0.09, drift=0.0),
    "LinearRLS": ogp.LinearRLS(noise=0.09),
    "LinearRLS-forgets": ogp.LinearRLS(noise=0.09, forgetting=0.98, intercept=False),
    "Persistence": ogp.Persistence(),
    "RFFKLMS": ogp.kafbox.RFFKLMS(RBF(1.0), step=0.4, basis=101),
}
every = pytest.mark.parametrize("name", FIXED)


def rows(n=80, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[::7, 1] = 0.0
    return X, 0.5 + X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)


def fitted(name, *data):
    return FIXED[name].unfitted().fit(*(data or rows()))


def assert_same(one, other):
    mine, theirs = one.dump()["learned"], other.dump()["learned"]
    assert mine.keys() == theirs.keys()
    for key, value in mine.items():
        np.testing.assert_array_equal(value, theirs[key], err_msg=key)


@every
@pytest.mark.parametrize("form", [np.asarray, np.float32, list, tuple, lambda x: np.repeat(x, 2)[::2]])
def test_single_rows_have_the_bits_of_a_run(name, form):
    X, y = rows(120)
    X = X.astype(np.float32).astype(np.float64) if form is np.float32 else X
    whole, single = FIXED[name].unfitted(), FIXED[name].unfitted()
    trace = ogp.run(whole, X, y)
    for i, x in enumerate(X):
        predicted = single.predict_one(form(x), return_std=True)
        assert predicted == (trace.mean[i], trace.std[i])
        assert single.predict_one(form(x)) == trace.mean[i]
        single.learn_one(form(x), float(y[i]))
    assert_same(single, whole)
    np.testing.assert_array_equal(single.predict(X, return_std=True), whole.predict(X, return_std=True))


@every
def test_plain_rows_are_taken_at_once(name):
    model = fitted(name)
    assert model.learner.learn_one(np.zeros(6), 0.1) != Outcome.UNSUPPORTED
    assert model.learner.predict_one([0.0] * 6) is not None


def test_a_row_that_takes_long_lets_other_threads_run():
    """400^3 rotations for the drift: not with the interpreter's lock in hand."""
    X, y = rows(3, d=400)
    model = ogp.Kalman(drift=1e-3).fit(X, y)
    assert model.learner.learn_one(X[0], 0.1) == Outcome.UNSUPPORTED
    assert model.learner.predict_one(X[0]) is None
    assert model.learn_one(X[0], 0.1).n_samples_seen_ == 4


def checked(model):
    """The same model without the quick way: its rows go through all checks."""
    slow = copy.deepcopy(model)
    slow.learner.learn_one = lambda x, y: None
    slow.learner.predict_one = lambda x: None
    return slow


X0 = [0.0] * 6
BAD = {
    "NaN": ([*X0[1:], np.nan], 0.0),
    "infinity": (np.array([*X0[1:], np.inf]), 0.0),
    "huge": ([*X0[1:], 1e200], 0.0),
    "narrow": (X0[1:], 0.0),
    "wide": ([*X0, 0.0], 0.0),
    "empty": ([], 0.0),
    "text": ("sixsix", 0.0),
    "texts": (["a"] * 6, 0.0),
    "None": (None, 0.0),
    "a None": ([None, *X0[1:]], 0.0),
    "names": (dict(zip("abcdef", X0, strict=True)), 0.0),
    "two dimensions": (np.zeros((1, 6)), 0.0),
    "complex": (np.zeros(6) + 1j, 0.0),
    "masked": (np.ma.masked_array(X0, mask=[0, 0, 1, 0, 0, 0]), 0.0),
    "y NaN": (X0, np.nan),
    "y infinite": (X0, -np.inf),
    "y None": (X0, None),
    "y text": (X0, "a"),
    "y of two": (X0, [0.0, 1.0]),
}


@every
@pytest.mark.parametrize("what", BAD)
def test_bad_rows_are_refused_as_ever_and_change_nothing(name, what):
    model, (x, y) = fitted(name), BAD[what]
    before, slow = copy.deepcopy(model), checked(model)
    for call in (lambda m: m.learn_one(x, y), *([] if what.startswith("y") else [lambda m: m.predict_one(x)])):
        with pytest.raises((ValueError, TypeError)) as expected:
            call(slow)
        with pytest.raises((ValueError, TypeError)) as caught:
            call(model)
        assert (type(caught.value), str(caught.value)) == (type(expected.value), str(expected.value))
    assert_same(model, before)


@pytest.mark.parametrize("model", [ogp.LMS(), ogp.KLMS()], ids=["fixed", "recipe"])
def test_a_y_with_a_column_stays_one(model):
    X, y = rows()
    model = model.unfitted().fit(X, y[:, None])
    assert model.predict_one(X[0]).shape == (1,)
    model.learn_one(X[0], [0.1])
    with pytest.raises(ValueError, match=r"y must have shape \(n, 1\) as before"):
        model.learn_one(X[0], 0.1)
    assert model.n_samples_seen_ == 81


@every
def test_several_outputs(name):
    X, y = rows()
    Y = np.column_stack([y, -y])
    whole, single = FIXED[name].unfitted(), FIXED[name].unfitted()
    trace = ogp.run(whole, X, Y)
    single.learn_one(X[0], Y[0])
    for i, x in enumerate(X[1:], start=1):
        mean, std = single.predict_one(x, return_std=True)
        np.testing.assert_array_equal([mean, std], [trace.mean[i], trace.std[i]])
        single.learn_one(x, Y[i])
    assert_same(single, whole)


@every
def test_rows_by_name(name):
    X, y = rows(30)
    whole = FIXED[name].unfitted().partial_fit(X, y)
    named = RiverRegressor(FIXED[name].unfitted())
    for x, target in zip(X.tolist(), y.tolist(), strict=True):
        row = dict(zip("abcdef", x, strict=True))
        named.predict_one(row)
        named.learn_one(row, target)
    assert named.predict_one(dict.fromkeys("abcdef", 0.5)) == whole.predict_one([0.5] * 6)


@every
def test_copies_and_other_engines_go_on(name):
    X, y = rows(60)
    model = fitted(name, X[:30], y[:30])
    for x, target in zip(X[30:], y[30:], strict=True):
        model.learn_one(x, target)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), ogp.from_bytes(model.to_bytes())):
        assert_same(other.learn_one(X[0], 0.3), copy.deepcopy(model).learn_one(X[0], 0.3))
    if "engine" in model.parameter_names():
        readable = model.unfitted().set_params(engine="python").load(model.dump())
        assert_same(readable, model)
        np.testing.assert_allclose(readable.predict(X, True), model.predict(X, True), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", ["LMS", "RFFKLMS"])  # whose step may be too large
def test_a_model_that_breaks_down_says_so(name):
    model = FIXED[name].unfitted().set_params(step=50.0)
    X, y = rows(2000)
    with pytest.raises(ogp.BreakdownError, match="Lower the step"):  # noqa: PT012
        for x, target in zip(X, y, strict=True):
            model.learn_one(x, target)
    with pytest.raises(ogp.BreakdownError):
        model.dump()


def at_once(*tasks):
    """Run tasks in threads of their own; raise what one of them raised."""
    errors = []

    def guarded(task):
        try:
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=[task]) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@every
def test_threads_take_turns(name):
    model, (X, y) = FIXED[name].unfitted(), rows(1500)
    seen = []

    def single():
        for x, target in zip(X, y, strict=True):
            model.learn_one(x, target)
            model.predict_one(x)

    def blocks():
        for i in range(0, 1500, 300):
            model.partial_fit(X[i : i + 300], y[i : i + 300])

    def reads():
        for _ in range(50):
            seen.append(model.dump()["learned"]["seen"] if model.__sklearn_is_fitted__() else 0)

    at_once(single, single, blocks, reads)
    assert model.n_samples_seen_ == 4500
    assert seen == sorted(seen)
    assert all(np.isfinite(value).all() for value in model.dump()["learned"].values())
    assert np.isfinite(model.predict(X, return_std=True)).all()


def test_what_is_merged_meanwhile_loses_no_row():
    X, y = rows(3000)
    model, other = ogp.LinearRLS().fit(X[:5], y[:5]), ogp.LinearRLS().fit(X[:10], y[:10])

    def single():
        for x, target in zip(X, y, strict=True):
            model.learn_one(x, target)

    at_once(single, single, lambda: [model.merge(other) for _ in range(200)])
    assert model.n_samples_seen_ == 5 + 2 * 3000 + 200 * 10
