"""The catalogue of algorithms and a page for each estimator, written from what the classes declare."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import equations

import onlinegp
from onlinegp import OnlineRegressor, kafbox
from onlinegp.models.facts import without_facts
from onlinegp.models.families import FAMILIES, family

MARK = "<!-- the catalogue -->"
MEMBERS = {
    "Auto": "chosen_, weights_, unexplained_",
    "BetaKLMS": "beta_",
    "LinearRLS": "coef_, intercept_, merge, without",
    "LMS": "coef_, intercept_",
    "NLMS": "coef_, intercept_",
    "ProbLMS": "coef_, intercept_",
    "Kalman": "coef_, intercept_",
    "RandomFeatureGP": "noise_, merge, without",
    "MXKLMS": "shares_",
    "Mixture": "weights_",
    "HeavyTailed": "weights_",
    "Calibrated": "factor_",
}


def models() -> dict[str, type[OnlineRegressor]]:
    """Return the estimators that people import, by name."""
    classes = {name: getattr(kafbox, name) for name in kafbox.__all__}
    classes |= {name: getattr(onlinegp, name) for name in onlinegp.__all__}
    classes = dict(sorted(classes.items(), key=lambda pair: pair[0].lower()))
    return {
        name: cls
        for name, cls in classes.items()
        if inspect.isclass(cls) and issubclass(cls, OnlineRegressor) and cls is not OnlineRegressor
    }


def families() -> dict[str, dict[str, type[OnlineRegressor]]]:
    """Return the estimators by the title of their family, in the order of the titles."""
    found: dict[str, dict[str, type[OnlineRegressor]]] = {title: {} for title in FAMILIES.values()}
    for name, cls in models().items():
        found[family(cls)][name] = cls
    return {title: members for title, members in found.items() if members}


def catalogue() -> str:
    """Return the catalogue as Markdown: a section for each family, a list of facts for each model."""
    lines = []
    for title, members in families().items():
        lines += [f"## {title}", ""]
        for name, cls in members.items():
            lines += [f"### [{name}](api/generated/{name}.md)", "", _summary(cls), "", *facts(cls), ""]
    return "\n".join(lines)


def facts(cls: type[OnlineRegressor]) -> list[str]:
    """Return the facts of a model, a line of Markdown each."""
    known = cls.facts
    growth = f" It grows with the stream, unless `{known.bounded_by}` is given." if known.bounded_by else ""
    told = {
        "Equation": equations.markdown(known.equation),
        "Cost": _powers(known.cost),
        "Memory": f"{_powers(known.memory)}.{growth}",
        "Variance of y": known.variance,
        "Source": known.citation or "this library",
    }
    return [f"- **{label}:** {text}" for label, text in told.items()]


def page(name: str, cls: type[OnlineRegressor]) -> str:
    """Return the page of one estimator: its facts, then its docstring with parameters and an example."""
    members = f"\n   :members: {MEMBERS[name]}" if name in MEMBERS else ""
    module = "onlinegp" if name in onlinegp.__all__ else "onlinegp.kafbox"
    directive = f"```{{eval-rst}}\n.. currentmodule:: {module}\n\n.. autoclass:: {name}{members}\n```"
    methods = "Methods that all models have (`fit`, `partial_fit`, `learn_one`, `run`, `predict`, `save` and more) are"
    return "\n".join(
        [
            f"# {name}",
            "",
            _summary(cls),
            "",
            *facts(cls),
            "",
            directive,
            "",
            f"{methods} on [the base class](../base.md).",
            "",
        ]
    )


def _summary(cls: type[OnlineRegressor]) -> str:
    return (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ")


def _powers(text: str) -> str:
    return text.replace("^2", "²").replace("^3", "³")


def write(app: Any) -> None:
    """Write a page for each estimator; those that did not change are not read again."""
    folder = Path(app.srcdir) / "api" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    for name, cls in models().items():
        path, text = folder / f"{name}.md", page(name, cls)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def fill(app: Any, name: str, source: list[str]) -> None:
    """Put the catalogue where the page asks for it."""
    if MARK in source[0]:
        source[0] = source[0].replace(MARK, catalogue())


def strip(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Leave out the paragraph of facts, which the page shows with typeset equations."""
    if inspect.isclass(obj) and issubclass(obj, OnlineRegressor):
        lines[:] = without_facts("\n".join(lines)).split("\n")


def outdated(*_: Any) -> list[str]:
    """Return the page of the catalogue, which depends on classes and not on its own text alone."""
    return ["catalogue"]


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write)
    app.connect("env-get-outdated", outdated)
    app.connect("source-read", fill, priority=600)
    app.connect("autodoc-process-docstring", strip, priority=400)  # before numpydoc
    return {"parallel_read_safe": True}
