"""The equations of the catalogue: typeset, and every symbol is defined on the page of notation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("docutils")
import catalogue
import equations
from docutils.utils.math.latex2mathml import tex2mathml

NOTATION = Path(catalogue.__file__).parents[1] / "guide" / "notation.md"
MODELS = catalogue.models()


def letters(cell: str) -> set[str]:
    """Return the letters of a cell of the tables, in code or mathematics, without their indices."""
    words = " ".join(re.findall(r"[`$]([^`$]*)[`$]", cell))
    return {word.partition("_")[0] for word in re.findall(r"[A-Za-z]\w*", words)}


def defined(name: str) -> set[str]:
    """Return the letters that the page defines for all models, and for this one."""
    general, special = NOTATION.read_text("utf-8").split("Letters of single algorithms")
    found = {"x", "y", "I", "f"}  # input, target, identity, function
    for line in general.splitlines():
        if line.startswith("|"):
            found |= letters(line.split("|")[2])
    for line in special.splitlines():
        cells = line.split("|")
        if len(cells) > 3 and f"`{name}`" in cells[2]:
            found |= letters(cells[1])
    return found


@pytest.mark.parametrize("name", MODELS)
def test_an_equation_is_typeset_and_its_symbols_are_defined(name):
    equation = MODELS[name].facts.equation
    text = equations.markdown(equation)
    assert "`" not in text
    assert text.count("$") % 2 == 0
    for piece in text.split("$")[1::2]:
        assert "<math" in tex2mathml(piece, as_block=False)
    assert equations.symbols(equation) - defined(name) == set()


@pytest.mark.parametrize(
    ("plain", "typeset"),
    [
        ("alpha <- alpha + step e k", r"$\alpha \leftarrow \alpha +\mathrm{step}\,e\,k$"),
        ("k' (K + noise I)^-1 y over the M samples", r"$k^\top \,(K+\mathrm{noise}\,I)^{-1}\,y$ over the $M$ samples"),
        ("b <- sqrt(lambda) b, g a gain", r"$b\leftarrow \sqrt{\lambda }\,b$, $g$ a gain"),
        ("y_{i - h}, h the horizon", "$y_{i - h}$, $h$ the horizon"),
        ("s = -log10 of tails", r"$s=-\log_{10}$ of tails"),
    ],
)
def test_how_an_equation_is_typeset(plain, typeset):
    assert equations.markdown(plain) == typeset
