"""Auto: raw data in, calibrated predictions out; the same bits in blocks, from files and after an interruption."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

import onlinegp as ogp
from marks import slow
from onlinegp.auto.composed import WIDER, _retuned
from onlinegp.auto.learner import watched
from onlinegp.auto.members import Parts
from onlinegp.auto.targets import isolated
from onlinegp.engine.compiled import outer
from onlinegp.kernels import RBF
from onlinegp.models.combined import Transformed
from onlinegp.models.combined.base import innermost
from onlinegp.state import load

SMALL = {"rows": 60, "earliest": 20, "tuning_delay": 0.0, "budget": 30}


def raw(n: int = 300, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and a target in odd units, far from zero."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 1000, n), rng.normal(5e-3, 1e-3, n)])
    y = 70.0 + 8.0 * np.sin(X[:, 0] / 150.0) + 2000.0 * X[:, 1] + rng.normal(0.0, 1.0, n)
    return X, y


def test_the_first_rows_are_predicted_by_mean_and_spread():
    X, y = raw(30)
    trace = ogp.Auto(**SMALL).run(X, y)
    n = 10
    assert trace.mean[n] == pytest.approx(y[:n].mean())
    assert trace.std[n] == pytest.approx(y[:n].std(ddof=1) * np.sqrt(1.0 + 1.0 / n))
    assert np.all(trace.size[:19] == 0)
    assert np.all(trace.size[19:] > 0)


@pytest.mark.parametrize("n", [19, 20, 45, slow(90)])
def test_blocks_of_any_size_give_the_same_bits(n):
    X, y = raw(n)
    at_once = ogp.Auto(**SMALL).fit(X, y)
    by_row = ogp.Auto(**SMALL)
    for i in range(0, n, 7):
        by_row.partial_fit(X[i : i + 7], y[i : i + 7])
    ran = ogp.Auto(**SMALL)
    ran.run(X, y)
    expected = at_once.to_bytes()
    assert by_row.to_bytes() == expected
    assert ran.to_bytes() == expected


@pytest.mark.parametrize("n", [10, 70])
def test_a_saved_one_goes_on_with_the_same_bits(n):
    X, y = raw(160)
    model = ogp.Auto(**SMALL).fit(X[:n], y[:n])
    loaded = ogp.from_bytes(model.to_bytes())
    one, other = model.run(X[n:], y[n:]), loaded.run(X[n:], y[n:])
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.log_density, other.log_density)
    assert model.to_bytes() == loaded.to_bytes()


def test_what_was_chosen_must_be_a_scaled_mixture():
    X, y = raw(70)
    model = ogp.Auto(**SMALL).fit(X, y)
    contents = model.dump()
    for text in ("", "{}", "no JSON", json.dumps({"class": "KRLST", "module": "onlinegp", "params": {}})):
        forged = {**contents, "learned": {**contents["learned"], "chosen": text}}
        with pytest.raises(ValueError, match=r"chosen|class|JSON|Expecting|lacks"):
            ogp.Auto(**SMALL).load(forged)


def test_a_constant_target_waits_for_a_change():
    X, y = raw(200)
    y[:75] = 3.0
    model = ogp.Auto(**SMALL)
    trace = model.run(X, y)
    assert np.all(trace.mean[1:75] == 3.0)
    assert np.isfinite(trace.std).all()
    assert np.all(trace.size[:79] == 0)  # at 20, 40 and 60 nothing had varied: the next tuning is at 80
    assert trace.size[79] > 0
    assert model.weights_


def test_raw_data_around_seventy_are_covered():
    pd = pytest.importorskip("pandas")
    X, y = raw(1500, seed=3)
    frame = pd.DataFrame(X, columns=["distance", "mass"])
    trace = ogp.run(ogp.Auto(tuning_delay=0.0, rows=300, earliest=300), frame, y)
    low, high = (end[300:] for end in trace.interval(0.95))
    assert np.mean((low <= y[300:]) & (y[300:] <= high)) == pytest.approx(0.95, abs=0.02)
    assert np.mean((trace.mean - y)[300:] ** 2) < 1.4  # the noise has the variance 1


def test_weights_and_members():
    X, y = raw(80)
    model = ogp.Auto(**SMALL, members=["linear", "krlst"]).fit(X, y)
    assert list(model.weights_) == ["linear", "krlst"]
    assert sum(model.weights_.values()) == pytest.approx(1.0)
    assert isinstance(model.chosen_, ogp.Scaled)
    assert ogp.Auto(**SMALL).fit(X[:5], y[:5]).weights_ == {}
    assert ogp.Auto(**SMALL).fit(X[:5], y[:5]).chosen_ is None


def test_a_kernel_that_is_given_is_used():
    X, y = raw(80)
    kernel = RBF((0.7, 0.9))
    model = ogp.Auto(**SMALL, kernel=kernel, forgetting=0.999).fit(X, y)
    members = dict(model.chosen_.model.model.named())
    assert set(members) == {
        "residual",
        "local",
        "krlst",
        "linear",
        "krlst-recent",
        "local-recent",
        "fresh",
    }
    assert innermost(members["local"]).kernel == kernel
    assert innermost(members["krlst"]).forgetting == 0.999


@pytest.mark.slow
def test_pure_noise_is_known_as_such():
    rng = np.random.default_rng(0)
    model = ogp.Auto(tuning_delay=0.0, rows=400, earliest=400).fit(rng.normal(size=(400, 3)), rng.normal(size=400))
    assert model.unexplained_ > 0.95
    X, y = raw(400)
    assert ogp.Auto(tuning_delay=0.0, rows=400, earliest=400).fit(X, y).unexplained_ < 0.2


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"rows": 4}, "earliest"),
        ({"earliest": 2}, "earliest"),
        ({"members": ["local", "forest"]}, "members"),
        ({"members": "local"}, "members"),
        ({"members": []}, "members"),
        ({"noise": -1.0}, "noise"),
        ({"kernel": "rbf"}, "kernel"),
        ({"store": 0}, "store"),
    ],
)
def test_wrong_parameters_are_named(wrong, named):
    with pytest.raises((ValueError, TypeError), match=named):
        ogp.Auto(**wrong).fit(*raw(30))


def test_progress_is_told():
    shares = []
    with watched(shares.append):
        ogp.Auto(**SMALL).fit(*raw(60))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_several_outputs_one_of_them_constant():
    X, y = raw(100)
    Y = np.stack([y, -2.0 * y, np.full(100, 5.0)], axis=1)
    model = ogp.Auto(**SMALL).fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (100, 3)
    assert np.corrcoef(mean[:, 0], y)[0, 1] > 0.9
    np.testing.assert_allclose(mean[:, 2], 5.0, atol=0.2)


def test_the_command_uses_it_and_says_what_it_chose(tmp_path, capfd):
    from onlinegp.cli import main

    X, y = raw(400)
    path = tmp_path / "data.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,y", comments="")
    assert main(["run", str(path), "--tune", "100", "--out", str(tmp_path / "out.csv")]) == 0
    predicted = capfd.readouterr().err
    assert "model: auto, tuned on 100 rows" in predicted
    assert "krlst" in predicted


@pytest.mark.slow
def test_on_data_of_a_known_process_it_loses_little():
    """After 1,000 rows at most 0.02 nats per row to the GP that the data were drawn from."""
    rng = np.random.default_rng(1)
    X, noise, kernel = rng.normal(size=(3000, 2)), 0.05, RBF(1.0)
    K = kernel(X) + noise * np.eye(3000)
    y = np.linalg.cholesky(K) @ rng.normal(size=3000)
    truth = ogp.OnlineGP(kernel, noise=noise).run(X, y).log_density[1000:].mean()
    auto = ogp.Auto(earliest=1000).run(X, y).log_density[1000:].mean()
    assert auto > truth - 0.02


def test_members_that_were_not_asked_for_never_come_in():
    """Also where the one that was asked for is much less likely than another."""
    X, _ = raw(80)
    y = 5.0 + 0.1 * X[:, 0] + 1e-3 * np.random.default_rng(0).normal(size=80)
    for one in ("local", "residual"):
        assert list(ogp.Auto(**SMALL, members=[one]).fit(X, y).weights_) == [one]
    assert list(ogp.Auto(**SMALL, members=["local"], kernel=RBF(1.0) + RBF(0.1)).fit(X, y).weights_) == ["local"]
    assert list(ogp.Auto(**SMALL, members=["residual-other"], kernel=RBF(1.0)).fit(X, y).weights_) == ["local"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ValueError])
@pytest.mark.parametrize("call", ["fit", "run", "learn"])
def test_a_tuning_that_fails_stays_due(call, error, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (60, 1))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(60)
    model = ogp.Auto(tuning_delay=0.0, rows=40, earliest=20, members=("krlst", "linear"), kernel=RBF(0.7), budget=10)
    whole = copy.deepcopy(model).fit(X, y)
    learner = model.start(1, 1)  # alone, too, as in a fleet
    compose, calls = Parts.compose, []

    def fail(self, *rows):
        calls.append(len(rows[0]))
        if len(calls) == 1:
            raise error
        return compose(self, *rows)

    monkeypatch.setattr(Parts, "compose", fail)
    learn = {
        "fit": lambda: model.fit(X, y),
        "run": lambda: model.run(X, y),
        "learn": lambda: learner.learn(X, y[:, None]),
    }
    with pytest.raises(error):
        learn[call]()
    if call == "learn":
        learner.learn(X[learner.seen :], y[learner.seen :, None])
        assert learner.chosen is not None
        return
    assert model.n_samples_seen_ == 0
    assert model.chosen_ is None
    model.partial_fit(X, y)
    assert repr(model.chosen_) == repr(whole.chosen_)
    np.testing.assert_array_equal(model.predict(X, return_std=True), whole.predict(X, return_std=True))
    assert calls[1:] == [40]  # only the last tuning counts where all rows are at hand


def test_a_member_is_tuned_on_the_rows_since_a_change():
    rng = np.random.default_rng(1)
    X = rng.uniform(-2.0, 2.0, (900, 2))
    y = np.where(np.arange(900) < 300, np.sin(2.0 * X[:, 0]), 5.0 * np.cos(3.0 * X[:, 1])) + 0.1 * rng.normal(size=900)
    options = {"rows": 150, "earliest": 150, "tuning_delay": 0.0, "budget": 30}
    model = ogp.Auto(**options)
    trace = model.run(X[:700], y[:700])
    ((row, kind),) = model.changes_
    assert abs(row - 300) < 20
    assert kind == "target"
    assert "retuned" in model.weights_
    members = {one.name: one for one in model.members_}
    assert {name: one.weight for name, one in members.items()} == model.weights_
    best = max(members.values(), key=lambda one: one.weight)
    assert best.behind == 0.0
    assert best.error < 0.5 * members["local"].error  # which knows the rows before the change, too
    assert all(one.cost and isinstance(one.model, ogp.OnlineRegressor) for one in members.values())
    assert "retuned" in dict(model.chosen_.model.model.models)
    error = (trace.mean - y[:700])[650:]
    assert np.mean(error**2) < 0.05 * np.var(y[650:])
    loaded, rows = ogp.from_bytes(model.to_bytes()), ogp.Auto(**options)
    for x, target in zip(X[:700], y[:700], strict=True):
        rows.learn_one(x, target)
    rows.partial_fit(X[700:], y[700:])
    later = slice(700, None)
    np.testing.assert_array_equal(model.run(X[later], y[later]).mean, loaded.run(X[later], y[later]).mean)
    assert model.to_bytes() == loaded.to_bytes()
    np.testing.assert_array_equal(rows.predict(X), model.predict(X))


def test_a_member_is_tuned_on_the_newer_half_where_a_change_was_slow():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (700, 1))
    old, new = np.sin(3.0 * X[:, 0]), np.cos(2.0 * X[:, 0]) + 0.05 * rng.normal(size=700)
    slow = np.where((rng.uniform(size=700) < 0.5) & (np.arange(700) < 340), old, new)
    noise = {}
    for name, y in (("slow", slow), ("abrupt", new)):
        model, contents, _ = _retuned(Parts(kernel=RBF(1.0)), X, y[:, None], False, lambda share: None)
        noise[name] = innermost(model).noise
        member = model.start(1, 1)
        load(member, contents)
        assert member.seen == (350 if name == "slow" else 700)
    assert noise["slow"] < 2.0 * noise["abrupt"]


def test_outliers_are_isolated_targets():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (400, 2))
    y = np.sin(2.0 * X[:, 0]) + 0.05 * rng.normal(size=400)
    wrong = rng.choice(400, 8, replace=False)
    y[wrong] += 10.0 * rng.choice([-1.0, 1.0], 8)
    assert set(np.flatnonzero(isolated(X, y[:, None]))) == set(wrong)
    spikes = np.where(X[:, 1] > 1.8, 10.0, 0.0) + 0.1 * rng.normal(size=400)  # which the inputs explain
    assert not isolated(X, spikes[:, None]).any()
    assert not isolated(X, np.ones((400, 1))).any()
    peaks = 0.1 * rng.normal(size=400)
    peaks[np.add.outer([40, 150, 260, 330], np.arange(3)).ravel()] += 10.0  # which last some rows
    assert not isolated(X, peaks[:, None]).any()


@pytest.mark.parametrize("model", [ogp.Auto(rows=200), ogp.Tuned(ogp.KRLST(budget=50), rows=200)])
def test_a_spike_is_not_predicted_again_and_a_jump_is_followed(model):
    rng = np.random.default_rng(0)
    level = np.cumsum(rng.normal(size=600)) * 0.3
    X, y = np.c_[level + 0.1 * rng.normal(size=600), rng.normal(size=600)], level + 0.1 * rng.normal(size=600)
    plain = model.unfitted().run(X, y)
    spiked = y.copy()
    spiked[500] += 1000.0
    after = np.abs(model.unfitted().run(X, spiked).mean - y)[501:]
    assert after[:3].max() < 10.0
    assert after[20:].mean() < 1.2 * np.abs(plain.mean - y)[521:].mean()
    jumped = np.where(np.arange(600) < 500, y, y + 50.0)
    after = np.abs(model.unfitted().run(X, jumped).mean - jumped)[500:]
    assert after[-20:].mean() < 10.0


def test_skewed_targets_are_predicted_on_another_scale():
    rng = np.random.default_rng(4)
    X = rng.uniform(-2.0, 2.0, (900, 2))
    skewed = np.exp(np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=900))
    options = {"rows": 300, "earliest": 300, "tuning_delay": 0.0, "budget": 50, "members": ["residual", "linear"]}
    model = ogp.Auto(**options).fit(X[:300], skewed[:300])
    assert isinstance(model.chosen_, Transformed)
    assert isinstance(ogp.Auto(**options).fit(X[:300], 70.0 + np.log(skewed[:300])).chosen_, ogp.Scaled)
    loaded, rows = ogp.from_bytes(model.to_bytes()), ogp.from_bytes(model.to_bytes())
    trace = model.run(X[300:], skewed[300:])
    true = (np.log(skewed[300:]) - np.sin(2.0 * X[300:, 0]) - X[300:, 1]) / 0.5
    best = np.mean(-0.5 * true**2 - np.log(0.5 * np.sqrt(2.0 * np.pi) * skewed[300:]))
    assert trace.log_density.mean() > best - 0.1
    low, high = trace.interval()
    assert 0.92 < np.mean((low <= skewed[300:]) & (skewed[300:] <= high)) < 0.98
    for x, y in zip(X[300:], skewed[300:].tolist(), strict=True):
        rows.learn_one(x, y)
    np.testing.assert_array_equal(loaded.run(X[300:], skewed[300:]).mean, trace.mean)
    assert rows.to_bytes() == model.to_bytes()


@pytest.mark.parametrize(("share", "amount"), [(0.1, 1.0), (0.02, 1.0), (0.1, 40.0)], ids=["many", "few", "revenue"])
@pytest.mark.parametrize("model", [ogp.Auto(rows=300, tuning_delay=0.0), ogp.Tuned(ogp.LinearRLS(), rows=300)])
def test_the_mean_of_targets_that_are_mostly_zero_is_right(model, share, amount):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (900, 2))
    y = np.where(rng.random(900) < share * (0.5 + X[:, 0]), amount if amount == 1.0 else rng.gamma(2.0, 20.0, 900), 0.0)
    trace = ogp.run(copy.deepcopy(model), X, y)
    assert 0.6 < trace.mean[300:].mean() / y[300:].mean() < 1.4


def test_the_last_value_is_a_member_where_it_tells_more_than_the_mean():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(100, 1))
    options = {"rows": 100, "earliest": 100, "tuning_delay": 0.0, "members": ["linear", "persistence"]}
    assert list(ogp.Auto(**options).fit(X, X[:, 0] + rng.normal(size=100)).weights_) == ["linear"]
    walk = ogp.Auto(**options).fit(X, np.cumsum(rng.normal(size=100)))
    assert walk.weights_["persistence"] > 0.9


@pytest.mark.parametrize(("noise", "limit"), [(0.05, 1.5), (0.005, 3.0)])
def test_outliers_change_it_little(noise, limit):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (600, 2))
    clean = np.sin(2.0 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=600)
    y = clean + np.where(rng.uniform(size=600) < 0.02, 10.0 * rng.choice([-1.0, 1.0], 600), 0.0)
    options = {"rows": 150, "earliest": 150, "tuning_delay": 0.0, "budget": 50, "members": ["residual", "linear"]}
    with_outliers = ogp.Auto(**options).run(X, y).mean[300:] - clean[300:]
    without = ogp.Auto(**options).run(X, clean).mean[300:] - clean[300:]
    assert np.mean(with_outliers**2) < limit * np.mean(without**2)


def test_intervals_are_wider_after_few_rows():
    """What was just composed repeats the rows that it was tuned on, and misses too few of them: they do not count."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-3.0, 3.0, (100, 1))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=100)
    model = ogp.Auto(tuning_delay=0.0, rows=100, earliest=50)
    for rows in (50, 100):
        model.partial_fit(X[rows - 50 : rows], y[rows - 50 : rows])
        conformal = outer(model.learner.inner).inner
        assert conformal.rows[0] == 0
        assert conformal.log_scale[0] == pytest.approx(np.log(1.0 + WIDER / rows))


def test_a_long_constant_start_is_the_same_in_blocks():
    """Only the latest rows are kept: what is predicted from them does not depend on the size of a block."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(120, 1)), np.r_[np.full(100, 5.1), 5.1 + 0.1 * rng.standard_normal(20)]
    whole, single = ogp.Auto(rows=20), ogp.Auto(rows=20)
    means = [single.run(X[i : i + 1], y[i : i + 1]).mean[0] for i in range(len(y))]
    np.testing.assert_array_equal(whole.run(X, y).mean, means)
