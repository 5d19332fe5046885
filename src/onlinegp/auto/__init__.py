"""Models that tune themselves: `Auto`, which needs no choice, and `Tuned`, around any other model."""

from onlinegp.auto.auto import Auto
from onlinegp.auto.tuned import Tuned

__all__ = ["Auto", "Tuned"]
