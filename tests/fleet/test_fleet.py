"""A fleet is its members, each on its own: the same bits, whatever the threads and the engine."""

import copy
import math
import pickle
import re

import numpy as np
import pytest

import onlinegp as ogp
from fleets import events, every, models
from onlinegp.engine import available
from onlinegp.fleet import Fleet, step
from onlinegp.kernels import RBF
from onlinegp.learner import RowLearner


@every
@pytest.mark.parametrize("threads", [1, 3])
def test_members_learn_as_if_alone(engine, threads):
    keys, X, y = events(600, 20)
    for model in models(engine):
        fleet = Fleet(model, threads=threads)
        run = fleet.run(keys[:300], X[:300], y[:300])
        mean, std = run.mean, run.std
        fleet.learn(keys[300:], X[300:], y[300:])
        for key in fleet:
            mine = np.array([k == key for k in keys])
            alone = type(model)(**model.get_params(deep=False))
            trace = ogp.run(alone, X[:300][mine[:300]], y[:300][mine[:300]]) if mine[:300].any() else None
            if trace is not None:
                np.testing.assert_array_equal(mean[mine[:300]], trace.mean)
                np.testing.assert_array_equal(std[mine[:300]], trace.std)
            if mine[300:].any():
                alone.partial_fit(X[300:][mine[300:]], y[300:][mine[300:]])
            np.testing.assert_array_equal(fleet[key].alpha_, alone.alpha_)
            np.testing.assert_array_equal(fleet[key].centers_, alone.centers_)


@every
def test_it_grows_by_key_and_iterates(engine):
    fleet = Fleet(models(engine)[0])
    assert len(fleet) == 0
    fleet.learn([3, "b", (1, 2), 3], np.zeros((4, 2)), np.ones(4))
    assert list(fleet) == [3, "b", (1, 2)]
    assert (1, 2) in fleet
    assert "c" not in fleet
    assert fleet[3].n_samples_seen_ == 2
    assert [model.n_samples_seen_ for _, model in fleet.items()] == [2, 1, 1]
    assert "3 models" in repr(fleet)


@every
@pytest.mark.parametrize("key", [None, math.nan, np.datetime64("NaT")])
def test_a_missing_key_is_refused_before_anything_changes(engine, key):
    fleet = Fleet(models(engine)[0])
    for known in ([], ["a"]):
        with pytest.raises(ValueError, match=re.escape(f"keys must not be missing, got {key!r}. Leave out")):
            fleet.learn(["a", key], np.zeros((2, 2)), np.ones(2))
        assert list(fleet) == known
        fleet.learn(["a"], np.zeros((1, 2)), np.ones(1))
    assert fleet["a"].n_samples_seen_ == 2


@every
def test_keys_of_all_kinds(engine):
    fleet = Fleet(models(engine)[0])
    keys = [5, -1, 10**6, 2**80, "5", 0, 5]
    fleet.learn(keys, np.zeros((7, 2)), np.ones(7))
    assert list(fleet) == keys[:-1]
    fleet.learn(np.array([5, 0, 10**6]), np.zeros((3, 2)), np.ones(3))  # an array's numbers are plain numbers
    fleet.learn([5.0, True], np.zeros((2, 2)), np.ones(2))  # and equal keys are one: 5.0 is 5, True is 1
    assert list(fleet) == [*keys[:-1], 1]
    assert [fleet[key].n_samples_seen_ for key in fleet] == [4, 1, 2, 1, 1, 2, 1]
    fleet.learn(np.arange(300), np.zeros((300, 2)), np.ones(300))
    assert len(fleet) == 5 + 299
    assert fleet[299].n_samples_seen_ == 1
    assert all(type(key) in (int, str, bool) for key in fleet)


@every
def test_bad_input_changes_nothing(engine):
    fleet = Fleet(models(engine)[0]).learn(["a", "b"], np.zeros((2, 2)), np.ones(2))
    with pytest.raises(ValueError, match="NaN"):
        fleet.learn(["c"], [[np.nan, 0.0]], [1.0])
    with pytest.raises(ValueError, match="features"):
        fleet.learn(["c"], [[0.0]], [1.0])
    with pytest.raises(ValueError, match="one entry"):
        fleet.learn(["c", "d"], [[0.0, 0.0]], [1.0])
    with pytest.raises(TypeError, match="unhashable"):
        fleet.learn(["c", []], np.zeros((2, 2)), np.ones(2))
    with pytest.raises(KeyError, match="no model"):
        fleet.predict(["c"], [[0.0, 0.0]])
    with pytest.raises(ValueError, match="unfitted"):
        Fleet(models(engine)[0].fit(np.zeros((2, 2)), np.ones(2)))
    with pytest.raises(TypeError, match="estimator"):
        Fleet("KRLST")
    assert list(fleet) == ["a", "b"]
    assert fleet["a"].n_samples_seen_ == 1


