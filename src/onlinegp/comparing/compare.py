"""`compare`: tune each algorithm separately, then run all algorithms on all runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, zip_longest
from time import thread_time
from typing import Any

import numpy as np

from onlinegp.batch.likely_kernels import Hyperparameters
from onlinegp.batch.parameter_search import BUDGET, best_of, hyperparameters, prequential, starts
from onlinegp.batch.search_space import WIDELY, Move, search_of
from onlinegp.checks import Array, choice, count, probability, seed_of
from onlinegp.comparing.entrants import Entrant, Fixed, entrants
from onlinegp.comparing.results import Comparison, Entry, Run, Settings
from onlinegp.comparing.runs import Rows, source_of
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.combined.scaled import Scaling
from onlinegp.processes import Jobs, cores, in_parallel
from onlinegp.progress import ShareBar

RUNS = 20
EFFORT = 200_000  # largest number of rows for all trials of an algorithm
POINTS, LAST = 100, 5  # points of a learning curve; the steady state is the last fifth
LEVEL = 0.95  # level of the predictive intervals


@dataclass(frozen=True)
class Prepared:
    """A tuned algorithm, and the effort of its tuning: the number of tried models, and their rows.

    Random parts of a model, such as frequencies, are drawn again for each run, unless their seed was given.
    """

    name: str
    model: OnlineRegressor
    params: dict[str, Any]
    tried: int = 0
    rows: int = 0
    drawn: tuple[str, ...] = ()  # names of the parameters that are seeds

    def starting(self, seed: int) -> OnlineRegressor:
        """Return a new model for the run with this seed."""
        return self.model.unfitted().set_params(**dict.fromkeys(self.drawn, seed))


def compare(
    models: Any,
    stream: Any,
    *,
    runs: int | None = None,
    seeds: Sequence[int] | None = None,
    by: str = "error",
    effort: int = EFFORT,
    budget: int = BUDGET,
    level: float = 0.95,
    window: int | None = None,
    steady: int | None = None,
    since: int = 0,
    jobs: Jobs = None,
    say: Callable[[str], None] = lambda text: None,
) -> Any:
    """Compare algorithms over many runs of a stream. Each is tuned separately, on rows that are in no run.

    In each run all algorithms start from scratch, and predict each row before they learn it. Classes are tuned:
    starting from the most likely kernels and noises of the tuning rows, in standard units, a search tries values of
    kernel, noise and the parameters that the class declares, such as step, radius and forgetting, with the same effort
    for each class. Its criterion is the same as for the ranking: the error or the log density in the steady state, here
    the last part of the tuning rows. Model instances are not tuned.

    Parameters
    ----------
    models : sequence, or dict by name
        Classes (``onlinegp.KRLST``), which are tuned; classes with fixed parameters
        (``functools.partial(onlinegp.KRLST, budget=50)``), whose other parameters are tuned; instances
        (``onlinegp.KRLST(kernel)``), which are not tuned.
    stream : callable, Permutations, Blocks or OneStream
        A function of the seed that returns X and y, such as ``lambda seed: channel_switch(3000, seed=seed)``; the
        stream with the next seed is for tuning. Or `Permutations` or `Blocks` of given rows. Or a stream with a time
        limit, as in `onlinegp compare`; then only `models`, `by`, `jobs` and `say` are used.
    runs : int, optional
        The number of runs, at least two; 20 if neither `runs` nor `seeds` is given.
    seeds : sequence of int, optional
        One seed per run; 0, 1, ... if None.
    by : {"error", "density"}
        The criterion of the search and of the ranking.
    effort : int
        The largest number of rows for all trials of one algorithm.
    budget : int
        The largest number of centers of algorithms that have a budget.
    level : float
        The probability of the confidence intervals.
    window : int, optional
        The number of rows per point of the learning curves; a hundredth of a run if None.
    steady : int, optional
        The steady state is this number of rows at the end of a run; a fifth of the run if None.
    since : int
        Convergence is measured from this row on, for example the row of a change.
    jobs : int or Executor, optional
        The number of parallel tunings, and then runs, with joblib and the backend of ``joblib.parallel_config``; None
        for its number of jobs, or one per core. Or an executor of ``concurrent.futures``.
    say : callable
        A function for messages about the progress.

    Returns
    -------
    Comparison
        Or a `Ranking`, if `stream` has a time limit.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> def stream(seed):
    ...     X = np.random.default_rng(seed).uniform(-3, 3, (120, 1))
    ...     return X, np.sin(2 * X[:, 0])
    >>> found = ogp.compare([ogp.LinearRLS, ogp.KRLST], stream, runs=3, effort=1000, jobs=1)
    >>> [entry.name for entry in found.entries]
    ['KRLST', 'LinearRLS']
    >>> bool(found.behind("LinearRLS").low > 10.0)  # dB
    True
    """
    choice(("error", "density"), by=by)
    count("100000 is a thorough search.", effort=effort)
    count(budget=budget)
    probability("0.95 is usual.", level=level)
    if jobs is not None and not isinstance(jobs, Executor):
        count("Use None for one job per core.", jobs=jobs)
    taking_part = entrants(models)
    if hasattr(stream, "compare"):  # a stream with a time limit
        return stream.compare(taking_part, by=by, jobs=jobs if isinstance(jobs, int) else cores(), say=say)
    taking_part = [
        Fixed(one.name, one.estimator(**one.given)) if isinstance(one, Entrant) and one.estimator.tunes_itself else one
        for one in taking_part
    ]
    source, seeds = source_of(stream), _seeds(runs, seeds)
    X, y = source.tuning(seeds)
    streams = source.runs(seeds)
    first = next(streams)
    n = len(first[1])
    settings = Settings(by, level, *_lengths(n, window, steady, since), since, n, tuple(seeds), len(y), effort, budget)
    prepared = _prepared(taking_part, X, y, settings, jobs, say)
    say(f"{len(prepared)} algorithms on {len(seeds)} runs of {n} rows")
    runs_of = zip(seeds, _alike(chain([first], streams), first), strict=True)
    tasks = ((one, seed, X, y, settings) for seed, (X, y) in runs_of for one in prepared)
    found = in_parallel(run_one, tasks, jobs, title="runs", total=len(prepared) * len(seeds))
    entries = [
        Entry(one.name, one.params, one.tried, one.rows, tuple(found[i :: len(prepared)]))
        for i, one in enumerate(prepared)
    ]
    return Comparison(settings, tuple(entries))


def _seeds(runs: int | None, seeds: Sequence[int] | None) -> list[int]:
    """Return the seed of each run."""
    if runs is not None:
        count("A single run has no confidence interval; use 20.", least=2, runs=runs)
    if seeds is None:
        return list(range(runs or RUNS))
    if not isinstance(seeds, Iterable) or isinstance(seeds, str):
        raise TypeError(f"seeds must be whole numbers, one per run, got {seeds!r}. Use range(20).")
    found = [seed_of(seeds=seed) for seed in seeds]
    if len(set(found)) < len(found) or len(found) < 2:
        raise ValueError(f"seeds must be different, and at least two, got {found}. Use range(20).")
    if runs is not None and runs != len(found):
        raise ValueError(f"runs must equal the number of seeds, {len(found)}, got {runs}. Leave one out.")
    return found


def _lengths(n: int, window: int | None, steady: int | None, since: int) -> tuple[int, int]:
    """Return the number of rows per point of the curves, and in the steady state."""
    window = max(1, n // POINTS) if window is None else count(window=window)
    steady = max(1, n // LAST) if steady is None else count(steady=steady)
    if window > n or steady > n or count(least=0, since=since) >= n:
        raise ValueError(
            f"window, steady and since must fit into a run of {n} rows, got {window}, {steady} and {since}."
        )
    return window, steady


def _alike(streams: Iterator[Rows], first: Rows) -> Iterator[Rows]:
    """Yield the streams. Raise an error if a stream has another shape than the first stream."""
    for X, y in streams:
        if X.shape != first[0].shape or y.shape != first[1].shape:
            raise ValueError(
                f"stream must return X and y of the same shape for each seed, got {X.shape} and {y.shape} after "
                f"{first[0].shape} and {first[1].shape}."
            )
        yield X, y


def _prepared(
    taking_part: Sequence[Entrant | Fixed],
    X: Array,
    y: Array,
    settings: Settings,
    jobs: Jobs,
    say: Callable[[str], None],
) -> list[Prepared]:
    """Return all algorithms, and tune those that have no parameters yet."""
    tuned = [one for one in taking_part if isinstance(one, Entrant)]
    if tuned and (y == y[0]).all():
        raise ValueError(
            f"stream must have a y that varies in the {len(y)} rows for tuning, got {y[0]} in all rows. Use more "
            f"rows for tuning, or model instances, such as onlinegp.KRLST()."
        )
    scaling = Scaling.of(X, y)
    Z, t = scaling(X, y)
    found = None
    if any("kernel" not in one.given for one in tuned):
        say(f"maximum likelihood on {min(len(y), 1000)} of {len(y)} rows for tuning")
        found = hyperparameters(Z, t, {}, jobs=jobs, progress=ShareBar("maximum likelihood"))
    say(f"tuning {len(tuned)} algorithms, with {settings.effort} rows each")
    tasks = ((one, found, scaling, Z, t, settings) for one in tuned)
    ready = {one.name: one for one in in_parallel(tune_one, tasks, jobs, title="tuning", total=len(tuned))}
    return [
        ready[one.name] if isinstance(one, Entrant) else Prepared(one.name, one.model, one.model.get_params(deep=False))
        for one in taking_part
    ]


def tune_one(
    entrant: Entrant,
    found: list[Hyperparameters] | None,
    scaling: Scaling,
    Z: Array,
    t: Array,
    settings: Settings,
) -> Prepared:
    """Tune an algorithm on the rows for tuning."""
    given, cls = entrant.given, entrant.estimator
    with _named(entrant.name):
        trial = best_of(
            cls,
            starts(cls, Z, t, lambda: hyperparameters(Z, t, given) if found is None or "kernel" in given else found),
            lambda model: prequential(model, Z, t, last=settings.steady / settings.rows),
            budget=given.get("budget", settings.budget),
            given=given,
            searched=_searched(search_of(cls).tried),
            by=settings.by,
            effort=settings.effort,
            seed=0,
        )
    model = scaling.around(trial.build())
    drawn = () if "seed" in given else tuple(name for name in model.get_params() if name.split("__")[-1] == "seed")
    return Prepared(entrant.name, model, trial.params, trial.tried, trial.rows, drawn)


def _searched(own: Mapping[str, tuple[Move, ...]]) -> dict[str, tuple[Move, ...]]:
    """Return the search space. Parameters of the class and common parameters alternate: a search may end early."""
    both = {**WIDELY, **own}
    return {name: both[name] for name in chain.from_iterable(zip_longest(own, WIDELY)) if name is not None}


def run_one(one: Prepared, seed: int, X: Array, y: Array, settings: Settings) -> Run:
    """Run an algorithm on a stream from scratch. Return its scores over the stream and in the steady state."""
    model, split = one.starting(seed), len(y) - settings.steady
    try:
        with np.errstate(all="ignore"), _named(one.name):
            parts = [model.run(X[:split], y[:split], progress=False)] if split else []
            began = thread_time()
            parts.append(model.run(X[split:], y[split:], progress=False))
            seconds = thread_time() - began
            scored = np.concatenate([part.scored for part in parts])
            error, density = (
                np.where(scored, np.concatenate([one.reshape(len(one), -1).mean(axis=1) for one in values]), np.nan)
                for values in ([(part.y - part.mean) ** 2 for part in parts], [part.log_density for part in parts])
            )
    except (ValueError, FloatingPointError) as why:
        return Run(wrong=str(why))
    last, steady = parts[-1], scored[split:]
    if not steady.any():
        return Run(
            wrong=f"no row was scored: all {len(y)} rows were predicted before a row was learned. Use longer runs."
        )
    lower, upper = last.interval(LEVEL)
    return Run(
        error=_windows(error, settings.window),
        density=_windows(density, settings.window),
        steady_error=float(error[split:][steady].mean()),
        steady_density=float(density[split:][steady].mean()),
        coverage=float(np.mean(((lower <= last.y) & (last.y <= upper))[steady])),
        size=float(last.size.mean()),
        microseconds=1e6 * seconds / settings.steady,
        bytes=_bytes(model),
    )


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Add the name of the algorithm to an exception."""
    try:
        yield
    except Exception as error:
        error.add_note(f"The algorithm was {name}.")
        raise


def _windows(values: Array, width: int) -> Array:
    """Return the means of consecutive windows, without NaN. The last window may be shorter."""
    starts, there = np.arange(0, len(values), width), ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.add.reduceat(np.where(there, values, 0.0), starts) / np.add.reduceat(there, starts, dtype=np.int64)


def _bytes(model: OnlineRegressor) -> int:
    """Return the number of bytes that a model needs to continue."""
    contents = model.dump()
    assert contents is not None
    return sum(value.nbytes if isinstance(value, np.ndarray) else 8 for value in contents["learned"].values())
