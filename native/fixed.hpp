// What models of fixed memory share: a loop over rows that predicts each and then corrects a few arrays.
#pragma once
#include "api.hpp"

namespace onlinegp::ONLINEGP_ISA {

class Fixed : public FixedModel {
  public:
    Fixed(const FixedRule& rule, int d, int p, std::vector<Kept> kept, int64_t scratch)
        : FixedModel(std::move(kept)), rule(rule), d(d), p(p), work_(static_cast<size_t>(scratch)), mean_(static_cast<size_t>(p)),
          variance_(static_cast<size_t>(p)) {}

    int64_t learn(int64_t n, const double* X, const double* Y, const Steps& steps, Stop& stop) final {
        for (int64_t i = 0; i < n; i++, X += d, Y += p) {
            if (stop.asked(2 * work_per_row())) return i;
            double* mean = steps.mean ? steps.mean + i * p : mean_.data();
            double* variance = steps.variance ? steps.variance + i * variances() : variance_.data();
            step(X, Y, mean, variance, work_.data());
            seen_ += seen_ < INT64_MAX;
        }
        return n;
    }
    void predict_next(const double* x, double* mean, double* variance) override {
        prepare(work_.data());
        look(x, mean, variance, work_.data());
    }
    void predict(int64_t n, const double* X, double* mean, double* variance, Stop& stop) const final {
        std::vector<double> work(work_.size());
        prepare(work.data());
        for (int64_t i = 0; i < n; i++, X += d, mean += p) {
            if (stop.asked(work_per_row())) return;
            look(X, mean, variance + i * variances(), work.data());
        }
    }

  protected:
    const FixedRule& rule;
    const int64_t d, p;

    double* kept(int i) { return arrays[size_t(i)].values.data(); }
    const double* kept(int i) const { return arrays[size_t(i)].values.data(); }

    // What all predictions until the next row is learned need; `work` has the scratch of all of them
    virtual void prepare(double*) const {}
    virtual void look(const double* x, double* mean, double* variance, double* work) const = 0;  // the mean (p,) and variance of y
    virtual void step(const double* x, const double* y, double* mean, double* variance, double* work) = 0;  // the same, then learn y

  private:
    std::vector<double> work_, mean_, variance_;
};

}  // namespace onlinegp::ONLINEGP_ISA
