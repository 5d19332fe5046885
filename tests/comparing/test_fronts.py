"""The front of a comparison, the time of convergence and its pictures, from figures that are made up."""

from __future__ import annotations

import numpy as np
import pytest

from onlinegp.comparing.results import Comparison, Entry, Run, Settings

SETTINGS = Settings("error", 0.95, 10, 20, 0, 100, (0, 1, 2), 50, 1000, 300)


def made(name: str, curve: list[float], microseconds: float, steady: float | None = None) -> Entry:
    error = np.array(curve)
    level = float(error[-2:].mean()) if steady is None else steady
    run = Run(error, -error, level, -level, 0.95, 10.0, microseconds, 1000)
    return Entry(name, {}, 1, 100, (run, run, run))


def test_convergence_is_the_first_window_within_3_db():
    curve = [4.0, 2.0, 1.0, 0.19, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    found = Comparison(SETTINGS, (made("one", curve, 1.0),))
    assert found.convergence("one") == 40
    assert found.convergence("one", 0.0) == 30
    assert found.convergence("one", -11.0) is None
    late = Comparison(Settings(**{**vars(SETTINGS), "since": 60}), (made("one", curve, 1.0),))
    assert late.convergence("one") == 10


def test_the_front_is_what_nothing_beats_in_both():
    points = [("slow and good", 9.0, 0.1), ("beaten", 9.5, 0.2), ("middle", 3.0, 0.3), ("fast and bad", 1.0, 0.9)]
    found = Comparison(SETTINGS, tuple(made(name, [1.0] * 10, cost, error) for name, cost, error in points))
    assert found.pareto() == ["fast and bad", "middle", "slow and good"]
    assert [entry.name for entry in found.entries] == ["slow and good", "beaten", "middle", "fast and bad"]
    assert found.pareto("bytes") == ["slow and good"]
    unknown = made("without a price", [1.0] * 10, np.nan, 0.25)
    priceless = Comparison(SETTINGS, (*found.given[1:], unknown))
    assert priceless.pareto() == ["fast and bad", "middle", "beaten"]
    with pytest.raises(ValueError, match="cost must be one of 'microseconds', 'bytes', got 'time'"):
        found.pareto("time")


def test_names_in_latex_are_escaped():
    odd = Comparison(SETTINGS, (made("a_b & 5%", [1.0] * 10, 1.0),)).latex()
    assert r"a\_b \& 5\%* & 0.00 $\pm$ 0.00" in odd


def test_names_beside_points_that_coincide_do_not_overlap():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from onlinegp.comparing.figures import label

    points = {f"algorithm {i}": (1.0 + 1e-3 * i, -10.0 + 1e-3 * i) for i in range(5)}
    points |= {f"the last of all {i}": (9.0, -20.0 + 1e-3 * i) for i in range(3)}
    figure = Figure(layout="constrained")
    ax = figure.subplots()
    ax.plot(*np.transpose(list(points.values())), "o")
    ax.margins(x=0.25, y=0.15)
    label(ax, points)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == 8
    assert all(box.x0 > 0 and box.x1 < figure.bbox.width for box in boxes)
    assert not [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)]


def test_a_crowded_picture_names_the_front_and_writes_nothing_outside():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from onlinegp.comparing.figures import label, plain

    points = {f"algorithm {i}": (1.0 + 1e-3 * i, -10.0 - 1e-3 * i) for i in range(40)} | {"far": (4.0, 0.0)}
    figure = Figure(layout="constrained")
    ax = figure.subplots()
    ax.plot(*np.transpose(list(points.values())), "o")
    ax.set_xscale("log")
    plain(ax)
    label(ax, points, ["algorithm 39"])
    figure.draw_without_rendering()
    assert {"algorithm 39", "far"} <= {text.get_text() for text in ax.texts}
    assert len(ax.texts) < 10
    assert all(text.get_window_extent().y0 > ax.bbox.y0 - 5 for text in ax.texts)
    low, high = ax.get_xlim()
    assert 2 <= sum(low <= tick <= high for tick in ax.get_xticks()) <= 6


@pytest.mark.parametrize("costs", [(2.6, 2.9, 45.0), (5.0, 5.1), (120.0, 800_000.0), (0.05, 4.9)])
def test_numbers_along_the_costs_do_not_overlap(costs):
    pytest.importorskip("matplotlib")
    entries = tuple(made(f"no {i}", [1.0] * 10, cost) for i, cost in enumerate(costs))
    figure = Comparison(SETTINGS, entries).plot()
    figure.draw_without_rendering()
    axis, ax = figure.axes[1].xaxis, figure.axes[1]
    labels = [text for text in (*axis.get_ticklabels(), *axis.get_ticklabels(minor=True)) if text.get_text()]
    low, high = ax.get_xlim()
    seen = [text.get_window_extent() for text in labels if low <= text.get_position()[0] <= high]
    assert len(seen) >= 1
    assert not [(a, b) for i, a in enumerate(seen) for b in seen[:i] if a.overlaps(b)]
