"""Models made of models, one sample at a time and in blocks, beside the sum of what their parts cost alone.

One sample is `predict_one` with a standard deviation, then `learn_one`; a block is `run`; of a fleet, calls of `learn`
with one event for each key, and with ten. CPU time, least of several repeats, in which the contenders take turns.
`python benchmarks/trees.py` prints the table, `make bench` too.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from time import get_clock_info, process_time
from typing import Any

import numpy as np

import onlinegp as ogp
from onlinegp.kernels import RBF
from onlinegp.models.combined.base import OuterRegressor, innermost

D = 8
TICK = get_clock_info("process_time").resolution  # seconds
SHARED = ("kernel", "noise", "neighbors", "store", "forgetting")  # if equal, a LocalGP uses the rows of a ResidualGP
Action = Callable[[], int]  # does something to so many rows


@dataclass(frozen=True)
class Size:
    """How much is measured: rows learned before, samples one by one, rows in a block, rows of Auto, keys of a fleet."""

    warm: int = 1000
    samples: int = 200
    block: int = 2000
    stored: int = 5000
    keys: int = 1000


def stream(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, D))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(rows)


# Models


def krlst(budget: int = 100) -> ogp.KRLST:
    return ogp.KRLST(RBF(2.0), noise=0.01, budget=budget, forgetting=0.999)


def models() -> dict[str, tuple[Any, tuple[str, ...]]]:
    """Return models by name, each with the names of its parts."""
    bare, line = "KRLST(100)", "LinearRLS"
    wrappers = (ogp.Scaled, ogp.Robust, ogp.Calibrated, ogp.Conformal, ogp.HeavyTailed)
    return {
        bare: (krlst(), ()),
        line: (ogp.LinearRLS(noise=0.1), ()),
        **{f"{wrapper.__name__}({bare})": (wrapper(krlst()), (bare,)) for wrapper in wrappers},
        f"Mixture({bare}, {line})": (ogp.Mixture([krlst(), ogp.LinearRLS(noise=0.1)]), (bare, line)),
        "LKAPA": (ogp.kafbox.LKAPA(RBF(2.0), step=0.1), ()),
        "KLMSCSL1": (ogp.kafbox.KLMSCSL1(RBF(2.0), step=0.2), ()),
        "RandomFeatureGP": (ogp.RandomFeatureGP(RBF(2.0), noise=0.01), ()),
    }


def members(auto: ogp.Auto, X: np.ndarray, y: np.ndarray) -> list[Any]:
    """Return the models that Auto mixes, without wrappers, each of which has learned the same rows alone.

    A LocalGP that uses the rows and the solution of a ResidualGP costs nothing beside it, and is left out.
    """
    chosen: Any = auto.chosen_
    models = [model for _, model in innermost(chosen).named()]
    leaves = [innermost(model) for model in models]
    sources = [_shared(innermost(model)) for model in models if _shares(model, ogp.ResidualGP)]
    own = [
        leaf
        for model, leaf in zip(models, leaves, strict=True)
        if not (_shares(model, ogp.LocalGP) and _shared(leaf) in sources)
    ]
    X, y = (X - chosen.x_center) / chosen.x_scale, (y - chosen.y_center) / chosen.y_scale
    return [leaf.unfitted().fit(X, y) for leaf in own]


def _shares(model: Any, kind: type) -> bool:
    """Whether a member can share rows: it has this kind, and its wrappers clip no targets."""
    while isinstance(model, OuterRegressor):
        if isinstance(model, ogp.Robust):
            return False
        model = model.model
    return isinstance(model, kind)


def _shared(leaf: Any) -> list[Any]:
    return [leaf.get_params(deep=False)[name] for name in SHARED]


# What is measured


def one_by_one(model: Any, X: np.ndarray, y: np.ndarray) -> Action:
    samples = list(zip(X, y.tolist(), strict=True))

    def act() -> int:
        predict_one, learn_one = model.predict_one, model.learn_one
        for x, target in samples:
            predict_one(x, True)
            learn_one(x, target)
        return len(samples)

    return act


def each(call: Callable[[np.ndarray], object], X: np.ndarray) -> Action:
    def act() -> int:
        for x in X:
            call(x)
        return len(X)

    return act


def all_rows(call: Callable[[], object], rows: int) -> Action:
    def act() -> int:
        call()
        return rows

    return act


def least(actions: dict[Any, Callable[[], Action]], repeats: int) -> dict[Any, float]:
    """Return the least CPU microseconds per row of each action; each is prepared again for each repeat."""
    best = dict.fromkeys(actions, np.inf)
    for _ in range(repeats):
        for name, prepare in actions.items():
            act = prepare()
            start = process_time()
            rows = act()
            best[name] = min(best[name], 1e6 * max(process_time() - start, TICK) / rows)
    return best


def both_ways(model: Any, samples: int, block: int) -> tuple[Callable[[], Action], Callable[[], Action]]:
    """Return how a copy of a model is measured one sample at a time and in a block, after some samples more."""
    (warm_X, warm_y), one, many = stream(5, 3), stream(samples, 1), stream(block, 2)

    def warmed() -> Any:
        again = copy.deepcopy(model)
        one_by_one(again, warm_X, warm_y)()
        return again

    def run() -> Action:
        again = warmed()
        return all_rows(lambda: again.run(*many), block)

    return (lambda: one_by_one(warmed(), *one)), run


def result(case: str, one: float, block: float, parts: tuple[float, float] | None = None) -> dict[str, Any]:
    found = {"case": case, "one": one, "block": block}
    return found | ({} if parts is None else {"parts of one": parts[0], "parts of block": parts[1]})


def wrapped(repeats: int, size: Size) -> list[dict[str, Any]]:
    """Return rows of models that are warmed up: wrappers, a mixture, and leaves that are slow one by one."""
    actions: dict[Any, Callable[[], Action]] = {}
    for name, (model, _) in models().items():
        ways = both_ways(model.fit(*stream(size.warm, 0)), size.samples, size.block)
        actions |= dict(zip(((name, "one"), (name, "block")), ways, strict=True))
    us = least(actions, repeats)
    rows = []
    for name, (_, parts) in models().items():
        sums = tuple(sum(us[part, way] for part in parts) for way in ("one", "block")) if parts else None
        rows.append(result(name, us[name, "one"], us[name, "block"], sums))
    return rows


def auto(repeats: int, size: Size) -> list[dict[str, Any]]:
    """Return the rows of Auto: beside the sum of its members, and intervals beside predictions."""
    X, y = stream(size.stored, 0)
    model = ogp.Auto(rows=min(200, size.stored)).fit(X, y)
    samples, block = max(1, size.samples // 5), max(1, size.block // 5)
    own = members(model, X, y)
    actions: dict[Any, Callable[[], Action]] = {}
    for number, part in enumerate([model, *own]):
        actions |= dict(zip(((number, "one"), (number, "block")), both_ways(part, samples, block), strict=True))
    questions, many = stream(samples, 1)[0], stream(block, 2)[0]
    actions |= {
        ("predict", "one"): lambda: each(lambda x: model.predict_one(x, True), questions),
        ("interval", "one"): lambda: each(lambda x: model.predict_interval(x[None, :]), questions),
        ("predict", "block"): lambda: all_rows(lambda: model.predict(many, True), block),
        ("interval", "block"): lambda: all_rows(lambda: model.predict_interval(many), block),
    }
    us = least(actions, repeats)
    parts = tuple(sum(us[number, way] for number in range(1, len(own) + 1)) for way in ("one", "block"))
    rows = f"Auto, {size.stored} rows stored"
    return [
        result(f"{rows}, {len(own)} members", us[0, "one"], us[0, "block"], parts),
        result(
            "predict_interval of Auto, beside predict",
            us["interval", "one"],
            us["interval", "block"],
            (us["predict", "one"], us["predict", "block"]),
        ),
    ]


def fleets(repeats: int, size: Size) -> list[dict[str, Any]]:
    """Return the row of a fleet of trees beside the bare fleet, with one event and with ten per key and call."""
    made = {"bare": krlst(30), "tree": ogp.Scaled(ogp.Calibrated(krlst(30)))}
    keys = list(range(size.keys))
    actions: dict[Any, Callable[[], Action]] = {}
    for name, model in made.items():
        fleet = ogp.Fleet(model, threads=1)
        X, y = stream(120 * size.keys, 0)  # enough for the scales
        fleet.learn(120 * keys, X, y)
        for way, events in (("one", 1), ("block", 10)):
            rows, (X, y) = events * keys, stream(events * size.keys, 1)
            actions[name, way] = lambda fleet=fleet, rows=rows, X=X, y=y: all_rows(
                lambda: fleet.learn(rows, X, y), len(rows)
            )
    us = least(actions, repeats)
    case = "Fleet(Scaled(Calibrated(KRLST(30)))), bare"
    return [result(case, us["tree", "one"], us["tree", "block"], (us["bare", "one"], us["bare", "block"]))]


def trees(repeats: int, size: Size = Size()) -> list[dict[str, Any]]:
    return [*wrapped(repeats, size), *auto(max(1, repeats // 3), size), *fleets(repeats, size)]


def lines(rows: list[dict[str, Any]]) -> str:
    """Return the rows as text."""
    names = ("one", "parts", "more", "of parts", "block", "parts", "of parts", "one/block")
    shown = [f"{'one sample at a time, and blocks; CPU us':<44}" + "".join(f"{name:>10}" for name in names)]
    for row in rows:
        one, block, parts = row["one"], row["block"], row.get("parts of one")
        cells = [f"{one:10.2f}", *3 * [" " * 10], f"{block:10.2f}", *2 * [" " * 10], f"{one / block:10.1f}"]
        if parts is not None:
            cells[1:4] = [f"{parts:10.2f}", f"{one - parts:10.2f}", f"{one / parts:10.0%}"]
            cells[5:7] = [f"{row['parts of block']:10.2f}", f"{block / row['parts of block']:10.0%}"]
        shown.append(f"{row['case']:<44}" + "".join(cells))
    return "\n".join(shown)


if __name__ == "__main__":
    print(lines(trees(9)))
