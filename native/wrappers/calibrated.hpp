// Variances times the fading mean of z^2: the twin of CalibratedLearner in onlinegp.models.combined.calibrated.
#pragma once
#include "wrappers/error_tracking.hpp"
#include "tree.hpp"

namespace onlinegp {

// The components of a mixture stretched around its mean: mean + factor (y - mean)
inline void stretch_around(const Kinds& kinds, const Components& in, double mean, double factor,
                           const Components& out) {
    for (int64_t k = 0; k < kinds.count(); k++) {
        out.weight[k] = in.weight[k];
        out.mean[k] = kinds.count() == 1 ? in.mean[k] : mean - factor * mean + factor * in.mean[k];
        out.scale[k] = factor * in.scale[k];
    }
}

// z^2 of a row; zero if the mean is y, for any standard deviation
inline double squared(const Moments& predicted, double y) {
    const double z = (y - predicted.mean) / predicted.std;
    return predicted.mean == y ? 0 : z * z;
}

class Calibrated final : public Outer {
  public:
    Calibrated(int d, Owned inside, const FadingScaleRule& rule)
        : Outer(d, std::move(inside), {}), rule_(rule), numbers_(2 * p) {}
    void fields(Visitor& visit) override {
        numbers_.field(visit, "total", 0, p);
        numbers_.field(visit, "count", p, p);
        visit.node("model", *inner);
    }
    void lines(Lines& needed) const override {
        Node::lines(needed);
        numbers_.lines(needed);
    }

  private:
    void change(int64_t i, Workspace& w) const override {
        Predictions& in = inner->predicted(w);
        for (int o = 0; o < p; o++) {
            const double factor = std::sqrt(numbers_[o] / numbers_[p + o]);
            stretch_around(kinds, in(i, o), in.moments(i, o).mean, factor, predicted(w)(i, o));
        }
    }
    void update(int64_t i, const double* y, Workspace& w) override {
        for (int o = 0; o < p; o++)
            update_scale(rule_, squared(inner->predicted(w).moments(i, o), y[o]), numbers_[o], numbers_[p + o]);
    }

    const FadingScaleRule rule_;
    NodeNumbers numbers_;  // the totals, then the counts
};

}  // namespace onlinegp
