"""The results of a comparison: means over runs with intervals, paired differences, convergence, costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from onlinegp.checks import Array, choice, finite
from onlinegp.comparing import intervals
from onlinegp.comparing.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COSTS = ("microseconds", "bytes")
CONVERGED = 3.0  # dB: an algorithm has converged if its error is at most this far above its steady state


@dataclass(frozen=True)
class Settings:
    """The settings of a comparison; see `compare`."""

    by: str
    level: float
    window: int
    steady: int
    since: int
    rows: int
    seeds: tuple[int, ...]
    tuning_rows: int
    effort: int
    budget: int


@dataclass(frozen=True, eq=False)
class Run:
    """The result of an algorithm on a run.

    Attributes
    ----------
    error, density : mean squared errors and log densities of the windows, (points,); NaN if no row was scored
    steady_error, steady_density, coverage : means over the steady state; coverage of 95% intervals
    size : the number of centers, mean over the steady state
    microseconds : processor time per sample in the steady state, predicting and learning
    bytes : number of bytes that the model needs to continue, at the end
    wrong : the reason if the model diverged; then the other attributes are empty
    """

    error: Array = field(default_factory=lambda: np.empty(0))
    density: Array = field(default_factory=lambda: np.empty(0))
    steady_error: float = np.nan
    steady_density: float = np.nan
    coverage: float = np.nan
    size: float = np.nan
    microseconds: float = np.nan
    bytes: int = 0
    wrong: str = ""


@dataclass(frozen=True, eq=False)
class Entry:
    """An algorithm: its parameters, the effort of its tuning, and its runs."""

    name: str
    params: dict[str, Any]
    tried: int
    search_rows: int
    runs: tuple[Run, ...]

    @property
    def broken(self) -> int:
        """The number of runs in which the algorithm diverged."""
        return sum(bool(run.wrong) for run in self.runs)

    @property
    def why(self) -> str:
        """The reason in the first of these runs, or "" if all runs were finished."""
        return next((run.wrong for run in self.runs if run.wrong), "")

    def of(self, what: str) -> Array:
        """Return an attribute of all runs, (runs,) or (runs, points)."""
        return np.array([getattr(run, what) for run in self.runs], dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The result of `compare`: algorithms ranked by their steady state, with intervals over runs.

    An algorithm that diverged in any run is listed last and not ranked, because it finished only the easy runs. The
    intervals are for the expected values of the tuned algorithms over all possible runs of the stream.

    Attributes
    ----------
    settings : the settings of the comparison
    entries : the algorithms, the best first

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> def stream(seed):
    ...     X = np.random.default_rng(seed).normal(size=(100, 2))
    ...     return X, X @ [1.0, -1.0]
    >>> found = ogp.compare({"linear": ogp.LinearRLS(), "GP": ogp.KRLST()}, stream, runs=3, jobs=1)
    >>> found.entries[0].name, found.pareto("bytes")
    ('linear', ['linear'])
    """

    settings: Settings
    given: tuple[Entry, ...]

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(sorted(self.given, key=lambda entry: (entry.broken > 0, self._loss(entry))))

    @property
    def ranked(self) -> tuple[Entry, ...]:
        """The entries that finished all runs."""
        return tuple(entry for entry in self.entries if not entry.broken)

    def __getitem__(self, name: str) -> Entry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(
            f"there is no algorithm {name!r}. The algorithms are: {', '.join(e.name for e in self.entries)}."
        )

    def _sound(self, name: str) -> Entry:
        """Return an algorithm. Raise an error if it did not finish all runs."""
        entry = self[name]
        if entry.broken:
            raise ValueError(
                f"name must be an algorithm that finished all runs, got {name!r}, which broke down in "
                f"{entry.broken} of {len(entry.runs)}: {entry.why}"
            )
        return entry

    # Figures

    def steady_state(self, name: str) -> Interval:
        """Return the mean of the steady state over runs: the squared error in dB, or the log density."""
        runs = self._sound(name).of(f"steady_{self.settings.by}")
        return self._of_mean(runs)

    def behind(self, name: str, other: str | None = None) -> Interval:
        """Return how far an algorithm is behind another (the best if None) in the steady state, paired over runs.

        The unit is dB of squared error, or nats of log density; larger is worse. If the interval contains zero, these
        runs show no difference. The level applies to one such comparison, not to all of them together.
        """
        what = f"steady_{self.settings.by}"
        own, others = self._sound(name).of(what), (self.ranked[0] if other is None else self._sound(other)).of(what)
        if self.settings.by == "density":
            return intervals.of_difference(others, own, self.settings.level)
        return intervals.of_ratio_in_db(own, others, self.settings.level)

    def curve(self, name: str) -> Interval:
        """Return the learning curve: the mean over runs of each window, and its band, in dB or nats."""
        return self._of_mean(self._sound(name).of(self.settings.by))

    @property
    def samples(self) -> Array:
        """The number of samples at the end of each window, (points,)."""
        s = self.settings
        return np.minimum(np.arange(s.window, s.rows + s.window, s.window), s.rows).astype(np.float64)

    def convergence(self, name: str, level: float | None = None) -> int | None:
        """Return the number of samples after `since` until the mean squared error over runs reaches a level.

        Parameters
        ----------
        name : str
        level : float, optional
            The level in dB; 3 dB above the steady state of the algorithm if None. For a fair comparison of algorithms
            with different steady states, use the same level for all.

        Returns
        -------
        int or None
            The end of the first window at this level, or None if the level was never reached.
        """
        entry = self._sound(name)
        own = float(intervals.of_mean_in_db(entry.of("steady_error"), 0.5).value) + CONVERGED
        there = intervals.of_mean_in_db(entry.of("error"), 0.5).value <= (own if level is None else finite(level=level))
        there &= self.samples > self.settings.since
        return int(self.samples[there.argmax()]) - self.settings.since if there.any() else None

    def pareto(self, cost: str = "microseconds") -> list[str]:
        """Return the algorithms that no other beats in both steady state and cost, the cheapest first.

        Parameters
        ----------
        cost : {"microseconds", "bytes"}
        """
        choice(COSTS, cost=cost)
        points = [(float(np.mean(entry.of(cost))), self._loss(entry), entry.name) for entry in self.ranked]
        best, front = np.inf, []
        for _, loss, name in sorted(point for point in points if np.isfinite(point[0])):
            if loss < best:
                best = loss
                front.append(name)
        return front

    def _loss(self, entry: Entry) -> float:
        """Return a loss, which is smaller for a better algorithm."""
        mean = float(np.mean(entry.of(f"steady_{self.settings.by}")))
        return mean if self.settings.by == "error" else -mean

    def _of_mean(self, runs: Array) -> Interval:
        of = intervals.of_mean if self.settings.by == "density" else intervals.of_mean_in_db
        return of(runs, self.settings.level)

    # As text and pictures

    def figures(self) -> list[dict[str, Any]]:
        """Return the table as plain data, one dictionary per algorithm, the best first."""
        from onlinegp.comparing import tables

        return tables.figures(self)

    def csv(self) -> str:
        """Return the table as CSV, one line per algorithm."""
        from onlinegp.comparing import tables

        return tables.csv(self)

    def latex(self) -> str:
        """Return the table as LaTeX, for the package booktabs."""
        from onlinegp.comparing import tables

        return tables.latex(self)

    def __repr__(self) -> str:
        from onlinegp.comparing import tables

        return tables.text(self)

    def _repr_html_(self) -> str:
        from onlinegp.comparing import tables

        return tables.html(self)

    def plot(
        self, *, cost: str = "microseconds", names: Sequence[str] | None = None, figure: Figure | None = None
    ) -> Figure:
        """Draw the learning curves with their bands, and the steady state against the cost.

        Parameters
        ----------
        cost : {"microseconds", "bytes"}
        names : sequence of str, optional
            The algorithms to draw. By default all algorithms that finished all runs.
        figure : Figure, optional
            Where to draw; a new figure if None.
        """
        from onlinegp.comparing import figures as pictures

        shown = [entry.name for entry in self.ranked] if names is None else [self._sound(name).name for name in names]
        return pictures.draw(self, cost, shown, figure)
