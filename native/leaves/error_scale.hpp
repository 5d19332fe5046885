// The standard deviation of models that define none: the twin of onlinegp.models.rowwise.ErrorScale, which has the
// equations.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include "fields.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr double LEAST_SQUARE = 1e-300, SPACING = 0x1p-50, SHARE_OF_A_CHANGE = 0.1;

// squares <- keep squares + max(|e|, floor)^2; squares, the last y and the smallest change of y are for one output
static inline void add_error(double e, double y, double keep, bool first, double& squares, double& last,
                             double& resolution) {
    const double change = std::fabs(y - last), spacing = SPACING * std::fabs(y);
    if (!first && change > spacing && std::isfinite(change) && (resolution == 0 || change < resolution))
        resolution = change;
    last = y;
    const double finest = SHARE_OF_A_CHANGE * resolution, floor = finest > spacing ? finest : spacing;
    const double size = std::fabs(e) < floor ? floor : std::fabs(e);  // NaN stays
    const double square = size * size;
    squares = keep * squares + (square < LEAST_SQUARE       ? LEAST_SQUARE
                                : square > 1 / LEAST_SQUARE ? 1 / LEAST_SQUARE
                                                            : square);
}

// The complete state, for a model that owns it. Its fields, for p outputs, are squares, last, resolution and the count.
class ErrorScale {
  public:
    explicit ErrorScale(int64_t p) : squares_(size_t(p), 1.0), last_(size_t(p)), resolution_(size_t(p)) {}

    void variances(double* out) const {
        for (size_t o = 0; o < squares_.size(); o++) out[o] = squares_[o] / count_;
    }
    const double* last() const { return last_.data(); }
    void set_last(const double* y) { std::copy_n(y, last_.size(), last_.begin()); }
    // Learn the errors of y. `first` is true for the first y.
    void add(const double* y, const double* mean, bool first) {
        for (size_t o = 0; o < squares_.size(); o++)
            add_error(y[o] - mean[o], y[o], KEEP, first, squares_[o], last_[o], resolution_[o]);
        count_ = KEEP * count_ + 1;
    }
    void fields(Visitor& visit, const std::string& prefix) {
        const Shape outputs{int64_t(squares_.size())};
        visit.array(prefix + "squares", squares_, outputs);
        visit.array(prefix + "last", last_, outputs);
        visit.array(prefix + "resolution", resolution_, outputs);
        visit.number(prefix + "count", count_);
    }

  private:
    static constexpr double KEEP = 1.0 - 1.0 / 100.0;  // about the last hundred rows count
    std::vector<double> squares_, last_, resolution_;
    double count_ = 1;
};

}  // namespace onlinegp::ONLINEGP_ISA
