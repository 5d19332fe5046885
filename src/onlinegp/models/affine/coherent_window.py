"""Shared code of the algorithms that correct the last rows and whose centers have low coherence with each other.

The coherence of two inputs is |k(x, c)| / sqrt(k(x, x) k(c, c)). Each center c stores k(c, c). The window stores the
kernel rows of the last rows.
"""

from __future__ import annotations

from onlinegp.checks import Array
from onlinegp.models.affine.window import KernelRows
from onlinegp.models.expansion import Expansion
from onlinegp.models.lms.coherence import largest_coherence
from onlinegp.state import Values


def novel(f: Expansion, k: Array, kxx: float, coherence: float) -> bool:
    """Return whether x, with kernel row k, becomes a center. It does not if k(x, x) is zero."""
    return kxx > 0.0 and largest_coherence(k, kxx, f.numbers("kcc")) <= coherence


def admit(f: Expansion, window: KernelRows, x: Array, kxx: float, r: int) -> None:
    """Add x, the row in slot r of the window, as a center."""
    f.append(x, kcc=kxx)
    window.admit(r)


def check_window(values: Values) -> None:
    """Raise a ValueError if the stored window does not fit the stored centers."""
    count, columns = values["window"]["count"], values["window"]["H"].shape[1]
    seen, size = values["seen"], len(values["f"]["centers"])
    if count != seen or columns != size:
        raise ValueError(
            f"the window has {count} rows and {columns} centers, but the model has {seen} rows and {size} centers."
        )
