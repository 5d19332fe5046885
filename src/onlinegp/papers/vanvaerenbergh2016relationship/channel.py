"""The stream of figure 3: a random linear channel followed by a nonlinearity, which switches once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from onlinegp.batch.gp import maximum_likelihood
from onlinegp.checks import Array
from onlinegp.datasets import channel_switch
from onlinegp.kernels import RBF, Kernel

TUNING = 500  # rows of a separate channel for tuning the hyperparameters


@dataclass(frozen=True)
class Channel:
    """The parameters of simulated streams, and the kernel for them.

    `regressor` is "input" to identify the channel from its input, or "output" to predict the next output from past
    outputs.
    """

    regressor: str
    color: float = 0.0
    rows: int = 1500
    switch: int = 500
    taps: int = 5
    channel_noise: float = 0.01
    kernel: Kernel = field(default_factory=RBF)
    noise: float = 0.01

    def tuned(self, seed: int) -> Channel:
        """Return a copy with kernel and noise tuned by maximum likelihood on another channel, which does not switch."""
        X, y = self._simulate(TUNING, None, np.random.default_rng([seed, 2]))
        found = maximum_likelihood(1.0 * RBF(1.1), 0.1, X, y, restarts=1, seed=seed)
        return replace(self, kernel=found.kernel, noise=found.noise)

    def stream(self, *, seed: int, repeat: int) -> tuple[Array, Array]:
        """Return X and y with random coefficients, different before and after the switch."""
        return self._simulate(self.rows, self.switch, np.random.default_rng([seed, 3, repeat]))

    def heldout(self, rows: int, *, seed: int, repeat: int) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Return noise-free test sets of the channel before the switch and of the channel after it.

        The random stream of the same seed is extended, so the channels are the same and the inputs are new.
        """
        sets = []
        for switch in (None, self.switch):
            rng = np.random.default_rng([seed, 3, repeat])
            X, y = self._simulate(self.rows + rows, switch, rng, noise=0.0)
            sets.append((X[self.rows :], y[self.rows :]))
        return sets[0], sets[1]

    def _simulate(
        self, rows: int, switch: int | None, rng: np.random.Generator, noise: float | None = None
    ) -> tuple[Array, Array]:
        return channel_switch(
            rows,
            switch=switch,
            taps=self.taps,
            noise=self.channel_noise if noise is None else noise,
            color=self.color,
            regressor=self.regressor,
            seed=rng,
        )

    def settings(self) -> dict[str, object]:
        """Return the settings to store with the results."""
        return {
            "regressor": self.regressor,
            "color": self.color,
            "rows": self.rows,
            "switch": self.switch,
            "taps": self.taps,
            "channel noise": self.channel_noise,
            "kernel": repr(self.kernel),
            "noise": self.noise,
            "hyperparameters": f"maximum likelihood on {TUNING} samples of another channel",
        }


@cache
def identification(seed: int) -> Channel:
    """Identify the channel from its white input: y[t] from u[t], u[t-1], ..."""
    return Channel("input").tuned(seed)


@cache
def prediction(seed: int) -> Channel:
    """Predict the next output from past outputs. The input varies slowly; otherwise outputs are not predictable."""
    return Channel("output", color=0.99).tuned(seed)
