"""A mixture of a ResidualGP and a LocalGP runs one store and one solution, and says what two would say."""

from __future__ import annotations

import numpy as np
import pytest

import onlinegp as ogp
from models import stream
from onlinegp.kernels import RBF
from onlinegp.models.combined.base import innermost_learner
from onlinegp.models.combined.shared_rows import SharedRows
from onlinegp.predictions.mixture import as_components

OPTIONS = {"noise": 0.01, "neighbors": 9, "store": 50, "forgetting": 0.995}
WRAPPERS = {"bare": lambda model: model, "HeavyTailed": ogp.HeavyTailed, "Calibrated": ogp.Calibrated}
engines = pytest.mark.parametrize("engine", ["python", "native"])


def mixture(engine="native", wrap=ogp.HeavyTailed, reverse=False, **changed):
    """With a change, the two have different parameters, and share nothing."""
    members = [
        ("residual", wrap(ogp.ResidualGP(RBF(0.8), engine=engine, **OPTIONS))),
        ("line", ogp.LinearRLS()),
        ("local", wrap(ogp.LocalGP(RBF(0.8), engine=engine, **OPTIONS | changed))),
    ]
    return ogp.Mixture(members[::-1] if reverse else members, gate=2.0)


def shares(model) -> bool:
    return any(isinstance(innermost_learner(one), SharedRows) for one in model.start(2, 1).members.values())


def apart(model, X, y):
    """What the same members predict where each runs by itself: a mixture of their predictions."""
    return {name: ogp.run(member.unfitted(), X, y).predictions for name, member in model.named()}


@engines
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_members_say_what_they_say_alone(engine, reverse, wrapper):
    X, y = stream(150)
    model = mixture(engine, WRAPPERS[wrapper], reverse)
    assert shares(model)
    found = ogp.run(model, X, y).predictions
    alone = [as_components(one) for one in apart(model, X, y).values()]
    np.testing.assert_allclose(found.means, np.hstack([one.means for one in alone]), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.scales, np.hstack([one.scales for one in alone]), rtol=1e-12)
    asked, _ = stream(20, seed=1)
    alone = [as_components(one.fit(X, y).predict_distribution(asked)) for _, one in model.named()]
    predicted = model.predict_distribution(asked)
    np.testing.assert_allclose(predicted.means, np.hstack([one.means for one in alone]), rtol=1e-12, atol=1e-13)


def test_rows_are_read_once():
    """The LocalGP has no store of its own, so it holds no row."""
    model = mixture().fit(*stream(60))
    local = innermost_learner(model.learner.members["local"])
    assert isinstance(local, SharedRows)
    assert local.source is innermost_learner(model.learner.members["residual"])
    assert local.size == 50


@pytest.mark.parametrize(
    "model",
    [
        mixture(noise=0.02),
        mixture(neighbors=8),
        mixture(store=None),
        mixture(forgetting=1.0),
        mixture(wrap=ogp.Scaled),
        mixture(wrap=lambda one: ogp.Lagged(one, lags=1)),
        ogp.Mixture([ogp.ResidualGP(RBF(0.8), linear=True), ogp.LocalGP(RBF(0.8))]),
        ogp.Mixture([ogp.ResidualGP(RBF(0.8), engine="python"), ogp.LocalGP(RBF(0.8), engine="native")]),
    ],
    ids=["noise", "neighbors", "store", "forgetting", "Scaled", "Lagged", "linear", "engines"],
)
def test_others_keep_their_own(model):
    assert not shares(model)


@engines
@pytest.mark.parametrize("reverse", [False, True])
def test_files_go_on_bit_for_bit(engine, reverse):
    X, y = stream(150)
    model = mixture(engine, reverse=reverse).fit(X[:90], y[:90])
    again = ogp.from_bytes(model.to_bytes())
    one, two = ogp.run(model, X[90:], y[90:]), ogp.run(again, X[90:], y[90:])
    np.testing.assert_array_equal(one.mean, two.mean)
    np.testing.assert_array_equal(one.std, two.std)


def test_contents_whose_rows_differ_are_refused():
    model = mixture().fit(*stream(60))
    contents = model.learner.dump()
    name = next(name for name in contents if name.startswith("local.") and name.endswith("X"))
    with pytest.raises(ValueError, match="local must have the same rows as residual"):
        model.start(2, 1).load(contents | {name: contents[name] + 1.0})
