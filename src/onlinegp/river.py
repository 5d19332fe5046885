"""Use onlinegp's models in River pipelines. Only this module imports River."""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Real
from typing import Any
from warnings import warn

import numpy as np
from river import base, proba

from onlinegp import frames
from onlinegp.models import KRLST, OnlineRegressor

ABSENT = 0.0  # value of a missing feature, which is the average after a StandardScaler


class Normal(proba.Gaussian):
    """A normal distribution with given mean and standard deviation. (River's Gaussian learns both from samples.)"""

    def __init__(self, mean: float, std: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.mean, self.std = mean, std

    @property
    def mu(self) -> float:
        return self.mean

    @property
    def sigma(self) -> float:
        return self.std

    @property
    def n_samples(self) -> int:
        return 1

    def __call__(self, x: float) -> float:
        return math.exp(self.log_pdf(x))

    def log_pdf(self, x: float) -> float:
        return -0.5 * ((x - self.mean) / self.std) ** 2 - math.log(self.std) - 0.5 * math.log(2.0 * math.pi)

    def update(self, x: float, w: float = 1.0) -> None:
        raise TypeError("a predicted distribution does not learn. Use river.proba.Gaussian() for samples.")

    revert = update


class RiverRegressor(base.MiniBatchRegressor):
    """An onlinegp model as a River regressor. It takes dictionaries and predicts numbers, distributions or intervals.

    The first learned sample determines the features, sorted by name. Length scales of a kernel have the same order. A
    feature that is missing later counts as zero, its average after a `StandardScaler`. New features in later samples
    are ignored. Kernels measure distances, so scale the features first.

    Parameters
    ----------
    model : OnlineRegressor
        A model with the parameters to use. It does not change; a copy, `learner`, learns.

    Examples
    --------
    >>> from river import preprocessing
    >>> from onlinegp import KRLST
    >>> model = preprocessing.StandardScaler() | RiverRegressor(KRLST(noise=0.1))
    """

    def __init__(self, model: OnlineRegressor) -> None:
        if not isinstance(model, OnlineRegressor):
            raise TypeError(f"model must be an onlinegp model, such as KRLST(), got {model!r}.")
        self.model = model
        self.learner: OnlineRegressor = model.unfitted()
        self.features: list[Any] = []
        self._warned = False

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.model})"

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"model": KRLST(budget=20)}

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        """Learn one sample."""
        if not self.features and not x and not self.model.features_optional:
            raise ValueError("the first sample must have at least one feature, got {}. Learn another sample first.")
        try:
            self.learner.learn_one(self._row(x), y)
        except (TypeError, ValueError):
            self._refuse(x)
            raise
        self.features = self.features or sorted(x, key=str)  # only after the sample was accepted
        if not self._warned and len(x.keys() | self.features) > len(self.features):
            self._warn(x)

    def predict_one(self, x: dict[Any, Any], with_dist: bool = False) -> Any:
        """Predict the mean of y or, if `with_dist`, a `river.proba.Gaussian` with its mean and std, noise included."""
        try:
            mean, std = self.learner.predict_one(self._row(x), return_std=True)
        except (TypeError, ValueError):
            self._refuse(x)
            raise
        return Normal(mean, std) if with_dist else mean

    def predict_interval(self, x: dict[Any, Any], level: float = 0.95) -> tuple[float, float]:
        """Return lower and upper end of the interval that contains y with probability `level`."""
        lower, upper = self.learner.predict_interval([self._row(x)], level)
        return float(lower[0]), float(upper[0])

    def learn_many(self, X: Any, y: Any) -> None:
        """Learn the rows of a data frame, in order."""
        values, names = frames.read(X)
        known = self.features or sorted(self._names(names, X), key=str)
        self.learner.partial_fit(self._rows(values, self._names(names, X), known), frames.target(y))
        self.features = known

    def predict_many(self, X: Any) -> Any:
        """Predict the rows of a data frame. Return a series of the same library."""
        values, names = frames.read(X)
        known = self.features or sorted(self._names(names, X), key=str)
        mean = self.learner.predict(self._rows(values, self._names(names, X), known))
        where = frames.origin(X)
        if where is None:
            return mean
        return frames.build({"mean": mean}, where)["mean"]

    def _row(self, x: dict[Any, Any]) -> list[float]:
        if not x and not self.features:
            return [ABSENT]  # no sample yet: predict from the prior
        return [x.get(name, ABSENT) for name in self.features or sorted(x, key=str)]

    def _refuse(self, x: dict[Any, Any]) -> None:
        """Raise an error with the name of the first feature that is not a number, if there is one."""
        for name in self.features or sorted(x, key=str):
            value = x.get(name, ABSENT)
            if not isinstance(value, Real | np.bool_):
                how = "preprocessing.OneHotEncoder(categories=...)" if isinstance(value, str) else "River"
                text = f"the feature {name!r} must be a number, got {value!r}. Encode it with {how} first"
                raise ValueError(f"{text}, leave it out with compose.Discard, or use onlinegp.Columns without River.")
            if not math.isfinite(value):
                raise ValueError(
                    f"the feature {name!r} is {value}, but no feature may be missing or infinite. Put "
                    f"preprocessing.StatImputer() before the model, or leave the feature out of the dict."
                )

    def _warn(self, x: dict[Any, Any]) -> None:
        """Warn once that features which appear after the first sample are ignored."""
        self._warned = True
        late = next(name for name in x if name not in self.features)
        warn(
            f"the feature {late!r} is ignored, because the first sample did not have it. Give the first sample all "
            f"features; for categories, use OneHotEncoder(categories=...).",
            stacklevel=3,
        )

    def _rows(self, values: Any, names: list[Any], known: list[Any]) -> Any:
        """Return the known columns in order, with zero for missing columns."""
        where = {name: i for i, name in enumerate(names)}
        blank = np.full(len(values), ABSENT)
        return np.stack([values[:, where[f]] if f in where else blank for f in known], axis=1)

    @staticmethod
    def _names(names: Any, X: Any) -> list[Any]:
        return list(X.columns) if names is None else list(names)


__all__ = ["RiverRegressor"]
