"""Mixture: its guarantee, its weights, its members and their parameters."""

from __future__ import annotations

import copy
import signal
import threading

import numpy as np
import pytest

import onlinegp as ogp
from models import stream
from onlinegp.kernels import RBF


def members():
    return [
        ("gp", ogp.KRLST(RBF(0.7), noise=0.01, budget=25)),
        ("line", ogp.LinearRLS(noise=0.1)),
        ("sure", ogp.LinearRLS(noise=1e-4)),
    ]


@pytest.mark.parametrize("n", [1, 30, 500])
def test_without_fading_it_is_as_good_as_its_best_member_but_for_the_log_of_their_number(n):
    X, y = stream(n)
    mixed = ogp.run(ogp.Mixture(members(), fade=1.0), X, y).log_density.sum()
    alone = [ogp.run(model, X, y).log_density.sum() for _, model in members()]
    assert mixed >= max(alone) - np.log(3) - 1e-9
    assert mixed == pytest.approx(np.logaddexp.reduce(alone) - np.log(3), rel=1e-9)  # Bayes' rule, to the digit


def test_that_holds_with_outliers_and_members_that_change_places():
    rng = np.random.default_rng(0)
    X, y = np.zeros((400, 1)), np.concatenate([rng.normal(0, 0.01, 200), rng.normal(0, 10.0, 200)])
    y[50] = 1e4
    models = [ogp.LinearRLS(noise=v, prior=1e-6) for v in (1e-4, 1.0, 100.0)]
    mixed = ogp.run(ogp.Mixture(models, fade=1.0), X, y).log_density.sum()
    alone = [ogp.run(model, X, y).log_density.sum() for model in models]
    assert mixed >= max(alone) - np.log(3) - 1e-6
    # with fading it follows the change, which no member does
    assert ogp.run(ogp.Mixture(models), X, y).log_density.sum() > max(alone) + 200.0


def test_weights_are_fading_sums_of_log_densities():
    X, y = stream(80)
    model = ogp.Mixture(members(), fade=0.95, weights=(0.0, 1.0, 2.0))
    trace = ogp.run(model, X, y)
    logs = np.column_stack([ogp.run(one, X, y).log_density for _, one in members()])
    w = np.array([0.0, 1.0, 2.0])
    for i in range(80):
        share = np.exp(w - w.max())
        np.testing.assert_allclose(trace.predictions.weights[i], share / share.sum(), rtol=1e-9, atol=1e-300)
        w = 0.95 * (w - w.max()) + np.maximum(logs[i], logs[i].max() - 10.0)
    share = np.exp(w - w.max())
    assert list(model.weights_) == ["gp", "line", "sure"]
    np.testing.assert_allclose(list(model.weights_.values()), share / share.sum(), rtol=1e-9)


def test_an_outlier_does_not_hand_all_weight_to_the_least_sure():
    X, y = np.zeros((100, 1)), 0.1 * np.random.default_rng(0).normal(size=100)
    y[60] = 50.0
    sure, unsure = ogp.LinearRLS(noise=0.01, prior=1e-6), ogp.LinearRLS(noise=25.0, prior=1e-6)
    weights = ogp.run(ogp.Mixture([("sure", sure), ("unsure", unsure)]), X, y).predictions.weights
    assert weights[59, 0] > 0.99
    assert weights[63, 0] > 0.9


def test_members_learn_as_each_would_alone_with_several_outputs():
    X, y = stream(300)
    Y = np.column_stack([y, -2.0 * y])
    trace = ogp.run(ogp.Mixture(members()), X, Y)
    for k, (_, one) in enumerate(members()):
        np.testing.assert_array_equal(trace.predictions.members[k].mean, ogp.run(one, X, Y).mean)
    logs = [ogp.run(one, X, Y).log_density.sum(axis=1) for _, one in members()]
    assert trace.predictions.weights.shape == (300, 2, 3)
    np.testing.assert_array_equal(trace.predictions.weights[:, 0], trace.predictions.weights[:, 1])
    assert trace.predictions.weights[1, 0].argmax() == np.argmax([log[0] for log in logs])


