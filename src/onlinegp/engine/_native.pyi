"""The compiled module, where it was built: native/bindings.cpp says what is in it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]

instruction_set: str
compiler: str
DEEPEST: int
STATE: dict[str, str]

# The names of the parts and of the kernels
Belief: Any
Dictionary: Any
Forgetting: Any
Pruning: Any
Op: Any

class BeliefPart:
    kind: Any
    step: float
    beta: float
    automatic: bool
    noise: float
    epsilon: float
    jitter: float
    transition: float
    drift: float
    forgetting: float

class DictionaryPart:
    kind: Any
    radius: float
    threshold: float
    error: float
    redundant: float
    abnormal: float

class ForgettingPart:
    kind: Any
    rate: float
    factor: float

class PruningPart:
    kind: Any
    budget: int

class Recipe:
    belief: BeliefPart
    dictionary: DictionaryPart
    forgetting: ForgettingPart
    pruning: PruningPart
    learn_power: bool
    def add(
        self,
        op: Any,
        values: Sequence[float] = ...,
        each: bool = ...,
        a: float = ...,
        b: float = ...,
        c: float = ...,
    ) -> None: ...

class LocalPrior:
    recipe: Recipe
    noise: float
    fade: float
    neighbors: int
    store: int
    rates: Sequence[float]
    frequencies: Sequence[float]
    radii: Sequence[float]
    refits: int
    learn_power: bool
    linear: bool
    forgetting: float
    renewal: Sequence[float]

class Learner:
    @property
    def size(self) -> int: ...
    @property
    def seen(self) -> int: ...
    def learn(self, X: Doubles, Y: Doubles) -> None: ...
    def run(self, X: Doubles, Y: Doubles, decisions: bool = ...) -> Any: ...
    def predict(self, X: Doubles, threads: int) -> tuple[Doubles, Doubles]: ...
    def learn_one(self, x: object, y: object) -> bool | None: ...
    def predict_one(self, x: object) -> tuple[float, float] | None: ...

class Engine(Learner):
    def __init__(self, recipe: Recipe, features: int, outputs: int, single: bool) -> None: ...
    def rows(self, X: Doubles) -> Doubles: ...
    def weights(self) -> tuple[Doubles, Doubles]: ...
    def save(self) -> dict[str, Any]: ...
    def load(self, state: dict[str, Any]) -> None: ...

class Local(Learner):
    def __init__(self, prior: LocalPrior, features: int, outputs: int) -> None: ...
    def nearest(self, X: Doubles) -> Integers: ...
    def save(self) -> tuple[Doubles, Doubles, int]: ...
    def load(self, X: Doubles, Y: Doubles, seen: int) -> None: ...

class Residual(Learner):
    def __init__(self, prior: LocalPrior, features: int, outputs: int) -> None: ...
    def nearest(self, X: Doubles) -> Integers: ...
    def save(self) -> tuple[Doubles, Doubles, int, Doubles, Doubles, float, float, Doubles, Doubles]: ...
    def load(
        self,
        X: Doubles,
        Y: Doubles,
        seen: int,
        alpha: Doubles,
        r: Doubles,
        power: float,
        evidence: float,
        R: Doubles,
        z: Doubles,
    ) -> None: ...
    def run_both(self, X: Doubles, Y: Doubles) -> tuple[Doubles, Doubles, Doubles, Doubles, Integers]: ...
    def predict_both(self, X: Doubles, threads: int) -> tuple[Doubles, Doubles, Doubles, Doubles]: ...
    def predict_next_both(self, x: Doubles) -> tuple[Doubles, Doubles, Doubles, Doubles]: ...

StepKind: Any

class StepRule:
    kind: Any
    step: float
    coherence: float
    epsilon: float
    penalty: float
    radius: float
    forgetting: float
    mixing_step: float
    budget: int
    def add(self, kernel: Recipe) -> None: ...

class StepFilter(Learner):
    def __init__(self, rule: StepRule, features: int, outputs: int) -> None: ...
    def save(self) -> tuple[Doubles, Doubles, Doubles, Doubles]: ...
    def load(self, centers: Doubles, values: Doubles, gates: Doubles, errors: Doubles, seen: int) -> None: ...

class Tree:
    def __init__(self, plan: Any) -> None: ...
    resting: bool
    @property
    def rows(self) -> int: ...
    @property
    def due(self) -> bool: ...
    @property
    def size(self) -> int: ...
    @property
    def seen(self) -> int: ...
    @property
    def degrees(self) -> list[float]: ...
    def learn(self, X: Doubles, Y: Doubles) -> None: ...
    def run(self, X: Doubles, Y: Doubles) -> tuple[Doubles, Doubles, Doubles, Doubles, Integers]: ...
    def predict(self, X: Doubles, threads: int) -> tuple[Doubles, Doubles, Doubles, Doubles]: ...
    def learn_one(self, x: object, y: object) -> bool | None: ...
    def predict_one(self, x: object) -> tuple[float, float] | None: ...
    def dump(self) -> tuple[dict[str, Any], int]: ...
    def load(self, contents: dict[str, Any], expected: int = -1) -> bool: ...

class Trees:
    def __init__(self, features: int, outputs: int) -> None: ...
    def put(self, member: int, tree: Tree | None, plan: Any, before: int) -> bool: ...
    def seen(self, which: Integers) -> Integers: ...
    def learn(self, which: Integers, X: Doubles, Y: Doubles, threads: int) -> None: ...
    def run(
        self, which: Integers, X: Doubles, Y: Doubles, threads: int
    ) -> tuple[Doubles, Doubles, Doubles, Doubles, Integers]: ...
    def predict(self, which: Integers, X: Doubles, threads: int) -> tuple[Doubles, Doubles, Doubles, Doubles]: ...
    def learned(self, events: int) -> NDArray[np.bool_]: ...

class Centers:
    def __init__(self, recipe: Recipe, features: int) -> None: ...
    def __len__(self) -> int: ...
    def append(self, x: Doubles) -> None: ...
    def replace(self, j: int, x: Doubles) -> None: ...
    def remove(self, j: int) -> None: ...
    def diagonal(self, x: Doubles) -> float: ...
    def row(self, x: Doubles, weights: Doubles, k: Doubles, mean: Doubles) -> None: ...
    def rows(self, X: Doubles) -> Doubles: ...
    def nearest(self, x: Doubles) -> tuple[int, float]: ...
    def get(self, j: int) -> Doubles: ...
    def save(self) -> Doubles: ...

class AffineRule:
    def __init__(
        self,
        *,
        kind: int,
        loss: int = ...,
        window: int,
        budget: int = ...,
        selected: int = ...,
        step: float,
        keep: float = ...,
        epsilon: float = ...,
        coherence: float = ...,
        bend: float = ...,
        radius: float = ...,
        width: float = ...,
    ) -> None: ...

class GaussiansRule:
    def __init__(
        self,
        *,
        most: int,
        selected: int,
        step: float,
        coherence: float,
        epsilon: float,
        novelty: float,
        width: float,
        shrinkage: float,
    ) -> None: ...

class AffineFilter(Learner):
    def __init__(self, rule: AffineRule, kernel: Recipe, features: int, outputs: int) -> None: ...
    def save(self) -> dict[str, Any]: ...
    def load(self, arrays: dict[str, Any]) -> None: ...

def gaussians_run(
    rule: GaussiansRule,
    arrays: dict[str, Any],
    many: int,
    fade: float,
    X: Doubles,
    Y: Doubles,
    mean: Doubles,
    std: Doubles,
    size: Integers,
    /,
) -> int: ...

class Members:
    def __init__(self, recipe: Recipe, features: int, outputs: int, single: bool) -> None: ...
    def __len__(self) -> int: ...
    def grow(self, count: int) -> None: ...
    def learn(self, who: Integers, X: Doubles, Y: Doubles, threads: int) -> None: ...
    def run(self, who: Integers, X: Doubles, Y: Doubles, threads: int) -> tuple[Doubles, Doubles, Integers]: ...
    def predict(self, who: Integers, X: Doubles, threads: int) -> tuple[Doubles, Doubles]: ...
    def save(self, member: int) -> dict[str, Any]: ...
    def load(self, member: int, state: dict[str, Any]) -> None: ...
    def pack(self, which: Integers, single: bool, compact: bool) -> list[bytes]: ...
    def unpack(self, which: Integers, states: list[bytes], single: bool) -> None: ...

def exp2_minus(x: Doubles) -> Doubles: ...
def sin_pi(x: Doubles) -> Doubles: ...
def numbers(index: dict[Any, int], table: Integers, keys: Sequence[Any]) -> Integers | None: ...

# Along rows, in place: native/bindings_rows.cpp
def fading_scales(
    Z2: Doubles, degrees: float, keep: float, far: float, tiny: float, total: Doubles, count: Doubles, out: Doubles
) -> None: ...
def fading_weights(
    densities: Doubles, fade: float, cut: float, least: float, log_weights: Doubles, out: Doubles
) -> None: ...
def mixture_moments(
    weights: Doubles, means: Doubles, scales: Doubles, degrees: Any, mean: Doubles, std: Doubles
) -> None: ...
def mixture_log_density(
    weights: Doubles, means: Doubles, scales: Doubles, degrees: Any, y: Doubles, out: Doubles
) -> None: ...
def mixture_quantile(
    weights: Doubles, means: Doubles, scales: Doubles, degrees: Any, p: float, quantiles: Doubles, out: Doubles
) -> None: ...
def tracked_stretch(
    missed: Doubles,
    constants: Doubles,
    log_scale: Doubles,
    rows: Doubles,
    more: Doubles,
    fewer: Doubles,
    out: Doubles,
) -> None: ...
