// Intervals stretched to the right coverage: the twin of ConformalLearner in onlinegp.models.combined.conformal.
#pragma once
#include "wrappers/error_tracking.hpp"
#include "tree.hpp"

namespace onlinegp {

class Conformal final : public Outer {
  public:
    Conformal(int d, Owned inside, double level, const StretchRule& rule)
        : Outer(d, std::move(inside), {}),
          level_(level),
          rule_(rule),
          log_scale_(size_t(p)),
          rows_(size_t(p)),
          more_(size_t(p)),
          fewer_(size_t(p)) {
        for (const double nu : kinds.degrees) quantile_.push_back(quantile_of(0.5 * (1 + level), nu));
    }
    void fields(Visitor& visit) override {
        visit.array("log_scale", log_scale_);
        visit.array("rows", rows_);
        visit.array("more", more_);
        visit.array("fewer", fewer_);
        visit.node("model", *inner);
    }

  private:
    void change(int64_t i, Workspace& w) const override {
        copy_row(i, i, w);
        for (int o = 0; o < p; o++) predicted(w).stretch(i, o) *= std::exp(log_scale_[size_t(o)]);
    }
    void update(int64_t i, const double* y, Workspace& w) override {
        for (int o = 0; o < p; o++) {
            const size_t at = size_t(o);
            const double mean = predicted(w).moments(i, o).mean;
            const double stretch = predicted(w).stretch(i, o);
            const bool miss = missed(predicted(w)(i, o), mean + (y[o] - mean) / stretch);
            update_stretch(rule_, miss, log_scale_[at], rows_[at], more_[at], fewer_[at]);
        }
    }

    // Whether the interval of an unstretched prediction misses y: |cdf(y) - 1/2| > level / 2. If y is on the same side
    // of the quantiles of all components, no distribution function is needed.
    bool missed(const Components& row, double y) const {
        bool all_inside = true, all_below = true, all_above = true;
        for (int64_t k = 0; k < kinds.count(); k++) {
            if (row.weight[k] <= 0) continue;
            const double away = y - row.mean[k];
            const double end = quantile_[size_t(k)] * row.scale[k];
            all_inside = all_inside && std::fabs(away) <= end;
            all_below = all_below && away < -end;
            all_above = all_above && away > end;
        }
        if (all_inside) return false;
        if (all_below || all_above) return true;
        return std::fabs(kinds.cdf(row, y) - 0.5) > 0.5 * level_;
    }

    const double level_;
    const StretchRule rule_;
    Vector quantile_;  // at the level, of each component with scale one
    Vector log_scale_, rows_, more_, fewer_;
};

}  // namespace onlinegp
