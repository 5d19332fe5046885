"""Base class of the models that are recipes of parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ClassVar, TypeVar, dataclass_transform

from onlinegp.checks import Array, choice, count
from onlinegp.engine.compiled import leaf, readable
from onlinegp.kernels import Kernel, kernel_or_default
from onlinegp.kernels.spec import columns
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.facts import with_docstring
from onlinegp.models.kafbox_names import renamed
from onlinegp.models.recipe_learner import RecipeLearner
from onlinegp.recipes.dictionaries import Dictionary, Growing
from onlinegp.recipes.pruning import Pruning
from onlinegp.recipes.state import State
from onlinegp.recipes.update import Recipe

Class = TypeVar("Class", bound=type[Any])
KEYWORD = Parameter.KEYWORD_ONLY


@dataclass_transform(eq_default=False)
def parameters(cls: Class) -> Class:
    """Generate the constructor of a model from its annotated parameters, as `dataclass` does.

    Parameters after ``_: KW_ONLY`` are passed by name. The parameters in `shared`, common to all models of a family,
    come last. The facts are completed from the docstring.
    """
    shared = getattr(cls, "shared", {})
    own = {name: _plain(kind) for name, kind in vars(cls).get("__annotations__", {}).items()}
    cls.__annotations__ = own | {name: "str" for name in shared}
    for name, default in shared.items():
        setattr(cls, name, default)
    if hasattr(cls, "facts"):
        cls.facts = with_docstring(cls.facts, cls.__doc__)
    made = dataclass(eq=False, repr=False)(cls)
    made.__init__ = _helpful(made.__init__)
    return made  # type: ignore[return-value]


def _helpful(init: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor with a helpful TypeError, which lists the parameters and translates names of KAFBOX."""

    @wraps(init)
    def helpful(self: Any, *args: Any, **named: Any) -> None:
        try:
            init(self, *args, **named)
        except TypeError as error:
            kinds = list(signature(init).parameters.values())[1:]
            names, by_place = ", ".join(kind.name for kind in kinds), sum(kind.kind != KEYWORD for kind in kinds)
            others = {0: "all", 1: "all but the first"}.get(by_place, f"all but the first {by_place}")
            there = renamed(type(self).__name__, [name for name in named if name not in signature(init).parameters])
            message = f"{error}. {there} The parameters are {names}; {others} are passed by name."
            raise TypeError(message.replace("  ", " ")) from None

    return helpful


def _plain(annotation: Any) -> Any:
    """Return an annotation that `dataclass` understands in a notebook, where it cannot resolve the text."""
    if annotation == "KW_ONLY":
        return KW_ONLY
    return ClassVar[Any] if str(annotation).startswith("ClassVar") else annotation


def chosen_dictionary(dictionary: Dictionary | None) -> Dictionary:
    """Return the dictionary, or `Growing()` if None. Raise a TypeError if it is not a dictionary."""
    if dictionary is None:
        return Growing()
    if not hasattr(dictionary, "place"):
        raise TypeError(f"dictionary must be a part such as Quantized(0.1), or None, got {dictionary!r}.")
    return dictionary


def chosen_pruning(pruning: Pruning | None) -> Pruning | None:
    """Return the pruning rule or None. Raise a TypeError if it is not a pruning rule."""
    if pruning is None:
        return None
    if not hasattr(pruning, "candidate"):
        raise TypeError(f"pruning must be a part such as Oldest(100), or None, got {pruning!r}.")
    count("Use pruning=None for an unlimited number of centers.", budget=pruning.budget)
    return pruning


class RecipeRegressor(OnlineRegressor):
    """Base class of models made of parts: kernel, dictionary, belief, forgetting and pruning.

    Parameters
    ----------
    kernel : Kernel, optional
        The covariance function; ``RBF()`` if None.
    engine : {"auto", "native", "python"}
        The engine that runs the update: compiled, pure Python, or the best available; see :mod:`onlinegp.engine`.
    dtype : {"float64", "float32"}
        The precision of the compiled engine. float32 takes half the time and memory, and keeps six digits. Not all
        models have this parameter.
    """

    shared: ClassVar[dict[str, str]] = {"engine": "auto"}

    kernel: Kernel | None = None
    engine: str = "auto"
    dtype: str = "float64"

    def recipe(self) -> Recipe:
        """Return the recipe for the current parameters. Raise an error that names the first invalid parameter."""
        raise TypeError(f"{type(self).__name__} must define recipe().")

    def check(self) -> None:
        self.start(columns(self._kernel()), 1)

    def start(self, features: int, outputs: int) -> Learner:
        choice(("float64", "float32"), dtype=self.dtype)
        readable_learner = RecipeLearner(self.recipe(), features, outputs, self.dtype)
        learner: Learner = leaf(self.engine, readable_learner)
        if learner is readable_learner and self.dtype != "float64":
            raise ValueError(
                f"dtype must be 'float64' for the Python engine, got {self.dtype!r}. Only compiled code has float32."
            )
        return learner

    def _kernel(self) -> Kernel:
        return kernel_or_default(self.kernel)

    # Learned attributes

    @property
    def centers_(self) -> Array:
        """The centers, (m, d)."""
        return self._recipe_learner.weights()[0]

    @property
    def alpha_(self) -> Array:
        """The kernel weights, (m,) or (m, outputs): the mean at x is k(centers_, x) . alpha_."""
        alpha = self._recipe_learner.weights()[1]
        return alpha[:, 0].copy() if self._single else alpha

    @property
    def posterior_mean_(self) -> Array:
        """The mean of f at the centers, mu = K alpha."""
        return self._gram() @ self.alpha_

    @property
    def posterior_cov_(self) -> Array:
        """The covariance Sigma of f at the centers, tracked or fixed by the belief."""
        state = self._state
        return state.power * self._recipe.belief.covariance(state, self._gram())

    def _gram(self) -> Array:
        return self._recipe.kernel(self.centers_)

    @property
    def _recipe_learner(self) -> RecipeLearner:
        learner = readable(self._working)
        assert isinstance(learner, RecipeLearner)
        return learner

    @property
    def _recipe(self) -> Recipe:
        return self._recipe_learner.recipe

    @property
    def _state(self) -> State:
        return self._recipe_learner.state
