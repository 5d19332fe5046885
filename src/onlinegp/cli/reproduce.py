"""`onlinegp reproduce`: the figures of the paper, their numbers, and a page that holds them against its claims."""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter

from onlinegp.checks import count
from onlinegp.cli.paths import Paths
from onlinegp.papers.vanvaerenbergh2016relationship.reproduction import EXPERIMENTS, reproduce, title, write


def written(folder: Path) -> list[Path]:
    """Return the files that the command may write in its folder."""
    return [folder / name for name in ("results.json", "report.html")] + [
        folder / f"{name}.{kind}" for name in EXPERIMENTS for kind in ("png", "svg")
    ]


PATHS = Paths(reads=("--kin40k",), folders={"--out": written})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", default="all", choices=(*EXPERIMENTS, "all"), help="which figure (all)")
    parser.add_argument("--out", type=Path, default=Path("out/reproduce"), metavar="DIR", help="where (out/reproduce)")
    parser.add_argument("--kin40k", type=Path, metavar="FILE", help="KIN40K: CSV, CSV.gz or the folder of .asc files")
    parser.add_argument(
        "--repeats", type=int, metavar="N", help="permutations of figure 2, channels of figure 3 (3, 5)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of all that is random (0)")


def main(args: argparse.Namespace) -> int:
    start = perf_counter()
    names = EXPERIMENTS if args.what == "all" else (args.what,)
    if args.repeats is not None:
        count("Each repeat has its own permutation or channel.", repeats=args.repeats)
    args.out.mkdir(parents=True, exist_ok=True)
    results = reproduce(names, kin40k=args.kin40k, repeats=args.repeats, seed=args.seed)
    files = write(results, args.out)
    for name in names:
        print(f"{title(name)}")
        for claim in results["experiments"][name]["claims"]:
            print(f"  [{'holds' if claim['holds'] else 'DOES NOT HOLD'}] {claim['says']}\n      {claim['measured']}")
    if results["data"] is not None and results["data"]["stand_in"]:
        print("No KIN40K file was given: a simulated robot arm took its place. Use --kin40k FILE for the real data.")
    print(f"{perf_counter() - start:.0f} s. Written: {', '.join(str(path) for path in files)}")
    return 0
