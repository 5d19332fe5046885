"""Parse models, kernels and parameters in options of the command line."""

from __future__ import annotations

import argparse
import ast
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from onlinegp.kernels import Kernel
from onlinegp.kernels.spec import BUILT_IN
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.description import PARTS
from onlinegp.models.kafbox_names import renamed
from onlinegp.streams.running.algorithms import Algorithm, algorithm

NAMES = {name.lower(): part for name, part in (BUILT_IN | PARTS).items()}


@dataclass(frozen=True)
class ModelChoice:
    """A model in an option: its algorithm and the given parameters."""

    algorithm: Algorithm
    given: dict[str, Any] = field(default_factory=dict)

    def build(self, suggested: dict[str, Any]) -> OnlineRegressor:
        """Return the estimator. Given parameters take precedence over suggested parameters and defaults."""
        return self.algorithm.estimator(**(suggested | self.given))


def parse_model(text: str, extra: dict[str, Any] | None = None) -> ModelChoice:
    """Return the model in a text such as ``krlst`` or ``krlst(budget=200, forgetting=0.999)``.

    `extra` contains parameters from other options, which the model must have.
    """
    name, _, inside = text.strip().partition("(")
    chosen = algorithm(name.strip())
    given = dict(extra or {})
    if inside:
        call = _parsed(f"model({inside}", text)
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError(f"the model {text!r} must look like name(parameter=value, ...).")
        given |= {str(keyword.arg): _value(keyword.value, text) for keyword in call.keywords}
    for key in given:
        if key not in chosen.parameters:
            names, theirs = ", ".join(chosen.parameters), renamed(chosen.estimator.__name__, [key])
            raise ValueError(
                f"{chosen.name} has no parameter {key!r}. {theirs} Its parameters: {names}.".replace("  ", " ")
            )
    return ModelChoice(chosen, given)


def parse_models(text: str) -> list[str]:
    """Split a list of models at the commas outside parentheses."""
    names, depth = [""], 0
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            names.append("")
        else:
            names[-1] += letter
    return [name.strip() for name in names if name.strip()]


def parse_kernel(text: str) -> Kernel:
    """Return the kernel in a text such as ``1.5 * rbf(0.7) + linear()``."""
    value = parse_value(text)
    if not isinstance(value, Kernel):
        names = ", ".join(name.lower() for name in BUILT_IN)
        raise ValueError(f"{text!r} is not a kernel. Write something like 1.5 * rbf(0.7) + linear(). Kernels: {names}.")
    return value


def parse_value(text: str) -> Any:
    """Return the number, word, kernel or part in ``0.5``, ``auto``, ``rbf(0.7)`` or ``coherence(0.9)``."""
    return _value(_parsed(text, text), text)


def parse_setting(text: str) -> tuple[str, Any]:
    """Return name and value of ``name=value``."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} must look like parameter=value, such as step=0.5.")
    return name.strip(), parse_value(value)


def parse_columns(text: str | None) -> tuple[str, ...] | None:
    """Return the names in a comma-separated list."""
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def parse_lags(text: str) -> int | list[int] | str:
    """Return the number of lags in ``10``, the list of lags in ``1,2,24``, or "auto"."""
    if text.strip() == "auto":
        return "auto"
    try:
        lags = [int(lag) for lag in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"it must be a number, a list such as 1,2,24, or auto, got {text!r}") from None
    if len(lags) == 1:
        return lags[0]
    if lags[0] < 1 or any(a >= b for a, b in pairwise(lags)):
        raise argparse.ArgumentTypeError(f"a list must start at 1 or more and increase, such as 1,2,24, got {text!r}")
    return lags


def parse_every(text: str) -> tuple[int | None, float | None]:
    """Return rows and seconds in ``10000``, ``10000 rows``, ``30 s`` or ``5 min``."""
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ").strip()
    unit = text.strip()[len(digits) :].strip()
    seconds = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "min": 60.0, "minutes": 60.0}
    try:
        number = float(digits)
    except ValueError:
        number = 0.0
    if not 0.0 < number < 1e15 or not (unit in ("", "rows") or unit in seconds):
        raise ValueError(f"--every must be a number of rows or of seconds, such as 10000 or '30 s', got {text!r}.")
    return (None, number * seconds[unit]) if unit in seconds else (max(1, int(number)), None)


def _parsed(expression: str, text: str) -> ast.expr:
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"cannot read {text!r}. Write something like rbf(0.7), or name(parameter=value).") from None


def _value(node: ast.expr, text: str) -> Any:
    """Evaluate only numbers, words, lists, calls of known parts, sums and products."""
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, (int, float, str))):
        return node.value
    if isinstance(node, ast.Name):
        return NAMES[node.id.lower()]() if node.id.lower() in NAMES else node.id
    if isinstance(node, (ast.List, ast.Tuple)):
        return tuple(_value(item, text) for item in node.elts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, text)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
        left, right = _value(node.left, text), _value(node.right, text)
        if isinstance(left, Kernel) or isinstance(right, Kernel):
            return left + right if isinstance(node.op, ast.Add) else left * right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.lower() in NAMES:
        part = NAMES[node.func.id.lower()]
        named = {str(keyword.arg): _value(keyword.value, text) for keyword in node.keywords}
        try:
            return part(*(_value(item, text) for item in node.args), **named)
        except TypeError as error:
            raise ValueError(f"{node.func.id} in {text!r}: {str(error).rstrip('.')}.") from None
    known = ", ".join(NAMES)
    raise ValueError(f"cannot read {ast.unparse(node)!r} in {text!r}. Known parts: {known}.")
