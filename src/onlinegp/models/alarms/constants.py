"""The constants of the detector, in the order in which the compiled twin reads them. Rates are per row."""

from __future__ import annotations

from typing import NamedTuple

NEAR = 8  # number of recent lags of the near predictor
AROUND = 2  # the near predictor also has the lags season - 2 ... season + 2
RECENT = 2048  # stored rows, for lags and to find and learn a season
KEPT = 144  # number of the largest values that a generation of a tail keeps
KEPT_OF_SCORES = 104  # the same with a model, where there are more statistics
WEEK = 7  # days
FIRST_LOOK = 256  # first row of the search for a season and a scale; repeated after 512, 1024, ... rows
WIDTH = 2.46  # half width of a 95% interval, in mean absolute errors
LEVEL_WIDTH = 2.5  # half width of the interval around a level
CUT_ERROR = 10.0  # means of errors clip each error here, in mean absolute errors
MOST_ERROR = 100.0  # upper limit of an error, in mean absolute errors; matters for streams without noise
EVENTS = 8  # number of stored events
KINDS = ("spike", "level", "trend", "variance", "season broken", "stuck", "missing")


class Constants(NamedTuple):
    forgetting: float = 0.9995  # forgetting factor of both predictors
    clip: float = 4.0  # predictors clip errors here, in mean absolute errors
    ridge_near: float = 1.0
    ridge_far: float = 100.0  # so large that the far predictor stays at the slow level for about 100 rows
    slow: float = 0.001  # learning rate of the slow level and of the spread around it
    error_rate: float = 0.002  # learning rate of the mean absolute error
    long_rate: float = 0.0005  # learning rate of the long mean absolute error, a lower limit
    burn: float = 32.0  # number of first rows that tails do not learn
    silent: float = 150.0  # number of first rows without evidence
    share: float = 0.05  # share of the rows that belong to a tail
    generation: float = 10000.0  # number of rows of a generation of a tail
    nearly: float = 0.95  # a past excess counts as equally large above this share of the excess
    prior: float = 20.0  # the prior of the shape of a tail counts like this number of excesses
    shape: float = 0.2  # prior mean of the shape
    beyond: float = 0.7  # above log10(rows) + beyond, evidence grows more slowly
    speed: float = 0.25  # by this factor
    pooled: float = 0.4  # weight of the mean of the four largest statistics; the largest has the rest
    offset: float = 0.43  # added to the evidence of each row
    lasting: float = 0.2  # subtracted if the largest statistic is a mean over rows, which can grow in later rows
    stuck_offset: float = 0.5  # subtracted from the evidence of a stuck value
    young: float = 500.0  # log10(1 + (young / rows)^3) is subtracted from the evidence
    hold: float = 200.0  # largest number of rows for which the peak stays after an event has cleared
    fade: float = 0.99  # then the peak is multiplied by this factor with each row
    margin: float = 0.2  # a row must exceed the peak by this
    threshold: float = 3.0  # an event opens at this score, -log10(rate)
    low: float = 1.8  # a row with less evidence is calm
    quiet: float = 20.0  # an event clears after this number of calm rows
    # The season counts only if the mean error of the far predictor is below this share of the spread
    helps: float = 0.95


STATISTICS = (
    "value",
    "level 20 up",
    "level 20 down",
    "level 100 up",
    "level 100 down",
    "season",
    "season 20 up",
    "season 20 down",
    "error",
    "error 5",
    "error 20",
    "error 100",
    "stuck",
    "missing",
    # With a model: statistics of the normal score
    "score",
    "score 20 up",
    "score 20 down",
    "score 100 up",
    "score 100 down",
)
SEASON, ERROR, STUCK, MISSING, SCORE = (STATISTICS.index(n) for n in ("season", "error", "stuck", "missing", "score"))

# The family of each statistic. The compiled twin has the same numbers
SINGLE, LEVEL, SEASONAL, SPREAD = range(4)
FAMILY = (0, 1, 1, 1, 1, 2, 2, 2, 0, 3, 3, 3, -1, -1, 0, 1, 1, 1, 1)
# Statistics that are not means over rows
SUDDEN = tuple(k for k in range(len(STATISTICS)) if FAMILY[k] == SINGLE or k == SEASON)

# The results for a row
COLUMNS = (
    "tail",  # -log10 of the calibrated probability of the row
    "score",  # evidence of a row that opens an event or exceeds its peak, else 0
    "evidence",
    "statistic",  # index of the largest statistic
    "expected",  # prediction of the near predictor
    "low",  # 95% interval of this prediction
    "high",
    "level",  # level of the target before the row
    "level_low",
    "level_high",
    "single",  # the largest evidence of each family
    "shifted",
    "seasonal",
    "spreading",
    "event",  # number of the open event, or 0
    "run",  # number of rows with the same value, or without a value
)

# Stored numbers
NUMBERS = (
    "shift",  # of log(y + shift); 0 without a logarithm
    "origin",  # the first value of the target, which is subtracted
    "unit",  # the first change of the target, by which it is divided
    "level",
    "spread",
    "level_20",
    "level_100",
    "score_level",  # the same statistics of the predicted series
    "score_spread",
    "score_20",
    "score_100",
    "season_20",
    "error_5",
    "error_20",
    "error_100",
    "mean_error",
    "long_error",
    "far_error",
    "last",
    "peak",  # peak of the evidence
    "stuck_peak",
)
COUNTS = (
    "rows",  # number of rows
    "known",  # number of rows with a target
    "recent",  # number of rows that lags can use
    "season",  # 0 without a season
    "look",  # row of the next search for a season, 0 for never
    "ready",  # first row that seasonal statistics learn, 0 without a season
    "same",  # number of rows since the value changed
    "gone",  # number of rows since the last value
    "held",  # number of rows for which the peak does not fade
    "stuck_held",
    "events",  # number of events
    "open",  # whether the last event is open
    "calm",  # number of calm rows of the open event
    "own",  # whether the event is about a stuck or missing value
)

# Index by name
C, N, K = ({name: k for k, name in enumerate(names)} for names in (COLUMNS, NUMBERS, COUNTS))
