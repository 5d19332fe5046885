"""The models: a small class for each algorithm, with its parameters, its recipe and its citation."""

from onlinegp.models.affine.kap import KAP
from onlinegp.models.affine.kapsm import KAPSM
from onlinegp.models.affine.l2s import L2S
from onlinegp.models.affine.lkapa import LKAPA, NLKAPA
from onlinegp.models.affine.phypass import PHYPASS
from onlinegp.models.base import OnlineRegressor
from onlinegp.models.baselines.persistence import Persistence
from onlinegp.models.features.random_feature_gp import RandomFeatureGP
from onlinegp.models.linear.kalman import Kalman
from onlinegp.models.linear.linear_rls import LinearRLS
from onlinegp.models.linear.lms import LMS, NLMS
from onlinegp.models.linear.prob_lms import ProbLMS
from onlinegp.models.lms.beta_klms import BetaKLMS
from onlinegp.models.lms.fbklms import FBKLMS
from onlinegp.models.lms.klms import KLMS
from onlinegp.models.lms.klms_l1 import KLMSCSAL1, KLMSCSL1
from onlinegp.models.lms.knlms import KNLMS
from onlinegp.models.lms.mknlms import MKNLMS
from onlinegp.models.lms.mxklms import MXKLMS
from onlinegp.models.lms.norma import NORMA
from onlinegp.models.lms.qklms import QKLMS
from onlinegp.models.lms.qklms_fb import QKLMSFB
from onlinegp.models.lms.rffklms import RFFKLMS
from onlinegp.models.local.local_gp import LocalGP
from onlinegp.models.local.residual_gp import ResidualGP
from onlinegp.models.rls.exkrls import EXKRLS
from onlinegp.models.rls.fbkrls import FBKRLS
from onlinegp.models.rls.krls import KRLS
from onlinegp.models.rls.krlst import KRLST
from onlinegp.models.rls.online_gp import OnlineGP
from onlinegp.models.rls.swkrls import SWKRLS
from onlinegp.models.temporal.smoothed_lags import SmoothedLags
from onlinegp.models.temporal.temporal_gp import TemporalGP

__all__ = [
    "BetaKLMS",
    "EXKRLS",
    "FBKLMS",
    "FBKRLS",
    "Kalman",
    "KAP",
    "KAPSM",
    "KLMS",
    "KLMSCSAL1",
    "KLMSCSL1",
    "KNLMS",
    "KRLS",
    "KRLST",
    "L2S",
    "LinearRLS",
    "LKAPA",
    "LMS",
    "LocalGP",
    "MKNLMS",
    "MXKLMS",
    "NLKAPA",
    "NLMS",
    "NORMA",
    "OnlineGP",
    "OnlineRegressor",
    "Persistence",
    "PHYPASS",
    "ProbLMS",
    "QKLMS",
    "QKLMSFB",
    "RandomFeatureGP",
    "ResidualGP",
    "RFFKLMS",
    "SmoothedLags",
    "SWKRLS",
    "TemporalGP",
]
