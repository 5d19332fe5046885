// Bayesian linear regression on random cosines and sines. onlinegp.models.features.learner is the definition.
#pragma once
#include <algorithm>
#include "cosines.hpp"
#include "linear.hpp"

namespace onlinegp::ONLINEGP_ISA {

// R and z are those of the regression at unit noise; squares (p,) is the sum of squared errors in units of what was predicted
class Features final : public Fixed {
  public:
    Features(const FixedRule& rule, int d, int p)
        : Fixed(rule, d, p, {{"R", rule.functions, rule.functions}, {"z", rule.functions, p}, {"squares", p}}, turns_of(rule, d)),
          x_(size_t(d)), phi_(size_t(turns_of(rule, d))), solved_(size_t(rule.functions)),
          target_(size_t(p)), mean_(size_t(p)) {}
    int64_t work_per_row() const override { return 1 + m * m / 32; }
    int variances() const override { return int(p); }

    void predict_next(const double* x, double* mean, double* variance) override {
        look_at_next(x);
        std::copy(mean_.begin(), mean_.end(), mean);
        scale(explained_, variance);
    }

  private:
    static constexpr double WORTH = 10;  // rows that the noise given is worth
    const int64_t m = rule.functions, D = turns_of(rule, d);
    const double share = std::sqrt(2.0 / double(m));  // phi = [cos(W x); sin(W x)] share

    // phi (m,), with room for D
    void basis(const double* x, double* phi) const {
        cosines_of(rule.table.data(), d, D, x, phi);
        for (int64_t j = 0; j < m; j++) phi[j] *= share;
    }
    // The variance of each output, if that of phi'w is `explained` at unit noise
    void scale(double explained, double* variance) const {
        const double rows = WORTH + double(seen_);
        for (int64_t o = 0; o < p; o++) variance[o] = (1 + explained) * ((WORTH * rule.noise + kept(2)[o]) / rows);
    }
    void look(const double* x, double* mean, double* variance, double* work) const override {
        double explained;
        basis(x, work);
        predict_row(m, p, kept(0), kept(1), work, mean, &explained);
        scale(explained, variance);
    }
    // The same of a row that may be learned next, whose phi is kept
    void look_at_next(const double* x) {
        if (is_fresh_ && std::equal(x_.begin(), x_.end(), x)) return;
        basis(x, phi_.data());
        std::copy_n(phi_.begin(), m, solved_.begin());
        predict_row(m, p, kept(0), kept(1), solved_.data(), mean_.data(), &explained_);
        std::copy(x, x + d, x_.begin());
        is_fresh_ = true;
    }
    void step(const double* x, const double* y, double* mean, double* variance, double*) override {
        predict_next(x, mean, variance);
        is_fresh_ = false;
        for (int64_t o = 0; o < p; o++) {
            const double error = y[o] - mean[o];
            kept(2)[o] += error * error / (1 + explained_);
            target_[size_t(o)] = y[o];
        }
        add_row(m, p, 0, kept(0), kept(1), phi_.data(), target_.data());
    }

    std::vector<double> x_, phi_, solved_, target_, mean_;
    double explained_ = 0;  // the variance of phi'w
};

}  // namespace onlinegp::ONLINEGP_ISA
