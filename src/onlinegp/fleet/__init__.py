"""Fleets: many models of one kind, one per key, in memory, in a SQLite file, or in other systems."""

from onlinegp.fleet.fleet import Fleet
from onlinegp.fleet.step import from_bytes, step

__all__ = ["Fleet", "from_bytes", "step"]
