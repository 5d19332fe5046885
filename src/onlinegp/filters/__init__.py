"""The estimators: one small class an algorithm, which is its parameters, its recipe and its citation."""

from onlinegp.filters.base import OnlineRegressor
from onlinegp.filters.beta_klms import BetaKLMS
from onlinegp.filters.fbkrls import FBKRLS
from onlinegp.filters.klms import KLMS
from onlinegp.filters.knlms import KNLMS
from onlinegp.filters.krls import KRLS
from onlinegp.filters.krlst import KRLST
from onlinegp.filters.norma import NORMA
from onlinegp.filters.online_gp import OnlineGP
from onlinegp.filters.qklms import QKLMS
from onlinegp.filters.swkrls import SWKRLS

__all__ = [
    "BetaKLMS",
    "FBKRLS",
    "KLMS",
    "KNLMS",
    "KRLS",
    "KRLST",
    "NORMA",
    "OnlineGP",
    "OnlineRegressor",
    "QKLMS",
    "SWKRLS",
]
