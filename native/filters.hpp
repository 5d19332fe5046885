// Linear filters. onlinegp.models.linear.isotropic and onlinegp.models.linear.kalman are the definitions.
#pragma once
#include "linear.hpp"

namespace onlinegp::ONLINEGP_ISA {

// mean (p,) = keep w'x
static void weighted(int64_t m, int64_t p, const double* w, const double* x, double keep, double* __restrict mean) {
    std::memset(mean, 0, size_t(p) * sizeof(double));
    for (int64_t j = 0; j < m; j++)
        for (int64_t k = 0; k < p; k++) mean[k] += w[j * p + k] * x[j];
    for (int64_t k = 0; k < p; k++) mean[k] *= keep;
}

// w <- keep w + gain (y - mean)', gain (m,)
static void correct(int64_t m, int64_t p, double* w, const double* gain, double keep, const double* y, const double* mean) {
    for (int64_t j = 0; j < m; j++)
        for (int64_t k = 0; k < p; k++) w[j * p + k] = keep * w[j * p + k] + gain[j] * (y[k] - mean[k]);
}

static int64_t isotropic_run(const Isotropic& model, int64_t n, const double* X, const double* Y, double* mean, double* s,
                             Stop& stop) {
    const int64_t m = model.m, p = model.p;
    double* x = model.work;
    for (int64_t i = 0; i < n; i++, X += model.d, Y += p, mean += p) {
        if (stop.asked(1 + m * p / 16)) return i;
        take(model.d, m, X, 1, x);
        double x2 = 0;
        for (int64_t j = 0; j < m; j++) x2 += x[j] * x[j];
        const double v = model.keep * model.keep * *model.v + model.drift;
        s[i] = model.floor + model.slope * v * x2;
        weighted(m, p, model.w, x, model.keep, mean);
        for (int64_t j = 0; j < m; j++) x[j] *= v / s[i];
        correct(m, p, model.w, x, model.keep, Y, mean);
        *model.v = v * (model.floor + (model.slope - model.share) * v * x2) / s[i];
        ++*model.seen;
    }
    return n;
}

// U'U <- U'U + drift I, one weight after the other
static void drift(int64_t m, double root, double* U, double* spare) {
    for (int64_t i = 0; i < m; i++) {
        std::memset(spare, 0, size_t(m) * sizeof(double));
        spare[i] = root;
        add_row(m, 0, i, U, nullptr, spare, nullptr);
    }
}

// Rotate [sqrt(noise) 0; f U] to [sqrt(s) h'/sqrt(s); 0 U+] with f = U x: U+'U+ = P - h h'/s, h = P x. f and t are (m,);
// t becomes h / sqrt(s), and sqrt(s) is returned.
static double observe(int64_t m, double root, double* U, const double* f, double* t) {
    std::memset(t, 0, size_t(m) * sizeof(double));
    for (int64_t i = m - 1; i >= 0; i--) {
        if (f[i] == 0) continue;
        const double h = std::hypot(root, f[i]);
        rotate(m - i, root / h, f[i] / h, t + i, U + i * m + i);
        root = h;
    }
    return root;
}

static int64_t kalman_run(const Kalman& model, int64_t n, const double* X, const double* Y, double* mean, double* s, Stop& stop) {
    const int64_t m = model.m, p = model.p;
    double *x = model.work, *f = x + m, *t = f + m;
    for (int64_t i = 0; i < n; i++, X += model.d, Y += p, mean += p) {
        if (stop.asked(1 + m * m * (model.root_drift > 0 ? m : 1) / 16)) return i;
        take(model.d, m, X, 1, x);
        if (model.root_drift > 0) drift(m, model.root_drift, model.U, t);
        for (int64_t j = 0; j < m; j++) {
            f[j] = 0;
            for (int64_t k = j; k < m; k++) f[j] += model.U[j * m + k] * x[k];
        }
        weighted(m, p, model.w, x, 1, mean);
        const double root = observe(m, model.root_noise, model.U, f, t);
        for (int64_t j = 0; j < m; j++) t[j] /= root;
        correct(m, p, model.w, t, 1, Y, mean);
        s[i] = root * root;
        ++*model.seen;
    }
    return n;
}

}  // namespace onlinegp::ONLINEGP_ISA
