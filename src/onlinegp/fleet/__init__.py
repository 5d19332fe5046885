"""Many models of one kind, one for each key: in memory, in a SQLite file, or one key at a time for other systems."""

from onlinegp.fleet.fleet import Fleet
from onlinegp.fleet.step import from_bytes, step

__all__ = ["Fleet", "from_bytes", "step"]
