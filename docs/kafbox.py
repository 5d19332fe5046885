"""Measure the table of docs/coming_from/kafbox.md: every run of KAFBOX in tests/fixtures, by ours, mended.

    OPENBLAS_NUM_THREADS=1 python docs/kafbox.py [run ...]

It prints the rows of the table; about a minute. Times are the machine's: CPU time per sample of a call that predicts
and learns all rows, the least of three; and the same by `predict_one` and `learn_one`, one row after the other.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from time import process_time

import numpy as np

import onlinegp as ogp
from onlinegp.kernels import RBF

FIXTURES = Path(__file__).parents[1] / "tests" / "fixtures"
RUNS = json.loads((FIXTURES / "channel_switch.json").read_text("utf-8"))["runs"]
REPEATS, SCORED = 3, 750
COLUMNS = ("run of KAFBOX", "here", "its error [dB]", "ours [dB]", "Octave [us]", "ours [us]", "times as fast")
HEADER = "| " + " | ".join((*COLUMNS, "one by one [us]")) + " |"


def models() -> dict[str, ogp.OnlineRegressor]:
    """Return one for each run, with its parameters."""
    k = RBF(1.0)
    four = tuple(map(RBF, (0.5, 1.0, 1.5, 2.0)))
    no = {"intercept": False}
    return {
        "klms": ogp.KLMS(k, step=0.5),
        "qklms": ogp.QKLMS(k, step=0.5, radius=0.5),
        "qklms_fb": ogp.kafbox.QKLMSFB(k, step=0.5, radius=0.5, forgetting=0.95, budget=50),
        "fbklms": ogp.kafbox.FBKLMS(k, step=0.5, coherence=0.95, budget=100),
        "knlms": ogp.KNLMS(k, step=0.5, coherence=0.95, epsilon=0.01),
        "norma": ogp.kafbox.NORMA(k, step=0.5, leak=0.01, budget=500),
        "klms_csl1": ogp.kafbox.KLMSCSL1(k, step=0.1, coherence=0.95, penalty=5e-4),
        "klms_csl1_b": ogp.kafbox.KLMSCSL1(k, step=0.05, coherence=0.5, penalty=1e-4),
        "klms_csal1": ogp.kafbox.KLMSCSAL1(k, step=0.1, coherence=0.95, penalty=5e-4),
        "klms_csal1_b": ogp.kafbox.KLMSCSAL1(k, step=0.05, coherence=0.5, penalty=1e-5),
        "mknlms_cs": ogp.kafbox.MKNLMS(four, step=0.5, coherence=0.95, epsilon=0.01),
        "mxklms": ogp.kafbox.MXKLMS(four, step=0.8, mixing_step=2.0),
        "mxklms_b": ogp.kafbox.MXKLMS(four, step=0.8, mixing_step=0.01),
        "rffklms": ogp.kafbox.RFFKLMS(k, step=0.45, basis=300),
        "kap": ogp.kafbox.KAP(k, step=0.5, coherence=0.95, epsilon=0.01, window=20),
        "lkapa": ogp.kafbox.LKAPA(k, step=0.05, leak=0.01, window=10, budget=2000),
        "nlkapa": ogp.kafbox.NLKAPA(k, step=0.05, leak=0.01, epsilon=1e-4, window=20, budget=2000),
        "kapsm": ogp.kafbox.KAPSM(k, step=1.8, window=10, budget=200, radius=10.0),
        "phypass": ogp.kafbox.PHYPASS(k, step=0.5, selected=1, coherence=0.95, window=8),
        "phypass_s7": ogp.kafbox.PHYPASS(k, step=0.5, selected=7, coherence=0.5, window=8),
        "L2_s_c": ogp.kafbox.L2S((5.0, 1.0, 0.5), step=0.5, coherence=0.5, epsilon=0.01, selected=1),
        "L2_s_d": ogp.kafbox.L2S((1.0, 0.5), step=0.5, coherence=0.5, epsilon=1e-4, selected=7),
        "krls": ogp.KRLS(k, threshold=0.01),
        "krls_def": ogp.KRLS(k, threshold=1e-4),
        "swkrls": ogp.kafbox.SWKRLS(k, noise=0.01, budget=50),
        "fbkrls": ogp.kafbox.FBKRLS(k, noise=0.01, budget=100),
        "krlst": ogp.KRLST(k, noise=0.01, budget=50, forgetting=0.999),
        "krlst_l1": ogp.KRLST(k, noise=0.01, budget=100),
        "krlst_l99": ogp.KRLST(k, noise=0.01, budget=100, forgetting=0.99),
        "exkrls": ogp.kafbox.EXKRLS(k, noise=0.00995, budget=500, transition=0.999, drift=1e-3, forgetting=0.995),
        "lms": ogp.LMS(step=0.05, **no),
        "nlms": ogp.NLMS(step=0.9, epsilon=1e-6, **no),
        "rls": ogp.LinearRLS(noise=1.0, prior=1e4, forgetting=0.99, **no),
        "problms": ogp.kafbox.ProbLMS(noise=0.01, drift=1e-4, prior=0.01, **no),
        "kalman": ogp.Kalman(noise=0.01, drift=0.1, **no),
        "memory_cell": ogp.Persistence(),
    }


def error(model: ogp.OnlineRegressor) -> float | None:
    """Return the mean squared error over the last rows, in dB; None if the model broke down."""
    golden = np.load(FIXTURES / "channel_switch.npz")
    try:
        trace = ogp.run(model.unfitted(), golden["x"], golden["y"])
    except ogp.BreakdownError:
        return None
    return float(10.0 * np.log10(np.mean((golden["y"] - trace.mean)[-SCORED:] ** 2)))


def microseconds(model: ogp.OnlineRegressor) -> float:
    """Return the CPU time per sample, the least of some repeats."""
    golden = np.load(FIXTURES / "channel_switch.npz")
    X, Y, times = golden["x"], golden["y"][:, None], []
    for _ in range(REPEATS):
        learner, began = model.unfitted().start(X.shape[1], 1), process_time()
        learner.run(X, Y)
        times.append(process_time() - began)
    return 1e6 * min(times) / len(X)


def microseconds_one_by_one(model: ogp.OnlineRegressor) -> float:
    """Return the CPU time per sample of `predict_one` and `learn_one`, until the model breaks down if it does."""
    golden = np.load(FIXTURES / "channel_switch.npz")
    rows, times = list(zip(golden["x"], golden["y"].tolist(), strict=True)), []
    for _ in range(REPEATS):
        own, began = model.unfitted(), process_time()
        with suppress(ogp.BreakdownError):
            for x, y in rows:
                own.predict_one(x)
                own.learn_one(x, y)
        times.append((process_time() - began) / own.n_samples_seen_)
    return 1e6 * min(times)


def row(run: str) -> str:
    """Return the row of a run."""
    model, theirs = models()[run], RUNS[run]
    ours, octave, each = error(model), theirs["octave_cpu_us_per_sample"], microseconds(model)
    cells = [f"`{run}`", f"`{type(model).__name__}`", _decibels(theirs["mse_db"]), _decibels(ours), f"{octave:.0f}"]
    cells += [_time(each), f"{octave / each:.0f}", _time(microseconds_one_by_one(model))]
    return "| " + " | ".join(cells) + " |"


def _time(microseconds: float) -> str:
    return f"{microseconds:.2f}" if microseconds < 1.0 else f"{microseconds:.1f}"


def _decibels(value: float | None) -> str:
    return "breaks down" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    print(HEADER)
    print("|---|---|---|---|---|---|---|---|")
    for run in sys.argv[1:] or models():
        print(row(run), flush=True)
