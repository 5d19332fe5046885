// A state without what can be computed from its centers, and with S as a float32 factor: the twin of
// onlinegp.recipes.compact, which has the equations.
#pragma once
#include "recipe/update.hpp"

namespace onlinegp::ONLINEGP_ISA {

// R (lower triangle, row by row) with R R' = scale S + (1 - scale) I; nothing may be pending
template <class T> void factor_covariance(const State<T>& state, float* R) {
    const int64_t m = state.size;
    Buffer<double> columns(size_t(m) * m), diagonal(m);
    const auto column = [&](int64_t j) { return columns.data() + j * m; };
    for (int64_t j = 0; j < m; j++) {
        for (int64_t i = j; i < m; i++) column(j)[i] = state.scale * double(state.S.at(i, j));
        diagonal[j] = column(j)[j] += 1.0 - state.scale;
    }
    for (int64_t k = 0; k < m; k++) {
        double* own = column(k);
        const double pivot = max(own[k], LEAST_DOUBT * diagonal[k]), r = pivot > 0 ? std::sqrt(pivot) : 0 * pivot;
        own[k] = r;
        for (int64_t i = k + 1; i < m; i++) own[i] = r != 0 ? own[i] / r : 0;
        for (int64_t j = k + 1; j < m; j++) {
            double* rest = column(j);
            const double factor = own[j];
            for (int64_t i = j; i < m; i++) rest[i] -= factor * own[i];
        }
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j <= i; j++) *R++ = float(column(j)[i]);
}

// S = R R'; S is zero before
template <class T> void multiply_factor(State<T>& state, const float* R) {
    const int64_t m = state.size;
    Buffer<T> column(m);
    for (int64_t k = 0; k < m; k++) {
        for (int64_t i = k; i < m; i++) column[i] = T(R[i * (i + 1) / 2 + k]);
        for (int64_t j = k; j < m; j++) {
            for (int64_t i = j; i < m; i++) state.S.at(i, j) += column[j] * column[i];
        }
    }
}

// Compute kcc, L and dQ, which are zero before, as if the centers were admitted one after the other
template <class T>
void factor_again(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, Prediction<T>& prediction) {
    const BeliefPart& belief = recipe.belief;
    const int64_t m = state.size;
    T *x = prediction.x.data(), *t = prediction.t.data(), *n = prediction.n.data();
    for (int64_t i = 0; i < m; i++) {
        get_center(state.tiles, state.d, i, x);
        row(kernel, state.tiles, i, x, state.alpha, t);
        state.L.forward(i, t);
        const double kxx = diagonal(kernel, x) * (1.0 + belief.jitter);
        const double rest = kxx - double(dot(t, t, i));
        const double gamma2 =
            belief == Belief::Exact ? max(rest, LEAST_DOUBT * kxx) + belief.noise : max(rest, SMALLEST_NOVELTY * kxx);
        state.kcc[i] = T(kxx);
        state.L.append(i, t, T(std::sqrt(gamma2)));
    }
    for (int64_t i = 0; state.dQ && i < m; i++) {
        clear(n, m);
        n[i] = 1;
        state.L.forward(m, n, i);
        state.dQ[i] = dot(n, n, m);
    }
}

}  // namespace onlinegp::ONLINEGP_ISA
