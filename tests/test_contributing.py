"""The three skeletons of CONTRIBUTING.md, as they stand there, through everything that runs models."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
from shell import environment, rows_of, write_csv

import onlinegp as ogp
from marks import slow
from models import stream

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
CODE = "\n".join(BLOCKS)

# a module of its own, so that pickles and scikit-learn find the classes by their place
skeletons = types.ModuleType("skeletons")
sys.modules["skeletons"] = skeletons
exec(compile(CODE, str(PAGE), "exec"), vars(skeletons))

MODELS = {"recipe": skeletons.ErrorKLMS, "algorithm": skeletons.Average}
EXPECTED = {
    skeletons.Average: {"check_regressors_train": "an average explains no variance"}
}  # of scikit-learn's checks
each = pytest.mark.parametrize("cls", MODELS.values(), ids=MODELS)


def same(one, other, X):
    np.testing.assert_array_equal(one.predict(X, return_std=True), other.predict(X, return_std=True))


def test_there_are_three():
    assert len(BLOCKS) == 3
    assert skeletons.ErrorKLMS().recipe().dictionary == skeletons.LargeErrors(0.1)
    facts = skeletons.ErrorKLMS.facts
    assert (facts.cost, facts.memory) == ("O(m) per sample", "O(m d)")
    assert (facts.variance, facts.citation) == ("1 / step everywhere, as for KLMS", 'Author, "Title", journal, year.')


@each
def test_learning_and_predicting(cls):
    X, y = stream(40)
    trace = ogp.run(cls(), X, y)
    one = cls()
    for i, (x, target) in enumerate(zip(X, y, strict=True)):
        mean, std = one.predict_one(x, return_std=True)
        assert (mean, std) == pytest.approx((trace.mean[i], trace.std[i]))
        one.learn_one(x, target)
    same(one, cls().fit(X, y), X)
    mean, std = one.predict(X, return_std=True)
    predicted = one.predict_distribution(X)
    np.testing.assert_array_equal(predicted.mean, mean)
    lower, upper = one.predict_interval(X, 0.9)
    np.testing.assert_allclose(upper - lower, 2 * 1.6448536 * std, rtol=1e-6)
    assert np.isfinite(trace.log_density).all()
    assert one.n_samples_seen_ == 40
    both = cls().fit(X, np.stack([y, -y], axis=1))
    assert both.predict(X).shape == (40, 2)


@each
def test_bad_input_changes_nothing(cls):
    X, y = stream(20)
    model = cls().fit(X, y)
    for bad in (np.full_like(X, np.nan), X[:, :1], X[:5]):
        with pytest.raises(ValueError, match=r"must|contains|features"):
            model.partial_fit(bad, y)
    same(model, cls().fit(X, y), X)


@each
def test_copies_and_files_go_on_bit_for_bit(cls, tmp_path):
    X, y = stream(60)
    model, whole = cls().fit(X[:30], y[:30]), cls().fit(X, y)
    model.save(tmp_path / "model.ogp")
    for other in (
        ogp.load(tmp_path / "model.ogp"),
        ogp.from_bytes(model.to_bytes()),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
    ):
        assert type(other) is cls
        same(other.partial_fit(X[30:], y[30:]), whole, X)
    assert repr(ogp.from_bytes(cls().to_bytes())) == repr(cls())


@each
def test_fleets(cls, tmp_path):
    X, y = stream(60)
    keys = ["a", "b", "a"] * 20
    mine = np.array(keys) == "a"
    alone = cls().fit(X[mine], y[mine])
    fleet = ogp.Fleet(cls())
    trace = fleet.run(keys[:30], X[:30], y[:30])
    np.testing.assert_array_equal(trace.mean[mine[:30]], ogp.run(cls(), X[:30][mine[:30]], y[:30][mine[:30]]).mean)
    fleet.learn(keys[30:], X[30:], y[30:])
    fleet.save(tmp_path / "fleet.ogp")
    for other in (
        fleet,
        ogp.Fleet.load(tmp_path / "fleet.ogp"),
        pickle.loads(pickle.dumps(fleet)),
        copy.deepcopy(fleet),
    ):
        same(other["a"], alone, X)
        np.testing.assert_array_equal(other.predict(["a"] * 60, X, return_std=True), alone.predict(X, return_std=True))
        other["c"] = alone
        same(other["c"], alone, X)
        assert list(other) == ["a", "b", "c"]


@each
def test_scikit_learn(cls):
    pytest.importorskip("sklearn")
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(cls(), expected_failed_checks=EXPECTED.get(cls, {}), on_fail=None)
    assert {r["check_name"]: repr(r["exception"]) for r in results if r["status"] == "failed"} == {}
    assert sum(r["status"] == "passed" for r in results) >= 40
    X, y = stream(150)
    assert not clone(cls().fit(X, y)).__sklearn_is_fitted__()
    trace = ogp.run(make_pipeline(StandardScaler(), cls()), X, y)
    direct = ogp.run(cls(), StandardScaler().fit(X[:100]).transform(X), y)
    np.testing.assert_array_equal(trace.mean, direct.mean)


@each
def test_river(cls):
    pytest.importorskip("river")
    from onlinegp.river import RiverRegressor

    X, y = stream(40)
    river, plain = RiverRegressor(cls()), cls()
    for x, target in zip(X, y, strict=True):
        named = {"a": x[0], "b": x[1]}
        assert river.predict_one(named) == plain.predict_one(x)
        river.learn_one(named, target)
        plain.learn_one(x, target)
    lower, upper = river.predict_interval(named)
    assert lower < river.predict_one(named, with_dist=True).mu < upper


@pytest.mark.parametrize("cls", [skeletons.Average, slow(skeletons.ErrorKLMS)])
def test_the_command_line(cls, tmp_path):
    (tmp_path / "mine.py").write_text(CODE)
    write_csv(tmp_path / "data.csv", 120)
    name = cls.__name__

    def onlinegp(*args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).with_name("onlinegp")), *args]
        done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=120)
        assert done.returncode == code, done.stderr
        return done

    given = ["--import", "mine", "--model", name.lower()]
    onlinegp("run", "data.csv", *given, "--tune", "40", "--save", "model.ogp", "--out", "out.csv")
    rows = rows_of(tmp_path / "out.csv")
    assert len(rows) == 120
    assert all(float(row["lower"]) < float(row["mean"]) < float(row["upper"]) for row in rows[40:])
    assert name in onlinegp("inspect", "model.ogp", "--import", "mine").stdout
    onlinegp("predict", "model.ogp", "data.csv", "--import", "mine", "--out", "again.csv")
    assert "there is no model" in onlinegp("inspect", "model.ogp", code=1).stderr
    assert "--import MODULE" in onlinegp("run", "data.csv", "--model", name, code=1).stderr
    assert "cannot import" in onlinegp("run", "data.csv", "--import", "nowhere", "--model", name, code=2).stderr
    table = onlinegp("compare", "data.csv", "--import", "mine", "--models", f"{name},klms", "--jobs", "1").stdout
    assert name in table


def test_a_name_of_the_library_is_not_taken_over():
    from onlinegp.streams.running.algorithms import algorithm

    gc.collect()  # classes of the same name, which other tests have left
    assert algorithm("average").estimator is skeletons.Average
    assert algorithm("klms").estimator is ogp.KLMS
    skeletons.Average.__name__ = "KLMS"
    try:
        with pytest.raises(ValueError, match=r"both skeletons and onlinegp have a model 'klms'\. Rename your class"):
            algorithm("klms")
    finally:
        skeletons.Average.__name__ = "Average"
