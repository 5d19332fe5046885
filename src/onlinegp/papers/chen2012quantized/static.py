"""Static function estimation: error and centers against the quantization radius, excess error against the step.

Run time  3 s of processor time
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from onlinegp.checks import Array
from onlinegp.kernels import RBF
from onlinegp.models import KLMS, QKLMS
from onlinegp.models.base import OnlineRegressor
from onlinegp.papers import style
from onlinegp.papers.common import Claim, per_repeat
from onlinegp.papers.curves import interval

TITLE = "Static function: radius, size and excess error"
NOTE = (
    "f(u) = 0.2 (exp(-(u + 1)^2 / 2) + exp(-(u - 1)^2 / 2)) of Gaussian u, the paper's function: two centers with this "
    "kernel. The excess error is that of the last samples against f, without noise. Noise, steps, radii and the "
    "length of the runs are ours."
)
SPARSE = 1.0 / 20.0  # share of samples: if fewer become centers, most samples are redundant
CLOSE = 1.0  # dB: excess errors that differ by less count as equal


@dataclass(frozen=True)
class Settings:
    seed: int = 0
    repeats: int = 20
    rows: int = 5000
    last: int = 1000
    noise: float = 1e-4
    step: float = 0.5
    radii: tuple[float, ...] = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
    steps: tuple[float, ...] = (0.1, 0.2, 0.4, 0.8)


def stream(s: Settings, repeat: int) -> tuple[Array, Array, Array]:
    """Return the inputs, the noisy targets and the noise-free targets."""
    rng = np.random.default_rng([s.seed, repeat])
    u = rng.standard_normal(s.rows)
    f = 0.2 * (np.exp(-((u + 1.0) ** 2) / 2.0) + np.exp(-((u - 1.0) ** 2) / 2.0))
    return u[:, None], f + np.sqrt(s.noise) * rng.standard_normal(s.rows), f


def run(s: Settings, repeat: int) -> dict[str, list[tuple[float, int]]]:
    """Return excess errors and numbers of centers for every radius, quantized and thinned, and for every step."""
    X, y, f = stream(s, repeat)
    return {
        "quantized": [excess(s, QKLMS(RBF(1.0), step=s.step, radius=radius), X, y, f) for radius in s.radii],
        "thinned": [thinned(s, radius, X, y, f) for radius in s.radii],
        "steps": [excess(s, KLMS(RBF(1.0), step=step), X, y, f) for step in s.steps],
    }


plan = per_repeat(run)


def excess(s: Settings, model: OnlineRegressor, X: Array, y: Array, f: Array) -> tuple[float, int]:
    """Return the mean squared error against f over the last rows, each predicted before it is learned, and the size."""
    mean = model.run(X, y).mean
    return float(np.mean((mean - f)[-s.last :] ** 2)), model.size_


def thinned(s: Settings, radius: float, X: Array, y: Array, f: Array) -> tuple[float, int]:
    """Return the results of `excess` for a KLMS that discards the samples that QKLMS with this radius would merge."""
    first, last = slice(0, -s.last), slice(-s.last, None)
    size = QKLMS(RBF(1.0), step=s.step, radius=radius).run(X[first], y[first]).size
    new = np.diff(size, prepend=0) > 0
    model = KLMS(RBF(1.0), step=s.step).fit(X[first][new], y[first][new])
    return float(np.mean((model.predict(X[last]) - f[last]) ** 2)), model.size_


def gather(s: Settings, parts: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"settings": asdict(s), "note": NOTE}
    for kind, grid in (("quantized", s.radii), ("thinned", s.radii), ("steps", s.steps)):
        errors = np.array([[error for error, _ in part[kind]] for part in parts])  # (repeats, grid)
        sizes = np.array([[size for _, size in part[kind]] for part in parts]).mean(axis=0)
        band = interval(errors)
        found[kind] = {
            f"{at:g}": {
                "excess": round(float(value), 3),
                "+-": round(float(high - value), 3),
                "centers": round(float(m), 1),
            }
            for at, value, high, m in zip(grid, band.value, band.high, sizes, strict=True)
        }
    for step, row in found["steps"].items():  # energy conservation: E e_a^2 = step noise / (2 - step)
        row["predicted"] = round(10.0 * float(np.log10(float(step) * s.noise / (2.0 - float(step)))), 3)
    return found


def claims(results: dict[str, Any]) -> list[Claim]:
    quantized, thin, steps = results["quantized"], results["thinned"], results["steps"]
    radii = list(quantized)
    whole = quantized[radii[0]]
    good = [r for r in radii if quantized[r]["excess"] <= whole["excess"] + CLOSE]
    small = quantized[good[-1]]
    sparse = [r for r in radii if quantized[r]["centers"] < SPARSE * results["settings"]["rows"]]
    gains = {r: thin[r]["excess"] - quantized[r]["excess"] for r in sparse}
    off = {step: row["excess"] - row["predicted"] for step, row in steps.items()}
    centers = [row["centers"] for row in quantized.values()]
    return [
        Claim(
            "paper",
            "Quantization needs a fraction of the centers of KLMS, and costs little accuracy.",
            f"Radius {good[-1]}: {small['centers']:.0f} centers in place of {whole['centers']:.0f}, and an excess "
            f"error of {small['excess']:.1f} dB in place of {whole['excess']:.1f} dB.",
            small["centers"] < whole["centers"] / 50,
        ),
        Claim(
            "paper",
            "Where most samples are redundant, correcting the nearest center is better than throwing them away.",
            "The cost of throwing them away [dB], by radius: "
            + ", ".join(f"{r}: {gain:.1f}" for r, gain in gains.items()),
            all(gain > 0.0 for gain in gains.values()),
        ),
        Claim(
            "paper",
            "A larger radius gives fewer centers, and a large radius increases the error.",
            f"Centers: {', '.join(f'{m:.0f}' for m in centers)}; the excess error at radius {radii[-1]} is "
            f"{quantized[radii[-1]]['excess']:.1f} dB.",
            centers == sorted(centers, reverse=True) and quantized[radii[-1]]["excess"] > whole["excess"] + CLOSE,
        ),
        Claim(
            "paper",
            "By conservation of energy the excess error of KLMS in the steady state is step noise / (2 - step).",
            "Measured above predicted [dB], by step: " + ", ".join(f"{step}: {gap:+.1f}" for step, gap in off.items()),
            all(abs(gap) <= CLOSE for gap in off.values()),
        ),
    ]


def tables(results: dict[str, Any]) -> dict[str, Any]:
    return {
        "QKLMS by radius: excess error [dB]": results["quantized"],
        "KLMS without the redundant samples": results["thinned"],
        "KLMS by step: excess error [dB], measured and predicted": results["steps"],
    }


def draw(results: dict[str, Any]) -> Any:
    figure, ax = style.figure(3.0)
    for kind, color, text in (
        ("quantized", style.BLUE, "QKLMS"),
        ("thinned", style.VERMILION, "redundant thrown away"),
    ):
        rows = results[kind].values()
        points = [[row[what] for row in rows] for what in ("centers", "excess", "+-")]
        ax.errorbar(*points[:2], yerr=points[2], fmt="o-", ms=3, lw=1.2, capsize=2, color=color, label=text)
    ax.set(xscale="log", xlabel="centers", ylabel="excess error [dB]")
    style.title(ax, "static function")
    style.legend(figure, ax, ncols=2)
    return figure
