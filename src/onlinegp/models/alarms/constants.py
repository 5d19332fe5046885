"""The constants of the detector, in the order in which its compiled twin reads them; rates are per row."""

from __future__ import annotations

from typing import NamedTuple

NEAR = 8  # lags of the near predictor
AROUND = 2  # it has season - 2 ... season + 2, too
RECENT = 2048  # rows that are kept: for lags, to find a season, and to learn it from
KEPT = 144  # largest values of a generation; on top of a model, where there are more statistics, fewer
KEPT_OF_SCORES = 104
WEEK = 7  # days
FIRST_LOOK = 256  # rows before a season and a scale are looked for; then twice as many, and so on
WIDTH = 2.46  # mean absolute errors on either side of a 95% interval
LEVEL_WIDTH = 2.5  # the same around a level
CUT_ERROR = 10.0  # mean absolute errors at which an error is cut before a mean of errors is taken
MOST_ERROR = 100.0  # the largest: in a stream without noise each spike would be larger than the last
EVENTS = 8  # the latest events, which can be confirmed
KINDS = ("spike", "level", "trend", "variance", "season broken", "stuck", "missing")  # of events


class Constants(NamedTuple):
    forgetting: float = 0.9995  # of both predictors
    clip: float = 4.0  # mean absolute errors at which an error is cut before it is learned
    ridge_near: float = 1.0
    ridge_far: float = 100.0  # the far predictor needs about 100 rows of evidence to leave the slow level
    slow: float = 0.001  # rate of the slow level and of the spread around it
    error_rate: float = 0.002  # of the mean absolute error
    long_rate: float = 0.0005  # of its floor
    burn: float = 32.0  # rows that the lists do not learn
    silent: float = 150.0  # rows that have no evidence
    share: float = 0.05  # of the rows whose values are above the threshold of a tail
    generation: float = 10000.0  # rows
    nearly: float = 0.95  # of an excess: what counts as just as large
    prior: float = 20.0  # excesses by which the shape is shrunk
    shape: float = 0.2  # toward this one
    beyond: float = 0.7  # above log10(rows) + this, evidence grows
    speed: float = 0.25  # by this share
    pooled: float = 0.4  # weight of the mean of the four best statistics; the rest is for the best
    offset: float = 0.43  # added to the evidence of a row
    lasting: float = 0.2  # taken from it if a mean over rows leads: that can grow, but a spike has one row to be seen
    stuck_offset: float = 0.5  # taken from that of a stuck row
    young: float = 500.0  # rows: what is taken from the evidence of a young stream is log10(1 + (this / rows)^3)
    hold: float = 200.0  # rows for which the peak of an event is held after it has cleared, at most
    fade: float = 0.99  # by which it fades after that, each row
    margin: float = 0.2  # by which a row must top it
    threshold: float = 3.0  # score at which an event opens: -log10 of the rate
    low: float = 1.8  # evidence below which a row is calm
    quiet: float = 20.0  # calm rows after which an event clears
    helps: float = 0.95  # of the spread: the error of the far predictor above which a season tells nothing


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
    # On top of a model, the same of its normal score
    "score",
    "score 20 up",
    "score 20 down",
    "score 100 up",
    "score 100 down",
)
SEASON, ERROR, STUCK, MISSING, SCORE = (STATISTICS.index(n) for n in ("season", "error", "stuck", "missing", "score"))

# What a row's evidence came from, by family; the compiled twin has the same numbers
SINGLE, LEVEL, SEASONAL, SPREAD = range(4)
FAMILY = (0, 1, 1, 1, 1, 2, 2, 2, 0, 3, 3, 3, -1, -1, 0, 1, 1, 1, 1)
SUDDEN = tuple(k for k in range(len(STATISTICS)) if FAMILY[k] == SINGLE or k == SEASON)  # not a mean over rows

# What is returned of a row
COLUMNS = (
    "tail",  # -log10 of the calibrated probability of the row
    "score",  # evidence of a row that opens or tops an event, 0 elsewhere
    "evidence",
    "statistic",  # number of the leading one
    "expected",  # prediction of the near predictor
    "low",  # and its 95% interval
    "high",
    "level",  # of the target, before the row
    "level_low",
    "level_high",
    "single",  # the largest evidence of each family
    "shifted",
    "seasonal",
    "spreading",
    "event",  # number of the event that is open, 0 if there is none
    "run",  # rows for which the value has not changed, or for which there was none
)

# What the next row needs, beside the arrays
NUMBERS = (
    "shift",  # of the target, whose logarithm is taken; 0 if it is not
    "origin",  # of the target: units are relative to its first value
    "unit",  # and to the first change
    "level",
    "spread",
    "level_20",
    "level_100",
    "score_level",  # the same of the series that is predicted
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
    "peak",  # of the event
    "stuck_peak",
)
COUNTS = (
    "rows",  # so far
    "known",  # of them with a target
    "recent",  # that lags can reach
    "season",  # 0 if there is none
    "look",  # row at which a season is looked for next, 0 for never
    "ready",  # row from which the seasonal statistics learn, 0 if there is no season
    "same",  # rows since the value changed
    "gone",  # rows since the last value
    "held",  # rows for which the peaks do not fade
    "stuck_held",
    "events",  # so far
    "open",  # whether the last one is
    "calm",  # rows since it was last seen
    "own",  # whether it is one of a stuck or missing value
)

# Positions by name
C, N, K = ({name: k for k, name in enumerate(names)} for names in (COLUMNS, NUMBERS, COUNTS))
