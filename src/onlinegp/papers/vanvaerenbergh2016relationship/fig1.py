"""Figure 1: the predictive variance of GP regression, of beta = 0 and of beta = 1, as the data grow."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from onlinegp.kernels import RBF
from onlinegp.models import BetaKLMS, OnlineGP
from onlinegp.papers import style
from onlinegp.papers.common import Claim, Job, decimals
from onlinegp.papers.vanvaerenbergh2016relationship.arm import Arm

TITLE = "Figure 1: predictive variance"


@dataclass(frozen=True)
class Settings:
    seed: int = 0
    points: tuple[int, ...] = (3, 8, 25)
    length_scale: float = 0.5
    noise: float = 0.01
    reach: float = 3.0  # inputs lie within this of zero
    grid: int = 241


def plan(settings: Settings, arm: Arm | None = None) -> list[Job]:
    return [partial(bands, settings)]


def bands(s: Settings) -> dict[str, Any]:
    """Return the data, and each model's mean and standard deviation of y on a grid, for each number of points."""
    rng = np.random.default_rng([s.seed, 4])
    kernel, n = RBF(s.length_scale), max(s.points)
    X = rng.uniform(-s.reach, s.reach, (n, 1))
    f = np.linalg.cholesky(kernel(X) + 1e-10 * np.eye(n)) @ rng.standard_normal(n)  # the model is the truth
    y = f + np.sqrt(s.noise) * rng.standard_normal(n)
    grid = np.linspace(-1.15 * s.reach, 1.15 * s.reach, s.grid)
    models = {
        "GP": OnlineGP(kernel, noise=s.noise),
        "beta = 0": BetaKLMS(kernel, beta=0.0, noise=s.noise),
        "beta = 1": BetaKLMS(kernel, beta=1.0, noise=s.noise),
    }
    panels = []
    for m in s.points:
        panel: dict[str, Any] = {"points": m, "x": decimals(X[:m, 0]), "y": decimals(y[:m])}
        for name, model in models.items():
            mean, std = model.fit(X[:m], y[:m]).predict(grid[:, None], return_std=True)
            panel[name] = {"mean": decimals(mean), "std": decimals(std, 6)}
        panels.append(panel)
    return {"grid": decimals(grid), "panels": panels}


def gather(settings: Settings, arm: Arm | None, parts: list[Any]) -> dict[str, Any]:
    return {"settings": asdict(settings), **parts[0]}


def claims(results: dict[str, Any]) -> list[Claim]:
    panels, noise = results["panels"], results["settings"]["noise"]
    std = {name: np.array([p[name]["std"] for p in panels]) for name in ("GP", "beta = 0", "beta = 1")}
    prior = np.sqrt(1.0 + noise)
    grid, x = np.array(results["grid"]), np.array(panels[-1]["x"])
    near = np.abs(grid[:, None] - x).min(axis=1) <= 0.1
    at_data, away = std["GP"][-1][near].mean(), std["GP"][-1][~near].mean()
    widest = np.abs(grid[std["beta = 1"][-1].argmax()] - x).min()
    counts = ", ".join(str(p["points"]) for p in panels)
    return [
        Claim(
            "paper",
            "The uncertainty of GP regression shrinks around the observed points.",
            f"Mean standard deviation on the grid after {counts} points: {_list(std['GP'].mean(axis=1))}. After the "
            f"last, {at_data:.2f} within 0.1 of a point and {away:.2f} elsewhere (noise alone: {np.sqrt(noise):.2f}).",
            bool(np.all(np.diff(std["GP"], axis=0) <= 1e-6) and at_data < away),
        ),
        Claim(
            "paper",
            "Type-I KLMS (beta = 0) keeps the variance of the prior everywhere, for any data.",
            f"Its standard deviation lies between {std['beta = 0'].min():.4f} and {std['beta = 0'].max():.4f}; the "
            f"prior's is {prior:.4f}.",
            bool(np.abs(std["beta = 0"] - prior).max() < 1e-5),
        ),
        Claim(
            "paper",
            "Type-II KLMS (beta = 1) has a larger variance than the prior, and it grows near the points.",
            f"Largest standard deviation after {counts} points: {_list(std['beta = 1'].max(axis=1))}. The last of them "
            f"is {widest:.2f} away from a point.",
            bool(
                std["beta = 1"].min() >= prior - 1e-5
                and np.all(np.diff(std["beta = 1"], axis=0) >= -1e-6)
                and widest <= results["settings"]["length_scale"]
            ),
        ),
    ]


def _list(values: np.ndarray) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def draw(results: dict[str, Any]) -> Any:
    figure, axes = style.figure(4.6, rows=len(results["panels"]), sharex=True, sharey=True)
    x = np.array(results["grid"])
    for ax, panel in zip(axes, results["panels"], strict=True):
        mean = np.array(panel["GP"]["mean"])  # the center of all intervals: only variances are compared
        gp, zero, one = (2.0 * np.array(panel[name]["std"]) for name in ("GP", "beta = 0", "beta = 1"))
        ax.fill_between(x, mean - gp, mean + gp, color="0.82", lw=0, label="GP, two sigma")
        ax.plot(x, mean, color=style.BLACK, lw=1.0, label="GP, mean")
        for sign in (-1, 1):
            label = {} if sign < 0 else {"label": r"$\beta = 0$"}
            ax.plot(x, mean + sign * zero, color=style.BLUE, ls="--", lw=1.1, **label)
            label = {} if sign < 0 else {"label": r"$\beta = 1$"}
            ax.plot(x, mean + sign * one, color=style.VERMILION, ls="-.", lw=1.1, **label)
        ax.plot(panel["x"], panel["y"], "x", color=style.SKY, ms=4.5, mew=1.4, label="data")
        ax.set_ylabel("output y")
        style.title(ax, f"{panel['points']} points")
        ax.margins(x=0)
    axes[-1].set_xlabel("input x")
    style.legend(figure, axes[0], ncols=3)
    return figure
