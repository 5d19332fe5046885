"""Models made of models everywhere: parameters, files, fleets, River, scikit-learn."""

from __future__ import annotations

import copy
import pickle
import tracemalloc

import numpy as np
import pytest

import onlinegp as ogp
from forging import forged_file
from marks import slow
from models import WRAPPED, stream
from onlinegp.kernels import RBF

every = pytest.mark.parametrize("name", WRAPPED)
OUTER = [ogp.Scaled, ogp.Lagged, ogp.Robust, ogp.Calibrated, ogp.HeavyTailed, ogp.Conformal]
FAMILIES = [ogp.KLMS(), ogp.KNLMS(), ogp.BetaKLMS(), ogp.KRLST(), ogp.kafbox.SWKRLS(), ogp.KRLS()]


def nested():
    return ogp.Lagged(ogp.Scaled(ogp.Robust(ogp.KRLST(RBF(0.7), noise=0.01, budget=25))), lags=3)


def test_parameters_at_any_depth():
    model = nested()
    model.set_params(
        model__model__model__noise=0.5, model__rows=30, lags=2, model__model__model__kernel__length_scale=2.0
    )
    assert repr(model) == (
        "Lagged(model=Scaled(model=Robust(model=KRLST(kernel=RBF(length_scale=2.0), noise=0.5, budget=25)), rows=30), "
        "lags=2)"
    )
    assert model.get_params()["model__model__bound"] == 3.0
    with pytest.raises(ValueError, match="Valid parameters are"):
        model.set_params(model__nonsense=1)


def test_parameters_set_after_learning_wait_for_the_next_fit():
    """Also those of a model inside, which the learner must not share: a scale may still be found anew."""
    X, y = stream(60)
    model, other = nested().fit(X[:8], y[:8]), nested().fit(X[:8], y[:8])
    model.set_params(model__model__model__noise=100.0)
    for one in (ogp.from_bytes(model.to_bytes()), pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model):
        one.partial_fit(X[8:], y[8:])
        np.testing.assert_array_equal(one.predict(X), copy.deepcopy(other).partial_fit(X[8:], y[8:]).predict(X))
    assert ogp.from_bytes(model.to_bytes()).get_params()["model__model__model__noise"] == 0.01
    assert model.fit(X, y).predict(X).std() < 0.5 * other.fit(X, y).predict(X).std()


def test_the_model_inside_stays_as_it_is():
    inside = ogp.KRLST(budget=10)
    ogp.Scaled(inside).fit(*stream(50))
    assert not inside.__sklearn_is_fitted__()


def test_a_model_inside_that_has_learned_starts_anew():
    X, y = stream(50)
    inside = ogp.KRLST(budget=10).fit(X, 100.0 + y).set_params(budget=20)
    model = ogp.Robust(inside)
    assert ogp.from_bytes(model.to_bytes()).model.budget == 20
    np.testing.assert_array_equal(model.fit(X, y).predict(X), ogp.Robust(ogp.KRLST(budget=20)).fit(X, y).predict(X))


@pytest.mark.parametrize("wrapper", OUTER)
def test_only_models_go_inside(wrapper):
    for inside, message in ((ogp.KRLST, r"Make one: KRLST\(\)"), ("krlst", "Try onlinegp.KRLST"), (None, "got None")):
        with pytest.raises(TypeError, match=message):
            wrapper(inside).fit(*stream(5))
    with pytest.raises(ValueError, match="noise must be positive"):
        ogp.Fleet(wrapper(ogp.KRLST(noise=0.0)))


@every
def test_a_fleet_is_its_members_each_on_its_own(name, tmp_path):
    X, y = stream(150)
    keys = np.random.default_rng(0).choice(["a", "b", "c"], 150).tolist()
    fleet = ogp.Fleet(WRAPPED[name])
    trace = fleet.run(keys[:100], X[:100], y[:100])
    fleet.save(tmp_path / "fleet.ogp")
    fleet = ogp.Fleet.load(tmp_path / "fleet.ogp")
    fleet.learn(keys[100:], X[100:], y[100:])
    for key in "abc":
        mine = np.array(keys) == key
        alone = copy.deepcopy(WRAPPED[name])
        np.testing.assert_array_equal(trace.mean[mine[:100]], alone.run(X[:100][mine[:100]], y[:100][mine[:100]]).mean)
        alone.partial_fit(X[100:][mine[100:]], y[100:][mine[100:]])
        np.testing.assert_array_equal(fleet[key].predict(X), alone.predict(X))
        np.testing.assert_array_equal(fleet.predict([key] * 150, X), alone.predict(X))


def test_a_fleet_of_series(tmp_path):
    y = 56.0 + np.sin(0.3 * np.arange(120))
    keys = ["a", "b"] * 60
    fleet = ogp.Fleet(nested())
    fleet.learn(keys, None, y)
    fleet.save(tmp_path / "fleet.ogp")
    again = ogp.Fleet.load(tmp_path / "fleet.ogp")
    alone = nested().fit(None, y[::2])
    assert again.predict(["a"], None) == fleet.predict(["a"], None) == alone.predict(None)
    with pytest.raises((TypeError, ValueError), match="X must"):
        ogp.Fleet(ogp.KRLST()).learn(keys, None, y)


