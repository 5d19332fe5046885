"""Check arguments. Each function returns the checked value, or raises an error that says how to correct it.

An error names the argument, the value, the rule and the remedy. Scalars are passed by keyword, so that the message
contains the name of the argument::

    step = positive(step=0.5)
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def _number(name: str, value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r} ({type(value).__name__}).")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} must fit into a double, got a number with more than 300 digits.") from None


def _only(arguments: dict[str, Any]) -> tuple[str, Any]:
    ((name, value),) = arguments.items()
    return name, value


def _checked(argument: dict[str, Any], good: Callable[[float], bool], rule: str, remedy: str) -> float:
    """Return a number if `good` is true for it. Otherwise raise an error with the rule and the remedy."""
    name, value = _only(argument)
    number = _number(name, value)
    if not good(number):
        raise ValueError(f"{name} must be {rule}, got {value!r}. {remedy}".rstrip())
    return number


def positive(remedy: str = "", **argument: Any) -> float:
    """Return the keyword argument as a float if it is finite and greater than zero."""
    return _checked(argument, lambda number: 0.0 < number < inf, "positive and finite", remedy)


def non_negative(remedy: str = "", **argument: Any) -> float:
    """Return the keyword argument as a float if it is finite and at least zero."""
    return _checked(argument, lambda number: 0.0 <= number < inf, "zero or more, and finite", remedy)


def finite(remedy: str = "", **argument: Any) -> float:
    """Return the keyword argument as a float if it is finite."""
    return _checked(argument, isfinite, "finite", remedy)


def fraction(remedy: str = "", **argument: Any) -> float:
    """Return the keyword argument as a float if it is in (0, 1]."""
    return _checked(argument, lambda number: 0.0 < number <= 1.0, "greater than 0 and at most 1", remedy)


def probability(remedy: str = "", **argument: Any) -> float:
    """Return the keyword argument as a float if it is in (0, 1)."""
    return _checked(argument, lambda number: 0.0 < number < 1.0, "greater than 0 and less than 1", remedy)


def count(remedy: str = "", least: int = 1, **argument: Any) -> int:
    """Return the keyword argument as an int if it is a whole number of at least `least`."""
    name, value = _only(argument)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}. {remedy}".rstrip())
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}. {remedy}".rstrip())
    return int(value)


def seed_of(**argument: Any) -> int:
    """Return the keyword argument as an int if it is a valid seed: a whole number of at least zero."""
    name, value = _only(argument)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise ValueError(f"{name} must be a whole number of at least 0, got {value!r}.")
    return int(value)


def choice(options: tuple[str, ...], **argument: Any) -> str:
    """Return the keyword argument if it is one of the options."""
    name, value = _only(argument)
    if value not in options:
        names = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {names}, got {value!r}.")
    return value


LARGEST = 1e150  # larger squares would overflow a double


def check_X(X: ArrayLike, *, width: int | None = None, owner: str = "the model", name: str = "X") -> Array:
    """Return `X` as an (n, d) array of finite float64, C-ordered, with at least one row. d = 0 only if width = 0."""
    _refuse_none(X, name)
    array = _as_floats(X, name)
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions (samples, features), got shape {array.shape}. "
            f"Reshape your data: {name}.reshape(-1, 1) for one feature, {name}.reshape(1, -1) for one sample; "
            f"{name}.to_frame() for a column of a data frame."
        )
    if array.shape[1] == 0 and width is None:
        raise ValueError(f"{name} has 0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
    if width is not None and array.shape[1] != width:
        raise ValueError(
            f"{name} has {array.shape[1]} features, but {owner} is expecting {width} features as input. "
            f"Pass the same columns, in the same order."
        )
    if len(array) == 0:
        raise ValueError(f"{name} must have at least one sample, got 0 sample(s) (shape={array.shape}).")
    return _refuse_non_finite(array, name)


def check_Xy(X: ArrayLike, y: ArrayLike, *, width: int | None = None, owner: str = "the model") -> tuple[Array, Array]:
    """Return `X` as (n, d) and `y` as (n,) or (n, p), finite float64 and of equal length."""
    X = check_X(X, width=width, owner=owner)
    if y is None:
        raise ValueError("y must be given: this regressor requires y to be passed, but the target y is None.")
    y = _as_floats(y, "y")
    if y.ndim not in (1, 2) or (y.ndim == 2 and y.shape[1] == 0):
        raise ValueError(f"y must have shape (n,) or (n, outputs), got {y.shape}. Pass one target per row.")
    if len(X) != len(y):
        turned = " A row of X is one sample: pass X.T." if X.shape[1] == len(y) else ""
        raise ValueError(f"X and y must have the same number of rows, got {len(X)} and {len(y)}.{turned}")
    return X, _refuse_non_finite(y, "y")


def no_features(y: Any) -> Array:
    """Return an X without features, with one row per row of y: (n, 0)."""
    shape = np.shape(y)
    return np.empty((shape[0] if shape else 1, 0))


def check_x(x: ArrayLike, *, width: int | None = None, name: str = "x") -> Array:
    """Return one input as a (d,) array of finite float64. A number is one feature."""
    _refuse_none(x, name)
    array = _as_floats(x, name)
    if array.ndim == 0:
        array = array.reshape(1)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one sample, of shape (features,), got {array.shape}. "
            f"Pass one row, such as {name}[0], or use partial_fit and predict, which take several samples."
        )
    if array.size == 0:
        raise ValueError(f"{name} must have at least one feature, got an empty array.")
    if width is not None and array.size != width:
        raise ValueError(
            f"{name} has {array.size} features, but the model was trained with {width}. "
            f"Pass the same features, in the same order."
        )
    return _refuse_non_finite(array, name)


def _refuse_none(values: Any, name: str) -> None:
    if values is None:
        series = (
            f"To predict a series from its own past values, use onlinegp.Lagged(model, lags=10), which needs no {name}."
        )
        remedy = "Leave out rows without a target." if name == "y" else series
        raise TypeError(f"{name} must be given, got None. {remedy}")


def _as_floats(values: ArrayLike, name: str) -> Array:
    if type(values) is np.ndarray and values.dtype == np.float64:  # the usual case needs no conversion
        return np.ascontiguousarray(values) if values.ndim else values
    if hasattr(values, "toarray"):  # scipy.sparse, recognized without importing it
        raise TypeError(f"{name} is a sparse matrix, but dense data is required. Pass {name}.toarray().")
    if hasattr(values, "__next__"):
        raise TypeError(f"{name} must be an array or a list, got a {type(values).__name__}. Pass list({name}).")
    _refuse_masked(values, name)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array of numbers: {error}") from None
    if array.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} has dtype {array.dtype}. Pass real and imaginary parts separately."
        )
    if array.dtype.kind in "mM":
        raise TypeError(
            f"{name} must hold numbers, got times of dtype {array.dtype}, whose unit would be lost. Pass durations as "
            f"numbers: ({name} - start) / np.timedelta64(1, 's')."
        )
    if array.dtype.kind not in "fiub":
        array = _numbers_from(array, name)
    with np.errstate(over="ignore"):  # a long double may overflow to infinity, which raises an error later
        floats = np.asarray(array, dtype=np.float64)
    return np.ascontiguousarray(floats) if floats.ndim else floats  # ascontiguousarray would turn () into (1,)


def _refuse_masked(values: Any, name: str) -> None:
    """Raise an error for masked values in arrays, because NumPy would use the values under the mask."""
    if isinstance(values, (list, tuple)):
        for i, row in enumerate(values):
            if isinstance(row, np.ma.MaskedArray):
                _refuse_masked(row, f"{name}[{i}]")
    elif isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        where = np.argwhere(np.ma.getmaskarray(values))[0].tolist()
        place = f" at {where}" if where else ""
        raise ValueError(
            f"{name} has a masked value{place}, but no value may be missing. Drop its row, or fill it: "
            f"{name}.filled(value)."
        )


def _numbers_from(array: NDArray[Any], name: str) -> Array:
    """Convert an array of objects to numbers. Raise an error for text and other values."""
    for value in array.ravel().tolist():
        if isinstance(value, (str, bytes)):
            raise ValueError(f"{name} must hold numbers, got the text {value!r}. Convert it, or leave this column out.")
        if not isinstance(value, (numbers.Real, np.bool_)):  # scikit-learn expects these words
            raise TypeError(
                f"{name} must hold numbers, got {value!r} ({type(value).__name__}): an argument must be free of strings"
                f" and of other values that are not numbers. Convert it, or leave that column out."
            )
    floats = np.empty(array.shape)
    for where, value in np.ndenumerate(array):
        try:
            floats[where] = float(value)
        except OverflowError:
            raise ValueError(
                f"{name} contains a number ({type(value).__name__}) with more than 300 digits at {list(where)}. "
                f"Every value must be below 1e150 in magnitude; drop or rescale it."
            ) from None
    return floats


def _refuse_non_finite(array: Array, name: str) -> Array:
    low, high = np.minimum.reduce(array, None, initial=0.0), np.maximum.reduce(array, None, initial=0.0)
    if not (low > -LARGEST and high < LARGEST):  # also true for NaN
        where = tuple(int(i) for i in np.argwhere(~(np.abs(array) < LARGEST))[0])
        value = array[where]
        what = "NaN" if np.isnan(value) else "infinity" if np.isinf(value) else "a value beyond 1e150"
        raise ValueError(
            f"{name} contains {what} at {list(where)}: {value}. Every value must be finite (no NaN, no inf) and "
            f"below 1e150 in magnitude; drop, impute or rescale it."
        )
    return array
