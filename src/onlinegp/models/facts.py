"""Facts about a model, which `onlinegp models`, the catalogue and `onlinegp compare` show or use."""

from __future__ import annotations

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
    """

    cost: str = ""
    memory: str = ""
    equation: str = ""
    variance: str = ""
    citation: str = ""
    bounded: bool = True
    bounded_by: str = ""
