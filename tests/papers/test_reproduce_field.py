"""Experiments of the papers of the field: one run of each against its numbers, and all runs with their claims."""

from __future__ import annotations

import json

import numpy as np
import pytest
import record_papers

from onlinegp.cli import main
from onlinegp.kernels import RBF
from onlinegp.models import NORMA
from onlinegp.papers import PAPERS, curves
from onlinegp.papers.channels import equalization
from onlinegp.papers.chen2012quantized import static
from onlinegp.papers.common import run_jobs
from onlinegp.papers.reproduction import experiments, named, reproduce, write
from onlinegp.papers.richard2009online import fig1 as richard
from onlinegp.papers.richard2009online import systems
from onlinegp.papers.richard2009online.norma import FallingNORMA
from onlinegp.papers.vanvaerenbergh2012estimation import recovery
from onlinegp.papers.vanvaerenbergh2012kernel import fig3
from onlinegp.papers.yukawa2012multikernel import fig1a

SLACK = {"error": 0.5, "end": 0.5, "before": 0.5, "excess": 0.5}  # dB: a different last digit may remove another center
LONG = "vanvaerenbergh2012estimation/recovery"


@pytest.fixture(scope="module")
def numbers():
    return json.loads(record_papers.FILE.read_text(encoding="ascii"))


def check(found: dict, wanted: dict) -> None:
    """Hold errors and sizes against those that were kept."""
    assert found.keys() == wanted.keys()
    for table, rows in wanted.items():
        for name, row in rows.items():
            for what, value in row.items():
                if what in SLACK:
                    assert found[table][name][what] == pytest.approx(value, abs=SLACK[what]), (table, name, what)
                elif what == "centers":
                    assert found[table][name][what] == pytest.approx(value, rel=0.05, abs=1.0), (table, name)


@pytest.mark.parametrize("name", [name for name in record_papers.NAMES if name != LONG])
def test_one_run_gives_the_numbers_that_were_kept(name, numbers, tmp_path):
    results = reproduce((name,), repeats=1)  # one job, in this process
    check(record_papers.summary(results["experiments"][name]), numbers["one run"][name])
    files = write(results, tmp_path)
    assert f"{name.replace('/', '-')}.png" in {path.name for path in files}
    assert experiments()[name] in (tmp_path / f"{name.replace('/', '-')}.html").read_text()


def test_kept_numbers_bear_the_claims_out(numbers):
    whole = numbers["whole"]
    assert set(whole) == set(record_papers.NAMES)
    tracker = whole["vanvaerenbergh2012kernel/fig3"]["levels"]
    assert tracker["KRLS-T"]["end"] + 3.0 < min(tracker[name]["end"] for name in ("SW-KRLS", "NORMA", "ALD-KRLS"))
    assert tracker["ALD-KRLS"]["back after"] is None
    knlms = whole["richard2009online/fig1"]["levels"]
    assert knlms["KNLMS"]["error"] + 3.0 < knlms["NORMA, tuned"]["error"] < knlms["NORMA"]["error"]
    equalizers = whole["yukawa2012multikernel/fig1a"]["levels"]
    assert equalizers["MKNLMS"]["error"] + 1.0 < min(
        row["error"] for name, row in equalizers.items() if name != "MKNLMS"
    )
    for row in whole["chen2012quantized/static"]["steps"].values():
        assert row["excess"] == pytest.approx(row["predicted"], abs=0.5)


@pytest.mark.slow
def test_whole_experiments_give_the_numbers_that_were_kept(numbers):
    results = reproduce(record_papers.NAMES)["experiments"]
    for name, result in results.items():
        check(record_papers.summary(result), numbers["whole"][name])
        assert all(claim["holds"] for claim in result["claims"] if claim["by"] == "paper"), name


def test_the_forgetting_factor_is_found_in_a_short_stream():
    s = recovery.Settings(repeats=2, rows=240, factors=(0.97,))
    result = recovery.gather(s, run_jobs(recovery.plan(s)))
    row = result["by lambda"]["0.97"]
    assert 0.9 < row["lambda"] < 0.995
    assert row["estimated"] > row["no forgetting"]
    assert recovery.draw(result).axes[0].get_xscale() == "log"
    json.dumps(result, allow_nan=False)


# The systems, against what was written of them


def test_the_switching_channel_is_the_papers():
    s = fig3.Settings(snr=300.0)
    X, y, tests = fig3.stream(s, 0)
    for rows, h in ((slice(0, 500), fig3.BEFORE), (slice(500, 1500), fig3.AFTER)):
        np.testing.assert_allclose(np.linalg.lstsq(X[rows], np.arctanh(y[rows]), rcond=None)[0], h, atol=1e-6)
    for (until, X_test, y_test), h in zip(tests, (fig3.BEFORE, fig3.AFTER), strict=True):
        np.testing.assert_allclose(np.arctanh(y_test), X_test @ np.array(h))
        assert until in (500, 1500)


