// Predictions of rows: mixtures of normal and Student's t components, the twin of onlinegp.predictions.components.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>
#include "student.hpp"

namespace onlinegp {

using Vector = std::vector<double>;

// The components of one output of one row, (K,) each
struct Components {
    double *weight, *mean, *scale;
};

struct Moments {
    double mean, std;
};

// P(y' <= y), the density at y, and the derivative of its logarithm
struct Around {
    double below, density, change;
};

// Constants of K components, the same in all rows: degrees of freedom, and values derived from them
class Kinds {
  public:
    explicit Kinds(Vector degrees) : degrees(std::move(degrees)) {
        for (const double nu : this->degrees) {
            variance_.push_back(variance_of(nu));
            at_center_.push_back(log_density_at_center(nu));
            top_.push_back(density_at_center(nu));
        }
    }
    const Vector degrees;

    int64_t count() const { return int64_t(degrees.size()); }

    Moments moments(const Components& row) const {
        if (count() == 1)
            return {row.mean[0], std::isinf(degrees[0]) ? row.scale[0] : row.scale[0] * std::sqrt(variance_[0])};
        double mean = 0, square = 0;
        for (int64_t k = 0; k < count(); k++)
            if (row.weight[k] > 0) mean += row.weight[k] * row.mean[k];
        // clip to the range of the means of the components, so that rounding does not change a common mean
        double low = INFINITY, high = -INFINITY;
        for (int64_t k = 0; k < count(); k++) {
            if (!(row.weight[k] > 0)) continue;
            low = std::fmin(low, row.mean[k]);
            high = std::fmax(high, row.mean[k]);
        }
        mean = mean < low ? low : mean > high ? high : mean;
        for (int64_t k = 0; k < count(); k++) {
            if (!(row.weight[k] > 0)) continue;
            const double away = row.mean[k] - mean;
            square += row.weight[k] * (row.scale[k] * row.scale[k] * variance_[k] + away * away);
        }
        return {mean, std::sqrt(square)};
    }

    // log p_k(y)
    double log_density_of(const Components& row, int64_t k, double y) const {
        const double away = y - row.mean[k];
        const double r = away == 0 ? 0 : away / row.scale[k];
        const double r2 = r * r;
        if (std::isinf(r2)) return -INFINITY;
        const double nu = degrees[size_t(k)];
        const double fall = std::isinf(nu) ? 0.5 * r2 : 0.5 * (nu + 1) * std::log1p(r2 / nu);
        return at_center_[size_t(k)] - fall - std::log(row.scale[k]);
    }

    // log sum_k w_k p_k(y), with the largest term factored out; infinite for a point mass
    double log_density(const Components& row, double y) const {
        if (count() == 1) return log_density_of(row, 0, y);
        double largest = -INFINITY, sum = 0;
        for (int64_t k = 0; k < count(); k++) {
            if (row.weight[k] <= 0) continue;
            const double term = std::log(row.weight[k]) + log_density_of(row, k, y);
            if (std::isnan(term)) return term;
            if (term == -INFINITY) continue;
            if (term <= largest) {
                sum += term == largest ? 1 : std::exp(term - largest);
            } else {
                sum = sum * std::exp(largest - term) + 1;
                largest = term;
            }
        }
        return sum > 0 ? largest + std::log(sum) : -INFINITY;
    }

    Around around(const Components& row, double y) const {
        Around sum{0, 0, 0};
        for (int64_t k = 0; k < count(); k++) {
            if (!(row.weight[k] > 0)) continue;
            const double nu = degrees[size_t(k)];
            const double away = y - row.mean[k];
            const double r = away == 0 ? 0 : away / row.scale[k];
            const Standard own = standard_at(r, nu, top_[size_t(k)]);
            const double density = row.weight[k] / row.scale[k] * own.density;
            sum.below += row.weight[k] * own.below;
            sum.density += density;
            sum.change -= density * (std::isinf(nu) ? r : r * (nu + 1) / (nu + r * r)) / row.scale[k];
        }
        return {sum.below, sum.density, sum.change / sum.density};
    }
    double cdf(const Components& row, double y) const { return around(row, y).below; }

  private:
    Vector variance_, at_center_, top_;  // for a scale of one; at_center_ = log(top_)
};

// Return the same object for the same degrees, because many trees share them. It lives forever: programs use few
// degrees. The caller holds the interpreter's lock.
const Kinds& kinds_of(const Vector& degrees);

// The predictions of n rows and p outputs. The stretch of a row widens only its intervals: see onlinegp.Conformal. It
// is one except in Conformal and its wrappers.
class Predictions {
  public:
    Predictions(const Kinds& kinds, int p) : kinds(kinds), p_(p) { resize(1); }
    const Kinds& kinds;

    void resize(int64_t n) {  // never shrinks
        const size_t values = size_t(n) * size_t(p_);
        const size_t wanted = values * size_t(kinds.count());
        if (values <= stretch_.size()) return;
        weight_.resize(wanted);
        mean_.resize(wanted);
        scale_.resize(wanted);
        stretch_.resize(values, 1.0);
    }
    Components operator()(int64_t i, int64_t o) {
        const size_t at = size_t(i * p_ + o) * size_t(kinds.count());
        return {weight_.data() + at, mean_.data() + at, scale_.data() + at};
    }
    double& stretch(int64_t i, int64_t o) { return stretch_[size_t(i * p_ + o)]; }
    Moments moments(int64_t i, int64_t o) { return kinds.moments((*this)(i, o)); }
    double log_density(int64_t i, int64_t o, double y) { return kinds.log_density((*this)(i, o), y); }

    const Vector& weights() const { return weight_; }
    const Vector& means() const { return mean_; }
    const Vector& scales() const { return scale_; }
    const Vector& stretches() const { return stretch_; }

  private:
    const int p_;
    Vector weight_, mean_, scale_, stretch_;
};

}  // namespace onlinegp
