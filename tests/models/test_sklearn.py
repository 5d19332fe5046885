"""At home in scikit-learn: its own checks, its pipelines and searches, its kernels."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")

import joblib  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.compose import TransformedTargetRegressor  # noqa: E402
from sklearn.gaussian_process import GaussianProcessRegressor  # noqa: E402
from sklearn.gaussian_process import kernels as sk  # noqa: E402
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit, cross_val_score  # noqa: E402
from sklearn.multioutput import MultiOutputRegressor  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

import onlinegp as ogp  # noqa: E402
from models import MODELS, stream  # noqa: E402
from onlinegp import kernels, models  # noqa: E402
from onlinegp.kernels.sklearn import from_sklearn, to_sklearn  # noqa: E402

ESTIMATORS = [getattr(models, name) for name in models.__all__ if name != "OnlineRegressor"] + [ogp.GPRegression]

# expected failures, by estimator: none
TOO_LONG = "the step is too long for inputs of this size, and the error says so"
EXPECTED = {
    "LMS": dict.fromkeys(("check_fit_idempotent", "check_fit_check_is_fitted", "check_n_features_in"), TOO_LONG),
    "L2S": {"check_regressors_train": "with the steps of its paper it has not learned enough after 200 rows"},
    "Persistence": {"check_regressors_train": "it takes no inputs, and these rows do not follow one another"},
}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_check_estimator(estimator):
    expected = EXPECTED.get(estimator.__name__, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # checks that do not apply to a class outside scikit-learn are skipped
        results = check_estimator(estimator(), expected_failed_checks=expected, on_fail=None)
    failed = {r["check_name"]: repr(r["exception"]) for r in results if r["status"] == "failed"}
    assert failed == {}
    assert sum(r["status"] == "passed" for r in results) >= 45
    assert len(expected) <= 3


def test_check_auto():
    """With few rows to tune on: the checks fit it some hundred times."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            ogp.Auto(rows=20, members=("local", "linear"), kernel=kernels.RBF(1.0), noise=0.1), on_fail=None
        )
    assert {r["check_name"]: repr(r["exception"]) for r in results if r["status"] == "failed"} == {}
    assert sum(r["status"] == "passed" for r in results) >= 45


def test_clone_keeps_parameters_and_drops_the_data():
    model = MODELS["KRLST"].__class__(kernels.RBF(0.7), noise=0.1, budget=20).fit(*stream(50))
    copy = clone(model)
    assert repr(copy) == repr(model)
    assert not copy.__sklearn_is_fitted__()


def test_pipeline_and_nested_parameters():
    X, y = stream(150)
    pipe = make_pipeline(StandardScaler(), ogp.KRLST(2.0 * kernels.RBF(1.0), noise=0.05, budget=40))
    pipe.set_params(krlst__kernel__kernel__length_scale=0.5)
    assert pipe[-1].kernel.kernel.length_scale == 0.5
    pipe.fit(X, y)
    Z = StandardScaler().fit(X).transform(X)
    direct = ogp.KRLST(2.0 * kernels.RBF(0.5), noise=0.05, budget=40).fit(Z, y)
    mean, std = pipe.predict(X, return_std=True)
    assert np.array_equal(mean, direct.predict(Z))
    assert std.shape == y.shape


def test_grid_search_over_time():
    X, y = stream(150)
    search = GridSearchCV(
        ogp.KRLST(kernels.RBF(1.0), budget=30),
        {"kernel__length_scale": [0.05, 1.0], "noise": [0.01, 0.1]},
        cv=TimeSeriesSplit(3),
    ).fit(X, y)
    assert search.best_params_["kernel__length_scale"] == 1.0
    assert search.best_score_ > 0.8


def test_joblib_processes_agree_with_one():
    X, y = stream(90)
    model = ogp.BetaKLMS(kernels.RBF(0.7), noise=0.05)
    with joblib.parallel_config(backend="multiprocessing"):  # forked: the others take seconds to start
        apart = cross_val_score(model, X, y, cv=3, n_jobs=2)
    assert np.array_equal(apart, cross_val_score(model, X, y, cv=3))


def test_a_transformed_target():
    X, y = stream(150)
    model = TransformedTargetRegressor(ogp.OnlineGP(kernels.RBF(0.7)), transformer=StandardScaler())
    assert model.fit(X, 100.0 + 5.0 * y).score(X, 100.0 + 5.0 * y) > 0.95


@pytest.mark.parametrize("name", MODELS)
def test_pickles_continue_alike(name):
    X, y = stream(60)
    model = clone(MODELS[name]).fit(X[:40], y[:40])
    copy = pickle.loads(pickle.dumps(model))
    model.partial_fit(X[40:], y[40:])
    copy.partial_fit(X[40:], y[40:])
    assert np.array_equal(model.predict(X), copy.predict(X))


