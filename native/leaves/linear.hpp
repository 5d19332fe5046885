// Bayesian linear regression in square-root information form. onlinegp.models.linear.information_form is the
// definition.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include "leaves/constant_memory.hpp"
#include "plan.hpp"

namespace onlinegp::ONLINEGP_ISA {

// (a, b) <- (c a + s b, c b - s a), elementwise
static inline void rotate(int64_t n, double c, double s, double* __restrict a, double* __restrict b) {
    for (int64_t j = 0; j < n; j++) {
        const double above = a[j], below = b[j];
        a[j] = c * above + s * below;
        b[j] = c * below - s * above;
    }
}

// R'R <- R'R + v v' and R'z <- R'z + v t', by one plane rotation for each row from `first` on. v (m,) and t (p,) are
// overwritten.
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
static void predict_row(int64_t m, int64_t p, const double* R, const double* z, double* __restrict x, double* mean,
                        double* v) {
    std::memset(mean, 0, size_t(p) * sizeof(double));
    double sum = 0;
    for (int64_t i = 0; i < m; i++) {
        const double* __restrict row = R + i * m;
        const double u = x[i] / row[i];
        x[i] = u;
        sum += u * u;
        for (int64_t j = i + 1; j < m; j++) x[j] -= u * row[j];
        for (int64_t k = 0; k < p; k++) mean[k] += u * z[i * p + k];
    }
    *v = sum;
}

// out (m,) = scale x, or scale [x, 1] with an intercept; x (d,)
static void take(int64_t d, int64_t m, const double* x, double scale, double* out) {
    for (int64_t j = 0; j < d; j++) out[j] = scale * x[j];
    if (m > d) out[d] = scale;
}

// The noise, the forgetting factor, the prior information that each weight has lost by forgetting (m,), and whether
// there is an intercept
struct InformationRule {
    double noise, forgetting;
    std::vector<double> renewal;
    bool intercept;
};

class Information final : public Fixed {
  public:
    Information(InformationRule rule, int d, int p)
        : Fixed(d, p, d + rule.intercept + p),
          rule_(std::move(rule)),
          m_(d + rule_.intercept),
          R(size_t(m_ * m_)),
          z(size_t(m_ * p)) {}
    static Information* made(const Plan& plan) {
        const bool intercept = plan.number("intercept") != 0;
        return new Information({plan.number("noise"), plan.number("forgetting"), plan.vector("renewal"), intercept},
                               plan.features, plan.outputs);
    }
    int64_t work_per_row() const override { return 1 + m_ * m_ / 32; }

  private:
    const InformationRule rule_;
    const int64_t m_;
    const double precision_ = 1.0 / std::sqrt(rule_.noise), keep_ = std::sqrt(rule_.forgetting);

    void look(const double* x, double* mean, double* variance, double* scratch) const override {
        take(d, m_, x, 1, scratch);
        predict_row(m_, p, R.data(), z.data(), scratch, mean, variance);
        *variance += rule_.noise;
    }
    void correct(const double* x, const double* y, const double*, const double*, double* scratch) override {
        double* target = scratch + m_;
        if (keep_ < 1) {
            for (double& entry : R) entry *= keep_;
            for (double& entry : z) entry *= keep_;
            const int64_t which = seen_ % m_;
            std::memset(scratch, 0, size_t(m_ + p) * sizeof(double));
            scratch[which] = rule_.renewal[size_t(seen_ < m_ ? which : m_ - 1)];
            add_row(m_, p, which, R.data(), z.data(), scratch, target);
        }
        take(d, m_, x, precision_, scratch);
        for (int64_t k = 0; k < p; k++) target[k] = precision_ * y[k];
        add_row(m_, p, 0, R.data(), z.data(), scratch, target);
    }
    void list_fields(Visitor& visit) override {
        visit.array("R", R, {m_, m_});
        visit.array("z", z, {m_, p});
        visit.integer("seen", seen_);
    }

  public:
    void start_from(int64_t seen) { seen_ = seen; }
    std::vector<double> R, z;
};

// The linear part of a model, h'b with h = [x, 1], which learns the errors of the other part. It allocates memory for
// the first row.
class Line {
  public:
    Line(double forgetting, const std::vector<double>& renewal, int d, int p)
        : rule_{1, forgetting, renewal, false}, m_(d + 1), p_(p), b_(size_t(m_ * p)) {}
    // Allocate memory for learning
    void begin() {
        if (model_) return;
        model_ = std::make_unique<Information>(rule_, int(m_), int(p_));
        for (int64_t i = 0; i < m_; i++) R()[i * m_ + i] = 1;
    }
    void fields(Visitor& visit, const std::string& prefix) {
        begin();
        int64_t seen = model_->seen();
        visit.array(prefix + "R", model_->R, {m_, m_});
        visit.array(prefix + "z", model_->z, {m_, p_});
        visit.integer(prefix + "seen", seen);
        if (!visit.loads()) return;
        model_->start_from(seen);
        solve();
    }
    // The mean (p,) and the variance of g'b; g is overwritten
    void predict(double* g, double* mean, double* variance) const {
        if (model_) return predict_row(m_, p_, R(), z(), g, mean, variance);
        std::fill(mean, mean + p_, 0.0);
        double sum = 0;
        for (int64_t i = 0; i < m_; i++) sum += g[i] * g[i];
        *variance = sum;
    }
    // Learn an observed value of g'b with variance one
    void learn(const double* g, const double* target) {
        begin();
        Stop never;
        model_->learn(1, g, target, {}, never);
        solve();
    }
    double value(const double* x, int64_t o) const {
        double sum = b_[size_t((m_ - 1) * p_ + o)];
        for (int64_t j = 0; j < m_ - 1; j++) sum += x[j] * b_[size_t(j * p_ + o)];
        return sum;
    }

  private:
    void solve() {  // b = R^-1 z
        for (int64_t i = m_ - 1; i >= 0; i--)
            for (int64_t o = 0; o < p_; o++) {
                double sum = z()[i * p_ + o];
                for (int64_t j = i + 1; j < m_; j++) sum -= R()[i * m_ + j] * b_[size_t(j * p_ + o)];
                b_[size_t(i * p_ + o)] = sum / R()[i * m_ + i];
            }
    }
    double* R() const { return model_->R.data(); }
    double* z() const { return model_->z.data(); }

    const InformationRule rule_;
    const int64_t m_, p_;
    std::unique_ptr<Information> model_;
    std::vector<double> b_;
};

}  // namespace onlinegp::ONLINEGP_ISA
