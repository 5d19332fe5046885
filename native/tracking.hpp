// What the models made of models follow along the rows: scales, weights and quantiles. onlinegp.engine.tracking is the
// definition; every operation is in its order, so that the bits are the same.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

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

// R, out: (n, p); log_scale: (p,); steps: (n,)
static void tracked_quantiles(int64_t n, int64_t p, const double* R, const double* steps, double outside, double widest,
                              double* log_scale, double* out) {
    for (int64_t i = 0; i < n; i++, R += p, out += p)
        for (int64_t j = 0; j < p; j++) {
            out[j] = std::exp(log_scale[j]);
            const double moved = log_scale[j] + steps[i] * ((R[j] > out[j] ? 1.0 : 0.0) - outside);
            log_scale[j] = std::min(std::max(moved, -widest), widest);
        }
}

}  // namespace onlinegp::ONLINEGP_ISA
