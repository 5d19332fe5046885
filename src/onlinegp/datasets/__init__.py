"""Data to try the library on: simulated streams, and a reader for KIN40K.

Regression data are ``X`` (n, d) and ``y`` (n,); a series is one array. :func:`embed` turns a series into X and y.
The same seed gives the same bytes. You can pass a numpy Generator instead of a seed.
"""

from onlinegp.datasets.arm import robot_arm
from onlinegp.datasets.channel import channel_switch
from onlinegp.datasets.chaos import lorenz, mackey_glass
from onlinegp.datasets.embedding import embed
from onlinegp.datasets.kin40k_file import kin40k

__all__ = ["channel_switch", "embed", "kin40k", "lorenz", "mackey_glass", "robot_arm"]
