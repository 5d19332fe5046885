// Least mean squares on cosines. onlinegp.models.lms.rffklms is the definition.
#pragma once
#include "affine.hpp"

namespace onlinegp::ONLINEGP_ISA {

// work[j] = cos(W x + b) = sin(pi turns' [x; 1]), of N vectors of cosines from j on; NaN where the sum is not finite
template <int N> static INLINE void cosines_at(const Cosines& model, const double* x, int64_t j) {
    const auto at = [&](int64_t row, int n) ALWAYS {
        Vec<double> v;
        std::memcpy(&v, model.turns + row * model.D + j + n * W<double>, sizeof v);
        return v;
    };
    Vec<double> t[N];
    EACH(n, N) t[n] = at(model.d, n);
    for (int64_t k = 0; k < model.d; k++) EACH(n, N) t[n] = fma(at(k, n), splat<double>(x[k]), t[n]);
    EACH(n, N) store_anywhere(model.work + j + n * W<double>, sin_pi<double>(t[n]) + (t[n] - t[n]));
}

// Predict n rows and, where Y is given, learn each of them; returns how many
static int64_t cosines_run(const Cosines& model, int64_t n, const double* X, const double* Y, double* mean, Stop& stop) {
    constexpr int64_t GROUP = 4 * W<double>;
    const int64_t D = model.D, p = model.p;
    for (int64_t i = 0; i < n; i++, X += model.d, mean += p) {
        if (stop.asked(1 + D * (model.d + p) / 16)) return i;
        int64_t j = 0;
        for (; j + GROUP <= D; j += GROUP) cosines_at<4>(model, X, j);
        for (; j < D; j += W<double>) cosines_at<1>(model, X, j);
        for (int64_t o = 0; o < p; o++) mean[o] = dot_of(model.w + o * D, model.work, D);
        if (!Y) continue;
        for (int64_t o = 0; o < p; o++) add_to(model.w + o * D, model.gain * (Y[i * p + o] - mean[o]), model.work, D);
        ++*model.seen;
    }
    return n;
}

}  // namespace onlinegp::ONLINEGP_ISA
