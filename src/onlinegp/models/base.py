"""The base class of all models: fit, learn, run, predict, save. A subclass creates the learner."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from onlinegp import frames
from onlinegp.checks import Array, check_x, probability
from onlinegp.engine.compiled import outer
from onlinegp.kernels import kernel_or_default
from onlinegp.kernels.importance import KernelInUse, mean_importance
from onlinegp.learner import CHECK, OK, UNSUPPORTED, Learner, begin_series, skip
from onlinegp.locks import Locked
from onlinegp.models.breakdown import BreakdownError, Health
from onlinegp.models.estimator import Estimator
from onlinegp.models.facts import Facts
from onlinegp.models.notebook import learned_html
from onlinegp.models.pickling import Pickled
from onlinegp.models.start import checked_delay, start_learner
from onlinegp.models.undo import Undo
from onlinegp.predictions import Predictions
from onlinegp.predictions.base import WIDE
from onlinegp.progress import blocks
from onlinegp.state import Contents, dump
from onlinegp.trace import Trace

if TYPE_CHECKING:
    from onlinegp.columns import Encoding
    from onlinegp.models.combined.scaled import Scaled

RECENT = 1000  # rows of the last run that a notebook summarizes


class OnlineRegressor(Locked, Pickled, Estimator):
    """Base class of all models. A subclass stores its parameters in `__init__`, and `start()` returns a learner.

    Parameters take effect when learning starts. `fit` starts from scratch; `partial_fit`, `learn_one` and `run`
    continue. Only one thread at a time can use a model; other threads wait.

    Attributes
    ----------
    facts : Facts
        Cost, memory, equation, the meaning of the variance of y, the source, and the remedy for a breakdown.
    tunes_itself : bool
        Whether the model tunes its parameters on the rows that it learns.
    """

    facts: ClassVar[Facts] = Facts()
    tunes_itself: ClassVar[bool] = False

    n_features_in_: int
    _learned_with: dict[str, Any]
    _learner: Learner | None = None
    _health: Health = Health()
    _single: bool = True  # whether y has one dimension
    _recent: Trace | None = None  # the last rows of the last run; not copied or saved

    def check(self) -> None:
        """Raise an error if a parameter is invalid. Some parameters can be checked only with data, in `start`."""

    def start(self, features: int, outputs: int) -> Learner:
        """Return a new learner. Raise an error that names the first invalid parameter."""
        raise TypeError(f"{type(self).__name__} must define start(features, outputs).")

    @property
    def inner_facts(self) -> Facts:
        """The facts of the innermost model, whose remedy applies if the model diverges."""
        return self.facts

    @property
    def delay(self) -> int:
        """The number of first rows that are predicted before any y is known: one, or the horizon."""
        return 1

    # Learning

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget everything, then learn the rows of X (n, d) and y (n,) or (n, outputs), in order."""
        X, y, names = self.checked_Xy(X, y, first=True)
        with self._lock:
            self._begin(X.shape[1], y, names)
            return self.partial_fit(X, y)

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn one or more rows, in order. If a row is invalid, raise an error and learn none of them."""
        with self._lock:
            learner, X, Y = self.rows_to_learn(X, y)
            before = learner.seen
            try:
                for part in blocks(len(X), type(self).__name__):
                    learner.learn(X[part], Y[part])
                self._health.after_learning(self, learner, X, Y, before)
            except BaseException:
                self._health.after_failing(Y[: learner.seen - before])
                raise
        return self

    def learn_one(self, x: ArrayLike, y: ArrayLike) -> Self:
        """Learn one sample: x of shape (d,) or with names, such as a dict; y a number, or (outputs,)."""
        learner = self._learner
        outcome = UNSUPPORTED
        if learner is not None and (self._single or learner.outputs > 1):  # else y is (1,), not a number
            try:
                fast = learner.learn_one  # type: ignore[attr-defined]  # for plain numbers, if it has such a path
            except AttributeError:
                fast = None
            if fast is not None:
                outcome = fast(x, y)
                if outcome == UNSUPPORTED and isinstance(x, dict):
                    outcome = fast(list(self._in_order(x).values()), y)
        if outcome == OK:
            return self
        row = self._check_x(x)
        target = check_x(y, name="y")
        if outcome != CHECK or learner is None:
            return self.partial_fit(row, target if np.ndim(y) == 0 else target[None, :])
        with self._lock:
            inputs = self.checked_X(row)
            self._health.after_learning_one(self, learner, inputs, target[None, :])
        return self

    def run(self, X: ArrayLike, y: ArrayLike, *, delay: int = 0, progress: bool | None = None) -> Trace:
        """Predict each row of X, then learn it with its y, and return the predictions. See `onlinegp.run`."""
        origin, late = frames.origin(X), checked_delay(self, delay)
        with self._lock:
            learner, X, Y = self.rows_to_learn(X, y)
            before = learner.seen
            try:
                if late:
                    from onlinegp.models.combined.lagged_learner import run_delayed

                    parts = [run_delayed(learner, X, Y, late)]
                else:
                    pieces = blocks(len(X), type(self).__name__, show=progress)
                    parts = [learner.run(X[piece], Y[piece]) for piece in pieces]
            except BaseException:
                self._health.after_failing(Y[: learner.seen - before])
                raise
            predictions = Predictions.joined([part for part, _ in parts])
            size = np.concatenate([size for _, size in parts])
            scored = before + np.arange(len(X)) >= max(self.delay, 0 if before else late)
            trace = Trace(predictions, Y.copy(), size, scored, origin)
            trace = trace.output(0) if self._single else trace
            self._health.remember(learner, X, Y)
            try:
                self._health.after_running(self, predictions, Y, before)
            except BreakdownError as error:
                error.trace = trace.first(int(error.row or 0) - before)
                raise
            self._recent = trace.last(RECENT)
        return trace

    def skip(self, X: ArrayLike, y: ArrayLike | None = None) -> Predictions:
        """Predict rows in order without learning them, and continue after them.

        For most models this is `predict_distribution`. A model that uses past values of y remembers the given y, or
        its own predictions if y is not known.
        """
        with self._lock:
            if self._learner is None:  # no past values yet
                return self.predict_distribution(X)
            predictions = skip(self._learner, self.checked_X(X)) if y is None else skip(*self.rows_to_learn(X, y))
            return self._checked_predictions(predictions)

    def begin_series(self) -> Self:
        """Start a new series: a model that uses past values forgets them. The next row does not follow the last."""
        with self._lock:
            if self._learner is not None:
                begin_series(self._learner)
        return self

    def scaled(self, rows: int = 100) -> Scaled:
        """Return `Scaled(self, rows=rows)`: this model with X and y standardized.

        Use it if y is not centered at 0 with a spread of about 1, or if features have different units.

        Examples
        --------
        >>> import numpy as np, onlinegp as ogp
        >>> X = np.linspace(0, 500, 300)[:, None]
        >>> trace = ogp.run(ogp.KRLST().scaled(), X, 70 + 10 * np.sin(X[:, 0] / 60))
        """
        from onlinegp.models.combined.scaled import Scaled

        return Scaled(self, rows=rows)

    # Predicting

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predict y at the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d)
        return_std : bool
            Whether to return the standard deviation of y too, noise included.

        Returns
        -------
        mean : array of shape (n,), or (n, outputs) if the model was trained on such a y
        std : array of the same shape, only if `return_std`
        """
        quick = self._quick("predict_one", X)
        if quick is not None:
            return (np.array([quick[0]]), np.array([quick[1]])) if return_std else np.array([quick[0]])
        predictions = self._predictions(X)
        which = (slice(None), 0) if self._single else slice(None)
        return (predictions.mean[which], predictions.std[which]) if return_std else predictions.mean[which]

    def predict_distribution(self, X: ArrayLike) -> Predictions:
        """Return the distributions of y at the rows of X, with mean, std, intervals, quantiles and densities."""
        predictions = self._predictions(X)
        return predictions.output(0) if self._single else predictions

    def _predictions(self, X: ArrayLike) -> Predictions:
        """Return the predictions of all outputs, (n, outputs)."""
        X = self.checked_X(X)
        with self._lock:
            learner = self.start(X.shape[1], 1) if self._learner is None else self._learner
            predictions = learner.predict(X)
            self._health.after_predicting(self, predictions)
            return predictions

    def _checked_predictions(self, predictions: Predictions) -> Predictions:
        self._health.after_predicting(self, predictions)
        return predictions.output(0) if self._single else predictions

    def predict_interval(self, X: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
        """Return lower and upper ends of the intervals that contain y with probability `level` at the rows of X."""
        quick = self._quick("interval_one", X, probability(WIDE, level=level))
        if quick is not None:
            return np.array([quick[2]]), np.array([quick[3]])
        return self.predict_distribution(X).interval(level)

    def predict_one(self, x: ArrayLike, return_std: bool = False) -> Any:
        """Predict y for one sample x: (d,), or with names. Return a number, or an array of shape (outputs,)."""
        fast = getattr(self._learner, "predict_one", None) if self._single else None
        quick = None if fast is None else fast(x)
        if quick is None and fast is not None and isinstance(x, dict):
            quick = fast(list(self._in_order(x).values()))
        if quick is not None:
            if not (isfinite(quick[0]) and isfinite(quick[1])):
                raise self._health.error(self, None)
            return quick if return_std else quick[0]
        answer = self.predict(self._check_x(x), return_std)
        if return_std:
            return tuple(float(part[0]) if part.ndim == 1 else part[0] for part in answer)
        return float(answer[0]) if answer.ndim == 1 else answer[0]

    def _quick(self, name: str, X: ArrayLike, *arguments: Any) -> Any:
        """Return the result of the fast path `name` of the learner for one row, or None if there is no such path."""
        single = self._single and type(X) is np.ndarray and X.ndim == 2 and len(X) == 1
        fast = getattr(self._learner, name, None) if single else None
        quick = None if fast is None else fast(X[0], *arguments)  # type: ignore[index]
        if quick is not None and not (isfinite(quick[0]) and isfinite(quick[1])):
            raise self._health.error(self, None)
        return quick

    @property
    def forecast(self) -> Any:
        """Raise an error: forecasts need past values of y, which only `Lagged` and `Forecaster` store."""
        raise AttributeError(
            f"{type(self).__name__} has no forecast: it does not store past values of y. Use onlinegp.Forecaster(), or "
            f"onlinegp.Forecaster(model=Lagged({type(self).__name__}(...), lags=10)), and fit it to the series."
        )

    # What was learned

    @property
    def size_(self) -> int:
        """The number of centers, or of other items that grow with the data."""
        return self._working.size

    @property
    def n_samples_seen_(self) -> int:
        """The number of samples learned since the start."""
        return self._working.seen

    @property
    def n_outputs_(self) -> int:
        """The number of outputs."""
        return self._working.outputs

    @property
    def learner(self) -> Learner:
        """The learner, which contains everything that was learned; see `onlinegp.learner`."""
        return self._working

    @property
    def importance_(self) -> Array:
        """How much the function bends along each input, (d,), as shares that add up to 1, from the length scales.

        This is not the effect on the predictions: a steep straight line has a small share. For the effect, see
        ``sklearn.inspection.permutation_importance``.

        The share of an input grows with 1 - c, where c is the correlation, according to the kernel, of f at two points
        that differ by one standard deviation of this input. A mixture has the weighted mean of its members. Past values
        of `Lagged` come last.
        """
        return mean_importance(self.kernels_in_use(self._working), getattr(self, "centers_", None), type(self).__name__)

    def kernels_in_use(self, learner: Learner) -> list[KernelInUse]:
        """Return the kernels that this model uses, given its learner."""
        kernel = self.get_params(deep=False).get("kernel", self)  # None for the default
        return [] if kernel is self else [KernelInUse(1.0, kernel_or_default(kernel), learner.features)]

    def _learned_html(self) -> str:
        return "" if self._learner is None else learned_html(self, self._recent)

    # Saving

    def save(self, path: str | Path) -> None:
        """Write the model to a file. The new file replaces an old file in one step: a crash leaves no partial file."""
        from onlinegp.models.model_file import save

        save(self, path)

    def to_bytes(self) -> bytes:
        """Return what `save` writes."""
        from onlinegp.models.model_file import to_bytes

        return to_bytes(self)

    def dump(self) -> Contents | None:
        """Return everything that was learned by name, as arrays, numbers and strings, or None before learning."""
        with self._lock:
            if self._learner is None:
                return None
            self._health.before_saving(self, self._learner)
            names = [str(name) for name in getattr(self, "feature_names_in_", ())]
            about = {"features": self._learner.features, "outputs": self._learner.outputs, "single": self._single}
            return {**about, "names": names, "largest": self._health.largest, "learned": dump(self._learner)}

    def load(self, contents: Contents) -> Self:
        """Continue from the contents that `dump` returned, bit for bit. Raise a ValueError if they do not fit."""
        if not isinstance(contents, Mapping):
            raise TypeError(f"contents must come from dump(), got {contents!r}. For a file, use onlinegp.load(path).")
        names = np.array(contents["names"], dtype=object) if contents["names"] else None
        with self._lock:
            self._adopt(contents["features"], contents["outputs"], bool(contents["single"]), names, contents)
        return self

    def encoding(self) -> Encoding | None:
        """Return how columns are encoded, or None; see `Columns`."""
        return None

    def adopt_encoding(self, contents: Any) -> Self:
        """Continue with an encoding from a file. Only `Columns` supports this."""
        raise ValueError(f"the file has an encoding of columns, but {type(self).__name__} does not encode columns.")

    # Internals

    def __sklearn_is_fitted__(self) -> bool:
        return self._learner is not None

    @property
    def learned_with(self) -> dict[str, Any]:
        """The parameters at the start of learning. Before learning, the current parameters."""
        return self._learned_with if self.__sklearn_is_fitted__() else self.unfitted().get_params(deep=False)

    @property
    def _working(self) -> Learner:
        if self._learner is None:
            raise AttributeError(
                f"this {type(self).__name__} has not learned anything yet. Call fit, partial_fit or learn_one first."
            )
        return outer(self._learner.learner if isinstance(self._learner, Undo) else self._learner)

    def _begin(self, features: int, y: Array, names: Any) -> None:
        """Start a new stream with the current parameters."""
        self._adopt(features, 1 if y.ndim == 1 else y.shape[1], y.ndim == 1, names)

    def _adopt(self, features: int, outputs: int, single: bool, names: Any, contents: Contents | None = None) -> None:
        """Replace the learner in one step by a new learner, which continues from `contents` if given."""
        learner, health, parameters = start_learner(self, features, outputs, contents)
        own = {name: value for name, value in vars(self).items() if name != "feature_names_in_"}
        own |= {} if names is None else {"feature_names_in_": names}
        own |= {"_learner": learner, "_health": health, "_single": single, "_recent": None, "n_features_in_": features}
        self.__dict__ = own | {"_learned_with": parameters}

    def rows_to_learn(self, X: ArrayLike, y: ArrayLike) -> tuple[Learner, Array, Array]:
        """Return the learner and the checked rows, X (n, d) and Y (n, p). Start a stream if there is none."""
        X, y, names = self.checked_Xy(X, y)
        if self._learner is None:
            self._begin(X.shape[1], y, names)
        assert self._learner is not None
        outputs = self._learner.outputs
        if (y.ndim == 1) != self._single or (y.ndim == 2 and y.shape[1] != outputs):
            expected = "(n,)" if self._single else f"(n, {outputs})"
            raise ValueError(f"y must have shape {expected} as before, got {y.shape}. Use fit to start again.")
        return self._learner, X, y.reshape(len(y), outputs)
