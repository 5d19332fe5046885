"""Figure 3: how the algorithms recover after a nonlinear channel changes abruptly."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlinegp.checks import Array
from onlinegp.evaluate import run
from onlinegp.metrics import to_db
from onlinegp.models.recipe import RecipeRegressor
from onlinegp.papers import style
from onlinegp.papers.common import Claim, Job, band, decimals
from onlinegp.papers.vanvaerenbergh2016relationship.algorithms import AUTO, described, growing, tracker
from onlinegp.papers.vanvaerenbergh2016relationship.arm import Arm
from onlinegp.papers.vanvaerenbergh2016relationship.channel import Channel, identification, prediction
from onlinegp.papers.vanvaerenbergh2016relationship.heldout import HeldOut

TITLE = "Figure 3: reconvergence"
NO_FORGETTING = "KRLS-T, no forgetting"
STRETCH = 200  # number of samples before the switch and at the end for the level of a filter
SMOOTH = 5  # points in the trailing mean of a plotted curve
AFTER = 50  # number of samples just after the switch, if every sample is scored
BACK = 3.0  # dB: a filter has recovered if its error is at most this much above its level before the switch
JUMP = 3.0  # dB: a recovery is meaningful only if the switch increases the error by this
NOTE = (
    "The task is to identify the channel from its input, as is usual for this benchmark: predict y[t] from u[t], ..., "
    "u[t-4]. The error is measured on held-out, noise-free samples of the current channel. Taken literally, the paper "
    "predicts the next output from past outputs. We ran that too, with the same filters; the second table shows the "
    "results. The switch has little effect there: two random channels with the same input give similar series, so even "
    "a filter that never forgets recovers."
)


@dataclass(frozen=True)
class Settings:
    seed: int = 0
    repeats: int = 5
    test: int = 500
    budget: int = 100
    forgetting: float = 0.998
    every: int = 10  # samples between two points of a curve
    betas: tuple[float | str, ...] = (0.0, 0.01, 0.1, 1.0, "auto")


def plan(s: Settings, arm: Arm | None = None) -> list[Job]:
    tasks = [(reconvergence, identification(s.seed)), (letter, prediction(s.seed))]
    return [partial(task, s, channel, repeat) for task, channel in tasks for repeat in range(s.repeats)]


def models(s: Settings, channel: Channel) -> dict[str, RecipeRegressor]:
    """Return all algorithms, with the kernel of the channel."""
    return growing(channel.kernel, channel.noise, s.betas) | {
        "KRLS-T": tracker(channel.kernel, channel.noise, s.budget, s.forgetting),
        NO_FORGETTING: tracker(channel.kernel, channel.noise, s.budget),
    }


def reconvergence(s: Settings, channel: Channel, repeat: int) -> dict[str, list[float]]:
    """Return the normalized error of each model on the current channel, once every `every` samples."""
    X, y = channel.stream(seed=s.seed, repeat=repeat)
    tests = [HeldOut(channel.kernel, *sample, len(X)) for sample in channel.heldout(s.test, seed=s.seed, repeat=repeat)]
    filters, points = models(s, channel), []
    for start in range(0, len(X), s.every):
        rows = slice(start, start + s.every)
        for test in tests:
            test.extend(X[rows])
        for model in filters.values():
            model.partial_fit(X[rows], y[rows])
        now = tests[0] if start + s.every <= channel.switch else tests[1]
        points.append(now.errors([*filters.values()]))
    return {name: list(curve) for name, curve in zip(filters, np.transpose(points), strict=True)}


def letter(s: Settings, channel: Channel, repeat: int) -> dict[str, list[float]]:
    """Return the normalized squared one-step-ahead error of each model at every sample."""
    X, y = channel.stream(seed=s.seed, repeat=repeat)
    return {name: list((y - run(model, X, y).mean) ** 2 / y.var()) for name, model in models(s, channel).items()}


def gather(s: Settings, arm: Arm | None, parts: list[dict[str, list[float]]]) -> dict[str, Any]:
    channel, series = identification(s.seed), prediction(s.seed)
    filters = models(s, channel)
    clear = {name: np.array([part[name] for part in parts[: s.repeats]]) for name in filters}  # (repeats, points)
    literal = {name: np.array([part[name] for part in parts[s.repeats :]]) for name in filters}
    samples = np.minimum(np.arange(0, channel.rows, s.every) + s.every, channel.rows)
    after = samples > channel.switch
    return {
        "settings": asdict(s)
        | {"identification": channel.settings(), "next output": series.settings()}
        | {"models": described(filters)},
        "note": NOTE,
        "switch": channel.switch,
        "samples": samples.tolist(),
        "curves": {name: band(_smooth(runs, after)) for name, runs in clear.items()},
        "points": {name: decimals(to_db(runs)) for name, runs in clear.items()},
        "levels": {name: _levels(runs.mean(axis=0), samples, channel.switch, s.every) for name, runs in clear.items()},
        "next output": {
            name: _levels(runs.mean(axis=0), np.arange(1, series.rows + 1), series.switch, AFTER)
            for name, runs in literal.items()
        },
    }


def _smooth(runs: Array, after: NDArray[np.bool_]) -> Array:
    """Return trailing means over SMOOTH points, (repeats, points). They do not mix points from before and after."""
    out = np.empty_like(runs)
    for part in (~after, after):
        total = np.cumsum(runs[:, part], axis=1)
        total[:, SMOOTH:] -= total[:, :-SMOOTH].copy()
        out[:, part] = total / np.minimum(np.arange(1, total.shape[1] + 1), SMOOTH)
    return out


def _levels(error: Array, samples: NDArray[np.int64], switch: int, width: int) -> dict[str, Any]:
    """Return mean errors in dB before and just after the switch and at the end, and the rows until recovery."""
    before = (samples > switch - STRETCH) & (samples <= switch)
    there = (samples > switch) & (samples <= switch + width)
    level = float(to_db(error[before].mean()))
    back = (samples > switch) & (to_db(error) <= level + BACK)
    return {
        "before": round(level, 2),
        "after the switch": round(float(to_db(error[there].mean())), 2),
        "end": round(float(to_db(error[samples > samples[-1] - STRETCH].mean())), 2),
        "back after": int(samples[back.argmax()] - switch) if back.any() else None,
    }


def claims(results: dict[str, Any]) -> list[Claim]:
    levels = {name: row for name, row in results["levels"].items() if name != NO_FORGETTING}
    still = results["levels"][NO_FORGETTING]
    jump = min(row["after the switch"] - row["before"] for row in levels.values())
    rise = {name: row["end"] - row["before"] for name, row in levels.items()}
    worst = max(rise, key=lambda name: rise[name])
    betas = [name for name in levels if name.startswith("beta")]
    letter_jump = max(
        results["next output"][name]["after the switch"] - results["next output"][name]["before"]
        for name in ("KRLS-T", NO_FORGETTING)
    )
    auto, zero = (results["next output"][name] for name in (AUTO, "beta = 0"))
    return [
        Claim(
            "here",
            "All algorithms reconverge after the switch.",
            f"The switch costs each of them {jump:.1f} dB or more; at the end all are within "
            f"{max(rise[worst], 0.0):.1f} dB of their level before it, or below it (last: {worst}).",
            jump >= JUMP and rise[worst] <= 1.0,
        ),
        Claim(
            "paper",
            "beta-KLMS tracks although its model is static, and it has no step size to set.",
            f"Samples until the error is within {BACK:g} dB of its level before the switch: "
            + ", ".join(f"{_samples(levels[name]['back after'])} ({name})" for name in (*betas, "KLMS", "KNLMS"))
            + ". Kernel and noise come from maximum likelihood; nothing else was set.",
            all(levels[name]["back after"] is not None for name in betas),
        ),
        Claim(
            "here",
            "The fixed covariance does the tracking: the GP with the same static model never forgets and does not "
            "track.",
            f"KRLS-T without forgetting ends {still['end'] - still['before']:.1f} dB above its level before the "
            f"switch, with forgetting {rise['KRLS-T']:+.1f} dB.",
            still["end"] - still["before"] > BACK,
        ),
        Claim(
            "here",
            "If the next output is predicted, the switch has little effect, and a negative beta does not help.",
            f"In the 50 samples after it KRLS-T rises by {letter_jump:.1f} dB at most, with or without forgetting; "
            f"the automatic beta goes from {auto['before']:.1f} to {auto['after the switch']:.1f} dB, beta = 0 from "
            f"{zero['before']:.1f} to {zero['after the switch']:.1f} dB.",
            letter_jump < JUMP and auto["after the switch"] > zero["after the switch"],
        ),
    ]


def _samples(count: int | None) -> str:
    return "never" if count is None else f"{count}"


def tables(results: dict[str, Any]) -> dict[str, Any]:
    literal = {
        name: {k: v for k, v in row.items() if k != "back after"} for name, row in results["next output"].items()
    }
    return {
        "Mean error [dB], and samples until it is within 3 dB of the level before": results["levels"],
        "Predicting the next output from past outputs: mean error [dB]": literal,
    }


def draw(results: dict[str, Any]) -> Any:
    figure, ax = style.figure(3.4)
    for name, look in style.CURVES.items():
        if name in results["curves"]:
            ax.plot(results["samples"], results["curves"][name]["mean"], label=style.label(name), **look)
    ax.axvline(results["switch"], color="0.35", ls=":", lw=0.9)
    repeats = results["settings"]["repeats"]
    style.title(ax, f"nonlinear channel, {'one run' if repeats == 1 else f'mean of {repeats} runs'}")
    ax.set(xlabel="samples (the channel switches at the dotted line)", ylabel="error, normalized [dB]")
    ax.margins(x=0.01)
    style.legend(figure, ax, ncols=3)
    return figure
