"""Data to learn from: one file that the user brings, and streams that are simulated.

Pairs come as ``X`` (n, d) and ``y`` (n,), series as one array; :func:`embed` turns a series into pairs.
The same seed gives the same bytes, and a numpy Generator may be passed in its place.
"""

from onlinegp.datasets.arm import robot_arm
from onlinegp.datasets.channel import channel_switch
from onlinegp.datasets.chaos import lorenz, mackey_glass
from onlinegp.datasets.embedding import embed
from onlinegp.datasets.kin40k_file import kin40k

__all__ = ["channel_switch", "embed", "kin40k", "lorenz", "mackey_glass", "robot_arm"]
