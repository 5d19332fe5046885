"""Figure 2: sliding-window KRLS with two window lengths, on a channel that changes abruptly.

Run time  3 s of processor time
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import RBF
from onlinegp.models import SWKRLS
from onlinegp.models.recipe import RecipeRegressor
from onlinegp.papers import curves
from onlinegp.papers.channels import Tests, switching
from onlinegp.papers.common import Claim, per_repeat

TITLE = "Figure 2: two lengths of the window"
NOTE = (
    "The channel has a first coefficient of one and three normal ones, drawn again at the switch, and tanh; noise is "
    "20 dB below the output. The error is measured on 100 held-out, noise-free samples. Parameters are KAFBOX's: an "
    "RBF with length scale 5, noise 0.01."
)
LAST = 200  # samples whose mean error is a level
BACK = 3.0  # dB: a filter counts as converged if its error is at most this much above its final level


@dataclass(frozen=True)
class Settings:
    seed: int = 0
    repeats: int = 20
    rows: int = 1500
    switch: int = 500
    test: int = 100
    every: int = 10
    windows: tuple[int, ...] = (75, 150)


def models(s: Settings) -> dict[str, RecipeRegressor]:
    return {f"window {length}": SWKRLS(RBF(5.0), noise=1e-2, budget=length) for length in s.windows}


def stream(s: Settings, repeat: int) -> tuple[Array, Array, Tests]:
    rng = np.random.default_rng([s.seed, repeat])
    inputs = rng.standard_normal(s.rows + s.test + 3)
    H = np.column_stack([np.ones(2), rng.standard_normal((2, 3))])
    return switching(inputs, H, rows=s.rows, switch=s.switch, snr=20.0, rng=rng)


def run(s: Settings, repeat: int) -> curves.Part:
    X, y, tests = stream(s, repeat)
    return curves.held_out(models(s), X, y, tests, s.every)


plan = per_repeat(run)


def gather(s: Settings, parts: list[curves.Part]) -> dict[str, Any]:
    results, runs, end = curves.gathered(s, NOTE, models(s), parts, LAST)
    samples = np.array(results["samples"])
    for name, found in results["levels"].items():
        back = (samples > s.switch) & (curves.interval(runs[name]).value <= found["error"] + BACK)
        found["converged after"] = int(samples[back.argmax()] - s.switch)
    short, long = (runs[f"window {length}"] for length in s.windows)
    return results | {"short against long": curves.better(short, long, end)}


def claims(results: dict[str, Any]) -> list[Claim]:
    value, low, high = results["short against long"]
    lengths = results["settings"]["windows"]
    after = [results["levels"][f"window {length}"]["converged after"] for length in lengths]
    return [
        Claim(
            "paper",
            "A longer window ends with a lower error.",
            f"The error of {lengths[0]} over that of {lengths[1]} at the end: {value:+.2f} dB ({low:+.2f} to "
            f"{high:+.2f}).",
            low > 0.0,
        ),
        Claim(
            "paper",
            "After the change the filter has converged when the window holds the new channel only.",
            f"Samples until the error is within {BACK:g} dB of its level at the end: "
            + ", ".join(f"{count} for {length}" for count, length in zip(after, lengths, strict=True))
            + ".",
            all(
                count <= length + 2 * results["settings"]["every"] for count, length in zip(after, lengths, strict=True)
            ),
        ),
    ]


def tables(results: dict[str, Any]) -> dict[str, Any]:
    return {f"Mean error [dB] at the end, and samples until it is within {BACK:g} dB of it": results["levels"]}


def draw(results: dict[str, Any]) -> Any:
    return curves.draw(results, "switching channel", switch=results["settings"]["switch"])
