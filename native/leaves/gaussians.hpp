// Gaussians of several widths in L2 space: the twin of onlinegp.models.affine.l2s.
#pragma once
#include <cmath>
#include <cstring>
#include <vector>
#include "leaves/affine.hpp"

namespace onlinegp::ONLINEGP_ISA {

struct GaussiansRule {
    int64_t most, selected;
    double step, coherence, epsilon, novelty, width, shrinkage;
};

// Each Gaussian has a center, weights (p,), a variance, and facts that follow from the variance: see `Atoms` in Python
class Gaussians final : public Learner {
  public:
    explicit Gaussians(const Plan& plan)
        : rule_{plan.count("most"),     plan.count("selected"), plan.number("step"),  plan.number("coherence"),
                plan.number("epsilon"), plan.number("novelty"), plan.number("width"), plan.number("shrinkage")},
          d_(plan.features),
          p_(plan.outputs),
          variances_(plan.vector("variances")),
          columns_(plan.vector("columns")),
          widths_(int64_t(variances_.size())),
          facts_per_gaussian_(3 + 2 * widths_),
          mean_(size_t(p_)),
          errors_(p_) {}

    int64_t size() const override { return size_; }
    int64_t seen() const override { return seen_; }
    int64_t work_per_row() const override { return 1 + size_; }
    int variances() const override { return int(p_); }
    void flush() override {}

    void reserve(int64_t rows) override {
        const int64_t wanted = std::min(rule_.most, size_ + rows);
        if (wanted <= capacity_) return;
        const int64_t capacity = std::min(rule_.most, std::max<int64_t>({wanted, 2 * capacity_, 16}));
        std::vector<double> facts(size_t(facts_per_gaussian_ * capacity));
        for (int64_t i = 0; i < facts_per_gaussian_; i++) std::copy_n(fact(i), size_, facts.begin() + i * capacity);
        C_.resize(size_t(capacity * d_));
        weights_.resize(size_t(capacity * p_));
        variance_.resize(size_t(capacity));
        const int64_t chosen = std::min(rule_.selected, capacity);
        which_.reserve(size_t(chosen) + 1);
        shares_.reserve(size_t(chosen) + 1);
        z_.resize(size_t(chosen));
        L_.resize(size_t(chosen * chosen));
        k_.resize(size_t(capacity));
        d2_.resize(size_t(capacity));
        facts_.swap(facts);
        capacity_ = capacity;
    }
    int64_t learn(int64_t n, const double* X, const double* Y, const Steps& steps, Stop& stop) override {
        for (int64_t i = 0; i < n; i++, X += d_, Y += p_) {
            if (stop.asked(2 * work_per_row())) return i;
            reserve(1);
            look(X, mean_.data(), d2_.data(), k_.data());
            if (steps.mean) std::copy(mean_.begin(), mean_.end(), steps.mean + i * p_);
            if (steps.variance) errors_.variances(steps.variance + i * p_);
            correct(X, Y);
            errors_.add(Y, mean_.data(), seen_ == 0);
            seen_ += seen_ < INT64_MAX;
            if (steps.size) steps.size[i] = size_;
        }
        return n;
    }
    void predict_next(const double* x, double* mean, double* variance) override {
        look(x, mean, d2_.data(), k_.data());
        errors_.variances(variance);
    }
    void predict(int64_t n, const double* X, double* mean, double* variance, Stop& stop) const override {
        std::vector<double> d2(static_cast<size_t>(size_)), k(static_cast<size_t>(size_));
        for (int64_t i = 0; i < n && !stop.asked(work_per_row()); i++) {
            look(X + i * d_, mean + i * p_, d2.data(), k.data());
            errors_.variances(variance + i * p_);
        }
    }
    void fields(Visitor& visit) override {
        if (visit.looks()) return;
        const int64_t m = visit.loads() ? FREE : size_;
        std::vector<double> C(C_.begin(), C_.begin() + size_ * d_),
            weights(weights_.begin(), weights_.begin() + size_ * p_),
            variance(variance_.begin(), variance_.begin() + size_);
        visit.integer("seen", seen_);
        visit.array("atoms.C", C, {m, d_});
        visit.array("atoms.weights", weights, {m, p_});
        const int64_t stored = visit.array("atoms.variance", variance, {m});
        if (visit.loads()) {
            size_ = 0;
            reserve(stored);
            for (int64_t i = 0; i < stored; i++) {
                const auto width = std::find(variances_.begin(), variances_.end(), variance[size_t(i)]);
                append(C.data() + i * d_, width - variances_.begin());
            }
            std::copy(weights.begin(), weights.end(), weights_.begin());
        }
        errors_.fields(visit, "errors.");
    }

  private:
    const double* fact(int64_t i) const { return facts_.data() + i * capacity_; }

