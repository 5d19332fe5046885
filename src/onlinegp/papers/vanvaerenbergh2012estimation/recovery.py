"""Draw streams from the model of KRLS-T, estimate the hyperparameters, and measure the gain in log density.

Run time  30 s of processor time
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from onlinegp.batch.tuning import estimate_hyperparameters
from onlinegp.checks import Array
from onlinegp.kernels import RBF
from onlinegp.models import KRLST
from onlinegp.papers import style
from onlinegp.papers.common import Claim, Job

TITLE = "The forgetting factor, estimated"
NOTE = (
    "y(t) has the covariance k(x, x') lambda^(|t - t'| / 2) plus noise, as in KAFBOX's demonstration. KRLS-T is the "
    "filter of this model. Kernel, noise and lambda are estimated on the first half of a stream; the log density is "
    "that of KRLS-T on the second half, each sample before it is learned, with a budget that holds all samples."
)
ENOUGH = 30.0  # samples of memory; with a shorter memory, noise and change are hard to tell apart
MEMORY = 3.0  # a memory of 1 / (1 - lambda) samples counts as found within this factor


@dataclass(frozen=True)
class Settings:
    seed: int = 0
    repeats: int = 8
    rows: int = 600
    factors: tuple[float, ...] = (0.9, 0.97, 0.99, 0.995)
    noise: float = 1e-2


def plan(s: Settings) -> list[Job]:
    return [partial(run, s, factor, repeat) for factor in s.factors for repeat in range(s.repeats)]


def stream(s: Settings, factor: float, repeat: int) -> tuple[Array, Array]:
    """Return a draw from the model."""
    rng = np.random.default_rng([s.seed, repeat, round(1000 * factor)])
    X, t = rng.standard_normal((s.rows, 1)), np.arange(s.rows)
    K = RBF(1.0)(X) * factor ** (0.5 * np.abs(t[:, None] - t)) + s.noise * np.eye(s.rows)
    return X, np.linalg.cholesky(K) @ rng.standard_normal(s.rows)


def run(s: Settings, factor: float, repeat: int) -> dict[str, float]:
    """Return the estimates, and log densities of trackers with the estimates, the truth, and without forgetting."""
    X, y = stream(s, factor, repeat)
    half = s.rows // 2
    found = estimate_hyperparameters(X[:half], y[:half], rows=half)
    models = {
        "estimated": found.krlst(budget=s.rows),
        "true": KRLST(RBF(1.0), noise=s.noise, budget=s.rows, forgetting=factor),
        "no forgetting": KRLST(RBF(1.0), noise=s.noise, budget=s.rows),
    }
    densities = {name: float(model.run(X, y).log_density[half:].mean()) for name, model in models.items()}
    scale = float(np.exp(found.kernel.theta[0]))
    return {"lambda": found.forgetting, "noise": found.noise, "length scale": scale} | densities


def gather(s: Settings, parts: list[dict[str, float]]) -> dict[str, Any]:
    rows = {}
    for i, factor in enumerate(s.factors):
        mine = parts[i * s.repeats : (i + 1) * s.repeats]
        middle = {name: float(np.median([part[name] for part in mine])) for name in ("lambda", "noise", "length scale")}
        mean = {name: float(np.mean([part[name] for part in mine])) for name in ("estimated", "true", "no forgetting")}
        found = [max(1.0 - part["lambda"], 1e-9) / (1.0 - factor) for part in mine]
        near = float(np.mean([1.0 / MEMORY <= ratio <= MEMORY for ratio in found]))
        rows[f"{factor:g}"] = {name: round(value, 4) for name, value in (middle | mean).items()} | {"found": near}
    return {"settings": asdict(s), "note": NOTE, "by lambda": rows, "estimates": [part["lambda"] for part in parts]}


def claims(results: dict[str, Any]) -> list[Claim]:
    rows = results["by lambda"]
    share = float(np.mean([row["found"] for row in rows.values()]))
    lost = {factor: row["true"] - row["estimated"] for factor, row in rows.items()}
    gained = {factor: row["estimated"] - row["no forgetting"] for factor, row in rows.items()}
    return [
        Claim(
            "paper",
            "The forgetting factor can be estimated from the data, by maximum likelihood, with the other parameters.",
            "Median estimates: "
            + ", ".join(f"{row['lambda']:.4f} for {factor}" for factor, row in rows.items())
            + f". The memory 1 / (1 - lambda) is found within a factor of {MEMORY:g} in {share:.0%} of the streams.",
            share >= 0.8,
        ),
        Claim(
            "here",
            f"With a memory of {ENOUGH:g} samples or more, a tracker with the estimates is as good as with the truth.",
            "Log density lost [nats per sample]: "
            + ", ".join(f"{value:.3f} at {f}" for f, value in lost.items())
            + ".",
            all(value < 0.05 for factor, value in lost.items() if ENOUGH * (1.0 - float(factor)) < 1.0),
        ),
        Claim(
            "here",
            "A filter that does not forget is worse on each of these streams.",
            "Log density gained [nats per sample]: "
            + ", ".join(f"{value:.2f} at {factor}" for factor, value in gained.items())
            + ".",
            all(value > 0.0 for value in gained.values()),
        ),
    ]


def tables(results: dict[str, Any]) -> dict[str, Any]:
    return {"By true lambda: median estimates, mean log densities, and the share that was found": results["by lambda"]}


def draw(results: dict[str, Any]) -> Any:
    figure, ax = style.figure(3.0)
    factors = np.repeat(results["settings"]["factors"], results["settings"]["repeats"])
    memory = 1.0 / np.maximum(1.0 - np.array(results["estimates"]), 1e-9)
    true = 1.0 / (1.0 - factors)
    ends = np.array([true.min(), true.max()])
    ax.fill_between(ends, ends / MEMORY, ends * MEMORY, color=style.SKY, alpha=0.25, lw=0, label="within a factor of 3")
    ax.plot(ends, ends, color=style.GREY, lw=0.9, ls="--", label="true")
    ax.plot(true, memory, "o", ms=3, color=style.BLUE, label="estimated")
    ax.set(xscale="log", yscale="log", xlabel="true memory [samples]", ylabel="estimated memory [samples]")
    ax.set_ylim(ends[0] / 10.0, ends[1] * 100.0)
    style.title(ax, "memory 1 / (1 - lambda)")
    style.legend(figure, ax, ncols=3)
    return figure
