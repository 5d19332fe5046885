// Targets clipped to a few predicted standard deviations: the twin of RobustLearner in onlinegp.models.combined.robust.
#pragma once
#include "tree.hpp"

namespace onlinegp {

// The learned target depends on the prediction, so a block is processed row by row. Predictions come from the inner
// node.
class Robust final : public Outer {
  public:
    Robust(int d, Owned inside, double bound, double reject, int64_t rows, int64_t in_a_row)
        : Outer(d, std::move(inside), {}),
          bound_(bound),
          reject_(reject),
          rows_(rows),
          in_a_row_(double(in_a_row)),
          clipped_(1) {}

    void learn_next(const double* x, const double* y, Workspace& w) override {
        inner->learn_next(x, believed(0, y, w), w);
    }
    void run(int64_t n, const double* X, const double* Y, Workspace& w) override {
        predicted(w).resize(n);
        slot(w).sizes.resize(size_t(n));
        for (int64_t i = 0; i < n; i++) {
            inner->predict_next(X + i * d, w);
            copy_row(0, i, w);
            inner->learn_next(X + i * d, believed(i, Y + i * p, w), w);
            slot(w).sizes[size_t(i)] = inner->size();
        }
    }
    void fields(Visitor& visit) override {
        if (in_a_row_ > 0) clipped_.field(visit, "clipped", 0, 1);
        visit.node("model", *inner);
    }
    void lines(Lines& needed) const override {
        Node::lines(needed);
        clipped_.lines(needed);
    }

  private:
    void change(int64_t i, Workspace& w) const override { copy_row(i, i, w); }
    void update(int64_t, const double*, Workspace&) override {}

    // mean + clip(y - mean, -bound std, bound std), and only a share of it if the deviation exceeds reject std
    const double* believed(int64_t i, const double* y, Workspace& w) {
        if (rows_ > 0) {
            rows_ -= 1;
            return y;
        }
        Vector& target = slot(w).targets;
        target.resize(size_t(p));
        bool far = false;
        for (int o = 0; o < p; o++) {
            const Moments predicted_now = predicted(w).moments(i, o);
            const double most = bound_ * predicted_now.std;
            const double error = y[o] - predicted_now.mean;
            far = far || std::fabs(error) > most;
            double kept = std::min(std::max(error, -most), most);
            if (std::isfinite(reject_) && error != 0) {
                const double share = std::min(reject_ * predicted_now.std / std::fabs(error), 1.0);
                kept = share * share * kept;
            }
            target[size_t(o)] = predicted_now.mean + kept;
        }
        return in_a_row_ > 0 && jumped(far) ? y : target.data();
    }

    // Count rows beyond the bound. Return whether enough rows in a row before this one were clipped
    bool jumped(bool far) {
        if (far && clipped_[0] >= in_a_row_) return true;
        clipped_[0] = far ? clipped_[0] + 1 : 0;
        return false;
    }

    const double bound_, reject_;
    int64_t rows_;  // number of rows that are still learned without clipping
    const double in_a_row_;
    NodeNumbers clipped_;  // the number of clipped rows in a row
};

}  // namespace onlinegp
