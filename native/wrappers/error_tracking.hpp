// Recursions over errors for the models that wrap other models: scales, weights and intervals, one row at a time.
// onlinegp.models.error_tracking is the definition. Operations have the same order, so that the bits are equal.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace onlinegp {

// The fading mean of z^2, total / count
struct FadingScaleRule {
    double degrees, keep, far, tiny;  // degrees = 0 means the normal distribution
};

inline void update_scale(const FadingScaleRule& rule, double z2, double& total, double& count) {
    const double scale = total / count;
    z2 = std::min(z2, 1 / rule.tiny);
    z2 = rule.degrees > 0 ? (rule.degrees + 1) * z2 / (rule.degrees + z2 / scale) : std::min(z2, rule.far * scale);
    total = rule.keep * total + std::max(z2, rule.tiny);
    count = rule.keep * count + 1;
}

struct FadingWeightsRule {
    double fade, cut, least;
};

// The weights (m,) from log weights (m,), the largest of which is zero
inline void shares(int64_t m, const double* log_weights, double* out) {
    double sum = 0;
    for (int64_t k = 0; k < m; k++) {
        out[k] = std::exp(log_weights[k]);
        sum += out[k];
    }
    for (int64_t k = 0; k < m; k++) out[k] /= sum;
}

inline void update_weights(const FadingWeightsRule& rule, int64_t m, const double* densities, double* log_weights) {
    const double least = rule.least;
    double best = least, largest = least;
    for (int64_t k = 0; k < m; k++) best = densities[k] > best ? densities[k] : best;
    best = std::min(best, -least);
    for (int64_t k = 0; k < m; k++) {
        double gained = densities[k] > least ? std::min(densities[k], -least) : least;
        gained = std::max(gained, best - rule.cut) - best;
        log_weights[k] = rule.fade * log_weights[k] + gained;
        largest = log_weights[k] > largest ? log_weights[k] : largest;
    }
    for (int64_t k = 0; k < m; k++) log_weights[k] = std::max(log_weights[k] - largest, least);
}

// The stretch of intervals, learned from hits and misses: see tracked_stretch in onlinegp.models.error_tracking
struct StretchRule {
    double outside, step, slope;
    double more_at_miss, more_at_hit, fewer_at_miss, fewer_at_hit;
    double confirmed, most, alarm, widest, sure, wide;
};

inline void update_stretch(const StretchRule& rule, bool miss, double& log_scale, double& rows, double& more,
                           double& fewer) {
    more = std::min(std::max(more + (miss ? rule.more_at_miss : rule.more_at_hit), 0.0), rule.alarm);
    const double before = miss ? std::min(fewer, rule.alarm) : fewer;
    fewer = std::min(std::max(before + (miss ? rule.fewer_at_miss : rule.fewer_at_hit), 0.0), rule.sure);
    const bool off = more >= rule.alarm || fewer >= rule.alarm;
    rows = off ? 0.0 : std::min(rows + 1, rule.most);
    const double gain = off ? rule.step : 1 / (rule.slope * (rule.confirmed + rows));
    double moved = log_scale + gain * ((miss ? 1.0 : 0.0) - rule.outside);
    if (fewer >= rule.sure && log_scale > rule.wide) moved = std::max(log_scale - rule.step, rule.wide);
    log_scale = std::min(std::max(moved, -rule.widest), rule.widest);
}

}  // namespace onlinegp
