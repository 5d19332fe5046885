"""Record what models predict, so that a change of how they are computed can be told from a change of what they compute.

    PYTHONPATH=tests python tests/laws/record.py           # compares with the recording, model by model
    PYTHONPATH=tests python tests/laws/record.py --write   # makes a new one

`test_recording.py` reproduces the recording. Make a new one only in a commit that changes predictions on purpose, or
that adds models; run without `--write` first, and name in the commit's message each model that differs and why.
Predictions of `Conformal`, and of `Auto`, which is one, are recorded by their means and intervals.

Of 300 rows some of the first and every 15th are kept: mean, std, log density, size, and the ends of the 95% interval.
"""

from __future__ import annotations

import argparse
import copy
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from agreement import deviation, observed

import onlinegp as ogp
from models import AFFINE, FEATURES, LINEAR, LOCAL, MODELS, STEPS, WRAPPED
from onlinegp.engine import available, info
from onlinegp.kernels import RBF, Matern32

PATH = Path(__file__).parents[1] / "fixtures" / "recording.npz"
N = 300
ROWS = np.array([0, 1, 2, 6, *range(14, N, 15)])
ENGINES = ("native", "python") if available() else ("python",)
TOLERANCE, ELSEWHERE = 1e-12, 1000.0  # where it was recorded; times as much with another instruction set or NumPy
# Its kernels are where an optimizer stopped: the last bit of y moves what it predicts by 1e-9, that of others by 1e-14.
LOOSER = {"Auto-tuned": 1e-6}

KRLST, LINE = ogp.KRLST(RBF(0.7), noise=0.05, budget=20), ogp.LinearRLS(noise=0.1)
TREES = {
    "Scaled-Calibrated-KRLST": ogp.Scaled(ogp.Calibrated(KRLST)),
    "Scaled-Robust-HeavyTailed": ogp.Scaled(ogp.Robust(ogp.HeavyTailed(KRLST), bound=2.0), rows=50),
    "Conformal-Mixture": ogp.Conformal(ogp.Mixture([KRLST, LINE]), level=0.8),
    "Scaled-Conformal-Mixture-gate": ogp.Scaled(
        ogp.Conformal(ogp.Mixture([ogp.HeavyTailed(KRLST), ogp.HeavyTailed(LINE)], gate=2.0)), rows=40
    ),
    "Mixture-gate": ogp.Mixture([KRLST, LINE, ogp.LocalGP(RBF(0.7), noise=0.05, neighbors=15)], gate=2.0, fade=0.97),
    "Mixture-Mixture": ogp.Mixture([ogp.Mixture([KRLST, LINE], fade=1.0), ogp.HeavyTailed(LINE)], weights=(0.0, -1.0)),
    "Calibrated-Lagged-Mixture": ogp.Calibrated(ogp.Lagged(ogp.Mixture([ogp.Scaled(KRLST), ogp.NLMS()]), lags=2)),
    "Lagged-Conformal": ogp.Lagged(ogp.Conformal(LINE, level=0.9), lags=3),
    "HeavyTailed-RandomFeatureGP": ogp.HeavyTailed(ogp.RandomFeatureGP(Matern32(0.7), noise=0.05, pairs=15)),
    "Robust-LKAPA": ogp.Robust(ogp.kafbox.LKAPA(RBF(0.7), step=0.1, window=4, budget=25)),
}
RECORDED = {
    **{name: MODELS[name] for name in ("KLMS", "QKLMS", "KNLMS", "NORMA", "BetaKLMS-auto", "BetaKLMS-surprise")},
    **{name: MODELS[name] for name in ("OnlineGP-budget", "KRLS", "KRLST", "KRLST-power", "EXKRLS", "SWKRLS")},
    **{name: MODELS[name] for name in ("FBKRLS", "KLMS-window")},
    **{name: STEPS[name] for name in ("FBKLMS", "QKLMSFB", "KLMSCSL1", "MKNLMS", "MXKLMS", "RFFKLMS")},
    **{name: LINEAR[name] for name in ("LinearRLS-forgets", "LMS", "ProbLMS", "Kalman", "Persistence")},
    **{name: AFFINE[name] for name in ("KAP", "LKAPA", "KAPSM", "PHYPASS", "L2S")},
    **{name: LOCAL[name] for name in ("LocalGP-store", "ResidualGP", "ResidualGP-store")},
    **{name: WRAPPED[name] for name in ("Scaled-given", "Lagged-horizon", "Robust", "HeavyTailed", "Conformal")},
    **{name: WRAPPED[name] for name in ("Mixture", "Mixture-shared", "Scaled-Mixture")},
    "Forecaster": WRAPPED["Forecaster-Lagged"],
    **{name: WRAPPED[name] for name in ("Auto", "Auto-tuned")},
    "RandomFeatureGP": FEATURES["RandomFeatureGP"],
    **TREES,
}
OUTPUTS = {"KRLST": 2, "QKLMS": 2, "KAP": 2, "Kalman": 2, "Scaled-Mixture": 2, "Scaled-Conformal-Mixture-gate": 2}
OUTPUTS |= {"Mixture-Mixture": 3, "ResidualGP-store": 2, "Calibrated-Lagged-Mixture": 2, "RandomFeatureGP": 2}


