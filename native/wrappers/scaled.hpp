// Standardized x and y, with scales that no longer change: the twin of ScaledLearner in
// onlinegp.models.combined.scaled.
#pragma once
#include "tree.hpp"

namespace onlinegp {

// Columns in other units: (x - center) / scale
struct Units {
    Vector numbers;  // centers, then scales
    double limit;    // the largest magnitude that the model inside can square

    const double* center() const { return numbers.data(); }
    const double* scale() const { return numbers.data() + numbers.size() / 2; }
    void operator()(int64_t n, const double* from, double* to) const {
        const size_t width = numbers.size() / 2;
        const double *c = center(), *s = scale();
        for (int64_t i = 0; i < n; i++, from += width, to += width)
            for (size_t j = 0; j < width; j++) {
                const double z = (from[j] - c[j]) / s[j];
                to[j] = std::max(std::min(z, limit), -limit);
            }
    }
};

class Scaled final : public Outer {
  public:
    Scaled(int d, Owned inside, Units x, Units y)
        : Outer(d, std::move(inside), {}), x_(std::move(x)), y_(std::move(y)) {}

    void predict_next(const double* x, Workspace& w) override {
        inner->predict_next(inputs(1, x, w), w);
        change(0, w);
    }
    void learn_next(const double*, const double* y, Workspace& w) override {
        inner->learn_next(slot(w).inputs.data(), targets(1, y, w), w);
    }
    void run(int64_t n, const double* X, const double* Y, Workspace& w) override {
        inner->run(n, inputs(n, X, w), targets(n, Y, w), w);
        predicted(w).resize(n);
        slot(w).sizes = inner->slot(w).sizes;
        for (int64_t i = 0; i < n; i++) change(i, w);
    }
    void learn(int64_t n, const double* X, const double* Y, Workspace& w) override {
        inner->learn(n, inputs(n, X, w), targets(n, Y, w), w);
    }
    void reserve(int64_t rows, Workspace& w) override {
        Outer::reserve(rows, w);
        slot(w).inputs.reserve(size_t(rows * inner->d));
    }
    bool only_stores() const override { return inner->only_stores(); }
    void predict(int64_t n, const double* X, Workspace& w) const override { Outer::predict(n, inputs(n, X, w), w); }
    void fields(Visitor& visit) override { visit.node("model", *inner); }
    void lines(Lines& needed) const override {
        Node::lines(needed);
        for (const Units* units : {&x_, &y_}) needed.add(units->numbers.data(), units->numbers.size() * sizeof(double));
    }

  private:
    const double* inputs(int64_t n, const double* X, Workspace& w) const {
        Vector& Z = slot(w).inputs;
        Z.resize(std::max(Z.size(), size_t(n * d)));
        x_(n, X, Z.data());
        return Z.data();
    }
    const double* targets(int64_t n, const double* Y, Workspace& w) const {
        Vector& T = slot(w).targets;
        T.resize(std::max(T.size(), size_t(n * p)));
        y_(n, Y, T.data());
        return T.data();
    }
    void change(int64_t i, Workspace& w) const override {
        Predictions &in = inner->predicted(w), &out = predicted(w);
        for (int o = 0; o < p; o++) {
            const Components from = in(i, o), to = out(i, o);
            const double center = y_.center()[o], scale = y_.scale()[o];
            for (int64_t k = 0; k < kinds.count(); k++) {
                to.weight[k] = from.weight[k];
                to.mean[k] = center + scale * from.mean[k];
                to.scale[k] = scale * from.scale[k];
            }
            out.stretch(i, o) = in.stretch(i, o);
        }
    }
    void update(int64_t, const double*, Workspace&) override {}

    const Units x_, y_;
};

}  // namespace onlinegp
