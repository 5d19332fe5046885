// Recursive least squares on lags. Twin of models/alarms/predictors.py.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>
#include "alarms/rules.hpp"

namespace onlinegp {
namespace alarms {

constexpr double CUT = 10;
constexpr double WINDUP = 1e10;

inline int64_t place(int64_t t) { return ((t % RECENT) + RECENT) % RECENT; }

// (past value - level) / spread, for the rows that lags can reach
struct Past {
    const float* recent;
    int64_t t, reach;
    double level, spread;

    double operator()(int64_t lag, int64_t spare) const {
        if (lag > reach) lag = spare;
        const double past = lag > 0 && lag <= reach ? double(recent[place(t - lag)]) : level;
        return std::min(std::max((past - level) / spread, -CUT), CUT);
    }
};

// MOST is the largest number of weights
template <int MOST> class Predictor {
  public:
    Predictor(double* P, double* w, double forgetting) : P_(P), w_(w), forgetting_(forgetting) {}

    std::vector<int64_t> lags;
    int64_t spare = 0;

    void start(double ridge, double first) {
        std::fill(P_, P_ + MOST * MOST, 0.0);
        std::fill(w_, w_ + MOST, 0.0);
        for (int i = 0; i < size(); i++) P_[i * MOST + i] = 1.0 / ridge;
        w_[0] = first;
    }

    double predict(const Past& past) {
        const int p = size();
        for (int j = 0; j + 1 < p; j++) x_[j] = past(lags[size_t(j)], spare);
        x_[p - 1] = 1;
        double total = 0;
        for (int j = 0; j < p; j++) total += w_[j] * x_[j];
        return total;
    }

    void learn(double error, double limit) {
        const int p = size();
        const double e = std::min(std::max(error, -limit), limit);
        double g[MOST] = {};
        double s = forgetting_;
        for (int j = 0; j < p; j++)
            for (int i = 0; i < p; i++) g[i] += P_[j * MOST + i] * x_[j];  // P is symmetric
        for (int j = 0; j < p; j++) s += g[j] * x_[j];
        const double root = 1.0 / std::sqrt(s);
        const double grow = 1.0 / forgetting_;
        for (int i = 0; i < p; i++) g[i] *= root;
        double trace = 0;
        for (int i = 0; i < p; i++) {
            w_[i] += g[i] * (root * e);
            double* row = P_ + i * MOST;
            for (int j = 0; j < p; j++) row[j] = (row[j] - g[i] * g[j]) * grow;
            trace += row[i];
        }
        if (trace > p * WINDUP)
            for (int i = 0; i < MOST * MOST; i++) P_[i] *= 0.1;
    }

  private:
    int size() const { return int(lags.size()) + 1; }

    double* P_;  // (MOST, MOST)
    double* w_;
    double forgetting_;
    double x_[MOST] = {};
};

inline std::vector<int64_t> near_lags(int64_t season) {
    std::vector<int64_t> lags;
    for (int64_t lag = 1; lag <= NEAR; lag++) lags.push_back(lag);
    if (season > 20)
        for (int64_t lag = season - AROUND; lag <= season + AROUND; lag++) lags.push_back(lag);
    else if (season > NEAR)
        lags.push_back(season);
    return lags;
}

inline std::vector<int64_t> far_lags(int64_t season, bool daily) {
    if (season <= NEAR) return {};
    std::vector<int64_t> lags{season - 1, season, season + 1, 2 * season};
    if (daily) lags.push_back(WEEK * season);
    lags.erase(std::remove_if(lags.begin(), lags.end(), [](int64_t lag) { return lag > RECENT; }), lags.end());
    return lags;
}

}  // namespace alarms
}  // namespace onlinegp
