// Linear filters, and persistence. onlinegp.models.linear.isotropic_filter, kalman_filter and
// baselines.persistence are the definitions.
#pragma once
#include "leaves/error_scale.hpp"
#include "leaves/linear.hpp"

namespace onlinegp::ONLINEGP_ISA {

// mean (p,) = keep w'x
static void weighted(int64_t m, int64_t p, const double* w, const double* x, double keep, double* __restrict mean) {
    std::memset(mean, 0, size_t(p) * sizeof(double));
    for (int64_t j = 0; j < m; j++)
        for (int64_t k = 0; k < p; k++) mean[k] += w[j * p + k] * x[j];
    for (int64_t k = 0; k < p; k++) mean[k] *= keep;
}

// w <- keep w + gain (y - mean)', gain (m,)
static void correct_weights(int64_t m, int64_t p, double* w, const double* gain, double keep, const double* y,
                            const double* mean) {
    for (int64_t j = 0; j < m; j++)
        for (int64_t k = 0; k < p; k++) w[j * p + k] = keep * w[j * p + k] + gain[j] * (y[k] - mean[k]);
}

// The constants of onlinegp.models.linear.isotropic_filter.Rule
struct IsotropicRule {
    double floor, slope, share, keep, drift;
};

class Isotropic final : public Fixed {
  public:
    explicit Isotropic(const Plan& plan) : Isotropic(plan, plan.features + int(plan.number("intercept"))) {}
    int64_t work_per_row() const override { return 1 + m_ * p / 32; }

  private:
    Isotropic(const Plan& plan, int m)
        : Fixed(plan.features, plan.outputs, m),
          m_(m),
          w_(size_t(m * p)),
          v_(1),
          rule_{plan.number("floor"), plan.number("slope"), plan.number("share"), plan.number("keep"),
                plan.number("drift")} {}

    double drifted() const { return rule_.keep * rule_.keep * v_[0] + rule_.drift; }
    double square(const double* x) const {
        double x2 = 0;
        for (int64_t j = 0; j < m_; j++) x2 += x[j] * x[j];
        return x2;
    }
    void look(const double* x, double* mean, double* variance, double* scratch) const override {
        take(d, m_, x, 1, scratch);
        *variance = rule_.floor + rule_.slope * drifted() * square(scratch);
        weighted(m_, p, w_.data(), scratch, rule_.keep, mean);
    }
    void correct(const double*, const double* y, const double* mean, const double* variance, double* scratch) override {
        const double v = drifted(), x2 = square(scratch), s = *variance;
        for (int64_t j = 0; j < m_; j++) scratch[j] *= v / s;
        correct_weights(m_, p, w_.data(), scratch, rule_.keep, y, mean);
        v_[0] = v * (rule_.floor + (rule_.slope - rule_.share) * v * x2) / s;
    }
    void list_fields(Visitor& visit) override {
        visit.array("w", w_, {m_, p});
        visit.array("v", v_, {1});
        visit.integer("seen", seen_);
    }

    const int64_t m_;
    std::vector<double> w_, v_;
    const IsotropicRule rule_;
};

// U'U <- U'U + drift I, one weight at a time
static void drift(int64_t m, double root, double* U, double* spare) {
    for (int64_t i = 0; i < m; i++) {
        std::memset(spare, 0, size_t(m) * sizeof(double));
        spare[i] = root;
        add_row(m, 0, i, U, nullptr, spare, nullptr);
    }
}

// Rotate [sqrt(noise) 0; f U] to [sqrt(s) h'/sqrt(s); 0 U+] with f = U x: U+'U+ = P - h h'/s, h = P x. f and t are
// (m,); t becomes h / sqrt(s), and sqrt(s) is returned.
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

// Only sqrt(s), with the same bits
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
    explicit Kalman(const Plan& plan)
        : Kalman(plan, plan.features + int(plan.number("intercept")), plan.number("drift") > 0) {}
    int64_t work_per_row() const override { return 1 + m_ * m_ * (drifts_ ? m_ : 1) / 32; }

  private:
    // The scratch memory holds x, f and t and, if the weights drift, the triangle after the drift
    Kalman(const Plan& plan, int m, bool drifts)
        : Fixed(plan.features, plan.outputs, 3 * m + (drifts ? m * m : 0)),
          m_(m),
          drifts_(drifts),
          root_noise_(std::sqrt(plan.number("noise"))),
          root_drift_(std::sqrt(plan.number("drift"))),
          w_(size_t(m * p)),
          U_(size_t(m) * size_t(m)) {}

    void prepare(double* scratch) const override {
        if (!drifts_) return;
        double* U = scratch + 3 * m_;
        std::copy(U_.begin(), U_.end(), U);
        drift(m_, root_drift_, U, scratch);
    }
    void look(const double* x, double* mean, double* variance, double* scratch) const override {
        double *own = scratch, *f = own + m_;
        take(d, m_, x, 1, own);
        triangle_times(m_, drifts_ ? scratch + 3 * m_ : U_.data(), own, f);
        weighted(m_, p, w_.data(), own, 1, mean);
        const double root = observed(m_, root_noise_, f);
        *variance = root * root;
    }
    void correct(const double*, const double* y, const double* mean, const double*, double* scratch) override {
        const double* f = scratch + m_;
        double* t = scratch + 2 * m_;
        if (drifts_) std::copy_n(scratch + 3 * m_, m_ * m_, U_.begin());
        const double root = observe(m_, root_noise_, U_.data(), f, t);
        for (int64_t j = 0; j < m_; j++) t[j] /= root;
        correct_weights(m_, p, w_.data(), t, 1, y, mean);
    }
    void list_fields(Visitor& visit) override {
        visit.array("w", w_, {m_, p});
        visit.array("U", U_, {m_, m_});
        visit.integer("seen", seen_);
    }

    const int64_t m_;
    const bool drifts_;
    const double root_noise_, root_drift_;
    std::vector<double> w_, U_;
};

// The last y, and the scale of its changes
class Persistence final : public Fixed {
  public:
    explicit Persistence(const Plan& plan) : Fixed(plan.features, plan.outputs, 0, true), changes_(plan.outputs) {}
    int64_t work_per_row() const override { return 1; }

  private:
    void look(const double*, double* mean, double* variance, double*) const override {
        std::copy_n(changes_.last(), p, mean);
        changes_.variances(variance);
    }
    void correct(const double*, const double* y, const double* mean, const double*, double*) override {
        if (seen_)
            changes_.add(y, mean, false);
        else
            changes_.set_last(y);  // the first y is not a change
    }
    void list_fields(Visitor& visit) override {
        visit.integer("seen", seen_);
        changes_.fields(visit, "changes.");
    }

    ErrorScale changes_;
};

}  // namespace onlinegp::ONLINEGP_ISA
