"""Every run of KAFBOX that the fixture holds is compared with ours by some test."""

from __future__ import annotations

import ast
import json
from pathlib import Path

TESTS = Path(__file__).parents[1]


def names_in(path: Path) -> set[str]:
    """Return the strings of a test file that compares predictions of KAFBOX; nothing for any other file."""
    text = path.read_text("utf-8")
    if "prediction__" not in text or "channel_switch" not in text or path.parent.name == "datasets":
        return set()
    strings = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return {string.removeprefix("prediction__") for string in strings if isinstance(string, str)}


def test_every_run_is_compared():
    runs = json.loads((TESTS / "fixtures" / "channel_switch.json").read_text("utf-8"))["runs"]
    compared = set().union(*(names_in(path) for path in TESTS.rglob("test_*.py") if path != Path(__file__)))
    assert len(runs) == 36
    assert not sorted(runs.keys() - compared)
