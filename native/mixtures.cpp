// Functions of many mixtures of normal and t distributions.
#include "mixtures.hpp"
#include <map>

namespace onlinegp {

const Kinds& kinds_of(const Vector& degrees) {
    static auto& known = *new std::map<Vector, const Kinds>;
    return known.try_emplace(degrees, degrees).first->second;
}

static Components row(const Mixtures& of, int64_t i, int64_t K) {
    // rows are not changed here
    return {const_cast<double*>(of.weights + i * K), const_cast<double*>(of.means + i * K),
            const_cast<double*>(of.scales + i * K)};
}

void moments(const Kinds& kinds, const Mixtures& of, double* mean, double* std) {
    for (int64_t i = 0; i < of.n; i++) {
        const Moments one = kinds.moments(row(of, i, kinds.count()));
        mean[i] = one.mean;
        std[i] = one.std;
    }
}

void log_density(const Kinds& kinds, const Mixtures& of, const double* y, double* out) {
    for (int64_t i = 0; i < of.n; i++) out[i] = kinds.log_density(row(of, i, kinds.count()), y[i]);
}

double quantile(const Kinds& kinds, const Components& row, double p, const double* quantiles) {
    constexpr int MOST_STEPS = 2200;  // more than bisection needs between any two doubles
    constexpr double EPS = std::numeric_limits<double>::epsilon(), SMALL = 1e-3;
    constexpr double SHORT = 1e-6;  // share of a scale: after a smaller step, only the last digit may be wrong
    double low = INFINITY, high = -INFINITY, least = INFINITY, y = 0;
    for (int64_t k = 0; k < kinds.count(); k++) {
        if (row.weight[k] <= 0) continue;
        const double own = row.mean[k] + row.scale[k] * quantiles[k];
        least = std::min(least, row.scale[k]);
        low = std::min(low, own);
        high = std::max(high, own);
        y += row.weight[k] * own;
    }
    if (kinds.count() == 1 || !(low < high))
        return kinds.count() == 1 ? row.mean[0] + row.scale[0] * quantiles[0] : low;
    y = std::min(std::max(y, low), high);
    const double enough = 2 * EPS * (p < SMALL ? 4 * p : 1);
    double before = INFINITY;
    for (int step = 0; step < MOST_STEPS; step++) {
        const Around at = kinds.around(row, y);
        const double excess = at.below - p;
        (excess < 0 ? low : high) = y;
        const double newton = excess / at.density;
        double next = y - newton / std::max(1 - 0.5 * newton * at.change, 0.5);  // Halley's step
        if (next > low && next < high && std::fabs(next - y) <= SHORT * least) return next;
        if (!(next > low && next < high) || std::fabs(excess) > 0.5 * before) next = 0.5 * (low + high);
        if (std::fabs(excess) <= enough) return y;
        const double moved = std::fabs(next - y);
        const double close = 4 * EPS * std::fabs(y);
        y = next;
        if (moved <= close || high - low <= close) return y;
        before = std::fabs(excess);
    }
    return y;
}

void quantile(const Kinds& kinds, const Mixtures& of, double p, const double* quantiles, double* out) {
    for (int64_t i = 0; i < of.n; i++) out[i] = quantile(kinds, row(of, i, kinds.count()), p, quantiles);
}

}  // namespace onlinegp
