"""How soon Ctrl-C takes effect within a long call, on one model and on a fleet."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from threading import Timer
from time import perf_counter

import numpy as np

import onlinegp as ogp
from onlinegp.kernels import RBF

ROWS, D = 1_000_000, 8  # more than any of the calls gets to see
BUDGET, KEYS = 200, 200


def calls() -> dict[str, Callable[[], object]]:
    """Return calls that would take minutes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, D))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(ROWS)
    klms, gp = ogp.KLMS(RBF(1.0)), ogp.OnlineGP(RBF(1.0), noise=0.1).fit(X[:1500], y[:1500])
    tracker = ogp.KRLST(RBF(1.0), noise=0.01, budget=BUDGET)
    fleet = ogp.Fleet(ogp.KRLST(RBF(1.0), noise=0.01, budget=BUDGET), threads=2)
    keys = (np.arange(ROWS) % KEYS).tolist()
    fleet.learn(keys[:KEYS], X[:KEYS], y[:KEYS])
    return {
        "KLMS, partial_fit": lambda: klms.partial_fit(X, y),
        f"KRLS-T, M = {BUDGET}, run": lambda: tracker.run(X, y),
        "OnlineGP, 1500 centers, predict": lambda: gp.predict(X),
        f"fleet of {KEYS}, M = {BUDGET}, 2 threads, learn": lambda: fleet.learn(keys, X, y),
    }


def latency(call: Callable[[], object], after: float) -> float:
    """Return the seconds from a SIGINT, so many seconds after the call began, to the KeyboardInterrupt."""
    sent = 0.0

    def send() -> None:
        nonlocal sent
        sent = perf_counter()
        os.kill(os.getpid(), signal.SIGINT)

    timer = Timer(after, send)
    timer.start()
    try:
        call()
    except KeyboardInterrupt:
        return perf_counter() - sent
    finally:
        timer.join()
    raise RuntimeError("the call ended before it was interrupted: more rows are needed.")


def interrupts(repeats: int) -> list[dict]:
    """Return the median and the worst latency of each call, in milliseconds."""
    rng = np.random.default_rng(0)
    rows = []
    for name, call in calls().items():
        seconds = [latency(call, float(rng.uniform(0.5, 0.7))) for _ in range(max(repeats, 3))]
        rows.append({"case": name, "median": 1e3 * float(np.median(seconds)), "worst": 1e3 * max(seconds)})
    return rows


def lines(rows: list[dict]) -> str:
    """Return the rows as text."""
    shown = [f"{r['case']:<44} {r['median']:6.0f} {r['worst']:6.0f}" for r in rows]
    return "\n".join([f"{'Ctrl-C within a call, ms to take effect':<44} {'median':>6} {'worst':>6}", *shown])


if __name__ == "__main__":
    print(lines(interrupts(9)))
