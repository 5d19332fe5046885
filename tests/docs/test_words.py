"""Plain words: phrases that readers could not follow do not come back, nor do internal labels of equations."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PHRASES = (
    "made up its mind",
    "kernels see little",
    "who leaves",
    "what came",
    "mend the row",
    "stranger",
    "cost a sample",
    "foretold",
    "foretells",
)
LABEL = re.compile(r"\beqs?\.\s+[a-z]|update_alpha|pred_mean_gpml")


def pages():
    for pattern in ("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/guide/*.md", "docs/coming_from/*.md"):
        yield from ROOT.glob(pattern)
    yield from (ROOT / "docs" / "examples").glob("*.py")
    yield from (ROOT / "src").rglob("*.py")


def test_phrases_do_not_come_back():
    texts = {page: re.sub(r"\s+", " ", page.read_text("utf-8")).lower() for page in pages()}
    assert len(texts) > 100
    found = [
        (str(page.relative_to(ROOT)), phrase) for page, text in texts.items() for phrase in PHRASES if phrase in text
    ]
    assert not found


def test_equations_are_cited_by_number():
    assert LABEL.search("(paper, eq. klms_update)")
    assert not [str(page) for page in pages() if LABEL.search(page.read_text("utf-8"))]
