// Least mean squares on cosines. onlinegp.models.lms.rffklms is the definition.
#pragma once
#include "affine.hpp"
#include "fixed.hpp"
#include "simd.hpp"

namespace onlinegp::ONLINEGP_ISA {

// sin(pi turns' [x; 1]), of N vectors of cosines from j on; turns (d + 1, D). NaN where the sum is not finite.
template <int N> INLINE void cosines_at(const double* turns, int64_t d, int64_t D, const double* x, int64_t j, double* out) {
    const auto at = [&](int64_t row, int n) ALWAYS { return load_anywhere<Vec<double>>(turns + row * D + j + n * W<double>); };
    Vec<double> t[N];
    EACH(n, N) t[n] = at(d, n);
    for (int64_t k = 0; k < d; k++) EACH(n, N) t[n] = fma(at(k, n), splat<double>(x[k]), t[n]);
    EACH(n, N) store_anywhere(out + j + n * W<double>, sin_pi<double>(t[n]) + (t[n] - t[n]));
}

// All of them: out (D,)
static void cosines_of(const double* turns, int64_t d, int64_t D, const double* x, double* out) {
    constexpr int64_t GROUP = 4 * W<double>;
    int64_t j = 0;
    for (; j + GROUP <= D; j += GROUP) cosines_at<4>(turns, d, D, x, j, out);
    for (; j < D; j += W<double>) cosines_at<1>(turns, d, D, x, j, out);
}

// How many columns the table of turns has
static int64_t turns_of(const FixedRule& rule, int64_t d) { return int64_t(rule.table.size()) / (d + 1); }

// The weights are kept as (p, D); beyond the cosines in use they are zero
class Cosines final : public Fixed {
  public:
    Cosines(const FixedRule& rule, int d, int p) : Fixed(rule, d, p, {{"w", p, turns_of(rule, d)}}, turns_of(rule, d)) {}
    int64_t work_per_row() const override { return 1 + D * (d + p) / 32; }

  private:
    const int64_t D = turns_of(rule, d);

    void look(const double* x, double* mean, double* variance, double* work) const override {
        cosines_of(rule.table.data(), d, D, x, work);  // cos(W x + b)
        for (int64_t o = 0; o < p; o++) mean[o] = dot_of(kept(0) + o * D, work, D);
        *variance = rule.variance;
    }
    void step(const double* x, const double* y, double* mean, double* variance, double* work) override {
        look(x, mean, variance, work);
        for (int64_t o = 0; o < p; o++) add_to(kept(0) + o * D, rule.gain * (y[o] - mean[o]), work, D);
    }
};

}  // namespace onlinegp::ONLINEGP_ISA
