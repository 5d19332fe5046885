"""Shared code of algorithms that admit only samples that no center is coherent with, and correct the last rows.

The coherence of two inputs is |k(x, c)| / sqrt(k(x, x) k(c, c)). Each center stores its k(c, c). The window stores the
kernel rows of the last rows.
"""

from __future__ import annotations

from onlinegp.checks import Array
from onlinegp.models.affine.window import KernelRows
from onlinegp.models.expansion import Expansion
from onlinegp.models.lms.coherence import largest_coherence
from onlinegp.state import Values


def novel(f: Expansion, k: Array, kxx: float, coherence: float) -> bool:
    """Return whether x, with kernel row k, becomes a center. If k(x, x) is zero, x cannot contribute."""
    return kxx > 0.0 and largest_coherence(k, kxx, f.numbers("kcc")) <= coherence


def admit(f: Expansion, window: KernelRows, x: Array, kxx: float, r: int) -> None:
    """Make x, the row in slot r of the window, a center."""
    f.append(x, kcc=kxx)
    window.admit(r)


def check_window(values: Values) -> None:
    """Raise a ValueError unless the stored window fits the stored centers."""
    count, columns = values["window"]["count"], values["window"]["H"].shape[1]
    seen, size = values["seen"], len(values["f"]["centers"])
    if count != seen or columns != size:
        raise ValueError(
            f"the window has {count} rows and {columns} centers, "
            f"but the model has {seen} and {size}: they must be the same."
        )
