"""The paper's second open question: do Gaussian processes lead to better algorithms of low complexity?

Compare ResidualGP with the algorithms of figure 2 and the exact GP: the error on the whole test set along the stream,
and the cost per row. See docs/residual_gp.md.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.models import LocalGP, OnlineGP, ResidualGP
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.recipe import RecipeRegressor
from onlinegp.papers import style
from onlinegp.papers.common import Claim, Job, band
from onlinegp.papers.vanvaerenbergh2016relationship.algorithms import AUTO, described, growing, tracker
from onlinegp.papers.vanvaerenbergh2016relationship.arm import Arm
from onlinegp.papers.vanvaerenbergh2016relationship.fig2 import draw_curves, learning_curves
from onlinegp.recipes.costs import kernel_row, multiplications, solution

TITLE = "Open question 2: the GP on current residuals"
EXACT, LOCAL = "exact GP", "LocalGP"
WITHIN_EXACT = 1.0  # dB at the end
BELOW = {False: (4.0, 6.0), True: (3.5, 5.5)}  # dB below KRLS-T and KLMS at the end, on KIN40K and on the stand-in
LOOKS: dict[str, dict[str, Any]] = {
    EXACT: {"color": style.BLACK, "lw": 0.9, "ls": (0, (1.2, 1.2))},
    LOCAL: {"color": style.GREEN, "lw": 1.2, "ls": (0, (5, 1.5))},
    "ResidualGP, 0 refits": {"color": style.SKY, "lw": 1.2},
    "ResidualGP, 1 refit": {"color": style.VERMILION, "lw": 1.6},
    "ResidualGP, 4 refits": {"color": style.PURPLE, "lw": 1.2, "ls": (0, (5, 1.5, 1, 1.5))},
}


@dataclass(frozen=True)
class Settings:
    seed: int = 0
    repeats: int = 3
    train: int = 5000
    test: int = 5000
    budget: int = 500
    neighbors: int = 64
    refits: tuple[int, ...] = (0, 1, 4)
    every: int = 500  # samples between two points of a curve
    costs: tuple[int, ...] = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000)  # rows


def name_of(refits: int) -> str:
    return f"ResidualGP, {refits} refit{'s' * (refits != 1)}"


def expansions(s: Settings, arm: Arm) -> dict[str, RecipeRegressor]:
    """Return the algorithms of figure 2, whose means are sums of kernels at the samples."""
    models = growing(arm.kernel, arm.noise, ("auto",))
    return models | {"KRLS-T": tracker(arm.kernel, arm.noise, s.budget)}


def on_neighbors(s: Settings, arm: Arm) -> dict[str, OnlineRegressor]:
    options: dict[str, Any] = {"noise": arm.noise, "neighbors": s.neighbors}
    models: dict[str, OnlineRegressor] = {LOCAL: LocalGP(arm.kernel, **options)}
    return models | {name_of(refits): ResidualGP(arm.kernel, refits=refits, **options) for refits in s.refits}


def plan(s: Settings, arm: Arm) -> list[Job]:
    jobs: list[Job] = []
    for repeat in range(s.repeats):
        data = arm.split(s.train, s.test, seed=s.seed, repeat=repeat)
        jobs.append(partial(learning_curves, expansions(s, arm), arm.kernel, data, s.every))
        jobs.append(partial(curves_on_neighbors, on_neighbors(s, arm), data, s.every))
        jobs.append(partial(exact_curve, arm.kernel, arm.noise, data, s.every))
    return jobs


def curves_on_neighbors(
    models: dict[str, OnlineRegressor], data: tuple[Array, Array, Array, Array], every: int
) -> dict[str, list[float]]:
    """Return the normalized test error of each model, once every `every` samples of the stream."""
    X, y, X_test, y_test = data
    curves: dict[str, list[float]] = {}
    for name, fresh in models.items():
        model, curves[name] = deepcopy(fresh), []
        for start in range(0, len(X), every):
            model.partial_fit(X[start : start + every], y[start : start + every])
            curves[name].append(float(((model.predict(X_test) - y_test) ** 2).mean() / y_test.var()))
    return curves


def exact_curve(
    kernel: Kernel, noise: float, data: tuple[Array, Array, Array, Array], every: int
) -> dict[str, list[float]]:
    """Return the curve of the exact GP. A single Cholesky factor gives all points of the curve.

    With K + noise I = L L', z = L^-1 y and T = L^-1 k(X, X_test), the mean after n samples is the sum of z_i T_i over
    i < n, because the factor of the first n rows is the top left part of L.
    """
    from scipy.linalg import cholesky, solve_triangular

    X, y, X_test, y_test = data
    K = kernel(X)
    K[np.diag_indices_from(K)] += noise
    L = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
    z = solve_triangular(L, y, lower=True, check_finite=False)
    T = solve_triangular(L, kernel(X, X_test), lower=True, overwrite_b=True, check_finite=False)
    mean, curve = np.zeros(len(y_test)), []
    for start in range(0, len(X), every):
        rows = slice(start, start + every)
        mean += z[rows] @ T[rows]
        curve.append(float(((mean - y_test) ** 2).mean() / y_test.var()))
    return {EXACT: curve}


def gather(s: Settings, arm: Arm, parts: list[dict[str, list[float]]]) -> dict[str, Any]:
    runs = [parts[i] | parts[i + 1] | parts[i + 2] for i in range(0, len(parts), 3)]
    models: dict[str, OnlineRegressor] = {**expansions(s, arm), **on_neighbors(s, arm)}
    counted = {name: model for name, model in models.items() if name != LOCAL}
    counted[EXACT] = OnlineGP(arm.kernel, noise=arm.noise)
    features = arm.X.shape[1]
    return {
        "settings": asdict(s) | arm.settings() | {"models": described(models)},
        "stand_in": arm.stand_in,
        "samples": [min(start + s.every, s.train) for start in range(0, s.train, s.every)],
        "curves": {name: band([run[name] for run in runs]) for name in runs[0]},
        "rows": list(s.costs),
        "multiplications": {
            name: [count(model, min(n, s.budget) if name == "KRLS-T" else n, features) for n in s.costs]
            for name, model in counted.items()
        },
    }


def count(model: OnlineRegressor, n: int, features: int) -> float | None:
    """Return the multiplications per row with n stored rows or centers.

    ResidualGP without a limit: a pass over all rows for the new row and each refit, and the solve of k neighbors.
    """
    if isinstance(model, RecipeRegressor):
        return multiplications(model.recipe(), n, features)
    assert isinstance(model, ResidualGP)
    assert model.store is None
    assert not model.linear
    k = min(model.neighbors, n)
    passes = 1 + min(model.refits, k)
    rows = passes * kernel_row(n, features) + features * n + 2 * passes * n
    neighbors = kernel_row(k * (k + 1) / 2, features) + (k**3 - k) / 6 + 3 * k * (k + 1) / 2
    return rows + neighbors + solution(passes)


def claims(results: dict[str, Any]) -> list[Claim]:
    end = {name: curve["mean"][-1] for name, curve in results["curves"].items()}
    best = name_of(1)
    gap, tracker_gain, klms_gain = end[best] - end[EXACT], end["KRLS-T"] - end[best], end["KLMS"] - end[best]
    many, few = results["multiplications"][best][-1], results["multiplications"][best][-2]
    growth = (many / few) / (results["rows"][-1] / results["rows"][-2])
    exact = results["multiplications"][EXACT][-1]
    below_tracker, below_klms = BELOW[results["stand_in"]]
    ordered = [end[name_of(refits)] for refits in sorted(results["settings"]["refits"])]
    return [
        Claim(
            "here",
            f"One refit per row ends within {WITHIN_EXACT:g} dB of the exact GP.",
            f"{end[best]:.2f} dB against {end[EXACT]:.2f} dB: {gap:.2f} dB apart.",
            bool(gap <= WITHIN_EXACT),
        ),
        Claim(
            "here",
            f"It ends at least {below_tracker:g} dB below KRLS-T of {results['settings']['budget']} centers and "
            f"{below_klms:g} dB below KLMS.",
            f"{tracker_gain:.2f} dB below KRLS-T, {klms_gain:.2f} dB below KLMS.",
            bool(tracker_gain >= below_tracker and klms_gain >= below_klms),
        ),
        Claim(
            "here",
            "It is better than the neighbors alone, and one refit per row is better than none.",
            f"LocalGP {end[LOCAL]:.2f} dB; " + ", ".join(f"{error:.2f}" for error in ordered) + " dB.",
            bool(end[best] < end[name_of(0)] < end[LOCAL]),
        ),
        Claim(
            "here",
            "Its cost per row grows in proportion to the number of rows, like that of KLMS.",
            f"From {results['rows'][-2]} to {results['rows'][-1]} rows by {growth:.2f} times their ratio; the exact GP "
            f"then takes {exact / many:.0f} times as many multiplications.",
            bool(growth <= 1.0),
        ),
    ]


def tables(results: dict[str, Any]) -> dict[str, Any]:
    at = [i for i, s in enumerate(results["samples"]) if s % 1000 == 0 or i == 0]
    errors = {
        name: {f"{results['samples'][i]} samples": curve["mean"][i] for i in at}
        for name, curve in results["curves"].items()
    }
    costs = {
        name: {f"{n} rows": round(count) for n, count in zip(results["rows"], counts, strict=True)}
        for name, counts in results["multiplications"].items()
    }
    return {"Test error [dB], mean of the runs": errors, "Multiplications per row": costs}


def draw(results: dict[str, Any]) -> Any:
    figure, (ax, cost) = style.figure(5.6, rows=2)
    looks = style.CURVES | LOOKS
    draw_curves(ax, results, looks)
    for name, look in looks.items():
        if name in results["curves"] and name in results["multiplications"] and name not in ("KNLMS", AUTO):
            cost.plot(results["rows"], results["multiplications"][name], **look)
    cost.set(xscale="log", yscale="log", xlabel="rows", ylabel="multiplications per row")
    style.legend(figure, ax, ncols=2)
    return figure
