"""Facts about a model, which `onlinegp models`, the catalogue and `onlinegp compare` show or use."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """What is known about a class of models.

    Attributes
    ----------
    cost, memory : per sample; m is the number of centers, d the number of features
    equation : the update or the model in one line
    variance : the meaning of its variance of y
    citation : its source; empty if this library is the source
    bounded : whether cost and memory per sample stay bounded on a bounded input domain
    bounded_by : if they do not: the parameter that bounds them, if there is one
    std_from_errors : whether the standard deviation comes from recent errors; such a model stays uncertain when it
        diverges
    remedy : what to do if the model breaks down
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


SOURCE = re.compile(r'(?P<author>.+?),? "(?P<title>.+?),?",?\s*(?P<rest>.*?)(?P<year>(?:19|20)\d\d)', re.DOTALL)


def bibtex(name: str, citation: str) -> str:
    """Return a citation of the form ``A. Author and B. Author, "Title", journal, year.`` as a BibTeX entry.

    A model whose source is this library cites its paper.
    """
    found = SOURCE.match(" ".join((citation or PAPER).split()))
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
