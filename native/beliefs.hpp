// What a filter thinks of its posterior covariance: the twin of onlinegp.recipes.beliefs, which has the equations and sources.
//
// `predict` and `gain` are here; what tracked beliefs do with their matrices is in tracking.hpp.
#pragma once
#include "gram.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr double REFINE_ABOVE = 1e-12, RESIDUAL_MEMORY = 0.98, LEAST_DOUBT = 1e-14;

template <class T> void predict_prior(const Recipe& recipe, Prediction<T>& prediction) {
    prediction.v = prediction.kxx;
    prediction.s = max(1.0 / recipe.step, prediction.kxx);
}

// R, the running maximum of the row sums of |k|, with x as one more row
template <class T> double row_bound(const State<T>& state, const T* k, double kxx) {
    Vec<T> rows{}, total{};
    for (int64_t i = 0; i < state.size; i += W<T>) {
        const Vec<T> a = magnitude<T>(load(k + i));
        rows = larger(rows, load(state.rowsum + i) + a);
        total += a;
    }
    double bound = max(state.bound, double(sum<T>(total)) + kxx);
    for (int i = 0; i < W<T>; i++) bound = max(bound, double(rows[i]));
    return bound;
}

template <class T> void predict_beta(const Recipe& recipe, const State<T>& state, Prediction<T>& prediction) {
    const T* k = prediction.k.data();
    prediction.beta = recipe.automatic ? -1.0 / (row_bound(state, k, prediction.kxx) + recipe.noise) : recipe.beta;
    prediction.v = max(prediction.kxx + prediction.beta * prediction.k2, 0.0);
    prediction.s = prediction.v + recipe.noise;
}

template <class T> void predict_isotropic(const Recipe& recipe, Prediction<T>& prediction) {
    prediction.v = prediction.kxx + prediction.k2;
    prediction.s = max((recipe.epsilon + prediction.k2 + square(prediction.kxx)) / recipe.step, prediction.v);
}

// q <- q + Q (k - K q)
template <class T> void refine(const Kernel<T>& kernel, const State<T>& state, Prediction<T>& prediction) {
    const int m = int(state.size);
    T *q = prediction.q.data(), *r = prediction.r.data(), *more = prediction.b.data();
    gram_product(kernel, state, q, r);
    for (int i = 0; i < m; i += W<T>) store(r + i, load(prediction.k.data() + i) - load(r + i));
    state.Q.product(m, r, more);
    for (int i = 0; i < m; i += W<T>) store(q + i, load(q + i) + load(more + i));
}

// k . w, k . q and k . (q - w)
template <class T> void products(Prediction<T>& prediction, int64_t m) {
    const T *k = prediction.k.data(), *w = prediction.w.data(), *q = prediction.q.data();
    Vec<T> kw[2] = {}, kq[2] = {}, kr[2] = {};
    const int n = tile_count<T>(m);
    const auto add = [&](int t, int i) {
        const Vec<T> kt = load(k + t * W<T>), wt = load(w + t * W<T>), qt = load(q + t * W<T>);
        kw[i] = fma(kt, wt, kw[i]), kq[i] = fma(kt, qt, kq[i]), kr[i] = fma(kt, qt - wt, kr[i]);
    };
    int t = 0;
    for (; t + 2 <= n; t += 2) add(t, 0), add(t + 1, 1);
    if (t < n) add(t, 0);
    prediction.kw = double(sum<T>(kw[0] + kw[1])), prediction.kq = double(sum<T>(kq[0] + kq[1]));
    prediction.kr = double(sum<T>(kr[0] + kr[1]));
}

template <class T> void predict_posterior(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, Prediction<T>& prediction) {
    const int64_t m = state.size;
    const T* k = prediction.k.data();
    prediction.kxx *= 1.0 + recipe.jitter;
    state.A.multiply(int(m), k, prediction.w.data(), recipe.uses_diagonal_of_a() ? prediction.dA.data() : nullptr);
    if (state.scale != 1.0) scale(T(state.scale), prediction.w.data(), m);
    state.Q.multiply(int(m), k, prediction.q.data(), prediction.dQ.data());
    products(prediction, m);
    prediction.gamma2 = prediction.kxx - prediction.kq, prediction.v = prediction.kxx - prediction.kw;
    prediction.residual = 0;
    if (m > 0 && prediction.kxx != 0) {  // of one row
        const double kq = double(dot(state.probe, prediction.q.data(), m));
        prediction.residual = std::fabs(kq - double(k[state.probed])) / prediction.kxx;
    }
    const bool sound = 0.0 <= prediction.gamma2 && prediction.gamma2 <= prediction.v;
    prediction.refined = max(prediction.residual, state.residual) > REFINE_ABOVE || !sound;
    if (prediction.refined) {
        refine(kernel, state, prediction);
        products(prediction, m);
        prediction.gamma2 = prediction.kxx - prediction.kq;
    }
    prediction.gamma2 = max(prediction.gamma2, 0.0);
    prediction.v = max(prediction.v, prediction.gamma2);
    prediction.s = prediction.v + recipe.noise;
}