def test_portions_give_the_bits_of_the_whole():
    X, y = stream(700)
    model = ogp.Mixture([ogp.HeavyTailed(one) for _, one in members()])
    whole = ogp.run(model, X, y)
    other = ogp.Mixture([ogp.HeavyTailed(one) for _, one in members()])
    parts = [ogp.run(other, X[i : i + 90], y[i : i + 90]) for i in range(0, 700, 90)]
    np.testing.assert_array_equal(
        np.concatenate([part.predictions.weights for part in parts]), whole.predictions.weights
    )
    np.testing.assert_array_equal(np.concatenate([part.mean for part in parts]), whole.mean)
    assert other.weights_ == model.weights_


def test_names_and_parameters():
    model = ogp.Mixture([ogp.KRLST(), ogp.LinearRLS(), ogp.KRLST(budget=5)])
    assert [name for name, _ in model.named()] == ["krlst-1", "linearrls", "krlst-2"]
    params = model.get_params()
    assert params["krlst-2__budget"] == 5
    assert params["linearrls"] is model.models[1]
    model.set_params(**{"krlst-2__budget": 7, "linearrls": ogp.QKLMS(), "fade": 0.5})
    assert model.models[2][1].budget == 7
    assert isinstance(dict(model.named())["linearrls"], ogp.QKLMS)
    assert model.fade == 0.5
    with pytest.raises(ValueError, match=r"Invalid parameter 'nonsense'.*krlst-1"):
        model.set_params(nonsense__noise=1)
    clone = pytest.importorskip("sklearn.base").clone
    assert repr(clone(model)) == repr(model)