def test_the_static_function_is_two_centers_of_the_kernel():
    s = static.Settings(rows=200, last=50)
    X, y, f = static.stream(s, 0)
    np.testing.assert_allclose(f, 0.2 * RBF(1.0)(X, np.array([[-1.0], [1.0]])).sum(axis=1))
    assert np.var(y - f) == pytest.approx(s.noise, rel=0.3)


def test_the_simulated_systems_follow_their_equations():
    X, y, clean = systems.autoregression(50, np.random.default_rng(0))
    a, b = clean[1:-1], clean[:-2]
    bump = np.exp(-(a**2))
    np.testing.assert_allclose(clean[2:], (0.8 - 0.5 * bump) * a - (0.3 + 0.9 * bump) * b + 0.1 * np.sin(np.pi * a))
    np.testing.assert_array_equal(X[2:], np.column_stack([y[1:-1], y[:-2]]))
    u, y, clean = systems.squared_state(50, np.random.default_rng(0))
    v = np.sqrt(clean)
    np.testing.assert_allclose(np.abs(1.1 * np.exp(-v[:-1]) + u[1:, 0]), v[1:])
    assert np.std(y - clean) == pytest.approx(1.0, abs=0.3)


def test_the_equalizer_sees_five_outputs_and_finds_the_second_input():
    X, u = equalization(4010, 0.4, np.random.default_rng(0))
    z = X[:, 1] - X[:, 1].mean()  # y[t+1] depends on u[t+1] and u[t]
    assert abs(np.corrcoef(z, u)[0, 1]) > 0.3
    assert abs(np.corrcoef(X[:, 4], u)[0, 1]) < 0.05
    assert X.shape == (4010, 5)


def test_equalizers_with_one_kernel_and_with_two_keep_the_same_centers():
    X, u = equalization(500, 0.1, np.random.default_rng(0))
    centers = [model.fit(X, u).centers_ for name, model in fig1a.models().items() if name != "LMS"]
    for others in centers[1:]:
        np.testing.assert_array_equal(centers[0], others)


def test_norma_with_a_falling_step_is_norma_where_it_does_not_fall():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.standard_normal(60)
    still = FallingNORMA(RBF(1.0), step=0.5, leak=0.1, budget=20, power=0.0).means(X, y)
    np.testing.assert_allclose(still, NORMA(RBF(1.0), step=0.5, leak=0.1, budget=20).run(X, y).mean)
    falling = FallingNORMA(RBF(1.0), step=0.5, leak=0.1, budget=20).means(X, y)
    assert falling[1] == pytest.approx(still[1])
    assert np.abs(falling[30:]).mean() < np.abs(still[30:]).mean()


def test_levels_and_bands():
    runs = np.array([[1.0, 4.0, 2.0], [1.0, 2.0, 2.0], [1.0, 6.0, 2.0]])
    assert curves.banded(runs)["mean"] == pytest.approx([0.0, 6.0206, 3.0103])
    assert curves.banded(runs)["low"][0] == curves.banded(runs)["high"][0] == 0.0
    assert curves.level(runs, slice(1, 3)) == {"error": 4.771, "+-": pytest.approx(3.596, abs=0.001)}
    assert curves.better(runs, 2.0 * runs, slice(0, 3)) == [-3.01] * 3
    assert curves.banded(runs[:1])["mean"] == curves.banded(runs[:1])["high"]


# The command


def test_everything_is_listed(capsys):
    assert main(["reproduce", "--list"]) == 0
    told = capsys.readouterr().out
    for name, title in experiments().items():
        assert f"  {name}" in told
        assert title in told
    assert told.count("\n\n") == len(PAPERS) - 1


def test_names_stand_for_experiments():
    assert named(None) == named("vanvaerenbergh2016relationship") == ("fig1", "fig2", "fig3", "beta", "residual")
    assert named("richard2009online") == ("richard2009online/fig1", "richard2009online/fig2")
    assert named("richard2009online/fig2") == ("richard2009online/fig2",)
    assert named("vanvaerenbergh2016relationship/fig1") == ("fig1",)
    assert set(named("all")) == set(experiments())
    with pytest.raises(ValueError, match="there is no experiment 'fig9'"):
        named("fig9")


def test_the_command_runs_another_paper(tmp_path, capsys):
    assert main(["reproduce", "liu2010kernel", "--repeats", "1", "--out", str(tmp_path)]) == 0
    assert "KLMS ends with a lower error" in capsys.readouterr().out
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"liu2010kernel-fig2_12.{kind}" for kind in ("png", "svg", "json", "html")}
    assert main(["reproduce", "nobody2000", "--out", str(tmp_path)]) == 1


def test_models_of_the_figures_are_those_that_are_said():
    assert set(richard.models()) == {"KNLMS", "NORMA", "NORMA, tuned", "KRLS"}
    assert richard.models()["KNLMS"].kernel.length_scale == pytest.approx(1.0 / np.sqrt(7.46))