// Return to the prior what rounding has made too sure of itself: k S k >= LEAST_DOUBT / jitter k Q k for S = Q - A
template <class T> void steady(const Recipe& recipe, State<T>& state, Prediction<T>& prediction) {
    const double missing = LEAST_DOUBT / recipe.jitter * prediction.kq - prediction.kr;
    if (!(missing > 0)) return;
    const double share = missing / prediction.kw, kept = 1.0 - (share < 0.5 ? share : 0.5);
    state.scale *= kept;
    scale(T(kept), prediction.w.data(), state.size);
    prediction.v = max(prediction.kxx - kept * prediction.kw, prediction.gamma2);
    prediction.s = prediction.v + recipe.noise;
}

template <class T> void predict_exact(const Recipe& recipe, State<T>& state, Prediction<T>& prediction) {
    state.A.multiply(int(state.size), prediction.k.data(), prediction.w.data(), prediction.dA.data());
    scale(T(state.scale), prediction.w.data(), state.size);
    prediction.v = max(prediction.kxx - double(dot(prediction.k.data(), prediction.w.data(), state.size)), 0.0);
    prediction.s = prediction.v + recipe.noise;
}

template <class T> void predict_least_squares(State<T>& state, Prediction<T>& prediction) {
    const int64_t m = state.size;
    state.Q.multiply(int(m), prediction.k.data(), prediction.q.data(), prediction.dQ.data());
    state.P.multiply(int(m), prediction.q.data(), prediction.w.data());
    prediction.gamma2 = max(prediction.kxx - double(dot(prediction.k.data(), prediction.q.data(), m)), 0.0);
    prediction.v = prediction.gamma2 + max(double(dot(prediction.q.data(), prediction.w.data(), m)), 0.0);
    prediction.s = prediction.v + 1.0;
}

// What the belief says once the kernel row is there
template <class T> void predict_belief(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, Prediction<T>& prediction) {
    switch (recipe.belief) {
        case Belief::Prior: return predict_prior(recipe, prediction);
        case Belief::Beta: return predict_beta(recipe, state, prediction);
        case Belief::Isotropic: return predict_isotropic(recipe, prediction);
        case Belief::Posterior: return predict_posterior(recipe, kernel, state, prediction);
        case Belief::Exact: return predict_exact(recipe, state, prediction);
        case Belief::LeastSquares: return predict_least_squares(state, prediction);
    }
}

// The gain g and the innovation variance s of a sample that goes to `slot`
template <class T> Gain<T> gain(const Recipe& recipe, const State<T>& state, Prediction<T>& prediction, int64_t slot) {
    const int64_t m = state.size;
    T* g = prediction.g.data();
    switch (recipe.belief) {
        case Belief::Prior:
            return {nullptr, T(1), 1.0 / recipe.step, T(0), T(1)};
        case Belief::Beta:
            return {prediction.k.data(), T(1), prediction.s, T(prediction.beta), T(1)};
        case Belief::Isotropic: {
            const double g2 = prediction.k2 + (slot == NEW ? square(prediction.kxx) : 0.0);
            return {prediction.k.data(), T(prediction.kxx), (recipe.epsilon + g2) / recipe.step};
        }
        case Belief::Exact:
            scaled(T(-1), prediction.w.data(), g, m);
            return {g, T(1), prediction.s};
        case Belief::Posterior:
            if (slot == NEW) scaled(T(-1), prediction.w.data(), g, m);
            else
                for (int64_t i = 0; i < m; i += W<T>)
                    store(g + i, load(prediction.q.data() + i) - load(prediction.w.data() + i));
            return {g, T(1), prediction.s};
        default:  // LeastSquares
            if (slot == NEW) {
                for (int64_t i = 0; i < m; i += W<T>) store(g + i, -load(prediction.q.data() + i) / T(prediction.gamma2));
                return {g, T(1 / prediction.gamma2), 1.0};
            }
            state.Q.product(int(m), prediction.w.data(), g);
            return {g, T(0), 1.0 + prediction.v - prediction.gamma2};
    }
}

}  // namespace onlinegp::ONLINEGP_ISA
