"""Hints: what errors show is named once, with the option that helps; white errors show nothing."""

from __future__ import annotations

import numpy as np
import pytest
from shell import inside

from onlinegp.streams.running.hints import pattern_over_rows, slow_target, too_narrow, uneven


def noise(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n)


def test_white_errors_show_nothing():
    told = [pattern_over_rows(noise(1500, seed), 0) for seed in range(40)]
    assert sum(text is not None for text in told) <= 4
    assert all(uneven(noise(1500, seed), noise(1500, seed + 99), "x") is None for seed in range(40))


def test_errors_that_repeat_or_follow_each_other_are_named():
    z = noise(1500)
    wave = z + 1.5 * np.sin(2.0 * np.pi * np.arange(1500) / 24)
    assert pattern_over_rows(wave, 0) == "errors repeat every 24 rows: try --lags 24"
    for i in range(1, len(z)):
        z[i] += 0.6 * z[i - 1]
    assert pattern_over_rows(z, 0) == "consecutive errors have a correlation of 0.6: try --lags 10"
    assert pattern_over_rows(z, 5).endswith("--lags 10")


def test_errors_far_ahead_are_correlated_by_themselves_and_late_targets_exclude_lags():
    z = noise(1500)
    ahead = np.convolve(z, np.ones(12), "same")  # errors of 12 rows ahead share 11 rows of noise
    assert pattern_over_rows(ahead, 10).startswith("consecutive errors")
    assert pattern_over_rows(ahead, 10, horizon=12) is None
    wave = z + 1.5 * np.sin(2.0 * np.pi * np.arange(1500) / 24)
    assert pattern_over_rows(wave, 10, horizon=12).endswith("--lags 24")
    assert pattern_over_rows(wave, 0, horizon=12) is None  # --delay 12


def test_intervals_far_ahead_that_are_too_narrow_are_named(tmp_path):
    assert too_narrow(np.linspace(0.001, 0.999, 999), 144, late=False) is None
    off = np.where(np.arange(1000) % 3, 0.999, 0.5)
    assert "only 33% of the last targets" in too_narrow(off, 144, late=False)
    assert too_narrow(off, 144, late=False).endswith("onlinegp forecast --steps 144 has intervals that widen")
    assert too_narrow(off, 144, late=True).endswith("--model krlst --forgetting 1")
    walk = np.cumsum(noise(1200) * np.exp(np.arange(1200) / 200.0))  # errors grow faster than their size is learned
    (tmp_path / "d.csv").write_text("y\n" + "".join(f"{value:.3f}\n" for value in walk))
    args = ["run", "d.csv", "--lags", "4", "--model", "krlst", "--budget", "30", "--tune", "100", "--out", "o.csv"]
    assert "--steps 60 has intervals" in inside(*args, "--horizon", "60", cwd=tmp_path).stderr.decode()
    assert "has intervals" not in inside(*args, cwd=tmp_path).stderr.decode()


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_uneven_errors_name_their_input(sign):
    x = noise(1500, 1)
    z = noise(1500) * np.exp(sign * 0.5 * x)
    end = "high" if sign > 0 else "low"
    assert f"times as large where load is {end}" in uneven(z, x, "load")


def test_a_target_that_is_followed_more_than_predicted_is_named():
    y = 20.0 + np.cumsum(0.1 * noise(1500))
    y[700] = 900.0  # an odd row changes nothing
    assert "measure that with --delay N" in slow_target(y, y + 0.1 * noise(1500, 1))
    assert slow_target(y, y + 0.02 * noise(1500, 1)) is None  # inputs that predict it well
    fast = 20.0 + noise(1500)
    assert slow_target(fast, np.full(1500, 20.0)) is None  # noise that nothing predicts
    assert slow_target(np.full(1500, 3.0), np.full(1500, 3.0)) is None


def test_a_calibration_is_warned_of_targets_that_end(tmp_path):
    truth = np.exp(2.5 + 0.6 * np.sin(np.arange(900) / 60.0))
    raw = 3.0 * truth + 4.0 * noise(900)
    (tmp_path / "d.csv").write_text(
        "raw,reference\n" + "".join(f"{a:.3f},{b:.3f}\n" for a, b in zip(raw, truth, strict=True))
    )
    args = ["run", "d.csv", "--model", "krlst", "--budget", "30", "--tune", "100", "--out", "o.csv"]
    assert "hint: the target changes slowly" in inside(*args, cwd=tmp_path).stderr.decode()
    assert "slowly" not in inside(*args, "--delay", "50", cwd=tmp_path).stderr.decode()
    assert "slowly" not in inside(*args, "--lags", "3", cwd=tmp_path).stderr.decode()


def test_a_run_names_them_at_its_end_and_lags_help(tmp_path):
    x, z = noise(1200), noise(1200, 1)
    for i in range(1, 1200):
        z[i] += 0.8 * z[i - 1]
    (tmp_path / "d.csv").write_text(
        "x,y\n" + "".join(f"{a:.4f},{0.2 * a + b:.4f}\n" for a, b in zip(x, z, strict=True))
    )
    args = ["run", "d.csv", "--features", "x", "--model", "linearrls", "--tune", "100", "--out", "o.csv"]
    plain = inside(*args, cwd=tmp_path).stderr.decode()
    assert plain.count("hint: consecutive errors have") == 1
    assert "hint: errors follow" not in inside(*args, "--lags", "10", cwd=tmp_path).stderr.decode()
    assert "hint" not in inside(*args, "--quiet", cwd=tmp_path).stderr.decode()


def test_a_model_that_finds_its_lags_is_not_told_to_use_more(tmp_path):
    t = np.arange(600)
    y = 5 * np.sin(2 * np.pi * t / 50) ** 9 + noise(600)
    (tmp_path / "d.csv").write_text("y\n" + "".join(f"{value:.4f}\n" for value in y))
    told = inside("run", "d.csv", "--model", "linearrls", "--out", "o.csv", cwd=tmp_path).stderr.decode()
    assert "seasons:" in told
    assert "try --lags" not in told
