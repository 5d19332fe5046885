// Base class of leaves with constant memory: a loop that predicts each row and then corrects a few arrays.
#pragma once
#include <algorithm>
#include "learner.hpp"

namespace onlinegp::ONLINEGP_ISA {

// A leaf defines `look`, `correct` and `fields`. `look` passes intermediate results to `correct` in the scratch memory.
class Fixed : public Learner {
  public:
    Fixed(int d, int p, int64_t scratch, bool own_variances = false)
        : d(d),
          p(p),
          variances_(own_variances ? p : 1),
          scratch_(size_t(scratch)),
          x_(size_t(d)),
          mean_(size_t(p)),
          variance_(size_t(p)) {}

    int64_t size() const final { return 0; }
    int64_t seen() const final { return seen_; }
    int variances() const final { return variances_; }
    void flush() final {}

    int64_t learn(int64_t n, const double* X, const double* Y, const Steps& steps, Stop& stop) final {
        for (int64_t i = 0; i < n; i++, X += d, Y += p) {
            if (stop.asked(2 * work_per_row())) return i;
            if (!is_fresh_ || !std::equal(X, X + d, x_.begin())) look_at(X);
            if (steps.mean) std::copy_n(mean_.begin(), p, steps.mean + i * p);
            if (steps.variance) std::copy_n(variance_.begin(), variances_, steps.variance + i * variances_);
            if (steps.size) steps.size[i] = 0;
            is_fresh_ = false;
            correct(X, Y, mean_.data(), variance_.data(), scratch_.data());
            seen_ += seen_ < INT64_MAX;
        }
        return n;
    }
    void predict_next(const double* x, double* mean, double* variance) final {
        if (!is_fresh_ || !std::equal(x, x + d, x_.begin())) {
            look_at(x);
            std::copy_n(x, d, x_.begin());
            is_fresh_ = true;
        }
        std::copy_n(mean_.begin(), p, mean);
        std::copy_n(variance_.begin(), variances_, variance);
    }
    void predict(int64_t n, const double* X, double* mean, double* variance, Stop& stop) const final {
        std::vector<double> scratch(scratch_.size());
        prepare(scratch.data());
        for (int64_t i = 0; i < n; i++, X += d, mean += p) {
            if (stop.asked(work_per_row())) return;
            look(X, mean, variance + i * variances_, scratch.data());
        }
    }
    void fields(Visitor& visit) final {
        if (visit.loads()) is_fresh_ = false;
        list_fields(visit);
    }

  protected:
    const int64_t d, p;
    int64_t seen_ = 0;

    // Compute results that all predictions before the next learned row share
    virtual void prepare(double*) const {}
    virtual void look(const double* x, double* mean, double* variance,
                      double* scratch) const = 0;  // the mean (p,) and variance of y
    virtual void correct(const double* x, const double* y, const double* mean, const double* variance,
                         double* scratch) = 0;
    virtual void list_fields(Visitor& visit) = 0;

  private:
    void look_at(const double* x) {
        prepare(scratch_.data());
        look(x, mean_.data(), variance_.data(), scratch_.data());
    }

    const int variances_;
    std::vector<double> scratch_, x_, mean_, variance_;
    bool is_fresh_ = false;  // x was the last prediction, and nothing has changed since
};

}  // namespace onlinegp::ONLINEGP_ISA
