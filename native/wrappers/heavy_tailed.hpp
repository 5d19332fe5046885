// A mixture of the inner prediction and t distributions: the twin of HeavyTailedLearner in
// onlinegp.models.combined.heavy_tailed.
#pragma once
#include "wrappers/calibrated.hpp"

namespace onlinegp {

class HeavyTailed final : public Outer {
  public:
    HeavyTailed(int d, Owned inside, const Vector& degrees, const FadingScaleRule& scales,
                const FadingWeightsRule& weights)
        : Outer(d, std::move(inside), degrees),
          parts_(1 + degrees.size()),
          of_scales_(scales),
          of_weights_(weights),
          total_(parts_ * size_t(p)),
          count_(parts_ * size_t(p)),
          log_weights_(parts_ * size_t(p)),
          densities_(parts_) {}
    // total, count (parts, outputs); log_weights (outputs, parts)
    void fields(Visitor& visit) override {
        visit.array("total", total_);
        visit.array("count", count_);
        visit.array("log_weights", log_weights_);
        visit.node("model", *inner);
    }

  private:
    double factor(size_t part, int o) const {
        const size_t at = part * size_t(p) + size_t(o);
        return std::sqrt(total_[at] / count_[at]);
    }
    void change(int64_t i, Workspace& w) const override {
        Predictions &in = inner->predicted(w), &out = predicted(w);
        Vector& weights = slot(w).targets;
        weights.resize(parts_);
        const size_t inside = size_t(inner->kinds.count());
        for (int o = 0; o < p; o++) {
            const Moments moments = in.moments(i, o);
            const Components row = out(i, o);
            shares(int64_t(parts_), log_weights_.data() + size_t(o) * parts_, weights.data());
            stretch_around(inner->kinds, in(i, o), moments.mean, factor(0, o), row);
            for (size_t k = 0; k < inside; k++) row.weight[k] *= weights[0];
            for (size_t part = 1; part < parts_; part++) {
                const size_t k = inside + part - 1;
                row.weight[k] = weights[part];
                row.mean[k] = moments.mean;
                row.scale[k] = factor(part, o) * moments.std;
            }
        }
    }
    void update(int64_t i, const double* y, Workspace& w) override {
        const size_t inside = size_t(inner->kinds.count());
        for (int o = 0; o < p; o++) {
            const Components in = inner->predicted(w)(i, o), row = predicted(w)(i, o);
            const Components normal{in.weight, row.mean, row.scale};  // the stretched inner prediction with its weights
            densities_[0] = inner->kinds.log_density(normal, y[o]);
            for (size_t part = 1; part < parts_; part++)
                densities_[part] = kinds.log_density_of(row, int64_t(inside + part - 1), y[o]);
            update_weights(of_weights_, int64_t(parts_), densities_.data(), log_weights_.data() + size_t(o) * parts_);
            const double z2 = squared(inner->kinds.moments(in), y[o]);
            for (size_t part = 0; part < parts_; part++) {
                FadingScaleRule rule = of_scales_;
                rule.degrees = part ? kinds.degrees[inside + part - 1] : 0;
                update_scale(rule, z2, total_[part * size_t(p) + size_t(o)], count_[part * size_t(p) + size_t(o)]);
            }
        }
    }

    const size_t parts_;  // the inner node, and the t distributions
    const FadingScaleRule of_scales_;
    const FadingWeightsRule of_weights_;
    Vector total_, count_, log_weights_, densities_;
};

}  // namespace onlinegp
