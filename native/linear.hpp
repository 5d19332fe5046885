// Bayesian linear regression in square-root information form. onlinegp.models.linear.information is the definition.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include "api.hpp"

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

static int64_t linear_run(const Linear& model, int64_t n, const double* X, const double* Y, double* mean, double* v, Stop& stop) {
    const int64_t m = model.m, p = model.p;
    double *x = model.work, *t = x + m, *spare = t + p;
    for (int64_t i = 0; i < n; i++, X += model.d, Y += p) {
        if (stop.asked(1 + m * m / 16)) return i;
        take(model.d, m, X, 1, x);
        predict_row(m, p, model.R, model.z, x, mean ? mean + i * p : spare, v ? v + i : spare + p);
        if (model.keep < 1) {
            for (int64_t j = 0; j < m * m; j++) model.R[j] *= model.keep;
            for (int64_t j = 0; j < m * p; j++) model.z[j] *= model.keep;
            const int64_t which = *model.seen % m;
            std::memset(x, 0, size_t(m + p) * sizeof(double));
            x[which] = model.renewal[*model.seen < m ? which : m - 1];
            add_row(m, p, which, model.R, model.z, x, t);
        }
        take(model.d, m, X, model.precision, x);
        for (int64_t k = 0; k < p; k++) t[k] = model.precision * Y[k];
        add_row(m, p, 0, model.R, model.z, x, t);
        ++*model.seen;
    }
    return n;
}

static void linear_predict(const Linear& model, int64_t n, const double* X, double* mean, double* v, Stop& stop) {
    for (int64_t i = 0; i < n; i++, X += model.d) {
        if (stop.asked(1 + model.m * model.m / 32)) return;
        take(model.d, model.m, X, 1, model.work);
        predict_row(model.m, model.p, model.R, model.z, model.work, mean + i * model.p, v + i);
    }
}

}  // namespace onlinegp::ONLINEGP_ISA
