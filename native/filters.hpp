// Linear filters, and the value before. onlinegp.models.linear.isotropic, kalman_learner and persistence are the definitions.
#pragma once
#include "errors.hpp"
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

class Isotropic final : public Fixed {
  public:
    Isotropic(const FixedRule& rule, int d, int p)
        : Fixed(rule, d, p, {{"w", rule.weights(d), p}, {"v", 1}}, rule.weights(d)) {}
    int64_t work_per_row() const override { return 1 + m * p / 32; }

  private:
    const int64_t m = rule.weights(d);

    double drifted() const { return rule.keep * rule.keep * *kept(1) + rule.drift; }
    static double square(int64_t m, const double* x) {
        double x2 = 0;
        for (int64_t j = 0; j < m; j++) x2 += x[j] * x[j];
        return x2;
    }
    void look(const double* x, double* mean, double* variance, double* work) const override {
        take(d, m, x, 1, work);
        *variance = rule.floor + rule.slope * drifted() * square(m, work);
        weighted(m, p, kept(0), work, rule.keep, mean);
    }
    void step(const double* x, const double* y, double* mean, double* variance, double* work) override {
        look(x, mean, variance, work);
        const double v = drifted(), x2 = square(m, work), s = *variance;
        for (int64_t j = 0; j < m; j++) work[j] *= v / s;
        correct(m, p, kept(0), work, rule.keep, y, mean);
        *kept(1) = v * (rule.floor + (rule.slope - rule.share) * v * x2) / s;
    }
};

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

// sqrt(s) alone, to the same bits
static double observed(int64_t m, double root, const double* f) {
    for (int64_t i = m - 1; i >= 0; i--)
        if (f[i] != 0) root = std::hypot(root, f[i]);
    return root;
}

// f (m,) = U x
static void triangle_times(int64_t m, const double* U, const double* x, double* f) {
    for (int64_t j = 0; j < m; j++) {
        f[j] = 0;
        for (int64_t k = j; k < m; k++) f[j] += U[j * m + k] * x[k];
    }
}

class Kalman final : public Fixed {
  public:
    Kalman(const FixedRule& rule, int d, int p)
        : Fixed(rule, d, p, {{"w", rule.weights(d), p}, {"U", rule.weights(d), rule.weights(d)}}, scratch(rule, rule.weights(d))) {}
    int64_t work_per_row() const override { return 1 + m * m * (drifts ? m : 1) / 32; }

  private:
    const int64_t m = rule.weights(d);
    const bool drifts = rule.drift > 0;
    const double root_noise = std::sqrt(rule.noise), root_drift = std::sqrt(rule.drift);

    // x, f and t, and where the weights drift the triangle after that, for predictions
    static int64_t scratch(const FixedRule& rule, int64_t m) { return 3 * m + (rule.drift > 0 ? m * m : 0); }

    void prepare(double* work) const override {
        if (!drifts) return;
        double* U = work + 3 * m;
        std::memcpy(U, kept(1), size_t(m * m) * sizeof(double));
        drift(m, root_drift, U, work);
    }
    void look(const double* x, double* mean, double* variance, double* work) const override {
        double *own = work, *f = own + m;
        take(d, m, x, 1, own);
        triangle_times(m, drifts ? work + 3 * m : kept(1), own, f);
        weighted(m, p, kept(0), own, 1, mean);
        const double root = observed(m, root_noise, f);
        *variance = root * root;
    }
    void step(const double* x, const double* y, double* mean, double* variance, double* work) override {
        double *own = work, *f = own + m, *t = f + m;
        take(d, m, x, 1, own);
        if (drifts) drift(m, root_drift, kept(1), t);
        triangle_times(m, kept(1), own, f);
        weighted(m, p, kept(0), own, 1, mean);
        const double root = observe(m, root_noise, kept(1), f, t);
        for (int64_t j = 0; j < m; j++) t[j] /= root;
        correct(m, p, kept(0), t, 1, y, mean);
        *variance = root * root;
    }
};

// Of one output: y, the sum and the count that its mean squared change comes from, and its smallest change
class Last final : public Fixed {
  public:
    Last(const FixedRule& rule, int d, int p) : Fixed(rule, d, p, {{"y", 1}, {"squares", 1}, {"count", 1}, {"resolution", 1}}, 0) {}
    int64_t work_per_row() const override { return 1; }

  private:
    void look(const double*, double* mean, double* variance, double*) const override {
        *mean = *kept(0), *variance = *kept(1) / *kept(2);
    }
    void step(const double* x, const double* y, double* mean, double* variance, double* work) override {
        look(x, mean, variance, work);
        if (!seen_) {  // the first y is no change
            *kept(0) = *y;
            return;
        }
        add_error(*y - *mean, *y, rule.keep, false, *kept(1), *kept(0), *kept(3));
        *kept(2) = rule.keep * *kept(2) + 1;
    }
};

}  // namespace onlinegp::ONLINEGP_ISA
