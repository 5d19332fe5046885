// Gaussians of several widths in L2 space: onlinegp.models.affine.l2s, compiled; the arrays are Python's.
#pragma once
#include <cmath>
#include <cstring>
#include <vector>
#include "affine.hpp"

namespace onlinegp::ONLINEGP_ISA {

class GaussiansRun {
  public:
    GaussiansRun(const GaussiansRule& rule, const GaussiansArrays& arrays)
        : rule_(rule), a_(arrays), k_(size_t(a_.capacity)), d2_(size_t(a_.capacity)), z_(size_t(rule.selected)) {
        which_.reserve(size_t(rule.selected) + 1), shares_.reserve(size_t(rule.selected) + 1);
    }

    // mean and std (n, p), size (n,); returns how many Gaussians there are
    int64_t run(int64_t rows, const double* X, const double* Y, double* mean, double* std, int64_t* size) {
        const int64_t p = a_.p;
        for (int64_t i = 0; i < rows; i++, X += a_.d, Y += p, mean += p, std += p) {
            look(X, mean);
            double e2 = 0, mean2 = 0;
            for (int64_t o = 0; o < p; o++) {
                const double e = Y[o] - mean[o];
                std[o] = std::sqrt(a_.squares[o] / *a_.errors);
                e2 += e * e, mean2 += mean[o] * mean[o];
            }
            const int64_t width = novel(e2, mean2);
            if (width >= 0) append(X, width);
            if (a_.size) correct(Y, mean);
            add_errors(p, Y, mean, a_.fade, a_.squares, *a_.errors);
            size[i] = a_.size;
        }
        return a_.size;
    }

  private:
    const double* fact(int64_t i) const { return a_.facts + i * a_.capacity; }

    void look(const double* x, double* mean) {
        const double *height = fact(0), *rate = fact(1);
        for (int64_t o = 0; o < a_.p; o++) mean[o] = 0;
        for (int64_t i = 0; i < a_.size; i++) {
            d2_[size_t(i)] = squared(a_.C + i * a_.d, x);
            k_[size_t(i)] = height[i] * std::exp(-rate[i] * d2_[size_t(i)]);
            for (int64_t o = 0; o < a_.p; o++) mean[o] += k_[size_t(i)] * a_.weights[i * a_.p + o];
        }
    }
    double squared(const double* a, const double* b) const {
        double s = 0;
        for (int64_t j = 0; j < a_.d; j++) s += (a[j] - b[j]) * (a[j] - b[j]);
        return s;
    }
    // Which width the Gaussian has that x becomes, -1 if it becomes none
    int64_t novel(double e2, double mean2) const {
        for (int64_t q = 0; q < a_.widths; q++) {
            const double *height = fact(3 + q), *rate = fact(3 + a_.widths + q);
            double most = -1;
            for (int64_t i = 0; i < a_.size; i++) {
                const double c = height[i] * std::exp(-rate[i] * d2_[size_t(i)]);
                most = c > most ? c : most;
            }
            if (most < rule_.coherence && (q == 0 || e2 > rule_.novelty * mean2)) return q;
        }
        return -1;
    }
    void append(const double* x, int64_t width) {
        if (a_.size == rule_.most) forget_oldest();
        const int64_t m = a_.size++;
        for (int64_t j = 0; j < a_.d; j++) a_.C[m * a_.d + j] = x[j];
        for (int64_t o = 0; o < a_.p; o++) a_.weights[m * a_.p + o] = 0;
        a_.variance[m] = a_.variances[width];
        for (int64_t i = 0; i < 3 + 2 * a_.widths; i++) a_.facts[i * a_.capacity + m] = a_.columns[width * (3 + 2 * a_.widths) + i];
        k_[size_t(m)] = fact(0)[m];
    }
    void forget_oldest() {
        const size_t rest = size_t(--a_.size), one = sizeof(double);
        std::memmove(a_.C, a_.C + a_.d, rest * size_t(a_.d) * one), std::memmove(a_.weights, a_.weights + a_.p, rest * size_t(a_.p) * one);
        std::memmove(a_.variance, a_.variance + 1, rest * one), std::memmove(k_.data(), k_.data() + 1, rest * one);
        for (int64_t i = 0; i < 3 + 2 * a_.widths; i++) std::memmove(a_.facts + i * a_.capacity, a_.facts + i * a_.capacity + 1, rest * one);
    }
    void correct(const double* y, const double* mean) {
        const double* inverse = fact(2);
        choose_most(a_.size, rule_.selected, which_, shares_, [&](int64_t i) { return k_[size_t(i)] * inverse[i]; });
        const int64_t s = int64_t(which_.size());
        L_.resize(size_t(s * s));
        for (int64_t i = 0; i < s; i++)
            for (int64_t j = 0; j <= i; j++) L_[size_t(i * s + j)] = (1.0 - rule_.shrinkage) * product(which_[size_t(i)], which_[size_t(j)]) + (i == j ? rule_.shrinkage : 0.0);
        for (int64_t i = 0; i < s; i++) z_[size_t(i)] = k_[size_t(which_[size_t(i)])];
        solve_small(s, L_.data(), z_.data());
        double kz = 0;
        for (int64_t i = 0; i < s; i++) kz += k_[size_t(which_[size_t(i)])] * z_[size_t(i)];
        for (int64_t o = 0; o < a_.p; o++) {
            const double e = beyond(y[o] - mean[o], rule_.width) * rule_.step / (rule_.epsilon + kz);
            for (int64_t i = 0; i < s; i++) a_.weights[which_[size_t(i)] * a_.p + o] += z_[size_t(i)] * e;
        }
    }
    double product(int64_t i, int64_t j) const {
        const double both = a_.variance[i] + a_.variance[j];
        return std::pow(2.0 * M_PI * both, -0.5 * double(a_.d)) * std::exp(-0.5 / both * squared(a_.C + i * a_.d, a_.C + j * a_.d));
    }

    const GaussiansRule rule_;
    GaussiansArrays a_;
    std::vector<double> k_, d2_, z_, shares_, L_;
    std::vector<int64_t> which_;
};

static int64_t gaussians_run(const GaussiansRule& rule, const GaussiansArrays& arrays, int64_t rows, const double* X,
                             const double* Y, double* mean, double* std, int64_t* size) {
    return GaussiansRun(rule, arrays).run(rows, X, Y, mean, std, size);
}

}  // namespace onlinegp::ONLINEGP_ISA
