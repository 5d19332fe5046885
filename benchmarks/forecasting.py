"""Forecasts with defaults beside those of statsforecast: AutoETS, AutoARIMA, AutoTheta and seasonal naive.

    pip install statsforecast
    python benchmarks/forecasting.py FOLDER [--only m3_monthly] [--series 10] [--origins 3] [--peers] [--record FILE]

FOLDER holds m4_hourly.csv.gz, nn5_daily.csv.gz, m3_monthly.csv.gz and m4_weekly.csv.gz, with the columns series, t, y.
Scores were fixed before the first run. MASE: mean absolute error of the median over that of seasonal naive on the rows
before (season 24, 7, 12, 1). sQL: twice the mean quantile loss at .025, .1, .2, ..., .9, .975, over the same. MSIS:
that of M4, at 95%. Coverage: of the 95% intervals. CPU: seconds of a forecast, all in. A series counts as the mean of
its origins. The peers are given the season; ours is not. Missing values are filled for the peers by linear
interpolation. The scores of peers are kept forecast by forecast (--record FILE): AutoARIMA takes an hour or two for the
hourly series. A peer that has not forecast all of them yet is compared with ours on those that it has.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import onlinegp as ogp
from onlinegp.models.temporal.combination import LEVELS, pinball
from onlinegp.progress import bar

COLLECTIONS = {  # steps, rows between origins, season
    "m4_hourly": (48, 24, 24),
    "nn5_daily": (14, 7, 7),
    "m3_monthly": (18, 6, 12),
    "m4_weekly": (13, 7, 1),
}
BARS = {"m4_hourly": 0.75, "nn5_daily": 0.96, "m3_monthly": 0.98, "m4_weekly": 0.88}  # of the best peer's sQL
WEEKLY_NAIVE = 52
PEERS = ("AutoETS", "AutoARIMA", "AutoTheta", "SeasonalNaive")
SCORES = ("MASE", "sQL", "MSIS", "coverage", "CPU s")


def read(path: Path) -> dict[str, np.ndarray]:
    """Return the series of a file by name; NaN where a value is missing."""
    series: dict[str, list[float]] = {}
    with gzip.open(path, "rt") as file:
        for row in csv.DictReader(file):
            series.setdefault(row["series"], []).append(float(row["y"] or "nan"))
    return {name: np.array(values) for name, values in series.items()}


def ours(y: np.ndarray, h: int) -> np.ndarray:
    return ogp.Forecaster().fit(y).forecast(h).quantiles.T


def peers(season: int) -> dict[str, Callable[[np.ndarray, int], np.ndarray]]:
    from statsforecast.models import AutoARIMA, AutoETS, AutoTheta, SeasonalNaive

    naive = WEEKLY_NAIVE if season == 1 else season
    models = {
        "AutoETS": lambda: AutoETS(season_length=season),
        "AutoARIMA": lambda: AutoARIMA(season_length=season),
        "AutoTheta": lambda: AutoTheta(season_length=season),
        "SeasonalNaive": lambda: SeasonalNaive(season_length=naive),
    }

    def quantiles(make: Callable[[], object]) -> Callable[[np.ndarray, int], np.ndarray]:
        def forecast(y: np.ndarray, h: int) -> np.ndarray:
            known = np.flatnonzero(np.isfinite(y))
            filled = np.interp(np.arange(len(y)), known, y[known])
            widths = [round(100 * (1 - 2 * p), 6) for p in LEVELS[: len(LEVELS) // 2]]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                predicted = make().forecast(y=filled, h=h, level=widths)  # type: ignore[attr-defined]
            lower = [predicted[f"lo-{width:g}" if f"lo-{width:g}" in predicted else f"lo-{width}"] for width in widths]
            upper = [
                predicted[f"hi-{width:g}" if f"hi-{width:g}" in predicted else f"hi-{width}"] for width in widths[::-1]
            ]
            return np.array([*lower, predicted["mean"], *upper])

        return forecast

    return {name: quantiles(make) for name, make in models.items()}


def scores(before: np.ndarray, after: np.ndarray, q: np.ndarray, season: int) -> list[float]:
    """Return MASE, sQL, MSIS and coverage of quantiles (11, h)."""
    scale = float(np.nanmean(np.abs(before[season:] - before[:-season])))
    known = np.isfinite(after)
    y, q = after[known], q[:, known]
    low, high = q[0], q[-1]
    missed = 40.0 * (np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0))
    error = np.abs(y - q[len(q) // 2]).mean()
    inside = np.mean((y >= low) & (y <= high))
    return [error / scale, 2 * pinball(y, q).mean() / scale, (high - low + missed).mean() / scale, float(inside)]


class Record:
    """Scores of forecasts by collection, series, rows before and method, kept in a JSON file if there is one."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.scores: dict[str, list[float]] = json.loads(path.read_text()) if path and path.exists() else {}

    def keep(self, key: str, scores: list[float]) -> None:
        self.scores[key] = scores
        if self.path:
            self.path.write_text(json.dumps(self.scores))