@every
def test_a_model_can_join(engine):
    _keys, X, y = events(60, 1)
    model = models(engine)[0].fit(X[:30], y[:30])
    fleet = Fleet(models(engine)[0])
    fleet["joined"] = model
    fleet.learn(["joined"] * 30, X[30:], y[30:])
    np.testing.assert_array_equal(fleet["joined"].alpha_, model.partial_fit(X[30:], y[30:]).alpha_)
    with pytest.raises(ValueError, match="KRLST"):
        fleet["other"] = ogp.KLMS(engine=engine).fit(X, y)


@pytest.mark.skipif(not available(), reason="the compiled engine was not built")
def test_engines_agree():
    keys, X, y = events(500, 15)
    for python, native in zip(models("python"), models("native"), strict=True):
        one, two = Fleet(python).run(keys, X, y), Fleet(native).run(keys, X, y)
        np.testing.assert_allclose(two.mean, one.mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(two.std, one.std, rtol=1e-9)


def test_dtype_and_engine_are_refused_at_once():
    with pytest.raises(ValueError, match="dtype must be 'float64' for the Python engine"):
        Fleet(ogp.KLMS(engine="python", dtype="float32"))
    with pytest.raises(ValueError, match="dtype must be one of"):
        Fleet(ogp.KLMS(dtype="float16"))
    with pytest.raises(TypeError, match="dtype"):
        ogp.KRLST(dtype="float32")
    with pytest.raises(ValueError, match="3 value"):
        Fleet(ogp.KLMS(RBF([1.0, 2.0]) + RBF([1.0, 2.0, 3.0]), engine="auto"))


@pytest.mark.skipif(not available(), reason="the compiled engine was not built")
def test_float32_members_are_float32_models(tmp_path):
    keys, X, y = events(100, 3)
    fleet = Fleet(ogp.QKLMS(RBF(0.7), dtype="float32")).learn(keys, X, y)
    mine = np.array(keys) == "key1"
    alone = ogp.QKLMS(RBF(0.7), dtype="float32").fit(X[mine], y[mine])
    fleet.save(tmp_path / "fleet.ogp")
    for each in (fleet, Fleet.load(tmp_path / "fleet.ogp")):
        np.testing.assert_array_equal(each["key1"].predict(X, True), alone.predict(X, True))


@every
def test_frames_by_name_and_several_outputs(engine, tmp_path):
    pd = pytest.importorskip("pandas")
    keys, X, y = events(60, 3)
    frame, Y = pd.DataFrame(X, columns=["a", "b"]), np.stack([y, -2.0 * y], axis=1)
    fleet = Fleet(models(engine)[0]).learn(keys, frame, Y)
    plain = Fleet(models(engine)[0]).learn(keys, X, Y)
    fleet.save(tmp_path / "fleet.ogp")
    for each in (fleet, Fleet.load(tmp_path / "fleet.ogp"), pickle.loads(pickle.dumps(fleet)), copy.deepcopy(fleet)):
        mean, std = each.predict(keys, frame[["b", "a"]], return_std=True)
        np.testing.assert_array_equal((mean, std), plain.predict(keys, X, return_std=True))
        assert mean.shape == (60, 2)
        assert list(each["key0"].feature_names_in_) == ["a", "b"]
        with pytest.raises(ValueError, match="lacks 'a'"):
            each.predict(keys, frame.rename(columns={"a": "c"}))
        with pytest.raises(ValueError, match=r"column 'a' of X must .* Encode X with onlinegp\.columns\.Encoding"):
            each.learn(keys, frame.assign(a="text"), Y)
        with pytest.raises(ValueError, match=r"shape \(n, 2\)"):
            each.learn(keys, frame, y)
    other = models(engine)[0].fit(frame[["b", "a"]], Y)
    with pytest.raises(ValueError, match="names"):
        fleet["other"] = other
    assert "other" not in fleet


@every
def test_what_fails_leaves_nothing_behind(engine, monkeypatch):
    keys, X, y = events(20, 2)
    fleet = Fleet(models(engine)[0])
    model = models(engine)[0].fit(X, y)
    good = model.dump()
    bad = good | {"learned": good["learned"] | {"size": 3}}
    monkeypatch.setattr(model, "dump", lambda: bad)
    with pytest.raises(ValueError, match="must be"):
        fleet["joined"] = model
    assert len(fleet) == 0
    fleet.learn(keys, np.hstack([X, X]), y)  # nor is the number of columns fixed
    with pytest.raises(TypeError, match="unhashable"):
        fleet.learn(["new", []], np.zeros((2, 4)), np.ones(2))
    assert list(fleet) == list(dict.fromkeys(keys))
    assert sum(model.n_samples_seen_ for _, model in fleet.items()) == 20


@every
def test_a_model_that_broke_down_is_named(engine):
    keys, X, y = events(30, 2)
    fleet = Fleet(models(engine)[0]).learn(keys, X, y)
    model = fleet["key1"]
    contents = model.dump()
    contents["learned"]["alpha"] = np.full_like(contents["learned"]["alpha"], 1e308)
    fleet["key1"] = model.load(contents)
    with pytest.raises(ogp.BreakdownError, match="key 'key1' broke down"), np.errstate(all="ignore"):
        fleet.predict(keys, X)
    with pytest.raises(ogp.BreakdownError, match="key 'key1' broke down"), np.errstate(all="ignore"):
        fleet.run(keys, X, y)
    only = [key == "key0" for key in keys]
    assert np.isfinite(fleet.predict(["key0"] * sum(only), X[only])).all()


def test_learners_with_matrices_of_any_size_are_saved():
    class Past(RowLearner):
        """All rows so far, and their products."""

        def __init__(self, features, outputs):
            self.features, self.outputs = features, outputs
            self.rows = np.empty((0, features))

        def learn(self, X, Y):
            self.rows = np.vstack([self.rows, X])
            self.seen = len(self.rows)

        def predict(self, X):
            return ogp.predictions.Gaussian(
                np.full((len(X), self.outputs), float(self.seen)), np.ones((len(X), self.outputs))
            )

        def dump(self):
            return {"rows": self.rows, "products": self.rows @ self.rows.T, "last": np.array(self.seen), "word": "w"}

        def load(self, contents):
            self.rows, self.seen = contents["rows"].copy(), int(contents["last"])
            np.testing.assert_array_equal(contents["products"], self.rows @ self.rows.T)
            assert contents["word"] == "w"

    class Keeping(ogp.OnlineRegressor):
        def __init__(self):
            pass

        def start(self, features, outputs):
            return Past(features, outputs)

    keys, X, y = events(50, 4)
    fleet = Fleet(Keeping()).learn(keys, X, y)
    again = Fleet.from_bytes(fleet.to_bytes())
    np.testing.assert_array_equal(again.predict(keys, X), fleet.predict(keys, X))
    assert [model.n_samples_seen_ for _, model in again.items()] == [keys.count(key) for key in again]


@every
@pytest.mark.parametrize("wrapped", [False, True])
def test_models_that_were_loaded_are_held_to_the_breakdown_rule(engine, wrapped, tmp_path):
    """The largest |y| is stored: an absurd prediction is one, whoever learned the rows before."""
    keys, X, y = events(60, 2)
    model = ogp.Calibrated(models(engine)[0]) if wrapped else models(engine)[0]
    fleet = Fleet(model).learn(keys, X, y)
    alone = fleet["key0"]
    contents = alone.dump()
    assert contents["largest"] == np.abs(y[[key == "key0" for key in keys]]).max()
    name = "model.alpha" if wrapped else "alpha"
    contents["learned"][name] = contents["learned"][name] * 1e9
    fleet["key0"] = alone.load(contents)
    fleet.save(tmp_path / "fleet.ogp")
    with Fleet(model, store=tmp_path / "fleet.db") as stored:
        stored["key0"] = alone
    number = list(fleet).index("key0")
    (state,) = fleet._home.members.to_bytes(np.array([number]), True)
    with Fleet.load(tmp_path / "fleet.db") as stored:
        for one in (fleet, Fleet.load(tmp_path / "fleet.ogp"), pickle.loads(pickle.dumps(fleet)), stored):
            with pytest.raises(
                ogp.BreakdownError, match=r"key 'key0' broke down: it predicts .* no \|y\| so far exceeds"
            ):
                one.run(["key0"], X[:1], y[:1])
    with pytest.raises(ogp.BreakdownError, match=r"no \|y\| so far exceeds"):
        step(model, state, X[:1], y[:1])
