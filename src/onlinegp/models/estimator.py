"""The estimator protocol of scikit-learn, without the slow import of scikit-learn."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from onlinegp import frames
from onlinegp.checks import Array, check_X, check_x, check_Xy, no_features

# Argument names of each constructor. Weak keys let unused classes be deleted
_ARGUMENTS: WeakKeyDictionary[Callable[..., None], tuple[str, ...]] = WeakKeyDictionary()

FOR_THE_LIBRARY = {  # hidden in `dir`: attributes for tuners, files, fleets and authors of models
    *("inner_facts", "tunes_itself"),
    *(
        "adopt_encoding",
        "check",
        "checked_X",
        "checked_Xy",
        "delay",
        "dump",
        "encoding",
        "features_optional",
        "kernels_in_use",
        "learned_with",
        "learner",
        "recipe",
        "rows_to_learn",
        "shared",
    ),
    *("start", "unfitted"),
}


class Estimator:
    """Parameters by name, a representation, a score, and the tags that scikit-learn needs."""

    def predict(self, X: ArrayLike) -> Any:
        raise TypeError(f"{type(self).__name__} must define predict().")

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return R^2, the share of the variance of y that the predictions explain, averaged over outputs.

        A constant y scores 1 if the prediction is exact, and 0 otherwise.
        """
        X, y, _ = self.checked_Xy(X, y)
        error = ((y - self.predict(X).reshape(y.shape)) ** 2).sum(axis=0)
        spread = ((y - y.mean(axis=0)) ** 2).sum(axis=0)
        spread = np.where(spread > 0.0, spread, np.where(error > 0.0, error, 1.0))
        return float(np.mean(1.0 - error / spread))

    def plot(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        grid: ArrayLike | None = None,
        level: float = 0.95,
        ax: Any = None,
    ) -> Any:
        """Draw the mean and the interval of a model with one input, and data. See `onlinegp.plots.fit`."""
        from onlinegp import plots

        return plots.fit(self, X, y, grid=grid, level=level, ax=ax)

    @classmethod
    def parameter_names(cls) -> list[str]:
        """Return the names of the parameters, in the order of the constructor."""
        return [] if cls.__init__ is object.__init__ else list(_arguments(cls.__init__))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name. With `deep`, include nested parameters, such as `kernel__length_scale`."""
        params = {name: getattr(self, name) for name in self.parameter_names()}
        if deep:
            for name, value in list(params.items()):
                params |= {f"{name}__{key}": inner for key, inner in _nested(value).items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name. They take effect at the next `fit`, or at once with ``model.load(model.dump())``."""
        for name in sorted(params, key=lambda name: "__" in name):  # first the kernel, then its parts
            own, _, inner = name.partition("__")
            value = params[name]
            if own not in self.parameter_names():
                known = ", ".join(self.parameter_names())
                raise ValueError(f"Invalid parameter {own!r} for estimator {self}. Valid parameters are: {known}.")
            if inner and getattr(self, own) is None:
                first = "kernel=onlinegp.kernels.RBF()" if own == "kernel" else f"{own}=..."
                raise ValueError(
                    f"{name} cannot be set while {own} is None. Set {own} first, or both at once: "
                    f"set_params({first}, {name}={value!r})."
                )
            super().__setattr__(own, _replaced(getattr(self, own), inner, value) if inner else value)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute. Warn if it is a parameter of a model that is learning, which keeps the old value."""
        super().__setattr__(name, value)
        if getattr(self, "_learner", None) is not None and name in self.parameter_names():
            remedy = "" if "kernel" in name else " To continue with it from here: model.load(model.dump())."
            message = f"{name} takes effect at the next fit: {type(self).__name__} learns with the value at the start."
            warnings.warn(message + remedy, stacklevel=2)

    def unfitted(self) -> Self:
        """Return an unfitted copy with the same parameters. Inner estimators are unfitted copies, too."""
        params = self.get_params(deep=False)
        return type(self)(**{n: v.unfitted() if isinstance(v, Estimator) else deepcopy(v) for n, v in params.items()})

    @property
    def features_optional(self) -> bool:
        """Whether X may be None, for a series that is predicted from its own past."""
        return False

    def __dir__(self) -> list[str]:
        """Return the public names: parameters, methods, results and facts."""
        public = (name for name in super().__dir__() if name.startswith("__") or not name.startswith("_"))
        return [name for name in public if name not in FOR_THE_LIBRARY]

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        shown = [
            f"{name}={_plain(getattr(self, name))!r}"
            for name in self.parameter_names()
            if not _same(getattr(self, name), defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str | None:
        """Return HTML for a notebook: what was learned, and the diagram of scikit-learn if it is installed."""
        try:
            from sklearn.utils import estimator_html_repr
        except ImportError:
            return self._learned_html() or None
        return self._learned_html() + estimator_html_repr(self)

    def _learned_html(self) -> str:
        """Return a line of HTML about what was learned, empty before learning."""
        return ""

    def __sklearn_tags__(self) -> Any:
        """Return the tags that scikit-learn asks for. No other library calls this."""
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True, multi_output=True),
            regressor_tags=RegressorTags(),
            input_tags=InputTags(),
            requires_fit=False,  # before learning, models predict from the prior
        )

    # Arrays and frames. `feature_names_in_` holds the names of the columns of the first frame

    def checked_X(self, X: ArrayLike) -> Array:
        """Return X as (n, d). The columns of a frame are selected by name."""
        owner = type(self).__name__
        if type(X) is not np.ndarray:
            X, _ = frames.read(X, getattr(self, "feature_names_in_", None), owner=owner)
        if X is None and self.features_optional:
            X = no_features(None)
        none = 0 if self.features_optional and isinstance(X, np.ndarray) and X.shape[1:] == (0,) else None
        return check_X(X, width=getattr(self, "n_features_in_", none), owner=owner)

    def checked_Xy(self, X: ArrayLike, y: ArrayLike, *, first: bool = False) -> tuple[Array, Array, Any]:
        """Return X as (n, d), y as (n,) or (n, p), and the names of the columns. `first`: a new fit."""
        owner, names = type(self).__name__, None
        if type(X) is not np.ndarray:
            X, names = frames.read(X, None if first else getattr(self, "feature_names_in_", None), owner=owner)
        if type(y) is not np.ndarray:
            y = frames.target(y)
        width = None if first else getattr(self, "n_features_in_", None)
        if X is None and self.features_optional:
            X, width = no_features(y), width or 0
        X, y = check_Xy(X, y, width=width, owner=owner)
        return X, y, names

    def _check_x(self, x: Any) -> Any:
        """Return one sample as a row, (1, d), or None for a series without features.

        A first row with names is returned as a list of one dict, which keeps the names.
        """
        if self.features_optional and (x is None or (hasattr(x, "__len__") and len(x) == 0)):
            return None
        row = frames.named(x)
        if row is not None and not hasattr(self, "n_features_in_"):
            return [row]
        if row is not None and (row is x or hasattr(self, "feature_names_in_")):
            return frames.read([self._in_order(row)], owner=type(self).__name__)[0]
        return check_x(x, width=getattr(self, "n_features_in_", None))[None, :]

    def _in_order(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row with its columns in the order of training."""
        names, owner = getattr(self, "feature_names_in_", None), type(self).__name__
        if names is None:
            raise ValueError(
                f"x has names, but {owner} was trained without names, so their order is unknown. Pass the numbers in "
                f"the order of training, such as list(x.values()), or train with rows that have names."
            )
        return dict(zip(names, frames.in_order(row, names, owner), strict=True))

    def _remember(self, names: Any) -> None:
        """Set `feature_names_in_` when learning starts. Without names, remove it."""
        vars(self).pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names


