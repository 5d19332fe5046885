// A ResidualGP that also returns the predictions of a LocalGP on its rows, and this LocalGP: the twins of run_both and
// SharedRows in onlinegp.models.
#pragma once
#include "tree.hpp"

namespace onlinegp {

class ResidualLeaf final : public Leaf {
  public:
    ResidualLeaf(Residual& residual, int d, int p) : Leaf(residual, d, p), residual_(residual) {}

    void predict_next(const double* x, Workspace& w) override {
        Workspace::Slot& own = slot(w);
        Steps steps = room_for_both(1, own);
        residual_.predict_next_both(x, steps.mean, steps.variance, steps.local_mean, steps.local_variance);
        fill(0, steps.mean, steps.variance, own.predictions);
    }
    void run(int64_t n, const double* X, const double* Y, Workspace& w) override {
        Workspace::Slot& own = slot(w);
        Steps steps = room_for_both(n, own);
        own.sizes.resize(size_t(n));
        steps.size = own.sizes.data();
        Stop never;
        residual_.learn(n, X, Y, steps, never);
        fill_all(n, steps, own.predictions);
    }
    void predict(int64_t n, const double* X, Workspace& w) const override {
        Workspace::Slot& own = slot(w);
        const Steps steps = room_for_both(n, own);
        Stop never;
        residual_.predict_both(n, X, steps, never);
        fill_all(n, steps, own.predictions);
    }
    // The predictions of the LocalGP for n rows: means (n, p), variances (n,)
    const double* local_mean(int64_t n, Workspace& w) const { return slot(w).targets.data() + n * (p + 1); }
    const double* local_variance(int64_t n, Workspace& w) const { return local_mean(n, w) + n * p; }
    void copy_local(int64_t n, Workspace& w, double* means, double* scales) const {
        std::copy_n(local_mean(n, w), n * p, means);
        for (int64_t i = 0; i < n * p; i++) scales[i] = std::sqrt(local_variance(n, w)[i / p]);
    }

  private:
    Steps room_for_both(int64_t n, Workspace::Slot& own) const {
        own.predictions.resize(n);
        own.targets.resize(size_t(2 * n * (p + 1)));
        Steps steps;
        steps.mean = own.targets.data();
        steps.variance = steps.mean + n * p;
        steps.local_mean = steps.variance + n;
        steps.local_variance = steps.local_mean + n * p;
        return steps;
    }
    Residual& residual_;
};

// Runs after its source, which learns for both
class SharedRows final : public Node {
  public:
    SharedRows(int d, int p) : Node(d, p, {NORMAL}) {}
    void use(const ResidualLeaf& source) { source_ = &source; }

    void predict_next(const double*, Workspace& w) override { copy(1, w); }
    void learn_next(const double*, const double*, Workspace&) override {}
    void run(int64_t n, const double*, const double*, Workspace& w) override {
        copy(n, w);
        slot(w).sizes = source_->slot(w).sizes;
    }
    void learn(int64_t, const double*, const double*, Workspace&) override {}
    void predict(int64_t n, const double*, Workspace& w) const override { copy(n, w); }
    void flush(Workspace&) override {}
    int64_t size() const override { return source_->size(); }
    int64_t work() const override { return 0; }
    bool shares_rows() const override { return true; }
    void fields(Visitor&) override {}

  private:
    void copy(int64_t n, Workspace& w) const {
        Predictions& out = predicted(w);
        out.resize(n);
        const double *mean = source_->local_mean(n, w), *variance = source_->local_variance(n, w);
        for (int64_t i = 0; i < n; i++)
            for (int o = 0; o < p; o++) {
                const Components row = out(i, o);
                row.weight[0] = 1;
                row.mean[0] = mean[i * p + o];
                row.scale[0] = std::sqrt(variance[i]);
            }
    }
    const ResidualLeaf* source_ = nullptr;
};

}  // namespace onlinegp
