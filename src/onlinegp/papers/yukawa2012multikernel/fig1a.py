"""Figure 1a: LMS, KNLMS with one kernel, and MKNLMS with two kernels equalize a nonlinear channel.

Run time  4 s of processor time
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinegp.kernels import RBF
from onlinegp.models import KNLMS, LMS, MKNLMS
from onlinegp.models.base import OnlineRegressor
from onlinegp.papers import curves
from onlinegp.papers.channels import equalization
from onlinegp.papers.common import Claim, per_repeat

TITLE = "Figure 1a: equalization with one kernel and with two"
NOTE = (
    "A binary signal u passes through z = u[t] + 0.5 u[t-1] and y = z - 0.9 z^2 + noise, 20 dB below z. The filters "
    "estimate u from five outputs, with a delay of two samples. Steps, kernels exp(-zeta |x - z|^2 / 2) and thresholds "
    "are those that KAFBOX takes from the paper. With these all three kernel filters keep the same centers, about 13, "
    "which are too far apart for zeta 0.5 alone. The error is measured on held-out samples, as a mean over several "
    "streams instead of one."
)
LAST = 500  # samples whose mean error is a level
COHERENCE, ZETAS = 0.36, (0.2, 2.0)  # of MKNLMS
OTHERS = ("LMS", "KNLMS, zeta 0.2", "KNLMS, zeta 0.5")


@dataclass(frozen=True)
class Settings:
    seed: int = 0
    repeats: int = 20
    rows: int = 3000
    test: int = 500
    every: int = 50


def models() -> dict[str, OnlineRegressor]:
    """Return the filters. Their thresholds correspond to the same distance, so all filters keep the same centers."""
    kernels = [RBF(zeta**-0.5) for zeta in ZETAS]

    def knlms(zeta: float) -> KNLMS:
        return KNLMS(RBF(zeta**-0.5), step=0.2, epsilon=0.03, coherence=COHERENCE ** (zeta / min(ZETAS)))

    return {
        "LMS": LMS(step=0.01),
        "KNLMS, zeta 0.2": knlms(0.2),
        "KNLMS, zeta 0.5": knlms(0.5),
        "MKNLMS": MKNLMS(kernels, step=0.2, epsilon=0.06, coherence=COHERENCE),
    }


def run(s: Settings, repeat: int) -> curves.Part:
    spread = float(np.sqrt(1.25 * 10.0 ** (-20.0 / 10.0)))  # z has the variance 1 + 0.5^2
    X, u = equalization(s.rows + s.test, spread, np.random.default_rng([s.seed, repeat]))
    test = (s.rows, X[s.rows :], u[s.rows :])
    return curves.held_out(models(), X[: s.rows], u[: s.rows], [test], s.every)


plan = per_repeat(run)


def gather(s: Settings, parts: list[curves.Part]) -> dict[str, Any]:
    results, runs, end = curves.gathered(s, NOTE, models(), parts, LAST)
    return results | {"MKNLMS against": {name: curves.better(runs["MKNLMS"], runs[name], end) for name in OTHERS}}


def claims(results: dict[str, Any]) -> list[Claim]:
    against = results["MKNLMS against"]
    told = [f"{name} {value:+.2f} dB ({low:+.2f} to {high:+.2f})" for name, (value, low, high) in against.items()]
    return [
        Claim(
            "paper",
            "Two kernels end with a lower error than one, and than LMS.",
            f"The error of MKNLMS in the last {LAST} samples over that of {', of '.join(told)}.",
            all(high < 0.0 for _, _, high in against.values()),
        )
    ]


def tables(results: dict[str, Any]) -> dict[str, Any]:
    return {f"Mean squared error [dB] over the last {LAST} samples": results["levels"]}


def draw(results: dict[str, Any]) -> Any:
    return curves.draw(results, "equalization")
