"""The regression task of figure 2: KIN40K, or a simulated robot arm without this data set."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from onlinegp.batch.gp import maximum_likelihood
from onlinegp.checks import Array
from onlinegp.datasets import kin40k, robot_arm
from onlinegp.kernels import RBF, Kernel

ROWS = 40_000  # rows of the simulated arm, as in KIN40K
TUNING = 1000  # rows used only to tune the hyperparameters


@dataclass(frozen=True)
class Arm:
    """The standardized data, and an isotropic Gaussian kernel tuned by maximum likelihood.

    Attributes
    ----------
    name : the name of the data in titles
    stand_in : whether the data are simulated and replace KIN40K
    X, y : the rows that were not used for tuning
    kernel, noise : from maximum likelihood on `tuned_on` other rows
    """

    name: str
    stand_in: bool
    X: Array
    y: Array
    kernel: Kernel
    noise: float
    tuned_on: int

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None, *, seed: int = 0, tune: int = TUNING) -> Arm:
        """Read KIN40K, or simulate the arm if there is no path, and tune the hyperparameters."""
        X, y = robot_arm(ROWS, seed=seed) if path is None else kin40k(path)
        X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
        order = np.random.default_rng([seed, 0]).permutation(len(X))
        rows, rest = order[:tune], order[tune:]
        found = maximum_likelihood(1.0 * RBF(1.4), 0.1, X[rows], y[rows], restarts=0, seed=seed)
        name = "robot arm" if path is None else "KIN40K"
        return cls(name, path is None, X[rest], y[rest], found.kernel, found.noise, tune)

    @property
    def title(self) -> str:
        """The name of the data for titles, marked as a stand-in if they are simulated."""
        return "simulated robot arm (stand-in for KIN40K)" if self.stand_in else self.name

    def settings(self) -> dict[str, object]:
        """Return the settings to store with the results."""
        return {
            "data": self.title,
            "rows": len(self.X),
            "kernel": repr(self.kernel),
            "noise": self.noise,
            "hyperparameters": f"maximum likelihood on {self.tuned_on} further rows",
        }

    def split(self, train: int, test: int, *, seed: int, repeat: int) -> tuple[Array, Array, Array, Array]:
        """Return random rows X, y to learn from and X, y to test on, with one permutation per repeat."""
        if train + test > len(self.X):
            raise ValueError(f"train + test must be at most {len(self.X)}, got {train} + {test}. Use fewer rows.")
        order = np.random.default_rng([seed, 1, repeat]).permutation(len(self.X))
        rows, held = order[:train], order[train : train + test]
        return self.X[rows], self.y[rows], self.X[held], self.y[held]
