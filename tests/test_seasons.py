"""Seasons: found where they are, and hardly ever where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from marks import slow
from onlinegp.seasons import find_seasons


def autoregressive(e, *coefficients):
    y = np.zeros(len(e))
    for t in range(len(e)):
        y[t] = e[t] + sum(c * y[t - j] for j, c in enumerate(coefficients, start=1) if t >= j)
    return y


WITHOUT = {
    "white": lambda rng, n: rng.normal(size=n),
    "heavy tails": lambda rng, n: rng.standard_t(3, size=n),
    "autoregression": lambda rng, n: autoregressive(rng.normal(size=n + 50), 0.9)[50:],
    "swing": lambda rng, n: autoregressive(rng.normal(size=n + 50), 1.6, -0.8)[50:],
    "random walk": lambda rng, n: rng.normal(size=n).cumsum(),
    "level and noise": lambda rng, n: (0.3 * rng.normal(size=n)).cumsum() + rng.normal(size=n),
    "integrated trend": lambda rng, n: rng.normal(size=n).cumsum().cumsum(),
    "integrated trend and noise": lambda rng, n: (0.1 * rng.normal(size=n)).cumsum().cumsum() + rng.normal(size=n),
    "damped trend and noise": lambda rng, n: (
        autoregressive(0.1 * rng.normal(size=n), 0.98).cumsum() + rng.normal(size=n)
    ),
}


def wave(rng, s, n):
    return np.sqrt(2.0) * np.sin(2 * np.pi * np.arange(n) / s + rng.uniform(0, 2 * np.pi))


def any_shape(rng, s, n):
    shape = rng.normal(size=s)
    return ((shape - shape.mean()) / shape.std())[np.arange(n) % s]


@pytest.mark.parametrize("kind", WITHOUT)
@pytest.mark.parametrize(
    ("n", "count"), [(60, 100), (120, 100), (500, 40), slow(60, 500), slow(120, 500), slow(500, 500)]
)
def test_a_series_without_a_season_hardly_ever_gets_one(kind, n, count):
    rng = np.random.default_rng(n)
    false = sum(bool(find_seasons(WITHOUT[kind](rng, n))) for _ in range(count))
    assert false <= (0.05 * count if count == 500 else 0.1 * count)  # few series: three deviations more


@pytest.mark.parametrize("shape", [wave, any_shape])
@pytest.mark.parametrize("s", [7, 12, 24])
@pytest.mark.parametrize("count", [60, slow(500)])
def test_ten_cycles_of_a_season_as_large_as_the_noise_are_found(shape, s, count):
    rng = np.random.default_rng(s)
    found = [find_seasons(shape(rng, s, 10 * s) + rng.normal(size=10 * s)) for _ in range(count)]
    assert sum(s in seasons for seasons in found) >= (0.9 if count == 500 else 0.85) * count


def test_a_week_beside_a_day_is_found():
    rng = np.random.default_rng(0)
    t = np.arange(24 * 7 * 6)
    y = np.sin(2 * np.pi * t / 24) + 0.8 * ((t // 24) % 7 >= 5) + 0.3 * rng.normal(size=len(t))
    assert find_seasons(y) == (24.0, 168.0)
    assert find_seasons(y, most=1) == (24.0,)


def test_gaps_are_filled():
    rng = np.random.default_rng(1)
    y = wave(rng, 12, 240) + 0.5 * rng.normal(size=240)
    y[rng.random(240) < 0.3] = np.nan
    assert find_seasons(y) == (12.0,)


@pytest.mark.parametrize(
    "y", [[], [1.0] * 100, [np.nan] * 100, [1.0, 2.0] * 7, np.arange(50.0), [0.0] * 60 + [1.0], np.full(40, 1e300)]
)
def test_odd_series_have_no_season(y):
    assert find_seasons(y) == ()


def test_a_season_without_noise_is_found():
    assert find_seasons(np.tile([3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0], 20)) == (7.0,)
    assert find_seasons(1e8 + np.tile(np.arange(12.0), 20)) == (12.0,)


def test_units_do_not_matter():
    rng = np.random.default_rng(2)
    y = wave(rng, 12, 240) + rng.normal(size=240)
    assert find_seasons(y) == find_seasons(1e6 * y) == find_seasons(1e-9 * y) == (12.0,)


def test_the_year_of_daily_rows_with_a_week_is_52_weeks():
    rng = np.random.default_rng(0)
    t = np.arange(3 * 365)  # of periods that are multiples of a week, 336 is close enough to be found instead
    week, year = rng.normal(size=7)[t % 7], np.sin(2 * np.pi * t / 365.25)
    y = np.exp(0.25 * week + 0.2 * year + rng.normal(0, 0.004, len(t)).cumsum() + 0.1 * rng.normal(size=len(t)))
    assert find_seasons(y) == (7.0, 364.0)
