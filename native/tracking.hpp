// What the models made of models follow along the rows: scales, weights and intervals. onlinegp.engine.tracking is the
// definition; every operation is in its order, so that the bits are the same.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "api.hpp"

namespace onlinegp::ONLINEGP_ISA {

// Z2, out: (n, p); sum, count: (p,). degrees = 0 is the normal distribution.
static void fading_scales(int64_t n, int64_t p, const double* Z2, double degrees, double keep, double far, double tiny,
                          double* sum, double* count, double* out) {
    for (int64_t i = 0; i < n; i++, Z2 += p, out += p)
        for (int64_t j = 0; j < p; j++) {
            const double scale = sum[j] / count[j];
            out[j] = scale;
            double z2 = std::min(Z2[j], 1 / tiny);
            z2 = degrees > 0 ? (degrees + 1) * z2 / (degrees + z2 / scale) : std::min(z2, far * scale);
            sum[j] = keep * sum[j] + std::max(z2, tiny);
            count[j] = keep * count[j] + 1;
        }
}

// densities, out: (n, m); log_weights: (m,), the largest of which is zero
static void fading_weights(int64_t n, int64_t m, const double* densities, double fade, double cut, double least,
                           double* log_weights, double* out) {
    for (int64_t i = 0; i < n; i++, densities += m, out += m) {
        double sum = 0, best = least, largest = least;
        for (int64_t k = 0; k < m; k++) out[k] = std::exp(log_weights[k]), sum += out[k];
        for (int64_t k = 0; k < m; k++) out[k] /= sum;
        for (int64_t k = 0; k < m; k++) best = densities[k] > best ? densities[k] : best;
        best = std::min(best, -least);
        for (int64_t k = 0; k < m; k++) {
            double gained = densities[k] > least ? std::min(densities[k], -least) : least;
            gained = std::max(gained, best - cut) - best;
            log_weights[k] = fade * log_weights[k] + gained;
            largest = log_weights[k] > largest ? log_weights[k] : largest;
        }
        for (int64_t k = 0; k < m; k++) log_weights[k] = std::max(log_weights[k] - largest, least);
    }
}

// missed, out: (n, p); missed holds ones and zeros
static void tracked_stretch(int64_t n, int64_t p, const double* missed, const StretchRule& rule,
                            const StretchState& state, double* out) {
    for (int64_t i = 0; i < n; i++, missed += p, out += p)
        for (int64_t j = 0; j < p; j++) {
            const bool miss = missed[j] != 0;
            double& more = state.more[j];
            double& fewer = state.fewer[j];
            double& rows = state.rows[j];
            out[j] = std::exp(state.log_scale[j]);
            more = std::min(std::max(more + (miss ? rule.more_at_miss : rule.more_at_hit), 0.0), rule.alarm);
            fewer = std::min(std::max(fewer + (miss ? rule.fewer_at_miss : rule.fewer_at_hit), 0.0), rule.alarm);
            const bool off = more >= rule.alarm || fewer >= rule.alarm;
            rows = off ? 0.0 : std::min(rows + 1, rule.most);
            const double gain = off ? rule.step : 1 / (rule.slope * (rule.confirmed + rows));
            const double moved = state.log_scale[j] + gain * (missed[j] - rule.outside);
            state.log_scale[j] = std::min(std::max(moved, -rule.widest), rule.widest);
        }
}

}  // namespace onlinegp::ONLINEGP_ISA
