"""Plots of models and their predictions. Each function draws on `ax` and returns the matplotlib objects.

>>> from onlinegp import plots
>>> plots.fit(model, X, y)  # doctest: +SKIP

Without `ax`, a function makes a new figure. The colors by Okabe and Ito suit color-blind readers.
The functions need matplotlib, which is imported when a function is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlinegp import frames
from onlinegp.checks import Array, check_Xy, count
from onlinegp.metrics import to_db
from onlinegp.predictions import Predictions
from onlinegp.trace import Trace

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from matplotlib.lines import Line2D

BLUE, ORANGE, GREEN, SKY, RED, PURPLE, BLACK = COLORS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#56B4E9",
    "#D55E00",
    "#CC79A7",
    "#000000",
)
STYLES = ("-", "--", "-.", ":")  # used if there are more curves than colors


class Band(NamedTuple):
    """The matplotlib objects that `fit`, `stream` and `forecast` draw. None for objects that are not drawn."""

    interval: Artist
    mean: Line2D
    data: Line2D | None
    centers: Line2D | None = None


def fit(
    model: Any,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    grid: ArrayLike | None = None,
    level: float = 0.95,
    ax: Axes | None = None,
) -> Band:
    """Draw the mean and the interval of y of a model with one input, with data and centers.

    Parameters
    ----------
    model : estimator
        A model with one input and one output.
    X, y : array-like or data frame and series, optional
        Data to show.
    grid : array-like of shape (n,), optional
        Where to predict. The default is the range of data and centers, extended by a quarter on both sides. A model
        without centers, such as `Auto`, needs data or a grid.
    level : float
        The probability of the interval.
    ax : Axes, optional

    Returns
    -------
    Band
        The interval, the mean, the data and the centers, as matplotlib's artists.
    """
    if getattr(model, "n_features_in_", None) != 1:
        raise ValueError(
            "fit draws fitted models with one input. For more inputs, plot the predictions of a run: "
            "onlinegp.run(model, X, y).plot()."
        )
    known = check_Xy(frames.read(X)[0], frames.target(y)) if X is not None and y is not None else None
    centers = getattr(model, "centers_", getattr(model, "X_train_", None))
    points = _points(grid, *(part for part in (centers, known[0] if known else None) if part is not None))
    ax = _axes(ax, "input", "output")
    band, line = _band(ax, points, model.predict_distribution(points[:, None]), level)
    data = marks = None
    if known:
        (data,) = ax.plot(known[0][:, 0], known[1], ".", color="0.35", ms=3, label="data")
    if centers is not None and hasattr(model, "centers_"):
        at = model.predict(centers)
        (marks,) = ax.plot(centers[:, 0], at, "o", color=RED, ms=4.5, mec="white", mew=0.5, zorder=4, label="centers")
    _legend(ax)
    return Band(band, line, data, marks)


def stream(
    y: ArrayLike,
    trace: Trace,
    *,
    rows: slice | None = None,
    level: float = 0.95,
    ax: Axes | None = None,
) -> Band:
    """Draw one-step-ahead predictions along a stream with their interval, and the observed values.

    Parameters
    ----------
    y : array-like of shape (n,)
        The observed values.
    trace : Trace
        The result of `run`, with one output.
    rows : slice, optional
        The part to show; the last 200 rows if None.
    level : float
        The probability of the interval.
    ax : Axes, optional

    Returns
    -------
    Band
    """
    y = _along(y, trace)
    t = np.arange(len(y))[rows if rows is not None else slice(-200, None)]
    ax = _axes(ax, "sample", "output")
    band, line = _band(ax, t, trace.predictions.rows(t), level)
    (data,) = ax.plot(t, y[t], ".", color=BLACK, ms=4, label="observed")
    _legend(ax)
    return Band(band, line, data)


def predictions(
    predicted: Predictions, y: ArrayLike | None = None, *, level: float = 0.95, ax: Axes | None = None
) -> Band:
    """Draw the means and intervals of predictions by row, and the observed values y, if given."""
    if predicted.mean.ndim != 1:
        raise ValueError("predictions draws one output. With several, pass one of them: predicted.output(0).")
    ax = _axes(ax, "row", "output")
    rows = np.arange(len(predicted))
    band, line = _band(ax, rows, predicted, level)
    data = None if y is None else ax.plot(rows, _along(y, predicted), ".", color=BLACK, ms=4, label="observed")[0]
    _legend(ax)
    return Band(band, line, data)


def learning_curves(
    y: ArrayLike,
    traces: Trace | Mapping[str, Trace],
    *,
    window: int = 50,
    ax: Axes | None = None,
) -> list[Line2D]:
    """Draw the squared error along a stream in dB, as a trailing mean over `window` samples, one curve per trace."""
    window = count("Use 50 for smooth curves, 1 for no smoothing.", window=window)
    ax = _axes(ax, "sample", f"squared error [dB], mean of {window}")

    def curve(trace: Trace) -> Array:
        return to_db(_trailing_mean((_along(y, trace) - trace.mean) ** 2, window))

    return _curves(ax, traces, curve)


def calibration(
    y: ArrayLike,
    traces: Trace | Mapping[str, Trace],
    *,
    ax: Axes | None = None,
) -> list[Line2D]:
    """Draw the share of y inside intervals against their probability, one curve per trace.

    On the diagonal the intervals are right. Above the diagonal they are too wide, below it too narrow.
    """
    levels = np.linspace(0.01, 0.99, 50)
    ax = _axes(ax, "probability of the interval", "share of y inside")
    ax.plot([0, 1], [0, 1], color="0.6", lw=1, ls="--", zorder=1)

    def curve(trace: Trace) -> Array:
        tail = np.abs(2.0 * trace.predictions.pit(_along(y, trace)) - 1.0)  # y is inside an interval of a higher level
        return np.array([np.mean(tail <= level) for level in levels])

    lines = _curves(ax, traces, curve, x=levels)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.text(0.04, 0.96, "too wide", color="0.45", va="top", fontsize="small")
    ax.text(0.96, 0.04, "too narrow", color="0.45", ha="right", fontsize="small")
    if isinstance(traces, Mapping):
        ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.02, 0.5))
    return lines


def dictionary(traces: Trace | Mapping[str, Trace], *, ax: Axes | None = None) -> list[Line2D]:
    """Draw the number of centers along a stream, one curve per trace."""
    ax = _axes(ax, "sample", "centers")
    lines = _curves(ax, traces, lambda trace: trace.size)
    ax.set_ylim(bottom=0)
    return lines


def covariance(model: Any, *, ax: Axes | None = None) -> AxesImage:
    """Draw the posterior covariance of f at the centers of a model, as a matrix.

    The centers are sorted by their first input. White is zero, blue positive, red negative.
    """
    if not hasattr(type(model), "posterior_cov_"):
        raise TypeError(f"covariance draws models with centers, such as KRLST, got {type(model).__name__}.")
    order = np.argsort(model.centers_[:, 0], kind="stable")
    Sigma = model.posterior_cov_[np.ix_(order, order)]
    ax = _axes(ax, "center", "center")
    largest = float(np.abs(Sigma).max()) or 1.0
    image = ax.imshow(Sigma, cmap="RdBu", vmin=-largest, vmax=largest, interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, label="covariance of f", shrink=0.85)
    return image


def _axes(ax: Axes | None, xlabel: str, ylabel: str) -> Axes:
    """Return the axes (new axes if None), with missing labels added."""
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(figsize=(6.4, 3.8), layout="constrained")
        ax.spines[["top", "right"]].set_visible(False)
    ax.set(xlabel=ax.get_xlabel() or xlabel, ylabel=ax.get_ylabel() or ylabel)
    return ax


def forecast(y: ArrayLike, ahead: Predictions, *, level: float = 0.95, ax: Axes | None = None) -> Band:
    """Draw the last values of a series, and the forecast that follows them with its interval.

    Parameters
    ----------
    y : array-like of shape (n,)
        The values before the forecast.
    ahead : Predictions
        The result of `Lagged.forecast`, with one output.
    level : float
        The probability of the interval.
    ax : Axes, optional

    Returns
    -------
    Band
        The interval, the mean and the data.
    """
    y = np.asarray(y, dtype=np.float64)
    ax = _axes(ax, "step", "y")
    alone = "." if np.isnan(y).any() else ""  # otherwise a value between two missing values would be invisible
    (data,) = ax.plot(
        np.arange(1 - len(y), 1), y, color="0.35", lw=1.2, marker=alone, ms=3, label="data" if len(y) else None
    )
    band, line = _band(ax, np.arange(1, len(ahead) + 1), ahead, level)
    _legend(ax)
    return Band(band, line, data)


def _band(ax: Axes, x: NDArray[Any], predictions: Predictions, level: float) -> tuple[Artist, Line2D]:
    lower, upper = predictions.interval(level)
    band = ax.fill_between(x, lower, upper, color=BLUE, alpha=0.18, lw=0, label=f"{100 * level:g}% interval")
    (line,) = ax.plot(x, predictions.mean, color=BLUE, lw=1.8, label="mean")
    ax.margins(x=0.01)
    return band, line


def _curves(ax: Axes, traces: Trace | Mapping[str, Trace], curve: Any, x: Array | None = None) -> list[Line2D]:
    named = traces if isinstance(traces, Mapping) else {"": traces}
    lines = []
    for i, (name, trace) in enumerate(named.items()):
        if not isinstance(trace, Trace):
            raise TypeError(
                f"traces must be what onlinegp.run returned, or a dict of such traces by name, got "
                f"{type(trace).__name__}."
            )
        values = curve(trace)
        style: dict[str, Any] = {
            "color": COLORS[i % len(COLORS)],
            "ls": STYLES[i // len(COLORS) % len(STYLES)],
            "lw": 1.6,
        }
        lines += ax.plot(np.arange(len(values)) if x is None else x, values, label=name or None, **style)
    ax.margins(x=0.01)
    if isinstance(traces, Mapping):
        _legend(ax)
    return lines


def _legend(ax: Axes) -> None:
    """Put the legend above the axes, where it does not cover anything."""
    _, labels = ax.get_legend_handles_labels()
    ax.legend(frameon=False, fontsize="small", loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=min(len(labels), 4))


def _points(grid: ArrayLike | None, *inputs: Array) -> Array:
    if grid is not None:
        return np.ravel(np.asarray(grid, dtype=np.float64))
    if not inputs:
        raise ValueError("fit needs X and y, or grid, because this model does not store inputs.")
    known = np.concatenate([part[:, 0] for part in inputs])
    margin = 0.25 * (np.ptp(known) or 4.0)
    return np.linspace(known.min() - margin, known.max() + margin, 400)


def _along(y: ArrayLike, trace: Trace | Predictions) -> Array:
    if not isinstance(trace, Trace | Predictions):
        raise TypeError(f"trace must be what onlinegp.run returned, got {type(trace).__name__}. The data y come first.")
    y = np.asarray(y, dtype=np.float64)
    if trace.mean.ndim != 1:
        kind, outputs = type(trace).__name__.lower(), trace.mean.shape[1]
        raise ValueError(f"{kind} must have one output, got {outputs}. Pass one, and its y: trace.output(0), y[:, 0].")
    if y.shape != trace.mean.shape:
        raise ValueError(
            f"y must have one value per row of the {type(trace).__name__.lower()}, in the shape {trace.mean.shape}, "
            f"got {y.shape}."
        )
    return y


def _trailing_mean(values: Array, width: int) -> Array:
    total = np.cumsum(np.insert(values, 0, 0.0))
    end = np.arange(1, len(values) + 1)
    start = np.maximum(end - width, 0)
    return np.maximum(total[end] - total[start], 0.0) / (end - start)
