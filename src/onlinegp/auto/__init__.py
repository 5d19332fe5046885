"""Models that tune themselves: `Auto`, and `Tuned`, a wrapper for any other model."""

from onlinegp.auto.auto import Auto
from onlinegp.auto.tuned import Tuned

__all__ = ["Auto", "Tuned"]
