"""What people meet first: tuning on busy cores, bands that hold what they promise, changes that are followed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.processes import single_threaded_blas

ROOT = Path(__file__).parents[2]
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
MEASURED = """
import resource, sys
exec(open(sys.argv[1]).read(), {"__name__": "__main__"})
usage = resource.getrusage(resource.RUSAGE_SELF)
print(usage.ru_utime + usage.ru_stime)
"""


def cpu_seconds(script: Path, **environment: str) -> float:
    """CPU time that a script takes in a process of its own, with BLAS threads as the environment says."""
    free = {name: value for name, value in os.environ.items() if name not in THREADS}
    call = [sys.executable, "-c", MEASURED, str(script)]
    done = subprocess.run(call, env=free | environment, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


@contextmanager
def busy_processes(n: int):
    """Keep cores busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
            one.wait()


WATCHED = """
import numpy as np
import onlinegp as ogp
from onlinegp.batch import likelihood
from threadpoolctl import threadpool_info

threads, exact = [], likelihood.cholesky

def watched(K):
    if len(threads) < 20:
        threads.append(max(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"))
    return exact(K)

likelihood.cholesky = watched
X = np.random.default_rng(0).uniform(-5, 5, (80, 1))
ogp.Auto(tuning_delay=0.0).fit(X, np.sin(X[:, 0]))
print(max(threads))
"""


def test_tuning_keeps_blas_to_one_thread_where_nobody_else_does():
    """Also the BLAS of SciPy, which is loaded late."""
    free = {name: value for name, value in os.environ.items() if name not in THREADS}
    free |= dict.fromkeys(THREADS, "2")
    done = subprocess.run([sys.executable, "-c", WATCHED], env=free, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="CPU time of a process is measured by resource")
def test_the_readme_takes_no_longer_with_blas_threads_free_beside_busy_processes(tmp_path):
    """Threads of BLAS that wait for each other by spinning took 20 to 60 times as long."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    script = tmp_path / "readme.py"
    script.write_text("\n".join(blocks), "utf-8")
    with busy_processes(4):
        one = cpu_seconds(script, **dict.fromkeys(THREADS, "1"))
        free = cpu_seconds(script)
    assert free < 1.5 * one + 1.0  # seconds, for imports


def blas_threads() -> list[int]:
    from threadpoolctl import threadpool_info

    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


def test_blas_has_its_threads_again_after_a_tuning_also_one_that_failed():
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with single_threaded_blas:
            with single_threaded_blas:
                assert set(blas_threads()) == {1}
            assert set(blas_threads()) == {1}  # the outer one goes on
        assert blas_threads() == before
        with pytest.raises(RuntimeError), single_threaded_blas:
            raise RuntimeError
        assert blas_threads() == before


@pytest.mark.parametrize("seed", [0, 1])
def test_fresh_rows_are_covered_at_a_moment(seed):
    """Not along the stream, where coverage is steered: by the band that one sees after 300 rows. Seed 0: the README.

    Coverage has a standard deviation of 0.014 there, most of it from the noise of the rows that were learned.
    """
    from fresh_coverage import at_moments, readme_like

    rows = zip(readme_like(seed, 300), readme_like(1000, 3000), strict=True)
    (covers,) = at_moments(*(np.concatenate(both) for both in rows), [300])
    assert covers == pytest.approx(0.95, abs=0.03)


def changing(n: int = 1200, change: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """A function that is replaced by another one."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-3.0, 3.0, (n, 2))
    y = np.where(np.arange(n) < change, np.sin(2.0 * X[:, 0]), np.cos(X[:, 1]) - X[:, 0])
    return X, 20.0 + 4.0 * y + 0.2 * rng.standard_normal(n)


def test_a_change_is_followed_and_covered():
    """Without the two members with short memories the error is 0.45 of the variance."""
    X, y = changing()
    trace = ogp.Auto(rows=200, earliest=200, tuning_delay=0.0).run(X, y)
    after = slice(600, None)
    assert np.mean((trace.mean - y)[after] ** 2) < 0.3 * np.var(y[after])
    lower, upper = trace.interval(0.95)
    later = slice(800, 1000)
    assert np.mean((lower <= y)[later] & (y <= upper)[later]) >= 0.9


def test_one_row_needs_no_quantile(monkeypatch):
    """Whether y was inside is known from one CDF: inverting that of a mixture took 93% of the time of `learn_one`."""
    X, y = changing(300)
    model = ogp.Conformal(ogp.HeavyTailed(ogp.KRLST())).fit(X[:200], y[:200])
    block, single = ogp.from_bytes(model.to_bytes()), model
    block.partial_fit(X[200:], y[200:])
    monkeypatch.setattr(ogp.predictions.Components, "quantile", None)
    for x, value in zip(X[200:], y[200:], strict=True):
        single.learn_one(x, float(value))
    for name, value in single.dump()["learned"].items():
        np.testing.assert_array_equal(value, block.dump()["learned"][name])
