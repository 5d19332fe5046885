"""Compare models on a stream within a time limit. Each model is tuned separately and runs in its own process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from math import ceil, inf
from threading import TIMEOUT_MAX
from time import monotonic, process_time
from typing import Any

import numpy as np

from onlinegp.batch.likely_kernels import Hyperparameters
from onlinegp.batch.parameter_search import BUDGET, Outcome, Trial, best_of, hyperparameters, prequential, starts
from onlinegp.checks import Array
from onlinegp.comparing.entrants import Entrant, Fixed
from onlinegp.comparing.ranking import Ranking, Result, ranked
from onlinegp.kernels import RBF
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.baselines.persistence import Persistence
from onlinegp.models.combined import Lagged
from onlinegp.models.combined.scaled import Scaling
from onlinegp.processes import resident, worker_pool
from onlinegp.progress import bar
from onlinegp.streams.errors import BadData
from onlinegp.streams.reading.source import Source
from onlinegp.streams.running.column_encoding import Encoder
from onlinegp.streams.running.observers import Rows
from onlinegp.streams.running.predict_then_learn import advance, size_of
from onlinegp.streams.running.requested_model import described
from onlinegp.streams.running.run import Job
from onlinegp.streams.running.score import Curves, Score
from onlinegp.streams.writing.sinks import NoSink

LOOK = 250  # rows between two checks of the clock
MEMORY = 1 << 30  # largest number of bytes of a model
# Shares of the time: for likelihood, then for the search, and until the last run
LIKELIHOOD, SEARCH, RUNS = 0.4, 0.3, 0.9
BREATH = 0.25  # seconds between two checks of the processes
LEVEL = 0.95  # level of the intervals

Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class OneStream:
    """A stream, which each model reads from its beginning, and the time when the comparison ends.

    This object is pickled, so `open` must be a function of a module, or a partial of such a function.

    Attributes
    ----------
    open : opens the stream
    encoder : converts features to inputs
    X, y : the rows to tune on, with lags
    rows : the number of rows of the stream before the scored rows
    until : the end of the comparison, on the clock of ``time.monotonic``
    lags, horizon : of all models
    given : fixed kernel and noise, if any
    """

    open: Callable[[], Source]
    encoder: Encoder
    X: Array
    y: Array
    rows: int
    until: float
    lags: int = 0
    horizon: int = 1
    given: dict[str, Any] = field(default_factory=dict)

    @property
    def scaling(self) -> Scaling:
        return Scaling.of(self.X, self.y)

    def model(self, tuned: Tuned) -> OnlineRegressor:
        """Return the model to run in the units of the data: the tuned model, or a model that tunes itself."""
        trial, lags, horizon = tuned.trial, self.lags, self.horizon
        model = trial.build()
        if isinstance(tuned.entrant, Entrant) and not model.tunes_itself:
            model = self.scaling.around(model)
        return Lagged(model, lags=lags, horizon=horizon) if lags or horizon > 1 else model

    def compare(self, entrants: Sequence[Entrant | Fixed], *, by: str, jobs: int, say: Say) -> Ranking:
        """Tune each model separately and run it over the stream, until the time is over.

        A model that does not finish has scores for the rows that it reached. All models get the same share of the time;
        time that fast models do not need goes to slower models, which run later.
        """
        jobs, soft = min(jobs, len(entrants)), monotonic() + RUNS * (self.until - monotonic())
        good: dict[str, Any] = {}
        with bar(1 + 2 * len(entrants), bar_format="{l_bar}{bar}| {elapsed}{postfix}") as steps:

            def tell(text: str) -> None:
                steps.clear()  # print on a new line
                say(text)

            try:
                with worker_pool(jobs) as pool:
                    started = [pool.submit(first_block, self) for _ in range(jobs)]
                    tell("maximum likelihood for kernel and noise, where the search begins")
                    steps.set_postfix_str("maximum likelihood")
                    found = likely_within(LIKELIHOOD * (self.until - monotonic()), self, tell, steps)
                    wait(started, max(0.0, min(self.until - monotonic(), TIMEOUT_MAX)))
                    turns = _Turns(pool, jobs, self.until, good, steps)
                    search_end = monotonic() + SEARCH * (self.until - monotonic())
                    tell(f"tuning {len(entrants)} models, {jobs} at a time")
                    turns.take({one.name: partial(tune, self, one, found) for one in entrants}, search_end)
                    tuned = sorted(
                        (one for one in good.values() if isinstance(one, Tuned)), key=lambda one: one.seconds
                    )
                    tell(f"running {len(tuned)} models, the cheapest first")
                    turns.take({one.entrant.name: partial(put_through, self, one) for one in tuned}, soft)
            except TimeoutError:  # a process did not stop in time and was killed
                pass
        late = "it was out of time and has no results. Use a longer --time."
        results = [good.get(one.name) for one in entrants]
        done = [
            result if isinstance(result, Result) else Result(one.name, wrong=late)
            for one, result in zip(entrants, results, strict=True)
        ]
        return ranked(done, by=by)


@dataclass(frozen=True)
class Tuned:
    """A tuned entrant, and its processor time on the tuning rows, in seconds."""

    entrant: Entrant | Fixed
    trial: Trial
    seconds: float


class Cut(Exception):
    """Raised if a run has used up its time or memory."""


def likely_within(seconds: float, stream: OneStream, say: Say, steps: Any) -> list[Hyperparameters]:
    """Return the result of maximum likelihood. If it does not finish in time, print a message and return a guess."""
    (Z, t), given = stream.scaling(stream.X, stream.y), stream.given
    if "kernel" in given:
        return hyperparameters(Z, t, given)
    try:
        with worker_pool(1) as pool:
            future, end = pool.submit(hyperparameters, Z, t, given), monotonic() + seconds
            while not wait([future], min(BREATH, max(0.0, end - monotonic()))).done and monotonic() < end:
                steps.update(0)  # show the elapsed time
            steps.update()
            return future.result(0.0)
    except TimeoutError:
        say(f"maximum likelihood was not done in {seconds:.3g} s: the search starts from a guess. Use a longer --time.")
        return [Hyperparameters(RBF((float(np.sqrt(Z.shape[1])),) * Z.shape[1]), 0.1, 1.0, -inf)]


class _Turns:
    """Run tasks in the processes of a pool. `good` receives the results by name."""

    def __init__(self, pool: ProcessPoolExecutor, jobs: int, end: float, good: dict[str, Any], steps: Any) -> None:
        self.pool, self.jobs, self.end, self.good, self.steps = pool, jobs, end, good, steps

    def take(self, tasks: dict[str, Callable[[float], Any]], until: float) -> None:
        """Run all tasks, each with the time when it must end. Raise a TimeoutError if a task does not end."""
        waiting, running = deque(tasks.items()), dict[Future[Any], str]()
        while waiting or running:
            while waiting and len(running) < self.jobs:
                now, turns = monotonic(), ceil(len(waiting) / self.jobs)
                name, task = waiting.popleft()
                running[self.pool.submit(task, now + max(0.0, until - now) / turns)] = name
            done, _ = wait(running, BREATH, FIRST_COMPLETED)
            for future in done:
                self.good[running.pop(future)] = future.result()
                self.steps.update()
            self.steps.set_postfix_str(", ".join(running.values()))
            if monotonic() > self.end:
                raise TimeoutError


def first_block(stream: OneStream) -> int:
    """Read a block and load all modules, so that this time is not measured for a model."""
    source = stream.open()
    try:
        n = len(next(iter(source)))
    finally:
        source.close()
    X, y = np.zeros((3, 1)), np.arange(3.0)
    rows = Rows.of(y, advance(Persistence(), X, y), level=LEVEL)
    Score(LEVEL).add(rows)
    Curves().add(rows)
    return n


def tune(stream: OneStream, entrant: Entrant | Fixed, found: list[Hyperparameters], until: float) -> Tuned | Result:
    """Tune a model on the tuning rows, in its own process."""
    Z, t = stream.scaling(stream.X, stream.y)

    def judge(model: OnlineRegressor) -> Outcome:
        return prequential(model if stream.horizon == 1 else Lagged(model, lags=0, horizon=stream.horizon), Z, t)

    if isinstance(entrant, Fixed):
        params = entrant.model.get_params(deep=False)
        return Tuned(entrant, Trial(type(entrant.model), params, Outcome(), 0, 0), inf)
    given = entrant.given
    if entrant.estimator.tunes_itself:  # the model tunes itself on these rows during its run
        return Tuned(entrant, Trial(entrant.estimator, given, Outcome(), 0, 0), inf)
    try:
        cls = entrant.estimator
        first = starts(cls, Z, t, lambda: found)
        trial = best_of(cls, first, judge, budget=given.get("budget", BUDGET), given=given, until=until)
        began = process_time()
        judge(trial.build())
        return Tuned(entrant, trial, process_time() - began)
    except (ValueError, FloatingPointError) as error:
        return Result(entrant.name, wrong=str(error))


def put_through(stream: OneStream, tuned: Tuned, until: float) -> Result:
    """Run a model over the stream until the end of the stream or of the time, in its own process."""
    name, trial = tuned.entrant.name, tuned.trial
    first_block(stream)
    began: list[float] = []  # [time and row after the tuning rows], to measure the cost without tuning

    def watch(job: Job) -> None:
        if not began and job.rows >= stream.rows:
            began[:] = process_time(), job.rows
        if monotonic() > until:
            raise Cut("time")
        if resident() > MEMORY:
            raise Cut("memory")

    job = Job(
        stream.open(),
        NoSink(),
        stream.encoder,
        model=stream.model(tuned),
        unscored=stream.rows,
        curves=Curves(),
        watch=watch,
    )
    stopped = ""
    try:
        job.run()
    except Cut as cut:
        stopped = str(cut)
    except BadData:  # all models fail on bad data
        raise
    except (ValueError, FloatingPointError) as error:
        return Result(name, wrong=str(error))
    finally:
        job.close()
    if stopped and not job.score.n:
        return Result(name, wrong=f"it was out of {stopped} before any row to score. Use a longer --time.")
    figures = job.score.summary() | {
        "centers": size_of(job.model),
        "us_per_row": 1e6 * (process_time() - began[0]) / max(1.0, job.rows - began[1]) if began else 0.0,
        "finished": not stopped,
        "stopped_by": stopped or None,
        "search": {"models": trial.tried, "rows": trial.rows},
        "parameters": dict(line.split(" = ", 1) for line in described(trial.build())),
    }
    return Result(name, figures, job.curves, stopped)
