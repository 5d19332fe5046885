// The constants of the detector and its state, in the order of onlinegp/models/alarms/constants.py.
#pragma once
#include <cstdint>

namespace onlinegp {
namespace alarms {

constexpr int NEAR = 8;
constexpr int AROUND = 2;
constexpr int64_t RECENT = 2048;
constexpr int KEPT = 144;
constexpr int KEPT_OF_SCORES = 104;
constexpr double WIDTH = 2.46;
constexpr double LEVEL_WIDTH = 2.5;
constexpr int WEEK = 7;
constexpr double CUT_ERROR = 10;
constexpr double MOST_ERROR = 100;
constexpr int64_t EVENTS = 8;
constexpr int MOST_NEAR = NEAR + 2 * AROUND + 2;
constexpr int MOST_FAR = 6;
constexpr double LARGEST = 1e30;

struct Constants {
    double forgetting, clip, ridge_near, ridge_far, slow, error_rate, long_rate, burn, silent, share, generation,
        nearly, prior, shape, beyond, speed, pooled, offset, lasting, stuck_offset, young, hold, fade, margin,
        threshold, low, quiet, helps;
};

struct Numbers {
    double shift, origin, unit, level, spread, level_20, level_100, score_level, score_spread, score_20, score_100,
        season_20, error_5, error_20, error_100, mean_error, long_error, far_error, last, peak, stuck_peak;
};

struct Counts {
    int64_t rows, known, recent, season, look, ready, same, gone, held, stuck_held, events, open, calm, own;
};

// The results for a row
struct Out {
    double tail, score, evidence, statistic, expected, low, high, level, level_low, level_high, families[4], event, run;
};

enum Statistic {
    VALUE,
    UP_20,
    DOWN_20,
    UP_100,
    DOWN_100,
    SEASON,
    SEASON_UP,
    SEASON_DOWN,
    ERROR,
    ERROR_5,
    ERROR_20,
    ERROR_100,
    STUCK,
    MISSING,
    SCORE,
    SCORE_UP_20,
    SCORE_DOWN_20,
    SCORE_UP_100,
    SCORE_DOWN_100,
    MOST_STATISTICS
};
constexpr int FAMILY[MOST_STATISTICS] = {0, 1, 1, 1, 1, 2, 2, 2, 0, 3, 3, 3, -1, -1, 0, 1, 1, 1, 1};
inline bool seasonal(int k) { return k >= SEASON && k <= SEASON_DOWN; }
inline bool sudden(int k) { return FAMILY[k] == 0 || k == SEASON; }  // statistics that are not means over rows

}  // namespace alarms
}  // namespace onlinegp