def stream(outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows without ties: a smooth function with noise and outliers, which changes after 200 rows."""
    rng = np.random.default_rng(27)
    X = rng.uniform(-2.0, 2.0, (N, 2))
    noise = 0.1 * rng.standard_t(4, (N, outputs))
    Y = np.sin(1.5 * X[:, :1] + np.arange(outputs)) + 0.3 * X[:, 1:] + noise
    Y[200:] += 0.5 * X[200:, :1]
    return X, Y[:, 0] if outputs == 1 else Y


def cases() -> list[tuple[str, str]]:
    """Return each model with each engine; with "auto" if it leaves no choice."""
    chooses = {name for name, model in RECORDED.items() if any(key.endswith("engine") for key in model.get_params())}
    return [(name, engine) for name in RECORDED for engine in (ENGINES if name in chooses else ("auto",))]


def made(name: str, engine: str) -> Any:
    model = copy.deepcopy(RECORDED[name])
    return model.set_params(**{key: engine for key in model.get_params() if key.endswith("engine")})


def recordable(name: str, engine: str, change: float = 0.0) -> dict[str, np.ndarray]:
    """Return what is recorded of a model; with `change`, every y is multiplied by 1 + change or 1 - change."""
    X, y = stream(OUTPUTS.get(name, 1))
    if change:
        y = y * (1.0 + change * np.random.default_rng(0).choice([-1.0, 1.0], y.shape))
    found = observed(made(name, engine), X, y)
    return {key: found[key][ROWS] for key in ("size", *quantities(name))}


def quantities(name: str) -> tuple[str, ...]:
    if "Conformal" in name or "Auto" in name:
        return ("mean", "lower", "upper")
    return ("mean", "std", "log_density", "lower", "upper")


# Files


def machine() -> str:
    """Return what last bits depend on beside the source."""
    facts = info()
    return ", ".join(facts.get(key, "") for key in ("instruction set", "numpy", "machine"))


def packed(name: str, engine: str) -> dict[str, np.ndarray]:
    """Return the arrays of a case as the file has them: one of numbers, one of sizes."""
    found = recordable(name, engine)
    numbers = np.stack([found[key] for key in quantities(name)])
    return {f"{name}/{engine}": numbers, f"{name}/{engine}/size": found["size"].astype(np.int16)}


def recorded(file: Any, name: str, engine: str) -> dict[str, np.ndarray]:
    numbers = dict(zip(quantities(name), file[f"{name}/{engine}"], strict=True))
    return {**numbers, "size": file[f"{name}/{engine}/size"]}


def write(path: Path) -> None:
    """Write all cases into one file, which is the same whenever it is written."""
    arrays = {"machine": np.array(machine())}
    for name, engine in cases():
        arrays |= packed(name, engine)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, array in arrays.items():
            buffer = BytesIO()
            np.save(buffer, array)
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), buffer.getvalue(), zipfile.ZIP_DEFLATED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="replace the recording")
    args = parser.parse_args()
    if args.write:
        write(PATH)
        print(f"{PATH}: {len(cases())} cases, {PATH.stat().st_size} bytes")
        return
    print(f"{'':<40} {'differs by':>12} {'one bit of y':>12}")
    with np.load(PATH) as file:
        for name, engine in cases():
            now, nudged = recordable(name, engine), recordable(name, engine, change=2.0**-52)
            away, bit = deviation(recorded(file, name, engine), now), deviation(now, nudged)
            print(f"{name + ', ' + engine:<40} {away:12.1e} {bit:12.1e}", flush=True)


if __name__ == "__main__":
    main()