def measured(
    label: str, method: Callable | None, series: dict[str, np.ndarray], name: str, origins: int, record: Record
) -> np.ndarray:
    """Return the scores of each series and origin, (series, origins, scores), the last origin first.

    Without a method they are those of the record; NaN where it has none.
    """
    h, gap, season = COLLECTIONS[name]
    rows = np.full((len(series), origins, len(SCORES)), np.nan)
    with bar(rows[..., 0].size, f"{name} {label}") as progress:
        for k in range(origins):
            for i, (which, y) in enumerate(series.items()):
                cut = len(y) - h - k * gap
                key = f"{name} {which} {cut} {label}"
                if key not in record.scores and method is not None:
                    start = time.process_time()
                    q = np.asarray(method(y[:cut], h), dtype=float)
                    seconds = time.process_time() - start
                    record.keep(key, [*scores(y[:cut], y[cut : cut + h], q, season), seconds])
                rows[i, k] = record.scores.get(key, np.nan)
                progress.update(1)
    return rows


def table(name: str, results: dict[str, np.ndarray]) -> str:
    """Return the scores of all methods, by half of the series and for all, and ours over the best peer."""
    lines = [f"{name}: {'':12} " + " ".join(f"{score:>9}" for score in SCORES) + "    even/odd series: sQL"]

    def line(label: str, rows: np.ndarray) -> str:
        by_series = rows.mean(axis=1)
        halves = [by_series[half::2, 1].mean() for half in (0, 1)]
        values = " ".join(f"{value:9.3f}" for value in by_series.mean(axis=0))
        return f"  {label:20} {values}    {halves[0]:.3f} / {halves[1]:.3f}"

    own, complete = results["onlinegp"], []
    for label, rows in results.items():
        done = np.isfinite(rows[..., 0])
        if done.all():
            lines.append(line(label, rows))
            complete += [rows.mean(axis=(0, 1))[:3]] if label != "onlinegp" else []
        elif done.any():
            ratio = " ".join(f"{value:9.3f}" for value in own[done].mean(axis=0)[:3] / rows[done].mean(axis=0)[:3])
            lines.append(
                f"  {label:20} has {done.sum()} of {done.size} forecasts: "
                + " ".join(f"{v:.3f}" for v in rows[done].mean(axis=0))
            )
            lines.append(f"    ours over it        {ratio}    on these")
    if complete:
        ratio = " ".join(f"{value:9.3f}" for value in own.mean(axis=(0, 1))[:3] / np.min(complete, axis=0))
        lines.append(f"  {'over the best peer':20} {ratio}    the bar of sQL is {BARS[name]}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=COLLECTIONS, nargs="*", default=list(COLLECTIONS))
    parser.add_argument("--series", type=int, help="the first so many of each collection")
    parser.add_argument("--origins", type=int, default=3)
    parser.add_argument(
        "--peers",
        nargs="*",
        choices=PEERS,
        help="run these peers, all if none is named; the others are read from --record",
    )
    parser.add_argument("--record", type=Path, help="a JSON file that keeps the scores of peers")
    args = parser.parse_args()
    record = Record(args.record)
    for name in args.only:
        series = dict(list(read(args.folder / f"{name}.csv.gz").items())[: args.series])
        results = {"onlinegp": measured("onlinegp", ours, series, name, args.origins, Record(None))}
        asked = () if args.peers is None else args.peers or PEERS
        methods = peers(COLLECTIONS[name][2]) if asked else {}
        for label in PEERS:
            method = methods[label] if label in asked else None
            results[label] = measured(label, method, series, name, args.origins, record)
        print(table(name, results), flush=True)


if __name__ == "__main__":
    main()
