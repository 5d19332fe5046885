"""Figure 2.12: LMS and KLMS equalize a nonlinear channel.

Run time  2 s of processor time
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinegp.kernels import RBF, Linear
from onlinegp.models import KLMS
from onlinegp.models.recipe import RecipeRegressor
from onlinegp.papers import curves
from onlinegp.papers.channels import equalization
from onlinegp.papers.common import Claim, per_repeat

TITLE = "Figure 2.12: equalization of a nonlinear channel"
NOTE = (
    "A binary signal u passes through z = u[t] + 0.5 u[t-1] and y = z - 0.9 z^2 + noise of standard deviation 0.4. The "
    "filters estimate u from five outputs, with a delay of two samples. Steps and kernel are those of KAFBOX. LMS is "
    "KLMS with the linear kernel. The error is that of held-out samples; there are 500 of them in place of 50, for a "
    "smoother curve."
)
LAST = 200  # samples whose mean error is a level


@dataclass(frozen=True)
class Settings:
    seed: int = 0
    repeats: int = 20
    rows: int = 1000
    test: int = 500
    every: int = 20


def models() -> dict[str, RecipeRegressor]:
    return {"LMS": KLMS(Linear(), step=0.01), "KLMS": KLMS(RBF(1.0), step=0.2)}


def run(s: Settings, repeat: int) -> curves.Part:
    X, u = equalization(s.rows + s.test, 0.4, np.random.default_rng([s.seed, repeat]))
    test = (s.rows, X[s.rows :], u[s.rows :])
    return curves.held_out(models(), X[: s.rows], u[: s.rows], [test], s.every)


plan = per_repeat(run)


def gather(s: Settings, parts: list[curves.Part]) -> dict[str, Any]:
    results, runs, end = curves.gathered(s, NOTE, models(), parts, LAST)
    return results | {"KLMS against LMS": curves.better(runs["KLMS"], runs["LMS"], end)}


def claims(results: dict[str, Any]) -> list[Claim]:
    value, low, high = results["KLMS against LMS"]
    return [
        Claim(
            "paper",
            "KLMS ends with a lower error than LMS: the channel is not linear.",
            f"Its error over that of LMS in the last {LAST} samples: {value:+.2f} dB ({low:+.2f} to {high:+.2f}).",
            high < 0.0,
        )
    ]


def tables(results: dict[str, Any]) -> dict[str, Any]:
    return {f"Mean squared error [dB] over the last {LAST} samples": results["levels"]}


def draw(results: dict[str, Any]) -> Any:
    return curves.draw(results, "equalization")
