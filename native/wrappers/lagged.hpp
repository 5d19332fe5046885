// Past values of y as inputs, once all of them are known: the twin of LaggedLearner in
// onlinegp.models.combined.lagged.
#pragma once
#include "wrappers/calibrated.hpp"

namespace onlinegp {

// Row i is predicted from y up to row i - horizon, by an inner node that has learned the rows up to i - horizon. With a
// horizon above one, rows wait until they may be learned, a block is processed row by row, and predictions are
// stretched by the fading mean of their z^2 up to row i - horizon, and mixed with a normal: see HorizonScale in
// onlinegp.models.combined.horizon_scale.
class Lagged final : public Outer {
  public:
    // Each input is the mean of a group of past values. `lags` concatenates the groups, and `sizes` has their sizes.
    // With degrees (infinite), a normal with the weight `normal` is part of the predictions.
    Lagged(int d, Owned inside, const Vector& lags, const Vector& sizes, int64_t horizon, const Vector& degrees,
           double normal, const FadingScaleRule& rule)
        : Outer(d, std::move(inside), degrees),
          lags_(lags.begin(), lags.end()),
          sizes_(sizes.begin(), sizes.end()),
          horizon_(horizon),
          memory_(lags.empty() ? 0 : *std::max_element(lags_.begin(), lags_.end()) + horizon - 1),
          normal_(degrees.empty() ? 0 : normal),
          rule_(rule),
          past_(size_t(memory_ * p)),
          waiting_x_(size_t((horizon - 1) * inner->d)),
          waiting_y_(size_t((horizon - 1) * p)),
          waiting_z2_(waiting_y_.size()),
          total_(size_t(p)),
          count_(size_t(p)),
          z2_(size_t(p)) {}

    void predict_next(const double* x, Workspace& w) override {
        inner->predict_next(inputs(1, x, nullptr, false, w), w);
        change(0, w);
    }
    void learn_next(const double*, const double* y, Workspace& w) override {
        if (horizon_ == 1) {
            inner->learn_next(slot(w).inputs.data(), y, w);
        } else {
            update(0, y, w);
            learn_waiting(slot(w).inputs.data(), y, w);
        }
        remember(1, y);
    }
    void run(int64_t n, const double* X, const double* Y, Workspace& w) override {
        const double* Z = inputs(n, X, Y, true, w);
        predicted(w).resize(n);
        if (horizon_ == 1) {
            inner->run(n, Z, Y, w);
            slot(w).sizes = inner->slot(w).sizes;
            for (int64_t i = 0; i < n; i++) change(i, w);
        } else {
            slot(w).sizes.resize(size_t(n));
            for (int64_t i = 0; i < n; i++) {
                inner->predict_next(Z + i * inner->d, w);
                correct(0, i, w);
                update(0, Y + i * p, w);
                learn_waiting(Z + i * inner->d, Y + i * p, w);
                slot(w).sizes[size_t(i)] = inner->size();
            }
        }
        remember(n, Y);
    }
    void learn(int64_t n, const double* X, const double* Y, Workspace& w) override {
        if (horizon_ > 1) return run(n, X, Y, w);
        inner->learn(n, inputs(n, X, Y, true, w), Y, w);
        remember(n, Y);
    }
    void reserve(int64_t rows, Workspace& w) override {
        Outer::reserve(rows, w);
        slot(w).inputs.reserve(size_t(rows * inner->d));
    }
    bool only_stores() const override { return horizon_ == 1 && inner->only_stores(); }
    // Treat each row as the next row
    void predict(int64_t n, const double* X, Workspace& w) const override {
        Outer::predict(n, inputs(n, X, nullptr, false, w), w);
    }
    // past (memory, outputs), waiting_x (horizon - 1, inputs), waiting_y and waiting_z2 (horizon - 1, outputs), the
    // oldest first; z2_total and z2_count (outputs)
    void fields(Visitor& visit) override {
        visit.array("past", past_);
        visit.array("waiting_x", waiting_x_);
        visit.array("waiting_y", waiting_y_);
        if (horizon_ > 1) {
            visit.array("waiting_z2", waiting_z2_);
            visit.array("z2_total", total_);
            visit.array("z2_count", count_);
        }
        visit.node("model", *inner);
    }

