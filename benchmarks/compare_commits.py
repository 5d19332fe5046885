"""Compare the speed of two commits: which cases have become slower, and by how much.

    python benchmarks/compare_commits.py main HEAD [--only KRLS-T] [--rounds 3] [--limit 1.1]

Each commit is built into a folder of its own, with the tools of this environment (`make .venv/installed`), which takes
minutes, and runs its own `benchmarks/run.py`. The commits take turns, and the least time of each case counts. The exit
code is 1 if a case takes more than `--limit` times as long as before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tqdm import tqdm

ROOT = Path(__file__).parents[1]
WITHOUT_EDITABLE = """import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
"""  # an editable install puts its own finder first; without it PYTHONPATH decides


def build(commit: str, folder: Path) -> tuple[Path, Path]:
    """Check a commit out and install it, and return both folders."""
    tree, package = folder / "tree", folder / "package"
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), commit], cwd=ROOT, check=True)
    install = ["pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(package), str(tree)]
    subprocess.run([sys.executable, "-m", *install], check=True)
    (package / "sitecustomize.py").write_text(WITHOUT_EDITABLE)
    return tree, package


def times(tree: Path, package: Path, only: str, repeats: int) -> dict[str, float]:
    """Return microseconds per sample, by case."""
    environment = os.environ | {"PYTHONPATH": str(package), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    out = tree / "out"
    command = [sys.executable, "benchmarks/run.py", "--only", only, "--repeats", str(repeats), "--out", str(out)]
    subprocess.run(command, cwd=tree, env=environment, check=True, stdout=subprocess.DEVNULL)
    results = json.loads((out / "bench.json").read_text("utf-8"))["results"]
    return {one["case"]: one["us"]["onlinegp"] for one in results if "us" in one}


def table(old: dict[str, float], new: dict[str, float]) -> str:
    """Return the cases that both have, the slowed ones first."""
    width = max([4, *map(len, old)])
    lines = [f"{'case':<{width}} {'before':>10} {'after':>10} {'ratio':>7}"]
    for case in sorted(old.keys() & new.keys(), key=lambda case: -new[case] / old[case]):
        lines.append(f"{case:<{width}} {old[case]:>10.3f} {new[case]:>10.3f} {new[case] / old[case]:>7.2f}")
    return "\n".join(lines)


def least(first: dict[str, float], second: dict[str, float]) -> dict[str, float]:
    return {case: min(first.get(case, value), value) for case, value in second.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new", nargs="?", default="HEAD")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each commit (3)")
    parser.add_argument("--repeats", type=int, default=3, help="repeats in each turn (3)")
    parser.add_argument("--limit", type=float, default=1.1, help="the ratio above which a case is too slow (1.1)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        places, found = {}, {"old": dict[str, float](), "new": dict[str, float]()}
        try:
            for name in tqdm(found, desc="build", disable=None, leave=False):
                (Path(folder) / name).mkdir()
                places[name] = build(getattr(args, name), Path(folder) / name)
            turns = [name for _ in range(args.rounds) for name in found]
            for name in tqdm(turns, desc="measure", disable=None, leave=False):
                found[name] = least(found[name], times(*places[name], args.only, args.repeats))
        finally:
            for name in found:
                tree = Path(folder) / name / "tree"
                subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, capture_output=True)
    print(table(found["old"], found["new"]))
    slower = [case for case, us in found["new"].items() if us > args.limit * found["old"].get(case, us)]
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
