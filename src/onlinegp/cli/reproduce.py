"""`onlinegp reproduce`: the figures of the paper, their numbers, and a page that holds them against its claims."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

from onlinegp.checks import count
from onlinegp.cli.paths import Paths
from onlinegp.files.atomic import write_atomically

EXPERIMENTS = ("fig1", "fig2", "fig3", "beta")
ON_THE_ARM = ("fig2", "beta")  # those that need KIN40K or its stand-in


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
        print(f"{_module(name).TITLE}")
        for claim in results["experiments"][name]["claims"]:
            print(f"  [{'holds' if claim['holds'] else 'DOES NOT HOLD'}] {claim['says']}\n      {claim['measured']}")
    if results["data"] is not None and results["data"]["stand_in"]:
        print("No KIN40K file was given: a simulated robot arm took its place. Use --kin40k FILE for the real data.")
    print(f"{perf_counter() - start:.0f} s. Written: {', '.join(str(path) for path in files)}")
    return 0


def reproduce(
    names: tuple[str, ...], *, kin40k: Path | None = None, repeats: int | None = None, seed: int = 0
) -> dict[str, Any]:
    """Run the experiments of these names, on all processors, and return results.json as a dictionary."""
    from onlinegp import __version__
    from onlinegp.papers.vanvaerenbergh2016relationship.arm import Arm
    from onlinegp.papers.vanvaerenbergh2016relationship.common import cores, run_jobs

    arm = Arm.load(kin40k, seed=seed) if any(name in ON_THE_ARM for name in names) else None
    chosen: dict[str, Any] = {"seed": seed} | ({} if repeats is None else {"repeats": repeats})
    plans = {name: _module(name).plan(_settings(name, chosen), arm) for name in names}
    jobs = [job for plan in plans.values() for job in plan]
    parts = run_jobs(jobs, workers=cores(), progress=True)
    experiments = {}
    for name, plan in plans.items():
        mine, parts = parts[: len(plan)], parts[len(plan) :]
        result = _module(name).gather(_settings(name, chosen), arm, mine)
        experiments[name] = result | {"claims": [asdict(claim) for claim in _module(name).claims(result)]}
    data = None if arm is None else {"stand_in": arm.stand_in} | arm.settings()
    results = {"version": __version__, "seed": seed, "data": data, "experiments": experiments}
    return json.loads(json.dumps(results, allow_nan=False))  # exactly what results.json will hold


def write(results: dict[str, Any], folder: Path) -> list[Path]:
    """Write the figures, results.json and report.html, and return their paths."""
    from onlinegp.papers.vanvaerenbergh2016relationship import report, style

    files, titles, pictures = [], {}, {}
    for name, result in results["experiments"].items():
        figure = _module(name).draw(result)
        files += style.save(figure, folder, name)
        titles[name], pictures[name] = _module(name).TITLE, files[-1].read_bytes()
    numbers, page = folder / "results.json", folder / "report.html"
    write_atomically(numbers, [json.dumps(results, indent=1, allow_nan=False).encode("ascii") + b"\n"])
    write_atomically(page, [report.page(results, titles, pictures).encode()])
    return [*files, numbers, page]


def _module(name: str) -> ModuleType:
    return import_module(f"onlinegp.papers.vanvaerenbergh2016relationship.{name}")


def _settings(name: str, chosen: dict[str, Any]) -> Any:
    """Return the settings of an experiment, with what was chosen on the command line where it has that."""
    settings = _module(name).Settings
    return settings(**{key: value for key, value in chosen.items() if key in settings.__dataclass_fields__})
