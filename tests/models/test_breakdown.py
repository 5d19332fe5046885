"""A model that has broken down says so, whichever way it is used, and is not saved."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest

import onlinegp as ogp
from models import LOCAL, MODELS, stream
from onlinegp.engine import available
from onlinegp.kernels import RBF, Linear

ENGINES = ["python", *(["native"] if available() else [])]
every_engine = pytest.mark.parametrize("engine", ENGINES)


def diverging(engine: str) -> ogp.KLMS:
    """KLMS with a step beyond its stable range, 2 / k(x, x)."""
    return ogp.KLMS(RBF(5.0), step=2.5, engine=engine)


@every_engine
def test_a_step_that_is_too_long_is_noticed_by_run(engine):
    X, y = stream(300)
    with pytest.raises(ogp.BreakdownError, match=r"KLMS.*step=2.5.* broke down at row \d+ .*Lower the step") as caught:
        ogp.run(diverging(engine), X, y)
    before = ogp.run(diverging(engine), X[: caught.value.row], y[: caught.value.row])  # no alarm before that row
    assert np.abs(before.mean).max() > 1e3


@every_engine
def test_a_step_that_is_too_long_is_noticed_while_learning(engine):
    X, y = stream(500)
    with pytest.raises(ogp.BreakdownError, match="broke down at row"):
        diverging(engine).fit(X, y)
    model = diverging(engine)

    def one_by_one():
        for x, value in zip(X, y, strict=True):
            model.learn_one(x, value)

    with pytest.raises(ogp.BreakdownError, match="broke down at row"):
        one_by_one()


UNSURE = {  # whose standard deviation is that of their errors, and grows along
    "KAP": ogp.kafbox.KAP(RBF(1.0), step=3.0),
    "LKAPA": ogp.kafbox.LKAPA(RBF(1.0), step=3.0, leak=1e-4),
    "NLKAPA": ogp.kafbox.NLKAPA(RBF(1.0), step=3.0, leak=1e-4),
    "KAPSM": ogp.kafbox.KAPSM(RBF(1.0), step=50.0, radius=None),
    "PHYPASS": ogp.kafbox.PHYPASS(RBF(1.0), step=3.0),
    "L2S": ogp.kafbox.L2S((1.0, 0.5), step=3.0),
    "KLMSCSL1": ogp.kafbox.KLMSCSL1(RBF(1.0), step=3.0),
    "KLMSCSAL1": ogp.kafbox.KLMSCSAL1(RBF(1.0), step=3.0),
    "Scaled": ogp.Scaled(ogp.kafbox.L2S((1.0, 0.5), step=3.0)),
}


@pytest.mark.parametrize("name", UNSURE)
def test_one_that_is_never_sure_is_noticed_before_its_numbers_end(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1]
    model = copy(UNSURE[name])
    with pytest.raises(ogp.BreakdownError, match=r"broke down at row \d+ .* it predicts .*Lower the step") as caught:
        ogp.run(model, X, y)
    assert np.abs(caught.value.trace.mean).max() < 1e10
    with pytest.raises(ogp.BreakdownError):
        copy(UNSURE[name]).fit(X, y)


@every_engine
def test_a_broken_model_is_not_saved(engine, tmp_path):
    X, y = stream(300)
    model = diverging(engine)
    with pytest.raises(ogp.BreakdownError):
        ogp.run(model, X, y)
    with pytest.raises(ogp.BreakdownError):
        model.save(tmp_path / "model.ogp")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", MODELS | LOCAL)
def test_no_false_alarm_on_ordinary_streams(name):
    X, y = stream(400)
    for scale in (1e-6, 1.0, 1e6):
        model = type((MODELS | LOCAL)[name])(**(MODELS | LOCAL)[name].get_params(deep=False))
        ogp.run(model, X, scale * y)
        model.to_bytes()


def test_no_false_alarm_on_outliers_and_on_lines_that_go_far():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 1))
    y = 2.0 * X[:, 0]
    X[250], y[250] = 1e9, 2e9  # a straight line, far out
    ogp.run(ogp.OnlineGP(Linear(), noise=1e-6), X, y)
    y[251] = 1e12
    ogp.run(ogp.KRLST(RBF(1.0), noise=1e-2), X, y)


ALONE = {"KRLST": ogp.KRLST(RBF(1.0)), "LocalGP": ogp.LocalGP(RBF(1.0)), "QKLMSFB": ogp.kafbox.QKLMSFB(RBF(1.0))}


@pytest.mark.parametrize("name", ALONE)
def test_samples_learned_one_by_one_are_judged_by_all_rows(name):
    high = ALONE[name].unfitted().fit(np.zeros((200, 1)), np.full(200, 1e9))
    ogp.from_bytes(high.to_bytes()).learn_one([0.0], 1.0)  # a drop-out is no breakdown
    high.learn_one([0.0], 1.0)
    mixed = ALONE[name].unfitted().learn_one([0.0], 1.0)
    for _ in range(200):
        mixed.learn_one([0.0], 1e9)
    mixed.to_bytes()  # though the last row that was learned in a block had y = 1
    ogp.run(mixed, [[0.0]], [1.0])


def test_a_shallow_copy_has_a_health_of_its_own():
    model = diverging("python").fit([[0.0]], [1.0])
    with pytest.raises(ogp.BreakdownError):
        copy(model).run(*stream(300, features=1))
    model.to_bytes()


@every_engine
def test_a_variance_that_is_learned_from_zeros_stays_positive(engine):
    model = ogp.KRLST(RBF(1.0), budget=3, forgetting=0.5, power="learned", engine=engine)
    trace = ogp.run(model, np.zeros((1200, 1)), np.zeros(1200))
    assert (trace.std > 0.0).all()
    assert np.isfinite(ogp.run(model, [[0.0]], [1.0]).log_density).all()


def test_the_error_tells_the_largest_value_up_to_its_row():
    X, y = stream(300)
    y[-1] = 1e9
    with pytest.raises(ogp.BreakdownError, match=r"no \|y\| so far exceeds 1\.\d+\."):
        ogp.run(diverging("python"), X, y)


@every_engine
@pytest.mark.parametrize("wrap", [copy, ogp.Calibrated, ogp.Scaled])
@pytest.mark.parametrize("compact", [False, True])
def test_a_fleet_has_the_rule_of_its_models(engine, wrap, compact):
    """The key that diverges is named at the row where its model on its own would be; nothing is said of the other."""
    X, y = stream(300)
    alone, fleet = wrap(diverging(engine)), ogp.Fleet(wrap(diverging(engine)), compact=compact)

    def run_alone():
        for i in range(300):
            alone.run(X[[i]], y[[i]])

    def run_fleet(rows):
        for i in rows:
            far = np.full(X.shape[1], 50.0 * i)  # from all other rows of that key, which learns each of them at once
            fleet.run(["bad", "good"], np.stack([X[i], far]), [y[i], 1.0])

    with pytest.raises(ogp.BreakdownError) as error:
        run_alone()
    row = error.value.row
    run_fleet(range(row))
    with pytest.raises(ogp.BreakdownError, match=r"key 'bad' broke down: it predicts .*Lower the step") as caught:
        run_fleet([row])
    assert compact or caught.value.reason == error.value.reason
