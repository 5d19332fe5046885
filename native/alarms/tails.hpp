// The tail of a statistic: its largest past values, ranks, and a generalized Pareto law. Twin of
// models/alarms/tails.py.
#pragma once
#include <algorithm>
#include <cmath>
#include "alarms/rules.hpp"

namespace onlinegp {
namespace alarms {

constexpr int64_t ENOUGH = 50;

struct Law {
    double u, shape, scale, share, changes;
};

struct Generation {
    int64_t size, rows;
};

class Tail {
  public:
    Tail(float* values, int64_t kept, Generation* generations, Law* law, double least, const Constants& rule)
        : newer_(values),
          older_(values + kept),
          kept_(kept),
          of_(generations),
          law_(*law),
          least_(least),
          rule_(rule) {}

    double evidence(double value, double nearly) {
        const int64_t n = of_[0].rows + of_[1].rows;
        const double x = double(float(std::min(value, LARGEST)));
        if (n < ENOUGH || (law_.share > 0 && x <= law_.u)) return 0;
        if (law_.changes > 0 || law_.share == 0) fit(n);
        const double excess = x - law_.u;
        if (excess <= 0) return 0;
        const double decay =
            law_.scale > 0 ? std::pow(1.0 + law_.shape * excess / law_.scale, -1.0 / law_.shape) : 1e-9;
        const double as_large = law_.u + nearly * excess;
        const int64_t rank = at_least(newer_, of_[0].size, as_large) + at_least(older_, of_[1].size, as_large);
        const double p = std::max(std::max(law_.share * decay, std::min(double(rank) / double(n), law_.share)), 1e-30);
        const double s = -std::log10(p);
        const double limit = std::log10(double(n)) + rule_.beyond;
        return s <= limit ? s : limit + rule_.speed * (s - limit);
    }

    void learn(double value) {
        const float x = float(std::min(value, LARGEST));
        if (double(of_[0].rows) >= rule_.generation) {
            std::copy(newer_, newer_ + kept_, older_);
            of_[1] = of_[0];
            of_[0] = {0, 0};
            law_.changes += 1;
        }
        of_[0].rows++;
        int64_t& size = of_[0].size;
        if (size == kept_ && !(x > newer_[size - 1])) return;
        int64_t place = size < kept_ ? size : kept_ - 1;
        while (place > 0 && newer_[place - 1] < x) {
            newer_[place] = newer_[place - 1];
            place--;
        }
        newer_[place] = x;
        size = std::min(size + 1, kept_);
        law_.changes += 1;
    }

    float largest() const {
        const float newer = of_[0].size ? newer_[0] : 0.0f;
        const float older = of_[1].size ? older_[0] : 0.0f;
        return std::max(newer, older);
    }

    // Keep only n^(1/4) of the n newer values above x
    void thin(float x) {
        const int64_t above =
            std::partition_point(newer_, newer_ + of_[0].size, [x](float one) { return one > x; }) - newer_;
        const int64_t gone = above - int64_t(std::ceil(std::sqrt(std::sqrt(double(above)))));
        std::copy(newer_ + above, newer_ + of_[0].size, newer_ + above - gone);
        of_[0].size -= gone;
        of_[0].rows -= gone;
        law_.changes += 1;
    }

    void forget() {
        of_[0] = of_[1] = {0, 0};
        law_ = {0, 0, 0, 0, 0};
    }

  private:
    // The number of values, in decreasing order, that are at least x
    static int64_t at_least(const float* values, int64_t size, double x) {
        return std::partition_point(values, values + size, [x](float one) { return double(one) >= x; }) - values;
    }

    // Probability-weighted moments of the K excesses over u
    void fit(int64_t n) {
        const int64_t have = of_[0].size + of_[1].size;
        const int64_t most = kept_ - 1;
        const int64_t reach = std::max(most, int64_t(double(most) / rule_.generation * double(n)));
        int64_t K = std::min(int64_t(rule_.share * double(n)), reach);
        K = std::min(std::max<int64_t>(2, K), have - 1);
        double largest[2 * KEPT];
        for (int64_t m = 0, i = 0, j = 0; m <= K; m++) {
            const bool newer = j >= of_[1].size || (i < of_[0].size && newer_[i] >= older_[j]);
            largest[m] = double(newer ? newer_[i++] : older_[j++]);
        }
        const double u = largest[K];
        while (K > 0 && largest[K - 1] <= u) K--;  // ties at u do not count as excesses
        double a0 = 0;
        double a1 = 0;
        const double count = double(K);
        for (int64_t m = 0; m < K; m++) {
            const double excess = largest[m] - u;
            a0 += excess / count;
            a1 += excess * (double(m) + 0.65) / count / count;
        }
        double xi = rule_.shape;
        if (a0 > 0) xi = a0 - 2.0 * a1 <= 1e-12 * a0 ? 0.01 : 2.0 - a0 / (a0 - 2.0 * a1);
        xi = std::min(std::max((count * xi + rule_.prior * rule_.shape) / (count + rule_.prior), 0.01), 1.0);
        const double fewest = least_ >= 1 ? 0.01 : 1.0 / double(n);
        law_ = {u, xi, std::max(a0 * (1.0 - xi), least_), std::max(count / double(n), fewest), 0};
    }

    float* newer_;  // values, in decreasing order
    float* older_;
    int64_t kept_;
    Generation* of_;
    Law& law_;
    double least_;
    const Constants& rule_;
};

}  // namespace alarms
}  // namespace onlinegp
