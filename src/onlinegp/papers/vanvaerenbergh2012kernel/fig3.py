"""Figure 3: trackers on a nonlinear channel that changes abruptly.

Run time  7 s of processor time
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import RBF
from onlinegp.models import KRLS, KRLST, NORMA, SWKRLS
from onlinegp.models.recipe import RecipeRegressor
from onlinegp.papers import curves
from onlinegp.papers.channels import Tests, switching
from onlinegp.papers.common import Claim, per_repeat

TITLE = "Figure 3: tracking an abrupt change"
NOTE = (
    "The channel is h . x followed by tanh, with the two impulse responses of the paper, and uniform inputs, as in "
    "KAFBOX. The error is measured on 500 held-out, noise-free samples of the current channel. Kernel and parameters "
    "are KAFBOX's, the same for every run; the step of NORMA does not decay. ALD-KRLS, which cannot forget, is added."
)
BEFORE = (1.0, -0.3817, -0.1411, 0.5789, 0.191)  # impulse responses
AFTER = (1.0, -0.0870, 0.9852, -0.2826, -0.1711)
LAST = 200  # samples whose mean error is a level
BACK = 3.0  # dB: a filter has recovered if its error is at most this much above its level before the switch


@dataclass(frozen=True)
class Settings:
    seed: int = 0
    repeats: int = 20
    rows: int = 1500
    switch: int = 500
    test: int = 500
    every: int = 20
    snr: float = 20.0  # dB
    budget: int = 50
    noise: float = 1e-2
    forgetting: float = 0.999


def models(s: Settings) -> dict[str, RecipeRegressor]:
    kernel = RBF(1.0)
    return {
        "KRLS-T": KRLST(kernel, noise=s.noise, budget=s.budget, forgetting=s.forgetting),
        "SW-KRLS": SWKRLS(kernel, noise=s.noise, budget=s.budget),
        "NORMA": NORMA(kernel, step=0.1, leak=1e-2, budget=s.rows),
        "ALD-KRLS": KRLS(kernel, threshold=1e-3),
    }


def stream(s: Settings, repeat: int) -> tuple[Array, Array, Tests]:
    rng = np.random.default_rng([s.seed, repeat])
    inputs = rng.uniform(size=s.rows + s.test + 4)
    return switching(inputs, np.array([BEFORE, AFTER]), rows=s.rows, switch=s.switch, snr=s.snr, rng=rng)


def run(s: Settings, repeat: int) -> curves.Part:
    X, y, tests = stream(s, repeat)
    return curves.held_out(models(s), X, y, tests, s.every)


plan = per_repeat(run)


def gather(s: Settings, parts: list[curves.Part]) -> dict[str, Any]:
    results, runs, end = curves.gathered(s, NOTE, models(s), parts, LAST)
    samples = np.array(results["samples"])
    before = slice((s.switch - LAST) // s.every, s.switch // s.every)
    for name, new in results["levels"].items():
        old = curves.level(runs[name], before)["error"]
        back = (samples > s.switch) & (curves.interval(runs[name]).value <= old + BACK)
        results["levels"][name] = {
            "before": old,
            "end": new["error"],
            "+-": new["+-"],
            "back after": int(samples[back.argmax()] - s.switch) if back.any() else None,
        }
    against = {name: curves.better(runs["KRLS-T"], one, end) for name, one in runs.items() if name != "KRLS-T"}
    return results | {"KRLS-T against": against}


def claims(results: dict[str, Any]) -> list[Claim]:
    levels, against = results["levels"], results["KRLS-T against"]
    trackers = ("SW-KRLS", "NORMA")
    told = ", ".join(f"{name} {value:+.1f} ({low:+.1f} to {high:+.1f})" for name, (value, low, high) in against.items())
    back = {name: row["back after"] for name, row in levels.items()}
    return [
        Claim(
            "paper",
            "The tracker recovers from the abrupt change, and ends with a lower error than SW-KRLS and NORMA.",
            f"KRLS-T ends at {levels['KRLS-T']['end']:.1f} dB; its error over theirs at the end [dB]: {told}.",
            back["KRLS-T"] is not None and all(against[name][2] < 0.0 for name in trackers),
        ),
        Claim(
            "here",
            "An algorithm that never forgets does not return to its level before the change.",
            f"ALD-KRLS: {levels['ALD-KRLS']['before']:.1f} dB before, {levels['ALD-KRLS']['end']:.1f} dB at the end; "
            f"KRLS-T: {levels['KRLS-T']['before']:.1f} and {levels['KRLS-T']['end']:.1f} dB.",
            levels["ALD-KRLS"]["end"] > levels["ALD-KRLS"]["before"] + BACK
            and levels["KRLS-T"]["end"] < levels["KRLS-T"]["before"] + BACK,
        ),
    ]


def tables(results: dict[str, Any]) -> dict[str, Any]:
    return {f"Mean error [dB], and samples until it is within {BACK:g} dB of the level before": results["levels"]}


def draw(results: dict[str, Any]) -> Any:
    return curves.draw(results, "switching channel", switch=results["settings"]["switch"])
