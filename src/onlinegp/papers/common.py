"""Shared code of the experiments: jobs in several processes, claims, and numbers for JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.metrics import to_db
from onlinegp.processes import worker_pool
from onlinegp.progress import shown

Job = Callable[[], Any]  # a functools.partial of a function of a module, which can be pickled
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
DIVERGED = 1e3  # a filter with a larger normalized squared error counts as diverged


@dataclass(frozen=True)
class Claim:
    """A statement, and the result of checking it.

    Attributes
    ----------
    by : "paper", or "here" for an additional statement of this study
    says : the statement
    measured : the measured numbers
    holds : whether the numbers support the statement
    """

    by: str
    says: str
    measured: str
    holds: bool


def per_repeat(run: Callable[[Any, int], Any]) -> Callable[[Any], list[Job]]:
    """Return the plan of an experiment with a job per repeat: `run` with the settings and the number of the repeat."""
    return lambda s: [partial(run, s, repeat) for repeat in range(s.repeats)]


def run_jobs(jobs: Sequence[Job], *, workers: int = 1, progress: bool = False) -> list[Any]:
    """Run the jobs in this process, or in several processes with one thread each. Return their results in order."""
    workers, show = min(workers, len(jobs)), None if progress else False
    if workers < 2:
        return [job() for job in shown(jobs, len(jobs), "jobs", show=show)]

    from concurrent.futures import as_completed

    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))  # for the workers; numpy is already loaded in this process
    try:
        with worker_pool(workers) as pool:
            futures = [pool.submit(job) for job in jobs]
            for future in shown(as_completed(futures), len(jobs), "jobs", show=show):
                future.result()
            return [future.result() for future in futures]
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def decimals(values: ArrayLike, places: int = 4) -> list[Any]:
    """Return rounded numbers as (nested) lists. Values that are not finite become None, for JSON."""
    array = np.round(np.asarray(values, dtype=np.float64), places) + 0.0  # no -0.0
    out = array.astype(object)
    out[~np.isfinite(array)] = None
    return out.tolist()


def band(runs: ArrayLike) -> dict[str, list[Any]]:
    """Return mean, minimum and maximum over repeats of normalized squared errors (repeats, points), in dB."""
    runs = np.asarray(runs, dtype=np.float64)
    return {
        "mean": decimals(to_db(runs.mean(axis=0))),
        "low": decimals(to_db(runs.min(axis=0))),
        "high": decimals(to_db(runs.max(axis=0))),
        "runs": decimals(to_db(runs)),
    }


def largest_gap(one: ArrayLike, other: ArrayLike) -> float:
    """Return the largest difference between two curves."""
    return float(np.max(np.abs(np.asarray(one) - np.asarray(other))))
