"""Every algorithm by name: parameters, cost and citation, read from the classes themselves."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlinegp import models
from onlinegp.checks import Array
from onlinegp.kernels import Kernel
from onlinegp.models.base import OnlineRegressor
from onlinegp.recipes.dictionaries import Growing


@dataclass(frozen=True)
class Algorithm:
    """An estimator class and what its docstring says of it."""

    name: str
    estimator: type[OnlineRegressor]

    @property
    def summary(self) -> str:
        return self._text().split("\n\n")[0].replace("\n", " ")

    @property
    def cost(self) -> str:
        """The sentence with the order of growth."""
        text = re.sub(r"\s+", " ", self._text().split("Parameters\n---")[0])
        sentences = re.split(r"(?<=[.:;])\s", text)
        return next((s[s.index("O(") :].rstrip(".:;") for s in sentences if "O(" in s), "")

    @property
    def parameters(self) -> dict[str, Any]:
        """Names and defaults, without the engine."""
        signature = inspect.signature(self.estimator).parameters
        return {name: p.default for name, p in signature.items() if name != "engine"}

    @property
    def explained(self) -> dict[str, str]:
        """What each parameter means, by the docstring."""
        found = re.findall(r"^(\w+) : .*\n((?:    .*\n)+)", self._section("Parameters"), flags=re.M)
        return {name: re.sub(r"\s+", " ", text).strip() for name, text in found if name != "engine"}

    @property
    def citation(self) -> str:
        return re.sub(r"\s+", " ", self._section("References")).strip()

    def suggested(self, kernel: Kernel, noise: float, *, budget: int, forgetting: float, power: str) -> dict[str, Any]:
        """Return parameters that go with tuned hyperparameters; the others keep their defaults."""
        kxx = float(kernel.diag(np.zeros((1, 1)))[0])
        known = {
            "kernel": kernel,
            "noise": noise,
            "budget": budget,
            "forgetting": forgetting,
            "power": power,
            "radius": 0.5 * _reach(kernel),
        }
        if self.name in ("klms", "qklms", "norma"):
            known["step"] = 1.0 / (noise + kxx)  # KLMS as an online GP (seed, sec. 4)
        return {name: value for name, value in known.items() if name in self.parameters}

    def _text(self) -> str:
        return inspect.getdoc(self.estimator) or ""

    def _section(self, title: str) -> str:
        parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", self._text() + "\n", flags=re.M)
        return next((body for name, body in zip(parts[1::2], parts[2::2], strict=True) if name == title), "")


def algorithms() -> dict[str, Algorithm]:
    """Return every algorithm by its name on the command line."""
    names = [name for name in models.__all__ if name != "OnlineRegressor"]
    return {_key(name): Algorithm(_key(name), getattr(models, name)) for name in names}


def algorithm(name: str) -> Algorithm:
    """Return the algorithm of that name; case, hyphens and underscores do not matter."""
    known = algorithms()
    key = _key(name)
    if key not in known:
        raise ValueError(f"there is no model {name!r}. Models: {', '.join(known)}. See `onlinegp models`.")
    return known[key]


def bounded(name: str) -> bool:
    """Whether an algorithm's dictionary stays bounded, at least on bounded inputs."""
    recipe = algorithm(name).estimator().recipe()
    return recipe.budget is not None or not isinstance(recipe.dictionary, Growing)


def _key(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()


def _reach(kernel: Kernel) -> float:
    """The geometric mean of a kernel's length scales, one if it has none."""
    scales: Array = np.array(
        [value for name, value in zip(kernel.names, kernel.theta, strict=True) if "length_scale" in name]
    )
    return float(np.exp(scales.mean())) if scales.size else 1.0
