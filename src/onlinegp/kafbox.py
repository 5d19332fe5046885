"""All algorithms of KAFBOX, the Kernel Adaptive Filtering Toolbox, by class name and by KAFBOX's name.

::

    from onlinegp import kafbox

    kafbox.NORMA is kafbox.norma, kafbox.MKNLMS is kafbox.mknlms_cs, kafbox.LinearRLS is kafbox.rls

S. Van Vaerenbergh and I. Santamaria, "A comparative study of kernel adaptive filtering algorithms", IEEE DSP/SPE, 2013.
"""

from __future__ import annotations

from onlinegp.models import (
    EXKRLS,
    FBKLMS,
    FBKRLS,
    KAP,
    KAPSM,
    KLMS,
    KLMSCSAL1,
    KLMSCSL1,
    KNLMS,
    KRLS,
    KRLST,
    L2S,
    LKAPA,
    LMS,
    MKNLMS,
    MXKLMS,
    NLKAPA,
    NLMS,
    NORMA,
    PHYPASS,
    QKLMS,
    QKLMSFB,
    RFFKLMS,
    SWKRLS,
    Kalman,
    LinearRLS,
    OnlineRegressor,
    Persistence,
    ProbLMS,
)

NAMES: dict[str, type[OnlineRegressor]] = {  # KAFBOX's names and our classes
    "exkrls": EXKRLS,
    "fbklms": FBKLMS,
    "fbkrls": FBKRLS,
    "kalman": Kalman,
    "kap": KAP,
    "kapsm": KAPSM,
    "klms": KLMS,
    "klms_csal1": KLMSCSAL1,
    "klms_csl1": KLMSCSL1,
    "knlms": KNLMS,
    "krls": KRLS,
    "krlst": KRLST,
    "L2_s": L2S,
    "lkapa": LKAPA,
    "lms": LMS,
    "memory_cell": Persistence,
    "mknlms_cs": MKNLMS,
    "mxklms": MXKLMS,
    "nlkapa": NLKAPA,
    "nlms": NLMS,
    "norma": NORMA,
    "phypass": PHYPASS,
    "problms": ProbLMS,
    "qklms": QKLMS,
    "qklms_fb": QKLMSFB,
    "rffklms": RFFKLMS,
    "rls": LinearRLS,
    "swkrls": SWKRLS,
}
OLDER = {"aldkrls": "krls", "kapcc": "kap", "knlmscc": "knlms"}  # names in older versions of KAFBOX
__all__ = [cls.__name__ for cls in NAMES.values()]


def meant(name: str) -> str | None:
    """Return the name of the class that a name means in another spelling, or in an older version of KAFBOX."""
    plain = name.replace("_", "").lower()
    plain = OLDER.get(plain, plain)
    spellings = {key.replace("_", "").lower(): cls for key, cls in NAMES.items()}
    spellings |= {cls.__name__.lower(): cls for cls in NAMES.values()}
    return spellings[plain].__name__ if plain in spellings else None


def __getattr__(name: str) -> type[OnlineRegressor]:
    if name in NAMES:
        return NAMES[name]
    remedy = f"Use onlinegp.kafbox.{meant(name)}." if meant(name) else f"It has: {', '.join(__all__)}."
    raise AttributeError(f"module 'onlinegp.kafbox' has no attribute {name!r}. {remedy}")


def __dir__() -> list[str]:
    return [*__all__, *NAMES]
