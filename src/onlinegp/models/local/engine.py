"""Which of the two learners runs."""

from __future__ import annotations

from onlinegp.engine import compiled
from onlinegp.learner import Learner
from onlinegp.models.local.learner import LocalLearner, LocalPrior


def local_learner(engine: str, prior: LocalPrior, features: int, outputs: int) -> Learner:
    """Return the learner of an engine's name; "auto" is the compiled one where it was built and knows the kernel."""
    if not compiled(engine):
        return LocalLearner(prior, features, outputs)
    from onlinegp.engine.native import UnsupportedError
    from onlinegp.models.local.native import NativeLocalLearner

    try:
        return NativeLocalLearner(prior, features, outputs)
    except UnsupportedError:
        if engine == "native":
            raise
    return LocalLearner(prior, features, outputs)
