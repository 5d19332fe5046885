"""How long a comparison takes: 20 runs of eight algorithms on a channel of 3,000 rows, tuning included.

    OPENBLAS_NUM_THREADS=1 python benchmarks/comparison.py

It prints the seconds at each stage, the table, and the processor time of all processes, divided by the number of cores:
what it takes where nobody else works.
"""

from __future__ import annotations

import resource
from time import perf_counter

import onlinegp as ogp
from onlinegp.datasets import channel_switch
from onlinegp.processes import cores, worker_pool

MODELS = [ogp.KLMS, ogp.QKLMS, ogp.KNLMS, ogp.kafbox.NORMA, ogp.KRLS, ogp.kafbox.SWKRLS, ogp.KRLST, ogp.LinearRLS]


def channel(seed: int):
    return channel_switch(3000, switch=1500, seed=seed)


def main() -> None:
    began = perf_counter()

    def say(text: str) -> None:
        print(f"{perf_counter() - began:6.1f} s  {text}", flush=True)

    with worker_pool(cores()) as pool:
        found = ogp.compare(MODELS, channel, runs=20, since=1500, jobs=pool, say=say)
    say("done")
    print(found)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(one.ru_utime + one.ru_stime for one in used)
    print(f"processor time: {seconds:.1f} s on {cores()} cores, {seconds / cores():.1f} s each")


if __name__ == "__main__":
    main()
