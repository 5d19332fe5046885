// Functions of many predictions at once: the twins of onlinegp.predictions.components.
#pragma once
#include "predictions.hpp"

namespace onlinegp {

// n mixtures of K components: weights, means and scales are (n, K)
struct Mixtures {
    int64_t n;
    const double *weights, *means, *scales;
};

void moments(const Kinds& kinds, const Mixtures& of, double* mean, double* std);
void log_density(const Kinds& kinds, const Mixtures& of, const double* y, double* out);
// The quantiles for probability p, by Newton's method between the quantiles (K,) of components with scale one.
// Bisection replaces a step that leaves the bracket, or that follows a step that did not halve the error.
double quantile(const Kinds& kinds, const Components& row, double p, const double* quantiles);
void quantile(const Kinds& kinds, const Mixtures& of, double p, const double* quantiles, double* out);

}  // namespace onlinegp
