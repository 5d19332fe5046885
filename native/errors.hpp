// The standard deviation of models that have none of their own: onlinegp.models.steps.ErrorScale, which has the equations.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

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

// All of it, for a model that owns it: numbers are the rows of squares (3, p) and then the count
class ErrorScale {
  public:
    explicit ErrorScale(int64_t p) : numbers(size_t(3 * p + 1)), p_(p) {
        std::fill_n(numbers.begin(), p, 1.0);
        numbers.back() = 1;
    }
    std::vector<double> numbers;

    void variances(double* out) const {
        for (int64_t o = 0; o < p_; o++) out[o] = numbers[size_t(o)] / numbers.back();
    }
    void add(const double* y, const double* mean) { add_errors(p_, y, mean, KEEP, numbers.data(), numbers.back()); }

  private:
    static constexpr double KEEP = 1.0 - 1.0 / 100.0;  // about the last hundred rows count
    const int64_t p_;
};

}  // namespace onlinegp::ONLINEGP_ISA