def _arguments(constructor: Callable[..., None]) -> tuple[str, ...]:
    """Return the argument names of a constructor without self. Cached, because reading a signature takes 25 us."""
    names = _ARGUMENTS.get(constructor)
    if names is None:
        names = _ARGUMENTS[constructor] = tuple(inspect.signature(constructor).parameters)[1:]
    return names


def _nested(value: Any) -> dict[str, Any]:
    """Return the parameters of an estimator, kernel or part, and of everything inside."""
    if isinstance(value, Estimator):
        return value.get_params()
    if not is_dataclass(value) or isinstance(value, type):
        return {}
    params = {f.name: getattr(value, f.name) for f in fields(value)}
    for name, inner in list(params.items()):
        params |= {f"{name}__{key}": deeper for key, deeper in _nested(inner).items()}
    return params


def _replaced(part: Any, name: str, value: Any) -> Any:
    """Return an estimator, kernel or part with one parameter changed, at any depth."""
    if isinstance(part, Estimator):
        return part.set_params(**{name: value})
    own, _, inner = name.partition("__")
    if not is_dataclass(part) or isinstance(part, type) or own not in {f.name for f in fields(part)}:
        raise ValueError(f"Invalid parameter {own!r} for {part!r}. Valid parameters are in get_params().")
    return replace(part, **{own: _replaced(getattr(part, own), inner, value) if inner else value})


def _plain(value: Any) -> Any:
    """Return a NumPy number as a Python number, which is shorter to read."""
    return value.item() if isinstance(value, np.generic) else value


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))
