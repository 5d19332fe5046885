"""A progress bar, shown on a terminal or in a notebook if the work takes longer than a second."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from multiprocessing import current_process
from typing import Any, TypeVar

DELAY = 1.0  # seconds before the bar appears
BLOCK_ROWS = 1000  # rows between two updates of a bar
Item = TypeVar("Item")


def is_visible() -> bool:
    """Whether a bar is visible: on a terminal or in a notebook, but not in a worker process."""
    stream = sys.stderr
    terminal = stream is not None and stream.isatty()
    return (terminal or in_notebook()) and current_process().name == "MainProcess"


def in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel, where IPython is already imported."""
    ipython = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return ipython is not None and "IPKernelApp" in ipython.config


def bar(total: int | None, title: str = "", *, show: bool | None = None, **looks: Any) -> Any:
    """Return a tqdm bar with `update`, `set_postfix_str`, `clear` and `close`.

    Parameters
    ----------
    total : int or None
    title : str
    show : bool, optional
        None: on a terminal or in a notebook, after a second. True: always, immediately. False: never.
    looks
        Other arguments of tqdm.
    """
    if show is False or (show is None and not is_visible()):
        return Hidden()
    if in_notebook() and find_spec("ipywidgets"):
        from tqdm.notebook import tqdm
    else:
        from tqdm import tqdm

    return tqdm(total=total, desc=title, delay=0.0 if show else DELAY, leave=False, **looks)


def shown(items: Iterable[Item], total: int, title: str = "", *, show: bool | None = None) -> Iterator[Item]:
    """Yield the items, and count them with a bar."""
    with bar(total, title, show=show) as one:
        for item in items:
            yield item
            one.update()


def blocks(rows: int, title: str, *, show: bool | None = None) -> Iterator[slice]:
    """Yield slices of rows in blocks, and count rows with a bar. Without a bar, yield a single slice."""
    if rows <= BLOCK_ROWS or not (is_visible() if show is None else show):
        yield slice(0, rows)
        return
    with bar(rows, title, show=show, unit="row", unit_scale=True) as one:
        for start in range(0, rows, BLOCK_ROWS):
            yield slice(start, start + BLOCK_ROWS)
            one.update(min(BLOCK_ROWS, rows - start))


class Hidden:
    """A hidden progress bar."""

    n = 0.0

    def update(self, n: float = 1) -> None:
        pass

    def set_postfix_str(self, text: str) -> None:
        pass

    def clear(self) -> None:
        pass

    def close(self) -> None:
        pass

    def __enter__(self) -> Hidden:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class ShareBar:
    """A progress bar that receives the finished share of the work, and disappears at the end."""

    def __init__(self, title: str = "tuning", *, quiet: bool = False) -> None:
        self._title, self._show = title, False if quiet else None
        self._bar: Any = None

    def __call__(self, share: float) -> None:
        if self._bar is None:
            self._bar = bar(100, self._title, show=self._show, bar_format="{l_bar}{bar}| {elapsed}")
        self._bar.update(100.0 * share - self._bar.n)
        if share >= 1.0:
            self._bar.close()
            self._bar = None
