"""`onlinegp reproduce`: run experiments of papers, and write figures, numbers and a page with checked claims."""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter

from onlinegp.checks import count
from onlinegp.cli.paths import Paths
from onlinegp.papers import PAPERS
from onlinegp.papers.reproduction import citation, experiments, named, reproduce, stem, write


def written(folder: Path) -> list[Path]:
    """Return the files that the command may write into its folder."""
    pages = ("all", *PAPERS, *map(stem, named("all")))
    return [folder / f"{name}.{kind}" for name in pages for kind in ("json", "html", "png", "svg")]


PATHS = Paths(reads=("--kin40k",), folders={"--out": written})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        nargs="?",
        metavar="NAME",
        help="an experiment, a paper, or all (all experiments of the main paper); see --list",
    )
    parser.add_argument("--list", action="store_true", help="list papers and experiments, and exit")
    parser.add_argument(
        "--out", type=Path, default=Path("out/reproduce"), metavar="DIR", help="output folder (out/reproduce)"
    )
    parser.add_argument("--kin40k", type=Path, metavar="FILE", help="KIN40K: CSV, CSV.gz or the folder of .asc files")
    parser.add_argument("--repeats", type=int, metavar="N", help="number of runs (depends on the experiment)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="random seed (0)")


def main(args: argparse.Namespace) -> int:
    if args.list:
        print(listed())
        return 0
    start = perf_counter()
    names = named(args.what)
    if args.repeats is not None:
        count("Each repeat has its own permutation or channel.", repeats=args.repeats)
    args.out.mkdir(parents=True, exist_ok=True)
    results = reproduce(names, kin40k=args.kin40k, repeats=args.repeats, seed=args.seed)
    files = write(results, args.out)
    titles = experiments()
    for name in names:
        print(f"{titles[name]}")
        for claim in results["experiments"][name]["claims"]:
            print(f"  [{'holds' if claim['holds'] else 'DOES NOT HOLD'}] {claim['says']}\n      {claim['measured']}")
    if results["data"] is not None and results["data"]["stand_in"]:
        print("No KIN40K file was given: a simulated robot arm was used instead. Use --kin40k FILE for the real data.")
    print(f"{perf_counter() - start:.0f} s. Written: {', '.join(str(path) for path in files)}")
    return 0


def listed() -> str:
    """Return all papers with their experiments."""
    lines: list[str] = []
    papers: set[str] = set()
    width = max(map(len, experiments()))
    for name, title in experiments().items():
        if citation(name) not in papers:
            papers.add(citation(name))
            lines += [*([""] if lines else []), citation(name)]
        lines.append(f"  {name:<{width}} {title}")
    return "\n".join(lines)
