"""Robust: what is learned of a sample lies within some standard deviations of what was predicted."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import pytest

import onlinegp as ogp
from models import MODELS, stream
from onlinegp.kernels import RBF
from onlinegp.learner import RowLearner


@pytest.mark.parametrize("name", ["KRLST", "KLMS", "SWKRLS"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_it_learns_bounded_values(name, outputs):
    """The slow twin: predict, bound, learn."""
    X, y = stream(80)
    y[::7] += 10.0
    Y = y if outputs == 1 else np.column_stack([y, 2.0 - y])
    trace = ogp.Robust(MODELS[name], bound=1.5).run(X, Y)
    plain = copy.deepcopy(MODELS[name])
    for i in range(80):
        mean, std = plain.predict(X[i : i + 1], return_std=True) if i else (np.zeros(Y[:1].shape), trace.std[:1])
        np.testing.assert_allclose(trace.mean[i], mean[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(trace.std[i], std[0], rtol=1e-9)
        plain.partial_fit(X[i : i + 1], mean + np.clip(Y[i] - mean, -1.5 * std, 1.5 * std))


def test_without_outliers_a_wide_bound_changes_nothing():
    X, y = stream(80)
    trace, plain = ogp.Robust(MODELS["KRLST"], bound=1e6).run(X, y), copy.deepcopy(MODELS["KRLST"]).run(X, y)
    np.testing.assert_allclose(trace.mean, plain.mean, rtol=1e-9, atol=1e-12)


def test_outliers_do_little():
    X, y = stream(400)
    dirty = y.copy()
    dirty[5::20] += 100.0
    new, truth = stream(100, seed=5)
    model = ogp.KRLST(RBF(0.7), noise=0.01)
    robust, plain = ogp.Robust(model).fit(X, dirty), copy.deepcopy(model).fit(X, dirty)
    assert np.abs(robust.predict(new) - truth).mean() < 0.3 < 1.0 < np.abs(plain.predict(new) - truth).mean()


def test_the_first_rows_are_learned_in_full():
    X, y = stream(80)
    y[::7] += 10.0
    robust, plain = ogp.Robust(MODELS["KRLST"], bound=1.0, rows=40), copy.deepcopy(MODELS["KRLST"])
    means = robust.run(X, y).mean, plain.run(X, y).mean
    np.testing.assert_allclose(means[0][:41], means[1][:41], rtol=1e-9, atol=1e-12)
    assert abs(means[0][43:] - means[1][43:]).max() > 0.1


def test_a_model_that_expects_too_little_does_not_reject_all_rows():
    X = np.random.default_rng(0).uniform(-2.0, 2.0, (300, 1))
    y = np.sin(2.0 * X[:, 0])
    model = ogp.KRLST(0.01 * RBF(0.7), noise=1e-6)
    late = [np.abs(ogp.Robust(model, reject=6.0, rows=rows).run(X, y).mean - y)[200:].max() for rows in (0, 50)]
    assert late[1] < 0.01 < 0.3 < late[0]


@dataclass(frozen=True, eq=False)
class Shifted(ogp.predictions.Gaussian):
    """A kind of prediction of its own: it knows more than its mean and standard deviation."""


class ShiftedLearner(RowLearner):
    def __init__(self, features, outputs):
        self.features, self.outputs = features, outputs
        self.learned = np.empty((0, outputs))

    def learn(self, X, Y):
        self.learned = np.concatenate([self.learned, Y])
        self.seen = len(self.learned)

    def predict(self, X):
        return Shifted(np.ones((len(X), self.outputs)), np.full((len(X), self.outputs), 0.5))

    def dump(self):
        return {"learned": self.learned.copy()}

    def load(self, contents):
        self.learned = contents["learned"]


class ShiftedModel(ogp.OnlineRegressor):
    def start(self, features, outputs):
        return ShiftedLearner(features, outputs)


@pytest.mark.parametrize("engine", ["auto", "python"])
def test_a_spike_is_clipped_and_a_jump_is_followed(engine):
    """The third far row in a row is learned in full, and so are all later ones until a row is near."""
    y = np.array([0.0] * 20 + [50.0] + [0.0] * 5 + [50.0] * 8)
    X = np.ones((len(y), 1))
    model = ogp.Robust(ogp.KRLST(RBF(1.0), noise=0.1, engine=engine, forgetting=0.9), bound=3.0, in_a_row=2)
    mean = model.run(X, y).mean
    assert abs(mean[21]) < 2.0  # after the spike
    assert abs(mean[28]) < 5.0  # after two rows of the jump
    assert mean[29] > 5.0  # the third was learned
    assert abs(mean[33] - 50.0) < abs(ogp.Robust(model.model, bound=3.0).run(X, y).mean[33] - 50.0)


def test_the_kind_of_prediction_is_kept():
    X, y = stream(20)
    model = ogp.Robust(ShiftedModel(), bound=2.0)
    assert type(model.run(X, 5.0 * y).predictions) is Shifted
    np.testing.assert_allclose(model.dump()["learned"]["model.learned"][:, 0], np.clip(5.0 * y, 0.0, 2.0), rtol=1e-12)


def test_bad_parameters_are_named():
    for bound in (0.0, -1.0, np.inf, "3"):
        with pytest.raises((ValueError, TypeError), match="bound must be"):
            ogp.Robust(ogp.KRLST(), bound=bound).fit(*stream(5))
    with pytest.raises(ValueError, match="rows must be at least 0"):
        ogp.Robust(ogp.KRLST(), rows=-1).fit(*stream(5))
    with pytest.raises(ValueError, match="in_a_row must be at least 1"):
        ogp.Robust(ogp.KRLST(), in_a_row=0).fit(*stream(5))
