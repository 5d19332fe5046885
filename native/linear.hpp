// Bayesian linear regression in square-root information form. onlinegp.models.linear.information is the definition.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include "fixed.hpp"

namespace onlinegp::ONLINEGP_ISA {

// (a, b) <- (c a + s b, c b - s a), for each
static inline void rotate(int64_t n, double c, double s, double* __restrict a, double* __restrict b) {
    for (int64_t j = 0; j < n; j++) {
        const double above = a[j], below = b[j];
        a[j] = c * above + s * below, b[j] = c * below - s * above;
    }
}

// R'R <- R'R + v v' and R'z <- R'z + v t', by one plane rotation for each row from `first` on; v (m,) and t (p,) are used up
static void add_row(int64_t m, int64_t p, int64_t first, double* R, double* z, double* v, double* t) {
    for (int64_t i = first; i < m; i++) {
        if (v[i] == 0) continue;
        double* row = R + i * m;
        const double h = std::hypot(row[i], v[i]), c = row[i] / h, s = v[i] / h;
        row[i] = h;
        rotate(m - i - 1, c, s, row + i + 1, v + i + 1);
        rotate(p, c, s, z + i * p, t);
    }
}

// mean = u'z and v = u'u with u = R^-T x; x (m,) becomes u
static void predict_row(int64_t m, int64_t p, const double* R, const double* z, double* __restrict x, double* mean, double* v) {
    std::memset(mean, 0, size_t(p) * sizeof(double));
    double sum = 0;
    for (int64_t i = 0; i < m; i++) {
        const double* __restrict row = R + i * m;
        const double u = x[i] / row[i];
        x[i] = u, sum += u * u;
        for (int64_t j = i + 1; j < m; j++) x[j] -= u * row[j];
        for (int64_t k = 0; k < p; k++) mean[k] += u * z[i * p + k];
    }
    *v = sum;
}

// out (m,) = scale x, for an intercept with a one behind x (d,)
static void take(int64_t d, int64_t m, const double* x, double scale, double* out) {
    for (int64_t j = 0; j < d; j++) out[j] = scale * x[j];
    if (m > d) out[d] = scale;
}

class Information final : public Fixed {
  public:
    Information(const FixedRule& rule, int d, int p)
        : Fixed(rule, d, p, {{"R", rule.weights(d), rule.weights(d)}, {"z", rule.weights(d), p}}, rule.weights(d) + p) {}
    int64_t work_per_row() const override { return 1 + m * m / 32; }

  private:
    const int64_t m = rule.weights(d);
    const double precision = 1.0 / std::sqrt(rule.noise), keep = std::sqrt(rule.forgetting);

    void look(const double* x, double* mean, double* variance, double* work) const override {
        take(d, m, x, 1, work);
        predict_row(m, p, kept(0), kept(1), work, mean, variance);
        *variance += rule.noise;
    }
    void step(const double* x, const double* y, double* mean, double* variance, double* work) override {
        double *R = kept(0), *z = kept(1), *t = work + m;
        look(x, mean, variance, work);
        if (keep < 1) {
            for (int64_t j = 0; j < m * m; j++) R[j] *= keep;
            for (int64_t j = 0; j < m * p; j++) z[j] *= keep;
            const int64_t which = seen_ % m;
            std::memset(work, 0, size_t(m + p) * sizeof(double));
            work[which] = rule.table[size_t(seen_ < m ? which : m - 1)];
            add_row(m, p, which, R, z, work, t);
        }
        take(d, m, x, precision, work);
        for (int64_t k = 0; k < p; k++) t[k] = precision * y[k];
        add_row(m, p, 0, R, z, work, t);
    }
};

}  // namespace onlinegp::ONLINEGP_ISA