    // The mean (p,), the squared distances to x, and the values of the Gaussians at x
    void look(const double* x, double* mean, double* d2, double* k) const {
        const double *height = fact(0), *rate = fact(1);
        std::fill_n(mean, p_, 0.0);
        for (int64_t i = 0; i < size_; i++) {
            d2[i] = squared(C_.data() + i * d_, x);
            k[i] = height[i] * std::exp(-rate[i] * d2[i]);
            for (int64_t o = 0; o < p_; o++) mean[o] += k[i] * weights_[size_t(i * p_ + o)];
        }
    }
    double squared(const double* a, const double* b) const {
        double s = 0;
        for (int64_t j = 0; j < d_; j++) s += (a[j] - b[j]) * (a[j] - b[j]);
        return s;
    }
    void correct(const double* x, const double* y) {
        double e2 = 0, mean2 = 0;
        for (int64_t o = 0; o < p_; o++) {
            const double e = y[o] - mean_[size_t(o)];
            e2 += e * e;
            mean2 += mean_[size_t(o)] * mean_[size_t(o)];
        }
        const int64_t width = novel(e2, mean2);
        if (width >= 0) append(x, width);
        if (size_) correct_weights(y);
    }
    // The index of the width of a new Gaussian at x, or -1 for no new Gaussian
    int64_t novel(double e2, double mean2) const {
        for (int64_t q = 0; q < widths_; q++) {
            const double *height = fact(3 + q), *rate = fact(3 + widths_ + q);
            double most = -1;
            for (int64_t i = 0; i < size_; i++) {
                const double c = height[i] * std::exp(-rate[i] * d2_[size_t(i)]);
                most = c > most ? c : most;
            }
            if (most < rule_.coherence && (q == 0 || e2 > rule_.novelty * mean2)) return q;
        }
        return -1;
    }
    void append(const double* x, int64_t width) {
        if (size_ == rule_.most) forget_oldest();
        const int64_t m = size_++;
        std::copy_n(x, d_, C_.begin() + m * d_);
        std::fill_n(weights_.begin() + m * p_, p_, 0.0);
        variance_[size_t(m)] = variances_[size_t(width)];
        for (int64_t i = 0; i < facts_per_gaussian_; i++)
            facts_[size_t(i * capacity_ + m)] = columns_[size_t(width * facts_per_gaussian_ + i)];
        k_[size_t(m)] = fact(0)[m];
    }
    void forget_oldest() {
        const int64_t rest = --size_;
        const auto move_up = [rest](double* values, int64_t each) {
            std::memmove(values, values + each, size_t(rest * each) * sizeof(double));
        };
        move_up(C_.data(), d_);
        move_up(weights_.data(), p_);
        move_up(variance_.data(), 1);
        move_up(k_.data(), 1);
        for (int64_t i = 0; i < facts_per_gaussian_; i++) move_up(facts_.data() + i * capacity_, 1);
    }
    void correct_weights(const double* y) {
        const double* inverse = fact(2);
        choose_most(size_, rule_.selected, which_, shares_, [&](int64_t i) { return k_[size_t(i)] * inverse[i]; });
        const int64_t s = int64_t(which_.size());
        for (int64_t i = 0; i < s; i++) {
            for (int64_t j = 0; j <= i; j++) {
                const double product = (1.0 - rule_.shrinkage) * inner_product(which_[size_t(i)], which_[size_t(j)]);
                L_[size_t(i * s + j)] = product + (i == j ? rule_.shrinkage : 0.0);
            }
            z_[size_t(i)] = k_[size_t(which_[size_t(i)])];
        }
        solve_small(s, L_.data(), z_.data());
        double kz = 0;
        for (int64_t i = 0; i < s; i++) kz += k_[size_t(which_[size_t(i)])] * z_[size_t(i)];
        for (int64_t o = 0; o < p_; o++) {
            const double e = beyond(y[o] - mean_[size_t(o)], rule_.width) * rule_.step / (rule_.epsilon + kz);
            for (int64_t i = 0; i < s; i++) weights_[size_t(which_[size_t(i)] * p_ + o)] += z_[size_t(i)] * e;
        }
    }
    double inner_product(int64_t i, int64_t j) const {
        const double both = variance_[size_t(i)] + variance_[size_t(j)];
        const double d2 = squared(C_.data() + i * d_, C_.data() + j * d_);
        return std::pow(2.0 * M_PI * both, -0.5 * double(d_)) * std::exp(-0.5 / both * d2);
    }

    const GaussiansRule rule_;
    const int64_t d_, p_;
    const std::vector<double> variances_, columns_;  // (widths,), (widths, facts)
    const int64_t widths_, facts_per_gaussian_;
    int64_t size_ = 0, capacity_ = 0, seen_ = 0;
    std::vector<double> C_, weights_, variance_,
        facts_;  // (capacity, d), (capacity, p), (capacity,), (facts, capacity)
    std::vector<double> mean_, k_, d2_, z_, shares_, L_;
    std::vector<int64_t> which_;
    ErrorScale errors_;
};

}  // namespace onlinegp::ONLINEGP_ISA
