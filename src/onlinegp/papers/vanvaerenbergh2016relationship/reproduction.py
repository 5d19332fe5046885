"""All experiments of the paper: their numbers, their figures, and a page that compares them with its claims."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from onlinegp.files.atomic import write_atomically

EXPERIMENTS = ("fig1", "fig2", "fig3", "beta")
ON_THE_ARM = ("fig2", "beta")  # those that need KIN40K or its stand-in


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
        titles[name], pictures[name] = title(name), files[-1].read_bytes()
    numbers, page = folder / "results.json", folder / "report.html"
    write_atomically(numbers, [json.dumps(results, indent=1, allow_nan=False).encode("ascii") + b"\n"])
    write_atomically(page, [report.page(results, titles, pictures).encode()])
    return [*files, numbers, page]


def title(name: str) -> str:
    """Return what an experiment is called."""
    return _module(name).TITLE


def _module(name: str) -> ModuleType:
    return import_module(f"onlinegp.papers.vanvaerenbergh2016relationship.{name}")


def _settings(name: str, chosen: dict[str, Any]) -> Any:
    """Return the settings of an experiment, with what was chosen on the command line where it has that."""
    settings = _module(name).Settings
    return settings(**{key: value for key, value in chosen.items() if key in settings.__dataclass_fields__})
