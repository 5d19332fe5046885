"""Figure 2: learning curves on KIN40K. Along the stream, they show the error on the whole test set."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.models.recipe import RecipeRegressor
from onlinegp.papers import style
from onlinegp.papers.common import Claim, Job, band, largest_gap
from onlinegp.papers.vanvaerenbergh2016relationship.algorithms import (
    AUTO,
    HALF,
    NOTE,
    described,
    growing,
    half_steps,
    tracker,
)
from onlinegp.papers.vanvaerenbergh2016relationship.arm import Arm
from onlinegp.papers.vanvaerenbergh2016relationship.heldout import HeldOut

TITLE = "Figure 2: learning curves"
CHECKPOINTS = (500, 1000, 2000, 3000, 5000)  # samples in the table
SETTLED = 500  # beta = 1 is compared with KNLMS from this sample on
WITHIN_KLMS, WITHIN_KNLMS = 0.3, 1.5  # dB
WITHIN_AUTO = 0.5  # dB: the gain of one point of one run has a standard deviation of 0.2 dB around its mean of 0.25


@dataclass(frozen=True)
class Settings:
    seed: int = 0
    repeats: int = 3
    train: int = 5000
    test: int = 5000
    budget: int = 500
    every: int = 100  # samples between two points of a curve
    betas: tuple[float | str, ...] = (0.0, 0.01, 0.1, 1.0, "auto")


def plan(s: Settings, arm: Arm) -> list[Job]:
    """Return two jobs per repeat that take about equally long: the tracker, and all of the KLMS family."""
    family = growing(arm.kernel, arm.noise, s.betas) | half_steps(arm.kernel)
    groups: list[dict[str, RecipeRegressor]] = [{"KRLS-T": tracker(arm.kernel, arm.noise, s.budget)}, family]
    jobs: list[Job] = []
    for repeat in range(s.repeats):
        data = arm.split(s.train, s.test, seed=s.seed, repeat=repeat)
        jobs += [partial(learning_curves, models, arm.kernel, data, s.every) for models in groups]
    return jobs


def learning_curves(
    models: dict[str, RecipeRegressor], kernel: Kernel, data: tuple[Array, Array, Array, Array], every: int
) -> dict[str, list[float]]:
    """Return the normalized test error of each model, once every `every` samples of the stream."""
    models = deepcopy(models)  # other repeats use the same models
    X, y, X_test, y_test = data
    test = HeldOut(kernel, X_test, y_test, len(X))
    points = []
    for start in range(0, len(X), every):
        rows = slice(start, start + every)
        test.extend(X[rows])
        for model in models.values():
            model.partial_fit(X[rows], y[rows])
        points.append(test.errors([*models.values()]))
    return {name: list(curve) for name, curve in zip(models, np.transpose(points), strict=True)}


def gather(s: Settings, arm: Arm, parts: list[dict[str, list[float]]]) -> dict[str, Any]:
    runs = [parts[i] | parts[i + 1] for i in range(0, len(parts), 2)]
    models = growing(arm.kernel, arm.noise, s.betas) | half_steps(arm.kernel)
    models["KRLS-T"] = tracker(arm.kernel, arm.noise, s.budget)
    return {
        "settings": asdict(s) | arm.settings() | {"models": described(models)},
        "note": NOTE,
        "stand_in": arm.stand_in,
        "samples": [min(start + s.every, s.train) for start in range(0, s.train, s.every)],
        "curves": {name: band([run[name] for run in runs]) for name in models},
    }


def claims(results: dict[str, Any]) -> list[Claim]:
    samples, curves = np.array(results["samples"]), results["curves"]
    mean = {name: np.array(curve["mean"]) for name, curve in curves.items()}
    late = samples >= min(SETTLED, samples[-1])
    zero, one = largest_gap(mean["beta = 0"], mean["KLMS"]), largest_gap(mean["beta = 1"][late], mean["KNLMS"][late])
    worst_zero = largest_gap(curves["beta = 0"]["runs"], curves["KLMS"]["runs"])
    worst_one = largest_gap(np.array(curves["beta = 1"]["runs"])[:, late], np.array(curves["KNLMS"]["runs"])[:, late])
    others = [name for name in mean if name != "KRLS-T"]
    margin = min(float((mean[name] - mean["KRLS-T"])[late].min()) for name in ("KLMS", "KNLMS"))
    nearest = min(others, key=lambda name: mean[name][-1])
    half = {name: largest_gap(mean[name + HALF][late], mean[name][late]) for name in ("KLMS", "KNLMS")}
    gain = (mean["beta = 0"] - mean[AUTO])[late]
    return [
        Claim(
            "paper",
            f"With beta = 0, beta-KLMS performs almost like KLMS (tested: within {WITHIN_KLMS} dB at every point).",
            f"At most {zero:.2f} dB apart on the mean curve, {worst_zero:.2f} dB in any single run.",
            zero <= WITHIN_KLMS,
        ),
        Claim(
            "paper",
            f"With beta = 1, it performs similarly to KNLMS (tested: within {WITHIN_KNLMS} dB from {SETTLED} samples).",
            f"At most {one:.2f} dB apart on the mean curve, {worst_one:.2f} dB in any single run.",
            one <= WITHIN_KNLMS,
        ),
        Claim(
            "here",
            "KRLS-T, the full online GP with a budget, has a lower error than KLMS and KNLMS.",
            f"By at least {margin:.1f} dB from {SETTLED} samples on. It ends at {mean['KRLS-T'][-1]:.1f} dB, the best "
            f"of the others ({nearest}) at {mean[nearest][-1]:.1f} dB.",
            margin > 0.0,
        ),
        Claim(
            "here",
            f"The automatic, negative beta is better than beta = 0 (tested: on average, and at no point worse by more "
            f"than {WITHIN_AUTO} dB, which is above the noise).",
            f"From {SETTLED} samples on it gains {gain.mean():.2f} dB on average, between {gain.min():.2f} and "
            f"{gain.max():.2f} dB.",
            bool(gain.mean() > 0.0 and gain.min() > -WITHIN_AUTO),
        ),
        Claim(
            "here",
            "The match with beta = 0 and beta = 1 depends on the step: with half the step, KLMS and KNLMS leave these "
            "bounds.",
            f"Half the step moves KLMS by up to {half['KLMS']:.1f} dB and KNLMS by up to {half['KNLMS']:.1f} dB.",
            half["KLMS"] > WITHIN_KLMS and half["KNLMS"] > WITHIN_KNLMS,
        ),
    ]


def tables(results: dict[str, Any]) -> dict[str, Any]:
    at = [s for s in CHECKPOINTS if s in results["samples"]]
    rows = {
        name: {f"{s} samples": curve["mean"][results["samples"].index(s)] for s in at}
        for name, curve in results["curves"].items()
    }
    return {"Test error [dB], mean of the runs": rows}


def draw(results: dict[str, Any]) -> Any:
    figure, ax = style.figure(3.4)
    draw_curves(ax, results, style.CURVES)
    style.legend(figure, ax, ncols=3)
    return figure


def draw_curves(ax: Any, results: dict[str, Any], looks: dict[str, dict[str, Any]]) -> None:
    """Draw the curves that have a look, with their ranges, and the title."""
    for name, look in looks.items():
        if name in results["curves"]:
            curve = results["curves"][name]
            ax.plot(results["samples"], curve["mean"], label=style.label(name), **look)
            ax.fill_between(results["samples"], curve["low"], curve["high"], color=look["color"], alpha=0.10, lw=0)
    data, repeats = results["settings"]["data"], results["settings"]["repeats"]
    runs = "one permutation" if repeats == 1 else f"mean and range of {repeats} permutations"
    style.title(ax, f"{data},\n{runs}" if results["stand_in"] else f"{data}, {runs}")
    ax.set(xlabel="training samples", ylabel="test error, normalized [dB]")
    ax.margins(x=0.01)
