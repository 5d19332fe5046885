"""What all estimators share: scikit-learn's protocol, a sample at a time or many, without importing scikit-learn."""

from __future__ import annotations

import copy
from math import sqrt
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, check_x
from onlinegp.engine import Engine, make_engine
from onlinegp.models.estimator import Estimator
from onlinegp.recipes.state import State
from onlinegp.recipes.update import Recipe


class OnlineRegressor(Estimator):
    """Base class of the estimators: parameters in `__init__` untouched, one `recipe()`, the rest is here.

    A subclass stores its parameters and returns its recipe. Parameters take effect when learning starts; `fit` starts
    anew, `partial_fit` and `learn_one` go on.
    """

    engine: str = "auto"
    dtype: str = "float64"
    _engine: Engine | None = None

    def recipe(self) -> Recipe:
        """Return the recipe that the parameters describe, or raise an error that names the wrong one."""
        raise TypeError(f"{type(self).__name__} must define recipe().")

    # Learning

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget everything, then learn the rows of X (n, d) and y (n,) or (n, outputs), in order."""
        X, y, names = self._check_Xy(X, y, anew=True)
        self._start(X.shape[1], y)
        self._remember(names)
        return self.partial_fit(X, y)

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn one more row, or many, in order. Bad input is refused before any of it is learned."""
        engine, X, Y = self._ready(X, y)
        engine.learn(X, Y)
        return self

    def learn_one(self, x: ArrayLike, y: ArrayLike) -> Self:
        """Learn one sample: x of shape (d,), y a number, or (outputs,)."""
        if self._engine is not None and self._engine.learn_one(x, y):  # plain numbers, at once
            return self
        x = check_x(x, width=self._width)
        y = check_x(y) if np.ndim(y) else check_x(y)[0]
        return self.partial_fit(x[None, :], np.asarray(y)[None])

    def run(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, Array, np.ndarray]:
        """Predict, then learn, row by row; return means, variances of y and sizes. See `onlinegp.run`."""
        engine, X, Y = self._ready(X, y)
        return engine.run(X, Y)

    # Predicting

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predict y at the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d)
        return_std : bool
            Whether to return the standard deviation of y too, the noise included.

        Returns
        -------
        mean : array of shape (n,), or (n, outputs) if the model was trained on such a y
        std : array of the same shape, only if `return_std`
        """
        X = self._check_X(X)
        engine = self._engine or self._prior(X.shape[1])
        mean, variance = engine.predict(X)
        std = np.sqrt(variance)
        if self._flat:
            return (mean[:, 0], std) if return_std else mean[:, 0]
        return (mean, np.repeat(std[:, None], mean.shape[1], axis=1)) if return_std else mean

    def predict_one(self, x: ArrayLike, return_std: bool = False) -> Any:
        """Predict y for one sample x of shape (d,); a number, or an array of shape (outputs,)."""
        quick = None if self._engine is None else self._engine.predict_one(x)
        if quick is not None:
            mean, variance = quick
            return (mean, sqrt(variance)) if return_std else mean
        answer = self.predict(check_x(x, width=self._width)[None, :], return_std)
        if return_std:
            return tuple(float(part[0]) if part.ndim == 1 else part[0] for part in answer)
        return float(answer[0]) if answer.ndim == 1 else answer[0]

    # What was learned

    @property
    def centers_(self) -> Array:
        """The centers, (m, d)."""
        return self._working.weights()[0]

    @property
    def alpha_(self) -> Array:
        """The kernel weights, (m,) or (m, outputs): the mean at x is k(centers_, x) . alpha_."""
        alpha = self._working.weights()[1]
        return alpha[:, 0].copy() if self._flat else alpha

    @property
    def posterior_mean_(self) -> Array:
        """The mean of f at the centers, mu = K alpha."""
        return self._gram() @ self.alpha_

    @property
    def posterior_cov_(self) -> Array:
        """The covariance Sigma of f at the centers that the belief holds or implies."""
        state = self._state
        return state.power * self._recipe.belief.covariance(state, self._gram())

    @property
    def size_(self) -> int:
        """The number of centers."""
        return self._working.size

    @property
    def n_samples_seen_(self) -> int:
        """The number of samples learned since the start."""
        return self._working.seen

    def _gram(self) -> Array:
        return self._recipe.kernel(self._working.weights()[0])

    # Saving

    def save(self, path: str | Path) -> None:
        """Write the model to a file, beside it first and then renamed, so that a crash leaves no half of one."""
        from onlinegp.files.model_file import save

        save(self, path)

    def to_bytes(self) -> bytes:
        """Return what `save` writes."""
        from onlinegp.files.model_file import to_bytes

        return to_bytes(self)

    # Inside

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles carry the state, not the engine that works on it."""
        own = dict(vars(self))
        own["_engine"] = None if self._engine is None else self._engine.state
        return own

    def __setstate__(self, own: dict[str, Any]) -> None:
        vars(self).update(own)
        if self._engine is not None:
            self._engine = make_engine(self.engine, self._recipe, copy.deepcopy(own["_engine"]), self.dtype)

    def __sklearn_is_fitted__(self) -> bool:
        return self._engine is not None

    @property
    def _width(self) -> int | None:
        return None if self._engine is None else self.n_features_in_

    @property
    def _flat(self) -> bool:
        return getattr(self, "_single", True)

    @property
    def _working(self) -> Engine:
        if self._engine is None:
            raise AttributeError(
                f"this {type(self).__name__} has not learned anything yet. Call fit, partial_fit or learn_one first."
            )
        return self._engine

    @property
    def _state(self) -> State:
        return self._working.state

    def _prior(self, features: int) -> Engine:
        recipe = self.recipe()
        return make_engine(self.engine, recipe, recipe.start(features), self.dtype)

    def _start(self, features: int, y: Array) -> None:
        """Begin a stream: from here on the parameters are fixed."""
        recipe = self.recipe()
        state = recipe.start(features, 1 if y.ndim == 1 else y.shape[1])
        self._adopt(recipe, state, single=y.ndim == 1)

    def _adopt(self, recipe: Recipe, state: State, *, single: bool) -> None:
        self._engine = make_engine(self.engine, recipe, state, self.dtype)
        self._recipe = recipe
        self._learned_with = self.get_params(deep=False)
        self._single = single
        self.n_features_in_ = state.centers.shape[1]

    def _ready(self, X: ArrayLike, y: ArrayLike) -> tuple[Engine, Array, Array]:
        """Return the engine and the checked rows, X (n, d) and Y (n, p); start a stream if there is none."""
        X, y, names = self._check_Xy(X, y)
        if self._engine is None:
            self._start(X.shape[1], y)
            self._remember(names)
        assert self._engine is not None
        outputs = self._engine.outputs
        if (y.ndim == 1) != self._flat or (y.ndim == 2 and y.shape[1] != outputs):
            expected = "(n,)" if self._flat else f"(n, {outputs})"
            raise ValueError(f"y must have shape {expected} as before, got {y.shape}. Use fit to start anew.")
        return self._engine, X, y.reshape(len(y), outputs)
