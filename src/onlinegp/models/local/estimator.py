"""Base class of the models that predict from the nearest rows: their parameters, checks and learners."""

from __future__ import annotations

from typing import ClassVar

from onlinegp.checks import count, fraction, positive
from onlinegp.engine.compiled import leaf
from onlinegp.kernels import Kernel, kernel_or_default
from onlinegp.kernels.spec import columns
from onlinegp.learner import Learner
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.local.learner import LocalLearner, LocalPrior


class NeighborsRegressor(OnlineRegressor):
    """A model that stores rows and predicts from the rows nearest to x."""

    kernel: Kernel | None
    noise: float
    neighbors: int
    store: int | None
    forgetting: float
    engine: str

    readable: ClassVar[type[LocalLearner]] = LocalLearner
    fewest_neighbors: ClassVar[int] = 1
    neighbors_remedy: ClassVar[str] = "64 is a good start."

    def check(self) -> None:
        self.start(columns(kernel_or_default(self.kernel)), 1)

    def start(self, features: int, outputs: int) -> Learner:
        return leaf(self.engine, self.readable(self.prior(), features, outputs))

    def prior(self) -> LocalPrior:
        return LocalPrior(
            kernel_or_default(self.kernel),
            positive("Use a small one such as 1e-6 for data without noise.", noise=self.noise),
            count(self.neighbors_remedy, self.fewest_neighbors, neighbors=self.neighbors),
            None if self.store is None else count("Use store=None to keep all rows.", store=self.store),
            fraction("Use 1.0 to forget nothing.", forgetting=self.forgetting),
        )
