"""Write papers.json: the numbers of the papers' experiments that a test compares with new runs.

record_first_paper.py has those of the first paper, which needs data.

Usage     python tests/papers/record_papers.py
Seed      0
Run time  50 s of processor time
"""

import json
from pathlib import Path
from typing import Any

from onlinegp.papers.reproduction import named, reproduce

FILE = Path(__file__).with_name("papers.json")
NAMES = tuple(name for name in named("all") if "/" in name)
KEPT = ("levels", "quantized", "thinned", "steps", "by lambda")  # rows of numbers, by name


def summary(result: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of an experiment to keep."""
    return {name: result[name] for name in KEPT if name in result}


def main() -> None:
    expected = {
        kind: {name: summary(result) for name, result in reproduce(NAMES, repeats=repeats)["experiments"].items()}
        for kind, repeats in (("one run", 1), ("whole", None))
    }
    FILE.write_text(json.dumps(expected, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
