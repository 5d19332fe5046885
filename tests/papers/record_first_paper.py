"""Write first_paper.json: the numbers of the first paper's experiments that a test compares with new runs.

Usage     python tests/papers/record_first_paper.py KIN40K_FILE
Seed      0
Run time  270 s of processor time on the Python engine, shared by two processes on two cores
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from onlinegp.papers.common import run_jobs
from onlinegp.papers.reproduction import reproduce
from onlinegp.papers.vanvaerenbergh2016relationship import EXPERIMENTS, ON_THE_ARM, fig2, residual
from onlinegp.papers.vanvaerenbergh2016relationship.arm import Arm

FILE = Path(__file__).with_name("first_paper.json")
AT = (500, 1000, 2000, 3000, 5000)  # samples of figure 2
REDUCED = fig2.Settings(repeats=1, train=1000, test=1000, budget=200)
REDUCED_RESIDUAL = residual.Settings(repeats=1, train=1000, test=500, budget=200, every=100)
REDUCED_TUNING = 500


def curves_at(result: dict[str, Any], samples: tuple[int, ...] = AT) -> dict[str, list[float]]:
    """Return the mean curves of figure 2 at selected samples."""
    at = [result["samples"].index(s) for s in samples if s in result["samples"]]
    return {name: [round(curve["mean"][i], 3) for i in at] for name, curve in result["curves"].items()}


def summary(name: str, result: dict[str, Any]) -> Any:
    """Return the numbers of an experiment to keep."""
    if name == "fig1":
        panel = result["panels"][-1]
        return {model: panel[model]["std"][::40] for model in ("GP", "beta = 0", "beta = 1")}
    if name in ("fig2", "residual"):
        return curves_at(result)
    if name == "fig3":
        return {"levels": result["levels"], "first run": {k: runs[0][9::20] for k, runs in result["points"].items()}}
    zero = result["betas"].index(0.0)
    return {
        task: {
            "beta = 0": {score: values[zero] for score, values in numbers["grid"].items()},
            "auto": numbers["auto"],
            "bound": numbers["bound"],
        }
        for task, numbers in result["tasks"].items()
    }


def reduced(kin40k: Path | None) -> dict[str, list[float]]:
    """Return the curves of a smaller figure 2, which takes seconds."""
    arm = Arm.load(kin40k, tune=REDUCED_TUNING)
    parts = run_jobs(fig2.plan(REDUCED, arm))
    return curves_at(fig2.gather(REDUCED, arm, parts), (100, *AT))


def reduced_residual(kin40k: Path | None) -> dict[str, Any]:
    """Return the results of a smaller comparison of ResidualGP, which takes seconds."""
    arm = Arm.load(kin40k, tune=REDUCED_TUNING)
    return residual.gather(REDUCED_RESIDUAL, arm, run_jobs(residual.plan(REDUCED_RESIDUAL, arm)))


def main(kin40k: Path) -> None:
    expected: dict[str, Any] = {}
    for where, path, names in (("KIN40K", kin40k, EXPERIMENTS), ("robot arm", None, ON_THE_ARM)):
        for name, result in reproduce(names, kin40k=path)["experiments"].items():
            place = expected.setdefault(where, {}) if name in ON_THE_ARM else expected
            place[name] = summary(name, result)
        expected[where]["fig2, reduced"] = reduced(path)
        expected[where]["residual, reduced"] = curves_at(reduced_residual(path), (100, *AT))
    text = json.dumps(expected, indent=1)
    text = re.sub(r"\[[^][{}]*\]", lambda numbers: " ".join(numbers[0].split()), text)  # a list is one line
    FILE.write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
