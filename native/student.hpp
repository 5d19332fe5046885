// Normal and Student's t distributions of location zero and scale one: density, distribution function, quantile.
#pragma once
#include <cmath>
#include <initializer_list>
#include <limits>

namespace onlinegp {

constexpr double NORMAL = std::numeric_limits<double>::infinity();  // degrees of freedom of a normal distribution

// The log density at zero
inline double log_density_at_center(double degrees) {
    constexpr double PI = 3.141592653589793;
    if (std::isinf(degrees)) return -0.5 * std::log(2 * PI);
    return std::lgamma(0.5 * (degrees + 1)) - std::lgamma(0.5 * degrees) - 0.5 * std::log(PI * degrees);
}

// The variance
inline double variance_of(double degrees) { return std::isinf(degrees) ? 1 : degrees / (degrees - 2); }

// The continued fraction of the incomplete beta function (Abramowitz and Stegun, 26.5.8), by Lentz's method. It needs
// few terms for x < (a + 1) / (a + b + 2).
inline double beta_fraction(double a, double b, double x) {
    constexpr double LEAST = 1e-300, ENOUGH = 1e-16;
    double c = 1;
    double d = 1 / (1 - (a + b) * x / (a + 1));
    double product = d;
    for (int m = 1; m < 1000; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        for (const double term : {even, odd}) {
            d = 1 + term * d;
            c = 1 + term / c;
            d = 1 / (std::fabs(d) < LEAST ? LEAST : d);
            c = std::fabs(c) < LEAST ? LEAST : c;
            product *= d * c;
        }
        if (std::fabs(d * c - 1) < ENOUGH) break;
    }
    return product;
}

// log Gamma(a + 1/2) - log Gamma(a); by its series for large a, where both terms have the same leading digits
inline double log_gamma_step(double a) {
    if (a < 40) return std::lgamma(a + 0.5) - std::lgamma(a);
    const double r = 1 / (a * a);
    return 0.5 * std::log(a) - (1.0 / 8 - r * (1.0 / 192 - r * (1.0 / 640 - r * 17.0 / 14336))) / a;
}

// The density at zero: 1 / (sqrt(degrees) B(degrees / 2, 1 / 2))
inline double density_at_center(double degrees) {
    constexpr double LOG_GAMMA_HALF = 0.5723649429247001;
    if (std::isinf(degrees)) return 0.3989422804014327;
    return std::exp(log_gamma_step(0.5 * degrees) - LOG_GAMMA_HALF) / std::sqrt(degrees);
}

// P(t' <= t), and the density at t
struct Standard {
    double below, density;
};

inline bool is_even(double degrees) { return degrees == 2 * std::floor(0.5 * degrees); }

// The density at t divided by the density at zero: x^((degrees + 1) / 2) with x = degrees / (degrees + t^2)
constexpr double MOST_TERMS = 20;
inline double student_fall(double t, double degrees, double x) {
    if (degrees > 2 * MOST_TERMS || !is_even(degrees))
        return std::exp(-0.5 * (degrees + 1) * std::log1p(t * t / degrees));
    double power = std::sqrt(x);
    for (int j = 2; j <= degrees; j += 2) power *= x;
    return power;
}

// The probability beyond |t| on one side: half of I_x(degrees / 2, 1 / 2), with x as above
inline double student_tail(double t, double degrees, double x, double density) {
    const double a = 0.5 * degrees;
    const double y = t * t / (degrees + t * t);   // 1 - x, without loss of digits
    const double front = std::fabs(t) * density;  // x^a sqrt(y) / B(a, 1 / 2)
    if (x < (a + 1) / (a + 2.5)) return 0.5 * front * beta_fraction(a, 0.5, x) / a;
    return 0.5 - front * beta_fraction(0.5, a, y);
}

// The same for even degrees, as a finite sum (Abramowitz and Stegun, 26.7.4), below NEAR, where the tail is not so
// small that digits are lost
constexpr double NEAR = 3;
inline double student_tail_by_sum(double t, double degrees, double x) {
    const double sine = std::fabs(t) / std::sqrt(degrees + t * t);
    double term = 1, sum = 1;
    for (int j = 2; j < degrees; j += 2) {
        term *= x * (j - 1) / j;
        sum += term;
    }
    return 0.5 - 0.5 * sine * sum;
}

// `top` is the density at zero
inline Standard standard_at(double t, double degrees, double top) {
    if (std::isinf(degrees)) return {0.5 * std::erfc(-t * 0.7071067811865476), top * std::exp(-0.5 * t * t)};
    if (std::isnan(t)) return {t, t};
    const double x = degrees / (degrees + t * t);
    const double density = top * student_fall(t, degrees, x);
    if (x == 0) return {t < 0 ? 0.0 : 1.0, density};
    const bool sums = std::fabs(t) < NEAR && degrees <= 2 * MOST_TERMS && is_even(degrees);
    const double tail = sums ? student_tail_by_sum(t, degrees, x) : student_tail(t, degrees, x, density);
    return {t < 0 ? tail : 1 - tail, density};
}

// The quantile of p in (0, 1), by bisection to the last digit. It is slow, so cache the result.
inline double quantile_of(double p, double degrees) {
    if (p > 0.5) return -quantile_of(1 - p, degrees);
    const double top = density_at_center(degrees);
    double low = -1;
    while (standard_at(low, degrees, top).below > p && low > -1e300) low *= 2;
    double high = 0;
    for (int i = 0; i < 200 && high - low > 0; i++) {
        const double middle = 0.5 * (low + high);
        if (middle == low || middle == high) break;
        (standard_at(middle, degrees, top).below > p ? high : low) = middle;
    }
    return 0.5 * (low + high);
}

}  // namespace onlinegp
