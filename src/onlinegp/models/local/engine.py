"""Which of the two learners runs."""

from __future__ import annotations

from onlinegp.engine import resolved
from onlinegp.learner import Learner
from onlinegp.models.local.learner import LocalLearner, LocalPrior


def local_learner(engine: str, prior: LocalPrior, features: int, outputs: int) -> Learner:
    """Return the learner of an engine's name; "auto" is the compiled one where it was built and knows the kernel."""
    if resolved(engine) == "python":
        return LocalLearner(prior, features, outputs)
    from onlinegp.engine.native import UnsupportedError
    from onlinegp.models.local.native import NativeLocalLearner

    try:
        return NativeLocalLearner(prior, features, outputs)
    except UnsupportedError:
        if engine == "native":
            raise
    return LocalLearner(prior, features, outputs)
