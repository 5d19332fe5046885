"""What a reader relies on: classes are at most four deep, and files fit a sitting."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "onlinegp"
MAX_DEPTH = 4
MAX_LINES = 400


def bases_by_class(files):
    """Return the names of the bases of each class. Classes of one name are one, with the bases of all of them."""
    found: dict[str, set[str]] = {}
    for path in files:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
                names = {base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in bases}
                found.setdefault(node.name, set()).update(names - {node.name})
    return found


def deepest(found):
    """Return the longest chain of own classes above each class, itself included."""

    def chain(name):
        above = max((chain(base) for base in sorted(found[name]) if base in found), key=len, default=[])
        return [name, *above]

    return {name: chain(name) for name in found}


def test_no_class_is_more_than_four_deep():
    chains = deepest(bases_by_class(PACKAGE.rglob("*.py")))
    assert len(chains) > 200
    assert {name: chain for name, chain in chains.items() if len(chain) > MAX_DEPTH} == {}


def test_the_measure_of_depth_counts_chains(tmp_path):
    file = tmp_path / "five.py"
    file.write_text(
        "class A(B[int]): ...\nclass B(m.C, X): ...\nclass C(D): ...\nclass D(E): ...\nclass E(object): ...\n"
    )
    assert deepest(bases_by_class([file]))["A"] == list("ABCDE")


@pytest.mark.parametrize(("folder", "ends"), [("src", ".py"), ("native", ".hpp"), ("native", ".cpp")])
def test_files_fit_a_sitting(folder, ends):
    lines = {path.name: len(path.read_text("utf-8").splitlines()) for path in (ROOT / folder).rglob(f"*{ends}")}
    if not lines and folder == "native":
        pytest.skip("The sources of the engine are not here.")
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}
