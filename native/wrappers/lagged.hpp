// Past values of y as inputs, where all of them are known: the twin of LaggedLearner in onlinegp.models.combined.lagged.
#pragma once
#include "../tree.hpp"

namespace onlinegp {

class Lagged final : public Outer {
  public:
    Lagged(int d, Owned inside, int lags)
        : Outer(d, std::move(inside), {}), lags_(lags), past_(size_t(lags) * size_t(p)) {}

    void predict_next(const double* x, Workspace& w) override {
        inner->predict_next(next_inputs(1, x, w), w);
        change(0, w);
    }
    void learn_next(const double*, const double* y, Workspace& w) override {
        inner->learn_next(slot(w).inputs.data(), y, w);
        remember(1, y);
    }
    void run(int64_t n, const double* X, const double* Y, Workspace& w) override {
        inner->run(n, inputs(n, X, Y, w), Y, w);
        predicted(w).resize(n);
        slot(w).sizes = inner->slot(w).sizes;
        for (int64_t i = 0; i < n; i++) change(i, w);
        remember(n, Y);
    }
    void learn(int64_t n, const double* X, const double* Y, Workspace& w) override {
        inner->learn(n, inputs(n, X, Y, w), Y, w);
        remember(n, Y);
    }
    // Each row takes the place of the next one
    bool only_stores() const override { return inner->only_stores(); }
    void predict(int64_t n, const double* X, Workspace& w) const override { Outer::predict(n, next_inputs(n, X, w), w); }
    // past (lags, outputs), the oldest first
    void fields(Visitor& visit) override {
        visit.array("past", past_);
        visit.node("model", *inner);
    }

  private:
    double* room(int64_t n, Workspace& w) const {
        Vector& Z = slot(w).inputs;
        Z.resize(std::max(Z.size(), size_t(n * inner->d)));
        return Z.data();
    }
    const double* next_inputs(int64_t n, const double* X, Workspace& w) const {
        double* Z = room(n, w);
        for (int64_t i = 0; i < n; i++) input(X + i * d, nullptr, 0, Z + i * inner->d);
        return Z;
    }
    const double* inputs(int64_t n, const double* X, const double* Y, Workspace& w) const {
        double* Z = room(n, w);
        for (int64_t i = 0; i < n; i++) input(X + i * d, Y, i, Z + i * inner->d);
        return Z;
    }
    // The features, then the values before row i of this block, the newest first, output by output
    void input(const double* x, const double* Y, int64_t i, double* z) const {
        z = std::copy(x, x + d, z);
        for (int o = 0; o < p; o++)
            for (int64_t lag = 1; lag <= lags_; lag++, z++)
                *z = lag <= i ? Y[(i - lag) * p + o] : past_[size_t((lags_ + i - lag) * p + o)];
    }
    void remember(int64_t n, const double* Y) {
        const int64_t stay = std::max<int64_t>(0, lags_ - n);
        std::copy(past_.end() - stay * p, past_.end(), past_.begin());
        std::copy(Y + (n - (lags_ - stay)) * p, Y + n * p, past_.begin() + stay * p);
    }
    void change(int64_t i, Workspace& w) const override { copy_row(i, i, w); }
    void update(int64_t, const double*, Workspace&) override {}

    const int64_t lags_;
    Vector past_;
};

}  // namespace onlinegp
