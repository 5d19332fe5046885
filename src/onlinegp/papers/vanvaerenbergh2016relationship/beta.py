"""The choice of beta, an open question of the paper: scores over beta, and the automatic beta.

Sigma = K (beta K + I) is a covariance if and only if beta >= -1 / lambda_max(K); see docs/beta.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.evaluate import run
from onlinegp.kernels import Kernel
from onlinegp.metrics import coverage, log_density, nmse, to_db
from onlinegp.models import BetaKLMS
from onlinegp.models.breakdown import BreakdownError
from onlinegp.papers import style
from onlinegp.papers.common import DIVERGED, Claim, Job, decimals
from onlinegp.papers.vanvaerenbergh2016relationship.algorithms import beta_name
from onlinegp.papers.vanvaerenbergh2016relationship.arm import Arm
from onlinegp.papers.vanvaerenbergh2016relationship.channel import Channel, identification, prediction
from onlinegp.papers.vanvaerenbergh2016relationship.heldout import HeldOut

TITLE = "The choice of beta"
LEVEL = 0.95
CHECKED = 500  # number of centers for checking the bound by a decomposition of Sigma
SCORES = ("error", "log density", "coverage")
Score = dict[str, float]  # the three scores, and the value of beta at the end
BROKEN: Score = {"error": np.inf, "log density": -np.inf, "coverage": 0.0, "beta": np.nan}


@dataclass(frozen=True)
class Settings:
    seed: int = 0
    repeats: int = 2
    train: int = 5000
    test: int = 5000
    exponents: tuple[float, ...] = tuple(np.arange(-5.0, 0.5, 0.5).tolist())
    channel_repeats: int = 5

    @property
    def betas(self) -> list[float | str]:
        """The values of beta to compare: negative values, zero, positive values, and "auto"."""
        sizes = [float(f"{10.0**e:.3g}") for e in self.exponents]
        return [*(-size for size in reversed(sizes)), 0.0, *sizes, "auto"]


def plan(s: Settings, arm: Arm) -> list[Job]:
    jobs: list[Job] = []
    half = (len(s.betas) + 1) // 2
    for repeat in range(s.repeats):
        data = arm.split(s.train, s.test, seed=s.seed, repeat=repeat)
        for betas in (s.betas[:half], s.betas[half:]):
            jobs.append(partial(on_test_set, betas, arm.kernel, arm.noise, data))
        jobs.append(partial(eigenvalues, arm.kernel, data[0]))
    for channel in (identification(s.seed), prediction(s.seed)):
        for repeat in range(s.channel_repeats):
            X, y = channel.stream(seed=s.seed, repeat=repeat)
            jobs.append(partial(one_step_ahead, s.betas, channel, X, y))
            jobs.append(partial(eigenvalues, channel.kernel, X))
    return jobs


def on_test_set(
    betas: list[float | str], kernel: Kernel, noise: float, data: tuple[Array, Array, Array, Array]
) -> list[Score]:
    """Return the scores of each beta on a test set, after the whole stream."""
    X, y, X_test, y_test = data
    test = HeldOut(kernel, X_test, y_test, len(X))
    for start in range(0, len(X), 500):
        test.extend(X[start : start + 500])
    k2, kxx = test.squares(), kernel.diag(X_test)
    scores = []
    for beta in betas:
        model = _learned(BetaKLMS(kernel, beta=beta, noise=noise), X, y)
        if model is None:
            scores.append(BROKEN)
            continue
        mean = test.means([model])[0]
        if beta == "auto":
            std = model.predict(X_test, return_std=True)[1]
        else:  # v = k(x, x) + beta |k|^2        (paper, eq. 14)
            std = np.sqrt(np.maximum(kxx + float(beta) * k2, 0.0) + noise)
        scores.append(_score(y_test, mean, std) | {"beta": model.beta_})
    return scores


def one_step_ahead(betas: list[float | str], channel: Channel, X: Array, y: Array) -> list[Score]:
    """Return the scores of each beta over a stream. Every sample is predicted before it is learned."""
    scores = []
    for beta in betas:
        model = BetaKLMS(channel.kernel, beta=beta, noise=channel.noise)
        try:
            trace = run(model, X, y)
        except BreakdownError:
            scores.append(BROKEN | {"beta": float(beta)})
            continue
        scores.append(_score(y, trace.mean, trace.std) | {"beta": model.beta_})
    return scores


def _learned(model: BetaKLMS, X: Array, y: Array) -> BetaKLMS | None:
    """Return the model after the stream, or None if it diverged because beta was too small."""
    try:
        return model.fit(X, y)
    except BreakdownError:
        return None


def _score(y: Array, mean: Array, std: Array) -> Score:
    if not (np.abs(mean).max() < 1e100 and nmse(y, mean) < DIVERGED):
        return BROKEN
    density = float(log_density(y, mean, std).mean())
    return {"error": nmse(y, mean), "log density": density, "coverage": coverage(y, mean, std, LEVEL)}


def eigenvalues(kernel: Kernel, X: Array) -> dict[str, float]:
    """Return lambda_max(K), its bound by row sums, and the smallest eigenvalue of Sigma on both sides of the bound."""
    from scipy.sparse.linalg import eigsh

    K = kernel(X)
    top = float(eigsh(K, k=1, v0=np.ones(len(K)), return_eigenvectors=False)[0])
    K_first = K[:CHECKED, :CHECKED]
    top_first = float(np.linalg.eigvalsh(K_first)[-1])
    smallest = {}
    for name, share in (("above", 0.99), ("below", 1.01)):
        Sigma = K_first @ (-share / top_first * K_first + np.eye(len(K_first)))
        smallest[name] = float(np.linalg.eigvalsh((Sigma + Sigma.T) / 2.0)[0]) / top_first
    return {"lambda max": top, "row sum": float(np.abs(K).sum(axis=1).max()), **smallest}


def gather(s: Settings, arm: Arm, parts: list[Any]) -> dict[str, Any]:
    channels = {"channel": identification(s.seed), "next output": prediction(s.seed)}
    here = 3 * s.repeats
    runs = [parts[i] + parts[i + 1] for i in range(0, here, 3)]
    tasks = {arm.name: _task(runs, parts[2:here:3])}
    for name in channels:
        there = here + 2 * s.channel_repeats
        tasks[name] = _task(parts[here:there:2], parts[here + 1 : there : 2])
        here = there
    return {
        "settings": asdict(s) | {arm.name: arm.settings()} | {name: c.settings() for name, c in channels.items()},
        "stand_in": arm.stand_in,
        "level": LEVEL,
        "betas": s.betas[:-1],
        "tasks": tasks,
    }


def _task(runs: list[list[Score]], spectra: list[dict[str, float]]) -> dict[str, Any]:
    """Return mean scores over the repeats for a grid of beta and for the automatic beta, and the bounds."""
    grid: dict[str, Any] = {}
    auto: dict[str, Any] = {"beta": float(np.mean([run[-1]["beta"] for run in runs]))}
    for score in SCORES:
        values = np.array([[beta[score] for beta in run] for run in runs]).mean(axis=0)
        values = decimals(to_db(values) if score == "error" else values)
        if score != "error":  # if the filter diverged, the other scores are meaningless
            values = [
                None if error is None else value for value, error in zip(values, [*grid["error"], 0.0], strict=True)
            ]
        grid[score], auto[score] = values[:-1], values[-1]
    mean = {key: float(np.mean([one[key] for one in spectra])) for key in spectra[0]}
    return {
        "grid": grid,
        "auto": auto,
        "bound": -1.0 / mean["lambda max"],
        "lambda max": mean["lambda max"],
        "row sum": mean["row sum"],
        "smallest eigenvalue": {
            "just above the bound": min(one["above"] for one in spectra),
            "just below the bound": max(one["below"] for one in spectra),
        },
    }


def claims(results: dict[str, Any]) -> list[Claim]:
    tasks = results["tasks"]
    above = min(task["smallest eigenvalue"]["just above the bound"] for task in tasks.values())
    below = max(task["smallest eigenvalue"]["just below the bound"] for task in tasks.values())
    loose = {name: task["row sum"] / task["lambda max"] for name, task in tasks.items()}
    found = [
        Claim(
            "here",
            "Sigma = K (beta K + I) is positive semidefinite if and only if beta >= -1 / lambda_max(K).",
            f"Smallest eigenvalue of Sigma over lambda_max: {above:.1e} at 0.99 of the bound, {below:.1e} at 1.01 of "
            f"it ({CHECKED} centers).",
            above > -1e-10 and below < -1e-3,
        ),
        Claim(
            "here",
            "The largest row sum of K bounds lambda_max, so the automatic beta is always admissible.",
            "Row sum over lambda_max: " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in loose.items()) + ".",
            all(ratio >= 1.0 for ratio in loose.values()),
        ),
    ]
    found.append(_stability(tasks, results["betas"]))
    for name, task in tasks.items():
        found += _verdicts(name, task, results["betas"])
    widths = {name: task["auto"]["coverage"] for name, task in tasks.items()}
    found.append(
        Claim(
            "here",
            f"With the automatic beta, the {LEVEL:.0%} interval covers {LEVEL:.0%} of the data, give or take 2%.",
            ", ".join(f"{name} {share:.1%}" for name, share in widths.items())
            + ". One number beta cannot be right everywhere: for calibrated intervals use a filter that tracks its "
            "posterior.",
            all(abs(share - LEVEL) <= 0.02 for share in widths.values()),
        )
    )
    return found


def _stability(tasks: dict[str, Any], betas: list[float]) -> Claim:
    """Check whether fixed values of beta begin to diverge at the bound."""
    sharp, measured = True, []
    for name, task in tasks.items():
        stable = [beta for beta, error in zip(betas, task["grid"]["error"], strict=True) if error is not None]
        lost = [beta for beta in betas if beta not in stable]
        sharp &= all(beta < task["bound"] for beta in lost) and all(beta > 2.0 * task["bound"] for beta in stable)
        most = f"diverged from {max(lost):.2g} on" if lost else "none diverged"
        measured.append(f"{name}: bound {task['bound']:.2g}, stable down to {min(stable):.2g}, {most}")
    return Claim(
        "here",
        "Fixed values of beta within the bound are stable, those at twice the bound or more diverge.",
        "; ".join(measured) + ".",
        sharp,
    )


def _verdicts(name: str, task: dict[str, Any], betas: list[float]) -> list[Claim]:
    """Compare the automatic beta on a task with zero and with the best beta in hindsight."""
    grid, auto, zero = task["grid"], task["auto"], betas.index(0.0)
    best = min((i for i, error in enumerate(grid["error"]) if error is not None), key=lambda i: grid["error"][i])
    return [
        Claim(
            "here",
            f"On {name}, the automatic beta has a smaller error than beta = 0.",
            f"{auto['error']:.2f} dB against {grid['error'][zero]:.2f} dB; the best of the grid in hindsight, "
            f"{beta_name(betas[best])}, has {grid['error'][best]:.2f} dB. It ends at {auto['beta']:.2g}.",
            auto["error"] < grid["error"][zero],
        ),
        Claim(
            "here",
            f"On {name}, it gives the data a higher log density than beta = 0.",
            f"{auto['log density']:.3f} against {grid['log density'][zero]:.3f} nats per sample.",
            auto["log density"] > grid["log density"][zero],
        ),
    ]


def draw(results: dict[str, Any]) -> Any:
    figure, axes = style.figure(5.2, rows=3, sharex=True)
    betas = np.array(results["betas"])
    looks = [(style.BLUE, "o"), (style.VERMILION, "s"), (style.GREEN, "^")]
    for row, ((name, task), (color, marker)) in enumerate(zip(results["tasks"].items(), looks, strict=True)):
        shown = f"{name} (stand-in)" if results["stand_in"] and name == "robot arm" else name
        for ax, score in zip(axes, SCORES, strict=True):
            values = np.array([np.nan if v is None else v for v in task["grid"][score]])
            ax.plot(betas, values, color=color, marker=marker, ms=2.5, lw=1.0, label=shown)
            ax.plot([task["auto"]["beta"]], [task["auto"][score]], marker="*", ms=9, color=color, mec="k", mew=0.5)
            ax.axvline(task["bound"], color=color, ls=":", lw=1.0)
        lost = betas[[error is None for error in task["grid"]["error"]]]
        height = np.full(len(lost), 0.95 - 0.08 * row)  # at the top of the panel, in axes coordinates
        axes[0].plot(lost, height, "x", color=color, ms=4, transform=axes[0].get_xaxis_transform())
    axes[0].set_ylim(top=axes[0].get_ylim()[1] + 2.0)
    axes[1].set_ylim(bottom=-4.0)
    axes[2].axhline(results["level"], color="0.35", ls="--", lw=0.8)
    labels = ["error, normalized [dB]", "log density [nats]", f"share in {results['level']:.0%} interval"]
    for ax, text in zip(axes, labels, strict=True):
        ax.set_xscale("symlog", linthresh=1e-5, linscale=0.5)
        ax.set_ylabel(text)
    axes[-1].set_xlim(-2.0, 2.0)
    axes[-1].set_xticks([-1.0, -1e-2, -1e-4, 0.0, 1e-4, 1e-2, 1.0])
    axes[-1].set_xlabel(r"$\beta$")
    style.title(axes[0], "star: automatic; dotted: lower bound;\ncross: diverged")
    style.legend(figure, axes[0], ncols=3)
    return figure