def test_predictions_have_the_units_of_the_data_after_loading(tmp_path):
    y = 56.0 + 4.0 * np.sin(0.3 * np.arange(300))
    nested().fit(None, y).save(tmp_path / "model.ogp")
    model = ogp.load(tmp_path / "model.ogp")
    assert model.predict_one(None) == pytest.approx(56.0 + 4.0 * np.sin(0.3 * 300), abs=0.3)


def forged(model, change):
    return forged_file(model.to_bytes(), lambda header, contents: change(header, contents) and None)


def a_model_of_models(header, depth):
    params = header["model"]["params"]
    for _ in range(depth):
        params["model"] = {"model": {"class": "Lagged", "module": "onlinegp", "params": dict(params)}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, c: h["model"]["params"].update(lags=-3), "lags must be at least 1"),
        (lambda h, c: h["model"]["params"].update(lags=10**12), "lags must be at most"),
        (lambda h, c: h["model"]["params"].update(lags=99_000), "must be float64 of shape|must be at most"),
        (lambda h, c: c.update(outputs=5_000, single=0), "must be at most 100000, got 250002"),
        (lambda h, c: a_model_of_models(h, 200), "must be at most 100000|nested more than|does not describe|lacks"),
        (lambda h, c: h["model"]["params"].update(model={"model": {}}), "an object with a class"),
        (lambda h, c: h["model"]["params"].update(model=3), "model must be an estimator"),
        (lambda h, c: c.update({"learned.model.nonsense": 1}), r"unknown entry 'model\.nonsense'"),
        (lambda h, c: c.pop("learned.model.seen"), r"lacks 'model\.seen'"),
    ],
)
def test_forged_files_are_refused_and_take_no_memory(change, message):
    model = ogp.Lagged(ogp.Scaled(ogp.KRLST(budget=5)), lags=50, horizon=20).fit(*stream(30))
    data = forged(model, change)
    tracemalloc.start()
    with pytest.raises(ogp.ModelFileError, match=message):
        ogp.from_bytes(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


def test_frames_go_through():
    pd = pytest.importorskip("pandas")
    X, y = stream(60)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = nested().fit(frame, pd.Series(y))
    np.testing.assert_array_equal(model.predict(frame[["b", "a"]]), nested().fit(X, y).predict(X))
    assert list(ogp.from_bytes(model.to_bytes()).feature_names_in_) == ["a", "b"]


@pytest.mark.filterwarnings("ignore:Estimator .* does not inherit")
@pytest.mark.parametrize("family", FAMILIES, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("wrapper", [ogp.Scaled, ogp.Lagged, ogp.Robust])
def test_scikit_learns_checks(wrapper, family):
    passes_scikit_learns_checks(wrapper(family))


@pytest.mark.filterwarnings("ignore:Estimator .* does not inherit")
@pytest.mark.parametrize("wrapper", [ogp.Calibrated, ogp.HeavyTailed, ogp.Conformal, lambda one: ogp.Mixture([one])])
@pytest.mark.parametrize("model", [ogp.KRLST(), ogp.LinearRLS()], ids=lambda model: type(model).__name__)
def test_scikit_learns_checks_of_other_distributions(wrapper, model):
    passes_scikit_learns_checks(wrapper(model))
    passes_scikit_learns_checks(ogp.Mixture([wrapper(model), ogp.QKLMS()]))


def passes_scikit_learns_checks(model):
    pytest.importorskip("sklearn")
    from sklearn.utils.estimator_checks import check_estimator

    results = check_estimator(model, on_fail=None, on_skip=None)
    assert {r["check_name"]: repr(r["exception"]) for r in results if r["status"] == "failed"} == {}
    assert sum(r["status"] == "passed" for r in results) >= 45


def test_scikit_learns_clone_and_search():
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

    X, y = stream(150)
    model = clone(nested().fit(X, y))
    assert repr(model) == repr(nested())
    assert not model.__sklearn_is_fitted__()
    grid = {"model__kernel__length_scale": [0.01, 1.0]}
    search = GridSearchCV(ogp.Scaled(ogp.KRLST(RBF(1.0))), grid, cv=TimeSeriesSplit(3)).fit(1e3 * X, 1e3 * y)
    assert search.best_params_ == {"model__kernel__length_scale": 1.0}


@pytest.mark.parametrize(
    "name",
    [
        "Lagged-horizon",
        "Conformal",
        "Mixture",
        *map(slow, ("Scaled", "Robust", "Lagged-Scaled-Robust", "Calibrated", "HeavyTailed")),
    ],
)
def test_rivers_checks(name):
    pytest.importorskip("river")
    from river import checks

    from onlinegp.river import RiverRegressor

    checks.check_estimator(RiverRegressor(WRAPPED[name]))


def test_river_takes_a_series():
    pytest.importorskip("river")
    from onlinegp.river import RiverRegressor

    river, plain = RiverRegressor(nested()), nested()
    for value in np.sin(0.3 * np.arange(60)):
        assert river.predict_one({}) == plain.predict_one(None)
        river.learn_one({}, value)
        plain.learn_one(None, value)
