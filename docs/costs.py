"""Measure what docs/guide/choosing.md says: CPU time per sample, errors and coverage of every filter on two tasks.

    OPENBLAS_NUM_THREADS=1 python docs/costs.py [engine]

It prints the rows of the table; some minutes on the Python engine. Seeds are fixed, times are the machine's: CPU time
per sample over the rows from SETTLED on, when budgets are full and `Auto` has tuned itself.
"""

from __future__ import annotations

import sys
from time import process_time

import numpy as np

import onlinegp as ogp
from onlinegp.datasets import channel_switch, robot_arm
from onlinegp.kernels import RBF, Kernel
from onlinegp.metrics import nmse, to_db
from onlinegp.models import OnlineRegressor
from onlinegp.recipes.dictionaries import Quantized

ROWS, SETTLED = 3000, 2000  # cost, error and coverage are those of the rows from SETTLED on
TUNED = 500  # rows that Auto tunes itself on


def models(kernel: Kernel, noise: float, radius: float, forgetting: float, engine: str) -> dict[str, OnlineRegressor]:
    """One of each, for a kernel of unit variance."""
    e = {"engine": engine}
    return {
        "`KLMS`": ogp.KLMS(kernel, step=0.5, **e),
        "`NORMA`, M = 500": ogp.kafbox.NORMA(kernel, step=0.5, leak=1e-3, budget=500, **e),
        "`QKLMS`": ogp.QKLMS(kernel, step=0.5, radius=radius, **e),
        "`KNLMS`": ogp.KNLMS(kernel, step=0.5, coherence=0.8, **e),
        "`BetaKLMS`": ogp.BetaKLMS(kernel, noise=noise, **e),
        "`BetaKLMS`, quantized": ogp.BetaKLMS(kernel, noise=noise, dictionary=Quantized(radius), **e),
        "`KRLS`": ogp.KRLS(kernel, threshold=0.1, **e),
        "`SWKRLS`, M = 100": ogp.kafbox.SWKRLS(kernel, noise=noise, budget=100, **e),
        "`FBKRLS`, M = 100": ogp.kafbox.FBKRLS(kernel, noise=noise, budget=100, **e),
        "`KRLST`, M = 100": ogp.KRLST(kernel, noise=noise, budget=100, forgetting=forgetting, **e),
        "`KRLST`, M = 300": ogp.KRLST(kernel, noise=noise, budget=300, forgetting=forgetting, **e),
        "`OnlineGP`": ogp.OnlineGP(kernel, noise=noise, **e),
        "`LocalGP`": ogp.LocalGP(kernel, noise=noise, forgetting=forgetting, **e),
        "`LinearRLS`": ogp.LinearRLS(noise=10 * noise, forgetting=forgetting, **e),
        "`Calibrated(KRLST)`, M = 100": ogp.Calibrated(
            ogp.KRLST(kernel, noise=noise, budget=100, forgetting=forgetting, **e)
        ),
    } | (
        {}
        if engine == "python"
        else {"`Auto`": ogp.Auto(rows=TUNED, earliest=TUNED, tuning_delay=0.0, forgetting=forgetting)}
    )


def measure(engine: str) -> list[str]:
    """Return one row a model: cost, then error and coverage on the arm and on the channel."""
    arm = robot_arm(ROWS, links=4, seed=0)
    channel = channel_switch(ROWS, switch=1500, noise=0.01, seed=0)
    on_arm = models(RBF(1.6), 0.005, 0.7, 1.0, engine)
    on_channel = models(RBF(3.0), 0.01, 1.2, 0.998, engine)
    rows = []
    for name in on_arm:
        cells = []
        for model, (X, y) in ((on_arm[name], arm), (on_channel[name], channel)):
            ogp.run(model, X[:SETTLED], y[:SETTLED])
            X, y = X[SETTLED:], y[SETTLED:]
            start = process_time()
            trace = ogp.run(model, X, y)
            cost = 1e6 * (process_time() - start) / len(y)
            lower, upper = trace.interval(0.95)
            inside = np.mean((lower <= y) & (y <= upper))
            error = to_db(nmse(y, trace.mean))
            cells += [trace.size[-1], f"{cost:.0f}" if cost >= 10 else f"{cost:.1f}", f"{error:.1f}", f"{inside:.0%}"]
        rows.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
        print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    measure(sys.argv[1] if len(sys.argv) > 1 else "auto")
