"""The hardware limits of this machine, measured: the yardstick of every benchmark.

A kernel row is bound by arithmetic: its limit is the number of vector operations over the rate at which the machine
does a mix of fused multiply-adds and additions.
A tracked posterior is bound by memory: its limit is the bytes that its passes read and write over the rate at which a
buffer of that size can be read and written back.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from time import perf_counter

import numpy as np

SOURCE = Path(__file__).with_name("limits.cpp")
EXP = 20  # vector operations of an exponential to full precision: range reduction, 11 terms, scaling


@cache
def _library() -> ctypes.CDLL:
    folder = tempfile.mkdtemp()
    target = Path(folder) / "limits.so"
    compiler = os.environ.get("CXX", "c++")
    flags = ["-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, str(SOURCE), "-o", str(target)], check=True)
    library = ctypes.CDLL(str(target))
    for name in ("fma_rate", "mixed_rate", "update_bandwidth"):
        getattr(library, name).restype = ctypes.c_double
    return library


@cache
def fma_rate() -> float:
    """Vector fused multiply-adds a second."""
    return max(_library().fma_rate(ctypes.c_int64(2_000_000)) for _ in range(5))


@cache
def mixed_rate() -> float:
    """Vector operations a second: seven fused multiply-adds to five additions, as in a kernel row."""
    return max(_library().mixed_rate(ctypes.c_int64(2_000_000)) for _ in range(5))


def lanes() -> int:
    """Doubles a vector."""
    return _library().lanes()


@cache
def bandwidth(size: int, *, threads: int) -> float:
    """Bytes a second, read plus written, through a buffer of so many bytes a thread, by all threads together."""
    buffers = [np.zeros(size // 8 + 64) for _ in range(threads)]
    passes = max(1, int(5e8 if threads > 1 else 5e7) // size)  # threads take a while to start

    def work(buffer: np.ndarray) -> float:
        pointer = ctypes.c_void_p(buffer.ctypes.data + -buffer.ctypes.data % 64)
        return _library().update_bandwidth(pointer, ctypes.c_int64(size // 8), ctypes.c_int64(passes))

    if threads == 1:
        return max(work(buffers[0]) for _ in range(7))
    with ThreadPoolExecutor(threads) as pool:
        seconds = []
        for _ in range(7):
            start = perf_counter()
            list(pool.map(work, buffers))
            seconds.append(perf_counter() - start)
    return 2 * size * passes * threads / min(seconds)


def row_seconds(centers: float, d: int, *, passes: float = 1.0) -> float:
    """Seconds for a Gaussian kernel row (d differences, d squares, an exponential) and `passes` multiply-adds."""
    return centers / lanes() * (2 * d + EXP + passes) / mixed_rate()


def matrix_seconds(m: int, *, matrices: int = 2) -> float:
    """Seconds to read and write back so many symmetric m x m matrices, lower triangles."""
    size = matrices * 8 * m * (m + 1) // 2
    return 2 * size / bandwidth(size, threads=1)


def summary() -> dict[str, float]:
    """The rates that a table of benchmarks should name."""
    names = {"L1 16 KiB": 16 << 10, "L2 256 KiB": 256 << 10, "L3 4 MiB": 4 << 20, "DRAM 256 MiB": 256 << 20}
    return {
        "vector lanes (float64)": lanes(),
        "FMA [G flop/s]": 2e-9 * lanes() * fma_rate(),
        "vector operations [G/s]": 1e-9 * mixed_rate(),
        **{f"{name} [GB/s]": 1e-9 * bandwidth(size, threads=1) for name, size in names.items()},
        "the same, two threads": 1e-9 * bandwidth(256 << 20, threads=2),
    }
