"""Tasks side by side: here, on an executor, on joblib's backend, and without joblib in processes of our own."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from onlinegp.processes import in_parallel, single_threaded_blas

TASKS = [(2, 3), (3, 2), (5, 1)]
RESULTS = [8, 9, 5]


def test_one_job_runs_here_and_takes_a_generator():
    assert in_parallel(pow, (task for task in TASKS), 1) == RESULTS


def test_an_executor_runs_them_itself():
    with ThreadPoolExecutor(2) as pool:
        assert in_parallel(pow, (task for task in TASKS), pool) == RESULTS


def test_the_backend_is_the_users():
    joblib = pytest.importorskip("joblib")
    asked: list[int] = []

    class Watched(joblib._parallel_backends.ThreadingBackend):
        def configure(self, n_jobs=1, **kwargs):
            asked.append(n_jobs)
            return super().configure(n_jobs, **kwargs)

    joblib.register_parallel_backend("watched", Watched)
    with joblib.parallel_config(backend="watched", n_jobs=3):
        assert in_parallel(pow, TASKS) == RESULTS
        assert in_parallel(pow, TASKS, 2) == RESULTS
    assert asked == [3, 2]
    with joblib.parallel_config(backend="watched"):
        assert in_parallel(pow, TASKS) == RESULTS
    assert asked[2] == -1  # one per core


def test_without_joblib_processes_run_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    assert in_parallel(pow, TASKS, 2) == RESULTS


def test_blas_has_one_thread_in_every_thread():
    """In the background, too: with more threads the last bits of a tuning would depend on where it was done."""
    import threading

    import scipy.linalg  # noqa: F401  has its own BLAS
    from threadpoolctl import threadpool_info

    found = []

    def look():
        with single_threaded_blas:
            found.extend(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")

    before = [one["num_threads"] for one in threadpool_info()]
    look()
    for _ in range(2):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert found
    assert set(found) == {1}
    assert [one["num_threads"] for one in threadpool_info()] == before
