"""Translate the parameter names of KAFBOX, and other common names, in error messages."""

from __future__ import annotations

# For each class: KAFBOX's parameter, and how to express it here; docs/coming_from/kafbox.md explains this table.
RENAMED: dict[str, dict[str, str]] = {
    "KLMS": {"eta": "step", "M": "none"},
    "QKLMS": {"eta": "step", "epsu": "radius"},
    "QKLMSFB": {"eta": "step", "epsu": "radius", "beta": "forgetting", "M": "budget"},
    "FBKLMS": {"eta": "step", "nu": "1 - coherence", "M": "budget"},
    "KNLMS": {"eta": "step", "mu0": "coherence", "eps": "epsilon"},
    "NORMA": {"eta": "step", "lambda": "leak", "tau": "budget", "tcoeff": "none"},
    "KLMSCSL1": {"eta": "step", "mu0": "coherence", "lambda": "penalty"},
    "KLMSCSAL1": {"eta": "step", "mu0": "coherence", "lambda": "penalty", "eps_alpha": "epsilon"},
    "MKNLMS": {"kernelpars": "kernels", "eta": "step", "delta": "coherence", "rho": "epsilon"},
    "MXKLMS": {"kernelpars": "kernels", "eta": "step", "mu": "mixing_step", "M": "none"},
    "RFFKLMS": {"mu": "twice step", "D": "basis", "seed": "seed"},
    "KAP": {"eta": "step", "mu0": "coherence", "eps": "epsilon", "p": "window"},
    "LKAPA": {"eta": "step", "lambda": "leak", "P": "window", "M": "budget"},
    "NLKAPA": {"eta": "step", "lambda": "leak", "eps": "epsilon", "P": "window", "M": "budget"},
    "KAPSM": {"mu": "step", "Q": "window", "M": "budget", "Delta": "radius", "loss": "loss", "loss_param": "bend"},
    "PHYPASS": {"mu": "step", "s": "selected", "sigma": "coherence", "p": "window", "omega": "none"},
    "L2S": {
        "kernelpars": "length_scales",
        "eta": "step",
        "mu0": "coherence",
        "eps": "epsilon",
        "s": "selected",
        "plat": "novelty",
        "rho": "width",
        "dictmax": "budget",
        "convex": "none",
        "largest": "none",
    },
    "KRLS": {"nu": "threshold"},
    "SWKRLS": {"c": "noise", "M": "budget"},
    "FBKRLS": {"lambda": "noise", "M": "budget"},
    "KRLST": {"sn2": "noise", "M": "budget", "lambda": "forgetting", "jitter": "jitter"},
    "EXKRLS": {
        "alphaf": "transition",
        "beta": "forgetting",
        "lambda": "noise / forgetting",
        "q": "drift",
        "M": "budget",
    },
    "LMS": {"mu": "step"},
    "NLMS": {"mu": "step", "eps": "epsilon"},
    "LinearRLS": {"lambda": "forgetting", "c": "noise / prior"},
    "ProbLMS": {"sigma2_n": "noise", "sigma2_d": "drift", "lambda": "forgetting", "sigma2_k": "prior"},
    "Kalman": {"R": "noise", "Q": "drift times I", "F": "none", "B": "none"},
}
KERNEL = {
    "kerneltype": "the kernel, such as RBF(1.0)",
    "kernelpar": "the parameter of the kernel, as in RBF(kernelpar)",
    **dict.fromkeys(("sigma", "gamma", "length_scale"), "a parameter of the kernel, such as RBF(length_scale)"),
}
COMMON = {  # names in other books and libraries, for models that have these parameters
    **dict.fromkeys(("mu", "eta", "step_size", "learning_rate"), "step"),
    **dict.fromkeys(("lam", "forgetting_factor"), "forgetting"),
}
INPUTS = dict.fromkeys(("taps", "order", "filter_length"), "the number of columns of X, from onlinegp.datasets.embed")
LINEAR = ("LMS", "NLMS", "LinearRLS", "ProbLMS", "Kalman")  # without a kernel


def renamed(model: str, names: list[str]) -> str:
    """Return sentences that translate parameters of KAFBOX and others among `names` for a model, or ""."""
    own = RENAMED.get(model, {})
    known = (
        INPUTS
        | ({} if model in LINEAR else KERNEL)
        | {theirs: here for theirs, here in COMMON.items() if here in own.values()}
        | own
    )
    theirs = {name: name.rstrip("_") for name in names}  # lambda_, because Python reserves lambda
    return " ".join(_sentence(name, known[key]) for name, key in theirs.items() if key in known)


def _sentence(name: str, here: str) -> str:
    if here == "none":
        return f"KAFBOX's {name} has no equivalent here."
    return f"{name} is called {here} here." if here.isidentifier() else f"Here {name} is {here}."
