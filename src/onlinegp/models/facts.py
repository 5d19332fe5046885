"""Facts about a model for `onlinegp models`, `onlinegp compare` and the catalogue.

The docstring of a class contains the facts for readers: a paragraph with a line each for cost, memory, equation and
variance, and the source under References.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from inspect import cleandoc


@dataclass(frozen=True)
class Facts:
    """Facts about a class of models.

    Attributes
    ----------
    cost, memory : per sample; m is the number of centers, d the number of features
    equation : the update or the model in one line
    variance : the meaning of the variance of y
    citation : the source; empty if this library is the source
    bounded : whether cost and memory per sample stay bounded on a bounded input domain
    bounded_by : the parameter that bounds the cost and memory of an unbounded model, if any
    std_from_errors : whether the standard deviation comes from recent errors, so that it is large when a model diverges
    remedy : what to do if the model diverges
    """

    cost: str = ""
    memory: str = ""
    equation: str = ""
    variance: str = ""
    citation: str = ""
    bounded: bool = True
    bounded_by: str = ""
    std_from_errors: bool = False
    remedy: str = "Use more noise or a smoother kernel, scale the data, and start again with fit."


LABELS = {"Cost": "cost", "Memory": "memory", "Equation": "equation", "Variance of y": "variance"}
LINES = re.compile(rf"^({'|'.join(LABELS)}): (.+(?:\n {{4}}.+)*)\n", re.MULTILINE)
REFERENCES = "References\n----------\n"


def with_docstring(facts: Facts, doc: str | None) -> Facts:
    """Return the facts, completed from a docstring."""
    doc = cleandoc(doc or "") + "\n"
    found = {LABELS[label]: _joined(text) for label, text in LINES.findall(doc)}
    if citation := _joined(doc.partition(REFERENCES)[2]):
        found["citation"] = citation
    return replace(facts, **found)  # type: ignore[arg-type]


def without_facts(doc: str) -> str:
    """Return a docstring without the paragraph of facts."""
    return LINES.sub("", cleandoc(doc) + "\n").replace("\n\n\n", "\n\n").rstrip()


def _joined(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", text).strip()


SOURCE = re.compile(r'(?P<author>.+?),? "(?P<title>.+?),?",?\s*(?P<rest>.*?)(?P<year>(?:19|20)\d\d)', re.DOTALL)


def bibtex(name: str, citation: str) -> str:
    """Return a citation of the form ``A. Author and B. Author, "Title", journal, year.`` as a BibTeX entry.

    Without a citation, return the paper of this library.
    """
    found = SOURCE.match(_joined(citation or PAPER))
    if found is None:
        return f"@misc{{{name.lower()},\n  note = {{{citation}}}\n}}"
    authors = re.sub(r", and |, | and ", " and ", found["author"].strip())
    where = found["rest"].strip(" ,(")
    kind = (
        "inproceedings"
        if re.search(r"Proc\.|Proceedings|Conf|Workshop|NeurIPS|NIPS|ICML|DSP|MLSP|Symposium", where)
        else "article"
    )
    place = {"article": "journal", "inproceedings": "booktitle"}[kind]
    fields = {"author": authors, "title": f"{{{found['title']}}}", place: where, "year": found["year"]}
    lines = [f"  {field} = {{{value}}}" for field, value in fields.items() if value]
    return f"@{kind}{{{name.lower()}{found['year']},\n" + ",\n".join(lines) + "\n}"


PAPER = (
    'S. Van Vaerenbergh, J. Fernandez-Bes and V. Elvira, "On the relationship between online Gaussian process '
    'regression and kernel least mean squares algorithms", IEEE Workshop on Machine Learning for Signal Processing '
    "(MLSP), 2016."
)
