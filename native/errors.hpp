// The standard deviation of models that have none of their own: onlinegp.models.steps.ErrorScale, which has the equations.
#pragma once
#include <cmath>
#include <cstdint>

namespace onlinegp::ONLINEGP_ISA {

constexpr double LEAST_SQUARE = 1e-300, SPACING = 0x1p-50, SHARE_OF_A_CHANGE = 0.1;

// squares <- keep squares + max(|e|, floor)^2; squares, the last y and the smallest change of y are those of one output
static inline void add_error(double e, double y, double keep, bool first, double& squares, double& last, double& resolution) {
    const double change = std::fabs(y - last), spacing = SPACING * std::fabs(y);
    if (!first && change > spacing && std::isfinite(change) && (resolution == 0 || change < resolution)) resolution = change;
    last = y;
    const double finest = SHARE_OF_A_CHANGE * resolution, floor = finest > spacing ? finest : spacing;
    const double size = std::fabs(e) < floor ? floor : std::fabs(e);  // NaN stays
    const double square = size * size;
    squares = keep * squares + (square < LEAST_SQUARE ? LEAST_SQUARE : square > 1 / LEAST_SQUARE ? 1 / LEAST_SQUARE : square);
}

// The same of p outputs, whose numbers are the rows of squares (3, p), and the count of errors, which is one before the first
static inline void add_errors(int64_t p, const double* y, const double* mean, double keep, double* squares, double& count) {
    for (int64_t o = 0; o < p; o++) add_error(y[o] - mean[o], y[o], keep, count == 1, squares[o], squares[p + o], squares[2 * p + o]);
    count = keep * count + 1;
}

}  // namespace onlinegp::ONLINEGP_ISA
