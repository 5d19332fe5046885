// What a filter thinks of its posterior covariance: the twin of onlinegp.beliefs, which has the equations and sources.
//
// `look` and `gain` are here; what tracked beliefs do with their matrices is in tracking.hpp.
#pragma once
#include "gram.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr double REFINE_ABOVE = 1e-12, RESIDUAL_MEMORY = 0.98, LEAST_DOUBT = 1e-14;

template <class T> void look_prior(const Recipe& recipe, Look<T>& look) {
    look.v = look.kxx;
    look.s = max(1.0 / recipe.step, look.kxx);
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

template <class T> void look_beta(const Recipe& recipe, const State<T>& state, Look<T>& look) {
    const T* k = look.k.data();
    look.pull = recipe.automatic ? -1.0 / (row_bound(state, k, look.kxx) + recipe.noise) : recipe.beta;
    look.v = max(look.kxx + look.pull * look.k2, 0.0);
    look.s = look.v + recipe.noise;
}

template <class T> void look_isotropic(const Recipe& recipe, Look<T>& look) {
    look.v = look.kxx + look.k2;
    look.s = max((recipe.epsilon + look.k2 + square(look.kxx)) / recipe.step, look.v);
}

// q <- q + Q (k - K q)
template <class T> void refine(const Kernel<T>& kernel, const State<T>& state, Look<T>& look) {
    const int m = int(state.size);
    T *q = look.q.data(), *r = look.r.data(), *more = look.b.data();
    gram_product(kernel, state, q, r);
    for (int i = 0; i < m; i += W<T>) store(r + i, load(look.k.data() + i) - load(r + i));
    state.Q.product(m, r, more);
    for (int i = 0; i < m; i += W<T>) store(q + i, load(q + i) + load(more + i));
}

// k . w, k . q and k . (q - w)
template <class T> void products(Look<T>& look, int64_t m) {
    const T *k = look.k.data(), *w = look.w.data(), *q = look.q.data();
    Vec<T> kw[2] = {}, kq[2] = {}, kr[2] = {};
    const int n = tile_count<T>(m);
    const auto add = [&](int t, int i) {
        const Vec<T> kt = load(k + t * W<T>), wt = load(w + t * W<T>), qt = load(q + t * W<T>);
        kw[i] = fma(kt, wt, kw[i]), kq[i] = fma(kt, qt, kq[i]), kr[i] = fma(kt, qt - wt, kr[i]);
    };
    int t = 0;
    for (; t + 2 <= n; t += 2) add(t, 0), add(t + 1, 1);
    if (t < n) add(t, 0);
    look.kw = double(sum<T>(kw[0] + kw[1])), look.kq = double(sum<T>(kq[0] + kq[1]));
    look.kr = double(sum<T>(kr[0] + kr[1]));
}

template <class T> void look_posterior(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, Look<T>& look) {
    const int64_t m = state.size;
    const T* k = look.k.data();
    look.kxx *= 1.0 + recipe.jitter;
    state.A.multiply(int(m), k, look.w.data(), recipe.uses_diagonal_of_a() ? look.dA.data() : nullptr);
    if (state.scale != 1.0) scale(T(state.scale), look.w.data(), m);
    state.Q.multiply(int(m), k, look.q.data(), look.dQ.data());
    products(look, m);
    look.gamma2 = look.kxx - look.kq, look.v = look.kxx - look.kw;
    look.residual = 0;
    if (m > 0 && look.kxx != 0) {  // of one row
        const double kq = double(dot(state.probe, look.q.data(), m));
        look.residual = std::fabs(kq - double(k[state.probed])) / look.kxx;
    }
    const bool sound = 0.0 <= look.gamma2 && look.gamma2 <= look.v;
    look.refined = max(look.residual, state.residual) > REFINE_ABOVE || !sound;
    if (look.refined) {
        refine(kernel, state, look);
        products(look, m);
        look.gamma2 = look.kxx - look.kq;
    }
    look.gamma2 = max(look.gamma2, 0.0);
    look.v = max(look.v, look.gamma2);
    look.s = look.v + recipe.noise;
}

// Return to the prior what rounding has made too sure of itself: k S k >= LEAST_DOUBT / jitter k Q k for S = Q - A
template <class T> void steady(const Recipe& recipe, State<T>& state, Look<T>& look) {
    const double missing = LEAST_DOUBT / recipe.jitter * look.kq - look.kr;
    if (!(missing > 0)) return;
    const double share = missing / look.kw, kept = 1.0 - (share < 0.5 ? share : 0.5);
    state.scale *= kept;
    scale(T(kept), look.w.data(), state.size);
    look.v = max(look.kxx - kept * look.kw, look.gamma2);
    look.s = look.v + recipe.noise;
}

template <class T> void look_exact(const Recipe& recipe, State<T>& state, Look<T>& look) {
    state.A.multiply(int(state.size), look.k.data(), look.w.data(), look.dA.data());
    scale(T(state.scale), look.w.data(), state.size);
    look.v = max(look.kxx - double(dot(look.k.data(), look.w.data(), state.size)), 0.0);
    look.s = look.v + recipe.noise;
}

template <class T> void look_least_squares(State<T>& state, Look<T>& look) {
    const int64_t m = state.size;
    state.Q.multiply(int(m), look.k.data(), look.q.data(), look.dQ.data());
    state.P.multiply(int(m), look.q.data(), look.w.data());
    look.gamma2 = max(look.kxx - double(dot(look.k.data(), look.q.data(), m)), 0.0);
    look.v = look.gamma2 + max(double(dot(look.q.data(), look.w.data(), m)), 0.0);
    look.s = look.v + 1.0;
}

// What the belief says once the kernel row is there
template <class T> void look_belief(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, Look<T>& look) {
    switch (recipe.belief) {
        case Belief::Prior: return look_prior(recipe, look);
        case Belief::Beta: return look_beta(recipe, state, look);
        case Belief::Isotropic: return look_isotropic(recipe, look);
        case Belief::Posterior: return look_posterior(recipe, kernel, state, look);
        case Belief::Exact: return look_exact(recipe, state, look);
        case Belief::LeastSquares: return look_least_squares(state, look);
    }
}

// The gain g and the innovation variance s of a sample that goes to `slot`
template <class T> Gain<T> gain(const Recipe& recipe, const State<T>& state, Look<T>& look, int64_t slot) {
    const int64_t m = state.size;
    T* g = look.g.data();
    switch (recipe.belief) {
        case Belief::Prior:
            return {nullptr, T(1), 1.0 / recipe.step, T(0), T(1)};
        case Belief::Beta:
            return {look.k.data(), T(1), look.s, T(look.pull), T(1)};
        case Belief::Isotropic: {
            const double g2 = look.k2 + (slot == NEW ? square(look.kxx) : 0.0);
            return {look.k.data(), T(look.kxx), (recipe.epsilon + g2) / recipe.step};
        }
        case Belief::Exact:
            scaled(T(-1), look.w.data(), g, m);
            return {g, T(1), look.s};
        case Belief::Posterior:
            if (slot == NEW) scaled(T(-1), look.w.data(), g, m);
            else
                for (int64_t i = 0; i < m; i += W<T>)
                    store(g + i, load(look.q.data() + i) - load(look.w.data() + i));
            return {g, T(1), look.s};
        default:  // LeastSquares
            if (slot == NEW) {
                for (int64_t i = 0; i < m; i += W<T>) store(g + i, -load(look.q.data() + i) / T(look.gamma2));
                return {g, T(1 / look.gamma2), 1.0};
            }
            state.Q.product(int(m), look.w.data(), g);
            return {g, T(0), 1.0 + look.v - look.gamma2};
    }
}

}  // namespace onlinegp::ONLINEGP_ISA