def test_members_stay_as_they_are():
    inside = ogp.KRLST(budget=10)
    model = ogp.Mixture([inside, ogp.LinearRLS()]).fit(*stream(30))
    assert not inside.__sklearn_is_fitted__()
    inside.set_params(noise=100.0)
    assert ogp.from_bytes(model.to_bytes()).models[0].noise == 0.01
    np.testing.assert_array_equal(copy.deepcopy(model).predict(stream(9)[0]), model.predict(stream(9)[0]))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ogp.Mixture([]), "at least one member"),
        (ogp.Mixture(ogp.KRLST()), "must be a list"),
        (ogp.Mixture("krlst"), "must be a list"),
        (ogp.Mixture([ogp.KRLST]), "estimators of onlinegp"),
        (ogp.Mixture([("a", ogp.KRLST(), 1)]), r"pairs \(name, estimator\)"),
        (ogp.Mixture([("a", ogp.KRLST()), ("a", ogp.KLMS())]), "must differ"),
        (ogp.Mixture([("fade", ogp.KRLST())]), "must differ from each other and from models, fade, weights"),
        (ogp.Mixture([("a__b", ogp.KRLST())]), "neither '__'"),
        (ogp.Mixture([ogp.KRLST()], fade=0.0), "fade must be greater than 0"),
        (ogp.Mixture([ogp.KRLST()], weights=(1.0, 2.0)), "weights must be 1 finite numbers"),
        (ogp.Mixture([ogp.KRLST()], weights=(np.nan,)), "weights must be 1 finite numbers"),
        (ogp.Mixture([ogp.KRLST(noise=0.0)]), "noise must be positive"),
    ],
)
def test_bad_parameters_are_named(model, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(*stream(5))
    with pytest.raises((ValueError, TypeError), match=message):
        model.check()


def test_the_record_of_a_member_counts():
    """The slow twin: recent log densities, and a fading mean over 50 rows with a limit."""
    X, y = stream(400)
    y[200:] = 0.5 * X[200:, 0]  # the other member is better
    both = [("gp", ogp.KRLST(RBF(0.7), noise=0.01, budget=20)), ("line", ogp.LinearRLS(noise=0.01, forgetting=0.9))]
    weights = ogp.run(ogp.Mixture(both, fade=0.8, lasting=10.0), X, y).predictions.weights
    densities = np.stack([ogp.run(model, X, y).log_density for _, model in both], axis=1)
    log_weights, record, keep, records = np.zeros(2), np.zeros(2), 0.5 ** (1 / 50), []
    for i, row in enumerate(densities):
        expected = np.exp(log_weights + record)
        np.testing.assert_allclose(weights[i], expected / expected.sum(), rtol=1e-9)
        behind = np.maximum(row - row.max(), -2.5)
        log_weights = 0.8 * log_weights + behind
        record = np.maximum(keep * record + (1.0 - keep) * 10.0 * behind, -12.0)
        records.append(record)
    assert (np.min(records, axis=0) == -12.0).all()


@pytest.mark.parametrize("engine", ["auto", "python"])
def test_the_gate_lifts_no_member_above_a_better_one_that_is_more_certain(engine):
    """A line through a sine is always uncertain. It got all weight where the GP is less certain than usual."""
    X, x = np.random.default_rng(0).uniform(-3.0, 3.0, (200, 1)), [[3.3]]
    y = np.sin(2.0 * X[:, 0])
    gp, line = ogp.KRLST(RBF(1.0), noise=1e-4, engine=engine), ogp.LinearRLS(noise=1.0, engine=engine)
    (_, usual), (_, std), (_, large) = (
        one.fit(X, y).predict(at, return_std=True) for one, at in ((gp, [[0.0]]), (gp, x), (line, x))
    )
    assert 3.0 * usual < std < 0.5 * large
    model = ogp.Mixture([("gp", gp), ("line", line)], fade=0.5, gate=4.0).fit(X, y)
    assert model.predict_distribution(x).weights[0, 0] >= 0.5


def test_forged_weights_are_refused():
    model = ogp.Mixture(members()).fit(*stream(30))
    for forged in (np.array([0.0, 1.0, 0.0]), np.array([-1.0, -1.0, -2.0]), np.array([0.0, np.nan, 0.0]), np.zeros(2)):
        contents = model.dump()
        contents["learned"]["log_weights"] = forged
        with pytest.raises(ValueError, match="log_weights"):
            ogp.Mixture(members()).load(contents)


def test_an_interrupt_leaves_all_members_with_the_same_rows():
    X, y = stream(20_000)
    for seconds in (0.3, 1.0, 3.0):  # on a busy machine no row may be learned in the first of them
        model = ogp.Mixture([ogp.KRLST(budget=100), ogp.LinearRLS(engine="python"), ogp.LinearRLS()])
        timer = threading.Timer(seconds, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X, y)
        timer.join()
        if seen := model.n_samples_seen_:
            break
    assert 0 < seen < 20_000
    assert {member.seen for member in model._working.members.values()} == {seen}
    fresh = ogp.Mixture([ogp.KRLST(budget=100), ogp.LinearRLS(engine="python"), ogp.LinearRLS()])
    assert fresh.fit(X[:seen], y[:seen]).weights_ == model.weights_


def test_rows_that_several_members_keep_are_counted_once():
    X = np.random.default_rng(0).normal(size=(150, 1))
    members = [
        ("all", ogp.LocalGP(store=None)),
        ("again", ogp.LocalGP(store=None, noise=0.1)),
        ("line", ogp.LinearRLS()),
    ]
    model = ogp.Mixture([*members, ("few", ogp.KRLST(budget=10))])
    trace = ogp.run(model, X, X[:, 0])
    assert trace.size.tolist() == list(range(1, 151))
    assert model.size_ == 150
    assert "150 rows, 1 not scored" in repr(trace)
    assert repr(trace).endswith("150 centers)")


@pytest.mark.parametrize("name", ["seen", "total", "count", "log_weights"])
def test_a_member_may_have_the_name_of_what_a_mixture_stores(name):
    X, y = stream(40)
    model = ogp.Mixture([(name, ogp.LinearRLS()), ("other", ogp.KLMS())]).fit(X, y)
    np.testing.assert_array_equal(ogp.from_bytes(model.to_bytes()).predict(X), model.predict(X))
