// Bayesian linear regression on random cosines and sines. onlinegp.models.features.basis_learner is the definition.
#pragma once
#include <algorithm>
#include "leaves/cosines.hpp"
#include "leaves/linear.hpp"

namespace onlinegp::ONLINEGP_ISA {

// R and z belong to the regression with unit noise; squares (p,) is the sum of squared errors over their predicted
// variances. The scratch has phi (m,) with room for D, then R^-T phi (m,), the variance of phi'w, and the target (p,).
class Features final : public Fixed {
  public:
    explicit Features(const Plan& plan) : Features(plan, int64_t(plan.number("functions")), turns_of(plan)) {}
    int64_t work_per_row() const override { return 1 + m_ * m_ / 32; }

  private:
    static constexpr double WORTH = 10;  // the weight of the parameter `noise` in rows

    Features(const Plan& plan, int64_t m, int64_t D)
        : Fixed(plan.features, plan.outputs, D + m + 1 + plan.outputs, true),
          m_(m),
          D_(D),
          noise_(plan.number("noise")),
          turns_(plan.vector("turns")),
          R_(size_t(m * m)),
          z_(size_t(m * p)),
          squares_(size_t(p)) {}

    // phi (m,) = [cos(W x); sin(W x)] sqrt(2 / m)
    void basis(const double* x, double* phi) const {
        cosines_of(turns_.data(), d, D_, x, phi);
        for (int64_t j = 0; j < m_; j++) phi[j] *= share_;
    }
    void look(const double* x, double* mean, double* variance, double* scratch) const override {
        double *phi = scratch, *solved = scratch + D_, *explained = solved + m_;
        basis(x, phi);
        std::copy_n(phi, m_, solved);
        predict_row(m_, p, R_.data(), z_.data(), solved, mean, explained);
        const double rows = WORTH + double(seen_);
        for (int64_t o = 0; o < p; o++)
            variance[o] = (1 + *explained) * ((WORTH * noise_ + squares_[size_t(o)]) / rows);
    }
    void correct(const double*, const double* y, const double* mean, const double*, double* scratch) override {
        const double explained = scratch[D_ + m_];
        double *phi = scratch, *target = scratch + D_ + m_ + 1;
        for (int64_t o = 0; o < p; o++) {
            const double error = y[o] - mean[o];
            squares_[size_t(o)] += error * error / (1 + explained);
            target[o] = y[o];
        }
        add_row(m_, p, 0, R_.data(), z_.data(), phi, target);
    }
    void list_fields(Visitor& visit) override {
        visit.array("R", R_, {m_, m_});
        visit.array("z", z_, {m_, p});
        visit.integer("seen", seen_);
        visit.array("squares", squares_, {p});
    }

    const int64_t m_, D_;
    const double noise_, share_ = std::sqrt(2.0 / double(m_));
    const std::vector<double> turns_;
    std::vector<double> R_, z_, squares_;
};

}  // namespace onlinegp::ONLINEGP_ISA
