// Centers and scales of columns: the twin of onlinegp.models.combined.standardize.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace onlinegp {

constexpr double CONSTANT = 1e-12;  // smaller deviations, relative to the largest magnitude, are rounding errors
constexpr double TINY = 1e-140;     // smaller deviations count as zero

struct ColumnMoments {
    double center, std;
    bool varies;
};

// The moments of a column of rows (n, width) that starts at `first`
inline ColumnMoments column_moments(const double* first, int64_t n, int64_t width) {
    double largest = 0, sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) largest = std::max(largest, std::fabs(first[i * width]));
    const double unit = largest > TINY ? largest : 1;
    for (int64_t i = 0; i < n; i++) sum += first[i * width] / unit;
    const double mean = sum / double(n);
    for (int64_t i = 0; i < n; i++) {
        const double away = first[i * width] / unit - mean;
        squares += away * away;
    }
    const double std = std::sqrt(squares / double(n));
    const bool varies = std > CONSTANT && unit * std > TINY;
    return {varies ? unit * mean : first[0], unit * std, varies};
}

// The scale of a constant column
inline double own_size(double center) { return std::fabs(center) > TINY ? std::fabs(center) : 1; }

// The standard deviation of the next value after n values with these moments
inline double next_spread(const ColumnMoments& column, int64_t n) {
    const double more = std::sqrt(double(n + 1) / double(std::max<int64_t>(n - 1, 1)));
    return column.varies ? column.std * more : own_size(column.center);
}

// Whether y is away from the center of a column that was constant so far
inline bool deviates(double y, double center) {
    return std::fabs(y - center) > std::max(CONSTANT * std::fabs(center), TINY);
}

}  // namespace onlinegp
