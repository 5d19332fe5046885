// Least mean squares on cosines. onlinegp.models.lms.rffklms is the definition.
#pragma once
#include "leaves/affine.hpp"
#include "leaves/constant_memory.hpp"
#include "plan.hpp"
#include "linear_algebra/simd.hpp"

namespace onlinegp::ONLINEGP_ISA {

// sin(pi turns' [x; 1]) for N vectors of cosines from j on; turns (d + 1, D). NaN where the sum is not finite.
template <int N>
INLINE void cosines_at(const double* turns, int64_t d, int64_t D, const double* x, int64_t j, double* out) {
    const auto at = [&](int64_t row, int n)
                        ALWAYS { return load_anywhere<Vec<double>>(turns + row * D + j + n * W<double>); };
    Vec<double> t[N];
    EACH(n, N) t[n] = at(d, n);
    for (int64_t k = 0; k < d; k++)
        EACH(n, N) t[n] = fma(at(k, n), splat<double>(x[k]), t[n]);
    EACH(n, N) store_anywhere(out + j + n * W<double>, sin_pi<double>(t[n]) + (t[n] - t[n]));
}

// All cosines: out (D,)
static void cosines_of(const double* turns, int64_t d, int64_t D, const double* x, double* out) {
    constexpr int64_t GROUP = 4 * W<double>;
    int64_t j = 0;
    for (; j + GROUP <= D; j += GROUP) cosines_at<4>(turns, d, D, x, j, out);
    for (; j < D; j += W<double>) cosines_at<1>(turns, d, D, x, j, out);
}

// The number of columns of the table of turns
static int64_t turns_of(const Plan& plan) { return int64_t(plan.vector("turns").size()) / (plan.features + 1); }

// The weights are stored as (p, D). Weights of unused cosines are zero.
class Cosines final : public Fixed {
  public:
    explicit Cosines(const Plan& plan)
        : Fixed(plan.features, plan.outputs, turns_of(plan)),
          D_(turns_of(plan)),
          used_(int64_t(plan.number("basis"))),
          gain_(plan.number("gain")),
          variance_of_y_(plan.number("variance")),
          turns_(plan.vector("turns")),
          w_(size_t(p * D_)) {}
    int64_t work_per_row() const override { return 1 + D_ * (d + p) / 32; }

  private:
    void look(const double* x, double* mean, double* variance, double* scratch) const override {
        cosines_of(turns_.data(), d, D_, x, scratch);  // cos(W x + b)
        for (int64_t o = 0; o < p; o++) mean[o] = dot_of(w_.data() + o * D_, scratch, D_);
        *variance = variance_of_y_;
    }
    void correct(const double*, const double* y, const double* mean, const double*, double* scratch) override {
        for (int64_t o = 0; o < p; o++) add_to(w_.data() + o * D_, gain_ * (y[o] - mean[o]), scratch, D_);
    }
    void list_fields(Visitor& visit) override {
        if (visit.looks()) return;
        std::vector<double> stored(size_t(used_ * p));  // (used, p)
        if (visit.saves())
            for (int64_t j = 0; j < used_ * p; j++) stored[size_t(j)] = w_[size_t(j % p * D_ + j / p)];
        visit.integer("seen", seen_);
        visit.array("w.w", stored, {used_, p});
        if (visit.loads())
            for (int64_t j = 0; j < used_ * p; j++) w_[size_t(j % p * D_ + j / p)] = stored[size_t(j)];
    }

    const int64_t D_, used_;
    const double gain_, variance_of_y_;
    const std::vector<double> turns_;
    std::vector<double> w_;
};

}  // namespace onlinegp::ONLINEGP_ISA
