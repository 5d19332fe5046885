"""The algorithms that the paper compares, with one kernel for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from onlinegp.kernels import Kernel
from onlinegp.models import KLMS, KNLMS, KRLST, BetaKLMS
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.recipe import RecipeRegressor

EPSILON = 1e-2  # regularizes the normalization of KNLMS
AUTO = "beta auto"
HALF = ", half step"

NOTE = (
    "KLMS and KNLMS use their full step, which corrects the error of the current sample entirely: 1 / k(x, x) for KLMS "
    "and 1 for KNLMS. Neither depends on the noise, so they are not equal to beta = 0 and beta = 1 by construction. "
    "Every sample becomes a center (coherence threshold 1). Curves with half the step are reported as well; beta-KLMS "
    "has no counterpart of these."
)


def described(models: Mapping[str, OnlineRegressor]) -> dict[str, str]:
    """Return all parameters of all models, including defaults."""
    texts = {}
    for name, model in models.items():
        params = ", ".join(f"{key}={value!r}" for key, value in model.get_params(deep=False).items() if key != "engine")
        texts[name] = f"{type(model).__name__}({params})"
    return texts


def beta_name(beta: float | str) -> str:
    return AUTO if beta == "auto" else f"beta = {beta:g}"


def growing(kernel: Kernel, noise: float, betas: Sequence[float | str]) -> dict[str, RecipeRegressor]:
    """Return the algorithms of the KLMS family, without a limit on the dictionary."""
    kxx = float(kernel.diag(np.zeros((1, 1)))[0])  # equal everywhere for a stationary kernel
    models: dict[str, RecipeRegressor] = {
        "KLMS": KLMS(kernel, step=1.0 / kxx),
        "KNLMS": KNLMS(kernel, step=1.0, coherence=1.0, epsilon=EPSILON),
    }
    models |= {beta_name(beta): BetaKLMS(kernel, beta=beta, noise=noise) for beta in betas}
    return models


def half_steps(kernel: Kernel) -> dict[str, RecipeRegressor]:
    """Return KLMS and KNLMS with half the step, to show the influence of the step."""
    kxx = float(kernel.diag(np.zeros((1, 1)))[0])
    return {
        "KLMS" + HALF: KLMS(kernel, step=0.5 / kxx),
        "KNLMS" + HALF: KNLMS(kernel, step=0.5, coherence=1.0, epsilon=EPSILON),
    }


def tracker(kernel: Kernel, noise: float, budget: int, forgetting: float = 1.0) -> KRLST:
    """Return the online GP with a budget."""
    return KRLST(kernel, noise=noise, budget=budget, forgetting=forgetting)
