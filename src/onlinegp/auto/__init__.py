"""The model that needs no choice: it scales, tunes and mixes by itself."""

from onlinegp.auto.auto import Auto

__all__ = ["Auto"]
