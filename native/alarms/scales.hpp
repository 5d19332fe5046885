// The scale of a target: itself, or a logarithm of it. Twin of models/alarms/scales.py.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace onlinegp {
namespace alarms {

constexpr double SHARE = 0.1;
constexpr double GAIN = 0.2;
constexpr double ROUNDING = 1e-6;
constexpr double LARGEST_LOG = 690;

// Below zero the logarithm continues as a straight line
inline double to_scale(double y, double shift) {
    if (shift == 0) return y;
    return y >= 0 ? std::log(y + shift) : std::log(shift) + y / shift;
}

inline double from_scale(double z, double shift) {
    if (shift == 0) return z;
    const double zero = std::log(shift);
    return z >= zero ? std::exp(std::min(z, LARGEST_LOG)) - shift : shift * (z - zero);
}

// The log variance of the errors of an autoregression of order 1; infinite if they have none
inline double log_variance(const std::vector<double>& z) {
    const size_t n = z.size() - 1;
    double first = 0;
    double second = 0;
    for (size_t i = 0; i < n; i++) {
        first += z[i] / double(n);
        second += z[i + 1] / double(n);
    }
    double squares = 0;
    double products = 0;
    double total = 0;
    for (size_t i = 0; i < n; i++) {
        const double before = z[i] - first;
        const double after = z[i + 1] - second;
        squares += before * before;
        products += before * after;
        total += after * after;
    }
    const double left = total - (squares > 0 ? products * products / squares : 0.0);
    return left > 1e-12 * squares ? std::log(left / double(n)) : std::numeric_limits<double>::infinity();
}

// The shift of the logarithm that a series needs, 0 for none, by the likelihood of its changes
inline double find_shift(std::vector<double> y) {
    double mean = 0;
    for (const double one : y) mean += one / double(y.size());
    const double zero = ROUNDING * mean;
    const auto zeros = std::count_if(y.begin(), y.end(), [zero](double one) { return one <= zero; });
    const bool negative = *std::min_element(y.begin(), y.end()) < -zero;
    if (!(SHARE * mean > 0) || negative || 2 * zeros > int64_t(y.size())) return 0;
    std::vector<double> logs;
    double mean_log = 0;
    for (double& one : y) {
        one = std::max(one, 0.0) / mean;
        logs.push_back(std::log(one + SHARE));
        mean_log += logs.back() / double(y.size());
    }
    const double plain = log_variance(y);
    const bool better = std::isfinite(plain) && -mean_log - 0.5 * log_variance(logs) > GAIN - 0.5 * plain;
    return better ? SHARE * mean : 0.0;
}

}  // namespace alarms
}  // namespace onlinegp
