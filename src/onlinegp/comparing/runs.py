"""The runs of a comparison: simulations, permutations or blocks. Rows for tuning are not in any run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from onlinegp.checks import Array, check_Xy, count

Rows = tuple[Array, Array]  # X (n, d), and y (n,) or (n, outputs)
SHARE, MOST = 5, 1000  # rows for tuning: 1 / SHARE of all rows, at most MOST


class Source(Protocol):
    """The interface that `compare` uses: rows for tuning, and a stream per seed."""

    def tuning(self, seeds: Sequence[int]) -> Rows:
        """Return the rows for tuning, which are not in any run."""
        ...

    def runs(self, seeds: Sequence[int]) -> Iterator[Rows]:
        """Return the stream of each run, in order."""
        ...


@dataclass(frozen=True)
class Simulated:
    """Runs from a function of the seed that returns X and y. The stream for tuning has the largest seed plus 1."""

    function: Callable[[int], tuple[ArrayLike, ArrayLike]]

    def tuning(self, seeds: Sequence[int]) -> Rows:
        new = max(seeds) + 1
        X, y = self._stream(new)
        if np.array_equal(y, self._stream(seeds[0])[1]):
            raise ValueError(
                f"stream must depend on its seed, but stream({seeds[0]}) and stream({new}) return the same y, so all "
                f"runs would be equal. Use the seed: lambda seed: channel_switch(3000, seed=seed)."
            )
        return X, y

    def runs(self, seeds: Sequence[int]) -> Iterator[Rows]:
        return map(self._stream, seeds)

    def _stream(self, seed: int) -> Rows:
        rows = self.function(seed)
        if not isinstance(rows, (tuple, list)) or len(rows) != 2:
            raise TypeError(
                f"stream must return X and y, got {type(rows).__name__} from stream({seed}). Return both; for a series "
                f"use onlinegp.datasets.embed(series, 5)."
            )
        return check_Xy(*rows)


@dataclass(frozen=True, eq=False)
class Given:
    """Base class: given rows, and the number of rows for tuning."""

    X: ArrayLike
    y: ArrayLike
    tune: int | None = None

    def _checked(self) -> tuple[Array, Array, int]:
        X, y = check_Xy(self.X, self.y)
        return X, y, tuning_rows(len(X), self.tune)


@dataclass(frozen=True, eq=False)
class Permutations(Given):
    """Runs over the same rows in different orders, for rows whose order has no meaning.

    Rows for tuning are drawn once and are not in any run. All runs have the same rows, so an interval over runs shows
    only the effect of the order.

    Parameters
    ----------
    X, y : array-like of shape (n, d), and (n,) or (n, outputs)
    tune : int, optional
        The number of rows to tune on. By default a fifth of all rows, at most 1000.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> y = np.arange(6.0)
    >>> [len(order) for _, order in ogp.comparing.Permutations(y[:, None], y, tune=2).runs([0, 1])]
    [4, 4]
    """

    def tuning(self, seeds: Sequence[int]) -> Rows:
        X, y, rows = self._split(seeds)
        return X[rows], y[rows]

    def runs(self, seeds: Sequence[int]) -> Iterator[Rows]:
        X, y, rows = self._split(seeds)
        rest = np.setdiff1d(np.arange(len(X)), rows)
        for seed in seeds:
            order = np.random.default_rng(seed).permutation(rest)
            yield X[order], y[order]

    def _split(self, seeds: Sequence[int]) -> tuple[Array, Array, Any]:
        X, y, rows = self._checked()
        return X, y, np.random.default_rng(max(seeds) + 1).permutation(len(X))[:rows]


@dataclass(frozen=True, eq=False)
class Blocks(Given):
    """Runs over consecutive blocks of a stream, for rows whose order matters.

    Each algorithm starts from scratch in each block. The first rows are for tuning; the other rows are divided into
    blocks of equal length, one per run. Runs are independent only if blocks are. Seeds have no effect.

    Parameters
    ----------
    X, y, tune
        See `Permutations`.

    Examples
    --------
    >>> import numpy as np, onlinegp as ogp
    >>> y = np.arange(6.0)
    >>> [block.tolist() for _, block in ogp.comparing.Blocks(y[:, None], y, tune=2).runs([0, 1])]
    [[2.0, 3.0], [4.0, 5.0]]
    """

    def tuning(self, seeds: Sequence[int]) -> Rows:
        X, y, rows = self._checked()
        return X[:rows], y[:rows]

    def runs(self, seeds: Sequence[int]) -> Iterator[Rows]:
        X, y, start = self._checked()
        length = (len(X) - start) // len(seeds)
        if length < 2:
            raise ValueError(
                f"runs must leave at least two rows for each run, got {len(seeds)} runs for the {len(X) - start} rows "
                f"that are not for tuning. Use fewer runs."
            )
        for i in range(len(seeds)):
            block = slice(start + i * length, start + (i + 1) * length)
            yield X[block], y[block]


def tuning_rows(n: int, tune: int | None) -> int:
    """Return the number of rows for tuning."""
    rows = max(1, min(MOST, n // SHARE)) if tune is None else count("1000 is a usual choice.", tune=tune)
    if rows >= n:
        raise ValueError(f"tune must leave rows to score, got {rows} of {n} rows. Use fewer.")
    return rows


def source_of(stream: Any) -> Source:
    """Return the source for the `stream` argument of `compare`."""
    if isinstance(stream, (Permutations, Blocks)):
        return stream
    if callable(stream):
        return Simulated(stream)
    raise TypeError(
        "stream must be a function of the seed that returns X and y, onlinegp.comparing.Permutations(X, y) for rows "
        "whose order has no meaning, or onlinegp.comparing.Blocks(X, y) for rows whose order matters, got "
        f"{type(stream).__name__}."
    )
