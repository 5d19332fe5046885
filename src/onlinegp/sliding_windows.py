"""Windows of past values as inputs. The newest value is always first."""

from __future__ import annotations

import numpy as np

from onlinegp.checks import Array


def windows(values: Array, width: int) -> Array:
    """Return each window of `width` rows of a series (n,) or of several series (n, p) as a row, newest first.

    The result is (n - width + 1, p width): all values of the first series, then of the second, ...
    """
    series = values.reshape(len(values), -1)
    view = np.lib.stride_tricks.sliding_window_view(series, width, axis=0)  # (n - width + 1, p, width), oldest first
    return np.ascontiguousarray(view[:, :, ::-1]).reshape(len(view), -1)
