"""Run experiments of papers by name. Write their numbers, figures, and a page that compares them with the claims."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from onlinegp import __version__
from onlinegp.files.atomic import write_atomically
from onlinegp.papers import FIRST, PAPERS, report, style
from onlinegp.papers.common import run_jobs
from onlinegp.papers.vanvaerenbergh2016relationship import ON_THE_ARM
from onlinegp.papers.vanvaerenbergh2016relationship.arm import Arm
from onlinegp.processes import cores


def experiments() -> dict[str, str]:
    """Return the titles of all experiments by name: `fig1` for the first paper, `paper/fig1` for the others."""
    return {name: _module(name).TITLE for paper in PAPERS for name in _names(paper)}


def named(what: str | None) -> tuple[str, ...]:
    """Return the names of experiments for a name: an experiment, a paper, or "all". None means the first paper."""
    every = [name for paper in PAPERS for name in _names(paper)]
    if what == "all":
        return tuple(every)
    if what is None or what in PAPERS:
        return tuple(_names(what or FIRST))
    if what in every:
        return (what,)
    if what.startswith(f"{FIRST}/") and (short := what.removeprefix(f"{FIRST}/")) in every:
        return (short,)
    raise ValueError(f"there is no experiment {what!r}. See `onlinegp reproduce --list`.")


def citation(name: str) -> str:
    """Return the paper of an experiment."""
    return _paper(name).CITATION


def reproduce(
    names: Sequence[str], *, kin40k: Path | None = None, repeats: int | None = None, seed: int = 0
) -> dict[str, Any]:
    """Run the named experiments on all processors, and return the numbers for the file."""
    arm = Arm.load(kin40k, seed=seed) if any(name in ON_THE_ARM for name in names) else None
    chosen: dict[str, Any] = {"seed": seed} | ({} if repeats is None else {"repeats": repeats})
    settings = {name: _settings(name, chosen) for name in names}
    data: dict[str, tuple[Any, ...]] = {name: () if "/" in name else (arm,) for name in names}
    plans = {name: _module(name).plan(settings[name], *data[name]) for name in names}
    jobs = [job for plan in plans.values() for job in plan]
    parts = run_jobs(jobs, workers=cores(), progress=True)
    found = {}
    for name, plan in plans.items():
        mine, parts = parts[: len(plan)], parts[len(plan) :]
        result = _module(name).gather(settings[name], *data[name], mine)
        found[name] = result | {"claims": [asdict(claim) for claim in _module(name).claims(result)]}
    used = None if arm is None else {"stand_in": arm.stand_in} | arm.settings()
    results = {"version": __version__, "seed": seed, "data": used, "experiments": found}
    return json.loads(json.dumps(results, allow_nan=False))  # exactly what the file contains


def write(results: dict[str, Any], folder: Path) -> list[Path]:
    """Write the figures, the numbers (JSON) and the page (HTML), and return the paths.

    The files have the names of the experiments, so that a folder can contain several experiments.
    """
    files, sections = [], []
    for name, result in results["experiments"].items():
        module = _module(name)
        tables = module.tables(result) if hasattr(module, "tables") else {}
        files += style.save(module.draw(result), folder, stem(name))
        picture = files[-1].read_bytes()
        sections.append(report.Section(citation(name), module.TITLE, result, tables, picture))
    name = label(list(results["experiments"]))
    numbers, page = folder / f"{name}.json", folder / f"{name}.html"
    write_atomically(numbers, [json.dumps(results, indent=1, allow_nan=False).encode("ascii") + b"\n"])
    write_atomically(page, [report.page(results, sections).encode()])
    return [*files, numbers, page]


def stem(name: str) -> str:
    """Return the name of an experiment's files, without suffix."""
    return name.replace("/", "-")


def label(names: Sequence[str]) -> str:
    """Return the name of the JSON and HTML files: a single experiment, a single paper, or "all"."""
    papers = {name.partition("/")[0] if "/" in name else FIRST for name in names}
    return stem(names[0]) if len(names) == 1 else papers.pop() if len(papers) == 1 else "all"


def _names(paper: str) -> list[str]:
    return [name if paper == FIRST else f"{paper}/{name}" for name in _paper(f"{paper}/").EXPERIMENTS]


def _paper(name: str) -> ModuleType:
    return import_module(f"onlinegp.papers.{name.partition('/')[0] if '/' in name else FIRST}")


def _module(name: str) -> ModuleType:
    return import_module(f"{_paper(name).__name__}.{name.rpartition('/')[2]}")


def _settings(name: str, chosen: dict[str, Any]) -> Any:
    """Return the settings of an experiment, changed by the options that it has."""
    settings = _module(name).Settings
    return settings(**{key: value for key, value in chosen.items() if key in settings.__dataclass_fields__})
