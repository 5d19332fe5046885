"""The map from KAFBOX is complete, and every name on it exists."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import kafbox
import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.engine import available
from onlinegp.kernels import RBF

DOCS = Path(__file__).parents[2] / "docs"

PAGE = (DOCS / "coming_from" / "kafbox.md").read_text("utf-8")
NO_PARAMETER = {"kerneltype", "kernelpar", "kernelpars", "dummy"}  # the kernel; and what a memory cell does not use
FASTER = 10.0  # than Octave
ENGINES = ["python", "native"] if available() else ["python"]


def rows(header: str) -> dict[str, list[str]]:
    """Return the cells of a table by their first, without backticks."""
    lines = PAGE.splitlines()
    start = lines.index(header) + 2
    table = {}
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        first, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        table[first.strip("`")] = cells
    return table


MAP = rows("| KAFBOX | here | parameters |")
TABLE = rows(kafbox.HEADER)


@pytest.mark.parametrize("run", kafbox.RUNS)
def test_every_algorithm_and_parameter_is_on_the_map(run):
    algorithm, given = kafbox.RUNS[run]["algorithm"], kafbox.RUNS[run]["parameters"]
    model, parameters = MAP[algorithm]
    assert type(kafbox.models()[run]).__name__ == model.strip("`")
    named = set(re.findall(r"(\w+)(?=[^;:]*:)", parameters))
    assert given.keys() - NO_PARAMETER <= named


@pytest.mark.parametrize("algorithm", MAP)
def test_every_name_on_the_map_exists(algorithm):
    model, parameters = MAP[algorithm]
    cls = getattr(ogp.kafbox, model.strip("`"))
    assert getattr(ogp.kafbox, algorithm) is cls
    assert set(re.findall(r"`(\w+)`", parameters)) <= set(cls.parameter_names())
    if "none, it has no effect" in parameters or algorithm in DEFECTS:
        assert "Differs from KAFBOX" in " ".join(inspect.getdoc(cls).split())


DEFECTS = {"mxklms", "kapsm", "rffklms", "qklms_fb", "klms_csal1", "klms_csl1", "fbklms", "phypass", "kap", "kalman",
           "exkrls", "rls", "L2_s", "problms", "norma", "krlst", "krls", "klms", "lkapa", "nlkapa"}  # fmt: skip


def test_what_kafbox_ignores_is_refused():
    """A name that no parameter has, such as `tcoeff` of its NORMA, which nothing there reads."""
    with pytest.raises(TypeError, match=r"argument 'tcoeff'. .* no equivalent here. The parameters are kernel, step"):
        ogp.kafbox.NORMA(tcoeff=0.5)


def test_squared_distances_are_those_of_the_differences():
    """Far from zero, where KAFBOX's |x|^2 + |z|^2 - 2 x.z is negative for some pairs, and its kernel exceeds one."""
    X = 1e7 + np.random.default_rng(0).normal(size=(30, 3))
    squares = (X**2).sum(axis=1)
    assert (squares[:, None] + squares - 2.0 * X @ X.T).min() < 0.0
    near = RBF(1.0)(X - 1e7)
    np.testing.assert_allclose(RBF(1.0)(X), near, rtol=0, atol=1e-7)
    assert RBF(1.0)(X).max() <= 1.0
    for engine in ENGINES:
        model = ogp.KLMS(RBF(1.0), step=0.5, engine=engine).fit(X, X[:, 0] - 1e7)
        np.testing.assert_allclose(model.predict(X), near @ model.alpha_, rtol=0, atol=1e-6)


def test_the_table_has_every_run():
    assert list(TABLE) == list(kafbox.models())
    assert TABLE.keys() == kafbox.RUNS.keys()


@pytest.mark.parametrize("run", TABLE)
def test_every_run_is_much_faster_than_octave(run):
    """By the numbers of the page, which docs/kafbox.py measured; times are not measured again here."""
    model, theirs, _, octave, ours, ratio, one_by_one = TABLE[run]
    assert model == f"`{type(kafbox.models()[run]).__name__}`"
    assert theirs == kafbox._decibels(kafbox.RUNS[run]["mse_db"])
    assert float(octave) == round(kafbox.RUNS[run]["octave_cpu_us_per_sample"])
    assert float(ratio) >= FASTER
    assert float(octave) >= FASTER * float(one_by_one)
    assert float(octave) / float(ours) == pytest.approx(float(ratio), rel=0.15)  # both are rounded


@pytest.mark.parametrize("run", ["lms", "nlms", "qklms", "swkrls", "klms_csl1_b", "memory_cell"])
def test_errors_are_as_the_page_says(run):
    assert kafbox._decibels(kafbox.error(kafbox.models()[run])) == TABLE[run][2]


@pytest.mark.slow
@pytest.mark.parametrize("run", kafbox.RUNS)
def test_all_errors_are_as_the_page_says(run):
    error, told = kafbox.error(kafbox.models()[run]), TABLE[run][2]
    assert told == "breaks down" if error is None else abs(float(told) - error) < 0.3
