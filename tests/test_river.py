"""At home in River: its own checks, its pipelines, distributions and intervals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("river")
pd = pytest.importorskip("pandas")

from river import checks, datasets, evaluate, metrics, preprocessing  # noqa: E402

import onlinegp as ogp  # noqa: E402
from models import LINEAR, LOCAL, MODELS, stream  # noqa: E402
from onlinegp.kernels import RBF  # noqa: E402
from onlinegp.river import RiverRegressor  # noqa: E402

FILTERS = MODELS | LINEAR | LOCAL
rows = [({"b": x[0], "a": x[1]}, y) for x, y in zip(*stream(60), strict=True)]


@pytest.mark.parametrize("name", {type(model): name for name, model in reversed(FILTERS.items())}.values())
@pytest.mark.filterwarnings("ignore:the feature")  # they shuffle the features of later samples
def test_rivers_checks(name):
    # a row without its date is 1e5 standard deviations away from the others
    model = ogp.Scaled(ogp.LMS(step=1e-12)) if name == "LMS" else FILTERS[name]
    checks.check_estimator(RiverRegressor(model))


def test_dictionaries_are_rows_sorted_by_name():
    kernel = RBF([0.5, 2.0])  # of a, then of b
    river, plain = RiverRegressor(ogp.KRLST(kernel, noise=0.05)), ogp.KRLST(kernel, noise=0.05)
    for x, y in rows:
        assert river.predict_one(x) == plain.predict_one([x["a"], x["b"]])
        river.learn_one(x, y)
        plain.learn_one([x["a"], x["b"]], y)
    assert river.features == ["a", "b"]
    assert river.predict_one({"b": 0.5, "new": 3.0}) == plain.predict_one([0.0, 0.5])
    assert not river.model.__sklearn_is_fitted__()


def test_distributions_and_intervals():
    river = RiverRegressor(ogp.KRLST(RBF(0.7), noise=0.05))
    for x, y in rows:
        river.learn_one(x, y)
    mean, std = river.learner.predict_one([rows[0][0]["a"], rows[0][0]["b"]], return_std=True)
    dist = river.predict_one(rows[0][0], with_dist=True)
    assert (dist.mu, dist.sigma) == (mean, std)  # to the last bit, also where std is far below the mean
    assert dist.cdf(mean) == pytest.approx(0.5)
    assert dist(mean + std) == pytest.approx(np.exp(-0.5) / (std * np.sqrt(2.0 * np.pi)))
    assert dist.log_pdf(mean + std) == pytest.approx(np.log(dist(mean + std)))
    with pytest.raises(TypeError, match="does not learn"):
        dist.update(1.0)
    assert river.predict_interval(rows[0][0], level=0.5) == pytest.approx((mean - 0.67449 * std, mean + 0.67449 * std))


def test_before_learning_it_predicts_the_prior():
    river = RiverRegressor(ogp.KRLST(noise=0.5))
    assert river.predict_one({"a": 1.0}) == 0.0
    assert river.predict_one({}) == 0.0
    assert river.predict_one({"a": 1.0}, with_dist=True).sigma == pytest.approx(np.sqrt(1.5), rel=1e-5)


def test_a_pipeline_on_real_data():
    model = preprocessing.StandardScaler() | RiverRegressor(ogp.KRLST(RBF(2.0), noise=0.1, budget=50))
    model = preprocessing.TargetStandardScaler(regressor=model)
    error = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    assert error.get() < 0.6  # 0.46 here; River's Bayesian linear regression has 0.59


def test_frames_in_series_out():
    X = pd.DataFrame([x for x, _ in rows], index=range(100, 160))
    y = pd.Series([y for _, y in rows], index=X.index)
    river, other = (RiverRegressor(ogp.KRLST(RBF(0.7), noise=0.05)) for _ in range(2))
    river.learn_many(X, y)
    for x, value in rows:
        other.learn_one(x, value)
    out = river.predict_many(X[["a", "b"]])
    assert isinstance(out, pd.Series)
    assert out.index.equals(X.index)
    np.testing.assert_allclose(out, [other.predict_one(x) for x, _ in rows], atol=1e-12)
    np.testing.assert_allclose(river.predict_many(X[["b"]]), [other.predict_one({"b": x["b"]}) for x, _ in rows])


def test_only_filters_are_wrapped():
    with pytest.raises(TypeError, match="must be an onlinegp model"):
        RiverRegressor(ogp.GPRegression())


def test_a_first_sample_that_is_refused_decides_nothing():
    model = RiverRegressor(ogp.KRLST())
    with pytest.raises(ValueError, match="at least one feature"):
        model.learn_one({}, 1.0)
    for x, message in (
        ({"a": 1.0, "c": "red"}, r"the feature 'c' must be a number, got 'red'. .*OneHotEncoder"),
        ({"a": 1.0, "c": None}, r"the feature 'c' must be a number, got None"),
        ({"a": 1.0, "c": np.nan}, r"the feature 'c' is nan.*StatImputer"),
    ):
        for call in (model.predict_one, lambda x: model.learn_one(x, 1.0)):
            with pytest.raises(ValueError, match=message):
                call(x)
    with pytest.raises(TypeError, match=r"y must be given.* rows without a target"):
        model.learn_one({"c": 1.0}, None)
    with pytest.raises(ValueError, match="NaN"):
        model.learn_many(pd.DataFrame({"d": [1.0]}), pd.Series([np.nan]))
    model.learn_one({"a": 1.0, "b": 2.0}, 1.0)
    assert model.features == ["a", "b"]  # what was refused has no say in it
    series = RiverRegressor(ogp.Lagged(ogp.KRLST(), lags=1))
    for y in (1.0, 2.0, 3.0):
        series.learn_one({}, y)
    assert np.isfinite(series.predict_one({}))


def test_features_that_come_late_are_ignored_with_one_warning():
    pairs = [({"city": city}, float(i)) for i, city in enumerate(["a", "b", "c", "b"])]
    model = preprocessing.OneHotEncoder() | RiverRegressor(ogp.KRLST())
    model.learn_one(*pairs[0])
    with pytest.warns(UserWarning, match=r"'city_b' is ignored, .*OneHotEncoder\(categories="):
        model.learn_one(*pairs[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn_one(*pairs[2])
        known = preprocessing.OneHotEncoder(categories={"city": {"a", "b", "c"}}) | RiverRegressor(ogp.KRLST())
        for pair in pairs:
            known.learn_one(*pair)
    assert known.predict_one({"city": "c"}) == pytest.approx(2.0, abs=0.1)