  private:
    // The inputs of consecutive rows, or of rows that are all treated as the next row
    const double* inputs(int64_t n, const double* X, const double* Y, bool in_order, Workspace& w) const {
        Vector& Z = slot(w).inputs;
        Z.resize(std::max(Z.size(), size_t(n * inner->d)));
        for (int64_t i = 0; i < n; i++) input(X + i * d, Y, in_order ? i : 0, Z.data() + i * inner->d);
        return Z.data();
    }
    // The features, then the means of past values before row i of this block, output by output
    void input(const double* x, const double* Y, int64_t i, double* z) const {
        z = std::copy(x, x + d, z);
        for (int o = 0; o < p; o++) {
            const int64_t* lag = lags_.data();
            for (int64_t size : sizes_) {
                double sum = value(*lag++, Y, i, o);
                for (int64_t k = 1; k < size; k++) sum += value(*lag++, Y, i, o);
                *z++ = size == 1 ? sum : sum / double(size);
            }
        }
    }
    double value(int64_t lag, const double* Y, int64_t i, int o) const {
        lag += horizon_ - 1;
        return lag <= i ? Y[(i - lag) * p + o] : past_[size_t((memory_ + i - lag) * p + o)];
    }
    // Learn the row that has waited longest, and let this row wait
    void learn_waiting(const double* z, const double* y, Workspace& w) {
        inner->predict_next(waiting_x_.data(), w);
        inner->learn_next(waiting_x_.data(), waiting_y_.data(), w);
        push(waiting_x_, 1, z, inner->d);
        push(waiting_y_, 1, y, p);
    }
    void remember(int64_t n, const double* Y) { push(past_, n, Y, p); }

    // Append rows, and remove the oldest rows
    static void push(Vector& kept, int64_t n, const double* rows, int64_t width) {
        const int64_t most = int64_t(kept.size()) / (width ? width : 1);
        const int64_t stay = std::max<int64_t>(0, most - n);
        std::copy(kept.end() - stay * width, kept.end(), kept.begin());
        std::copy(rows + (n - (most - stay)) * width, rows + n * width, kept.begin() + stay * width);
    }
    void change(int64_t i, Workspace& w) const override { correct(i, i, w); }
    // From row `from` of the inner node to its own row `to`
    void correct(int64_t from, int64_t to, Workspace& w) const {
        if (horizon_ == 1) return copy_row(from, to, w);
        Predictions& in = inner->predicted(w);
        for (int o = 0; o < p; o++) {
            const double factor = std::sqrt(total_[size_t(o)] / count_[size_t(o)]);
            const Moments moments = in.moments(from, o);
            const Components row = predicted(w)(to, o);
            stretch_around(inner->kinds, in(from, o), moments.mean, factor, row);
            if (normal_ == 0) continue;
            const int64_t last = inner->kinds.count();
            for (int64_t k = 0; k < last; k++) row.weight[k] *= 1 - normal_;
            row.weight[last] = normal_;
            row.mean[last] = moments.mean;
            row.scale[last] = factor * moments.std;
        }
    }
    // Learn the z^2 that has waited longest, and let the z^2 of row i of the inner node wait
    void update(int64_t i, const double* y, Workspace& w) override {
        for (size_t o = 0; o < size_t(p); o++) {
            if (waiting_z2_[0] >= 0) update_scale(rule_, waiting_z2_[o], total_[o], count_[o]);
            z2_[o] = std::min(squared(inner->predicted(w).moments(i, int64_t(o)), y[o]), 1 / rule_.tiny);
        }
        push(waiting_z2_, 1, z2_.data(), p);
    }

    const std::vector<int64_t> lags_, sizes_;
    const int64_t horizon_, memory_;
    const double normal_;
    const FadingScaleRule rule_;
    Vector past_, waiting_x_, waiting_y_;
    Vector waiting_z2_;  // negative for a row that was predicted without the model
    Vector total_, count_, z2_;
};

}  // namespace onlinegp