def test_outputs_share_one_dictionary():
    X, y = stream(120)
    Y = np.column_stack([y, 2.0 - y])
    model = ogp.KNLMS(kernels.RBF(0.7), coherence=0.8).fit(X, Y)
    apart = MultiOutputRegressor(ogp.KNLMS(kernels.RBF(0.7), coherence=0.8)).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), apart.predict(X), atol=1e-12)
    assert model.alpha_.shape == (model.size_, 2)


# Kernels

PAIRS = [
    (sk.RBF(0.7), kernels.RBF(0.7)),
    (sk.RBF([0.7, 2.0]), kernels.RBF((0.7, 2.0))),
    (sk.Matern(0.5, nu=0.5), kernels.Matern12(0.5)),
    (sk.Matern([0.5, 1.0], nu=1.5), kernels.Matern32((0.5, 1.0))),
    (sk.Matern(0.5, nu=2.5), kernels.Matern52(0.5)),
    (sk.RationalQuadratic(0.8, 2.0), kernels.RationalQuadratic(0.8, 2.0)),
    (sk.ConstantKernel(3.0), kernels.Constant(3.0)),
    (2.0 * sk.RBF(1.5) + sk.DotProduct(0.5), 2.0 * kernels.RBF(1.5) + (kernels.Linear() + 0.25)),
    (sk.RBF(1.0) * sk.Matern(2.0, nu=1.5), kernels.RBF(1.0) * kernels.Matern32(2.0)),
    (sk.DotProduct(2.0) ** 3, kernels.Polynomial(3, offset=4.0)),
]


@pytest.mark.parametrize(("theirs", "ours"), PAIRS, ids=repr)
def test_kernels_convert_both_ways(theirs, ours):
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((6, 2)), rng.standard_normal((4, 2))
    assert from_sklearn(theirs) == ours
    np.testing.assert_allclose(ours(X, Z), theirs(X, Z), rtol=1e-12, atol=1e-14)
    back = to_sklearn(ours)
    np.testing.assert_allclose(back(X, Z), theirs(X, Z), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(back.diag(X), ours.diag(X), rtol=1e-12)


def test_other_kernels_that_convert():
    X = np.linspace(-2.0, 2.0, 7)[:, None]
    periodic = sk.ExpSineSquared(0.6, 1.7)
    assert from_sklearn(periodic, features=1) == kernels.Periodic(0.6, 1.7)
    for theirs in (periodic, sk.RBF(0.9) ** 2, sk.Matern(1.0, nu=np.inf), sk.DotProduct(0.0), sk.RBF(1.0) * 2.0 + 1.0):
        ours = from_sklearn(theirs, features=1)
        np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(to_sklearn(ours, features=1)(X), theirs(X), rtol=1e-12, atol=1e-14)
    ours = kernels.Polynomial(2, offset=0.0, scale=0.5) + kernels.Linear(2.0)
    np.testing.assert_allclose(to_sklearn(ours)(X), ours(X), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("convert", "kernel", "message"),
    [
        (from_sklearn, sk.RBF() + sk.WhiteKernel(0.1), "noise=0.1"),
        (from_sklearn, sk.Matern(nu=0.7), "nu=0.7"),
        (from_sklearn, sk.ExpSineSquared(), "features=1"),
        (from_sklearn, sk.RBF() ** 0.5, "no equivalent"),
        (from_sklearn, "rbf", "no equivalent"),
        (to_sklearn, kernels.RationalQuadratic([1.0, 2.0]), "one value for all"),
        (to_sklearn, kernels.Periodic(), "features=1"),
    ],
)
def test_kernels_without_a_counterpart_are_refused(convert, kernel, message):
    with pytest.raises(ValueError, match=message):
        convert(kernel)


def test_an_estimator_points_to_the_conversion():
    with pytest.raises(TypeError, match="from_sklearn"):
        ogp.KRLST(sk.RBF(1.0)).fit(*stream(5))


def test_the_same_posterior_as_scikit_learns():
    X, y = stream(60)
    kernel = 1.5 * sk.Matern(0.9, nu=1.5)
    theirs = GaussianProcessRegressor(kernel + sk.WhiteKernel(0.05), optimizer=None).fit(X, y)
    ours = ogp.OnlineGP(from_sklearn(kernel), noise=0.05).fit(X, y)
    new = stream(20, seed=1)[0]
    for mine, other in zip(ours.predict(new, True), theirs.predict(new, return_std=True), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-9)
