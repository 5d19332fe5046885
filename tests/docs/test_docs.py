"""Every example runs: the Python blocks and the commands of each page, and the gallery."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytest.importorskip("matplotlib")
import matplotlib  # noqa: E402
from executed import BLOCK, run  # noqa: E402

matplotlib.use("Agg")
BUILT = ("_build", "generated", "gallery")
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if not any(part in BUILT for part in page.relative_to(ROOT).parts)
)
SCRIPTS = sorted((ROOT / "docs" / "examples").glob("*.py"))
OPTIONAL = ("sklearn", "river", "pandas", "polars")  # what some pages need beyond the tests


def name(path):
    return str(path.relative_to(ROOT))


def skip_without(code):
    for module in OPTIONAL:
        if re.search(rf"^(from|import) (onlinegp\.)?{module}\b", code, re.MULTILINE):
            pytest.importorskip(module)
    if "pandas" in code or "polars" in code:
        pytest.importorskip("narwhals")


@pytest.fixture(autouse=True)
def _quiet():
    from matplotlib import pyplot

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="onlinegp runs on its Python engine")
        yield
    pyplot.close("all")


@pytest.mark.parametrize("page", [p for p in PAGES if BLOCK.search(p.read_text("utf-8"))], ids=name)
def test_every_block_runs(page):
    text = page.read_text("utf-8")
    skip_without(text)
    assert list(run(text, name(page)))


@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_the_gallery_runs(script, capsys):
    code = script.read_text("utf-8")
    skip_without(code)
    exec(compile(code, name(script), "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out


def test_pages_are_found():
    names = [name(page) for page in PAGES]
    assert "README.md" in names
    assert "docs/tutorial.md" in names
    assert len(SCRIPTS) >= 5


def test_the_readme_fits_two_screens():
    """One install line, one Python block, one shell block, and no more than 450 words beside them."""
    text = (ROOT / "README.md").read_text("utf-8")
    assert re.findall(r"^```(\w+)", text, re.MULTILINE) == ["python", "shell"]
    words = re.sub(r"```.*?```|^    .*?$|\]\(.*?\)|\|", " ", text, flags=re.DOTALL | re.MULTILINE)
    assert len(words.split()) <= 450
    assert "make demo" in text
    assert "make test " in text


def test_the_numbers_of_the_readme_are_checked():
    """Every number in its sentences is one that docs/check_numbers.py measures, a level, a version or a year."""
    text = (ROOT / "README.md").read_text("utf-8")
    words = re.sub(
        r"```.*?```|^    .*?$|!?\[[^]]*\]\(.*?\)|`[^`]*`|<img.*?>", " ", text, flags=re.DOTALL | re.MULTILINE
    )
    checked = re.sub(r"about 95% of new rows", "", re.sub(r"\s+", " ", words))
    assert re.findall(r"\d+", checked) == ["2016", "2016", "3"]  # the paper, twice, and the license


def test_every_local_link_leads_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", page.read_text("utf-8")):
            if re.match(r"(.*/)?(gallery|generated)/", target):
                continue  # built
            assert (page.parent / target).exists(), f"{name(page)} links to {target}"


def test_every_file_that_a_page_names_exists():
    named = re.compile(r"`((?:benchmarks|docs|native|src|tests)/[\w/.]+)`")
    found = [(name(page), path) for page in PAGES for path in named.findall(page.read_text("utf-8"))]
    assert len(found) > 30
    assert not [(page, path) for page, path in found if not (ROOT / path).exists()]


def test_every_estimator_is_documented():
    """A page that the list of estimators names; a place in the catalogue; a case on the choosing page; its variance."""
    from catalogue import catalogue, models, page

    from onlinegp.models.families import FAMILIES, family

    listed = (ROOT / "docs" / "api" / "estimators.md").read_text("utf-8")
    choosing = (ROOT / "docs" / "guide" / "choosing.md").read_text("utf-8")
    variances = (ROOT / "docs" / "guide" / "uncertainty.md").read_text("utf-8")
    everything = catalogue()
    assert {"Auto", "KRLST", "Mixture", "LinearRLS"} <= models().keys()
    for estimator, cls in models().items():
        assert f"<generated/{estimator}>" in listed
        assert f"### [{estimator}](" in everything
        assert f".. autoclass:: {estimator}" in page(estimator, cls)
        assert re.search(rf"`{estimator}\b", choosing)
        if family(cls) != FAMILIES["onlinegp.models.combined"]:
            assert re.search(rf"`{estimator}\b", variances)
    assert "<batch>" in listed
    assert "OnlineRegressor" in (ROOT / "docs" / "api" / "base.md").read_text("utf-8")
