// What a filter takes its posterior covariance to be: the twin of onlinegp.recipes.beliefs, which has the equations and sources.
#pragma once
#include "prediction.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr double LEAST_DOUBT = 1e-15, SMALLEST_NOVELTY = 1e-12, WORTH_A_CENTER = 1e-3;
constexpr int64_t RENEWED_EVERY = 4;

template <class T> void predict_prior(const Recipe& recipe, Prediction<T>& prediction) {
    prediction.v = prediction.kxx;
    prediction.s = max(1.0 / recipe.belief.step, prediction.kxx);
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
    prediction.beta = recipe.belief.automatic ? -1.0 / (row_bound(state, k, prediction.kxx) + recipe.belief.noise) : recipe.belief.beta;
    prediction.v = max(prediction.kxx + prediction.beta * prediction.k2, 0.0);
    prediction.s = prediction.v + recipe.belief.noise;
}

template <class T> void predict_isotropic(const Recipe& recipe, Prediction<T>& prediction) {
    prediction.v = prediction.kxx + prediction.k2;
    prediction.s = max((recipe.belief.epsilon + prediction.k2 + square(prediction.kxx)) / recipe.belief.step, prediction.v);
}

// t = L^-1 k, the mean t . b, and h = S t where S is kept: scale S + (1 - scale) I
template <class T> void whiten(State<T>& state, Prediction<T>& prediction) {
    const int m = int(state.size);
    T *t = prediction.t.data(), *h = prediction.h.data();
    copy(prediction.k.data(), t, m);
    prediction.leaves = state.full() && state.recipe.pruning == Pruning::Oldest ? state.oldest() : NEW;
    if (prediction.leaves == NEW) state.L.template forward<1>(m, {t});
    else {  // known in advance: n = L^-1 e_j on the way
        clear(prediction.n.data(), m), prediction.n[prediction.leaves] = 1;
        state.L.template forward<2>(m, {t, prediction.n.data()});
    }
    for (int o = 0; o < state.p; o++) prediction.mean[o] = double(dot(t, state.weights(o), m));
    prediction.t2 = double(dot(t, t, m));
    if (!state.S.s) return;
    state.S.multiply(m, t, h);
    if (state.scale != 1.0) mix(T(state.scale), h, T(1.0 - state.scale), t, m);
    prediction.th = double(dot(t, h, m));
}

template <class T> void predict_posterior(const Recipe& recipe, Prediction<T>& prediction) {
    prediction.kxx *= 1.0 + recipe.belief.jitter;
    prediction.gamma2 = max(prediction.kxx - prediction.t2, 0.0);
    prediction.v = prediction.gamma2 + max(prediction.th, LEAST_DOUBT * prediction.t2);
    prediction.s = prediction.v + recipe.belief.noise;
}

template <class T> void predict_exact(const Recipe& recipe, Prediction<T>& prediction) {
    prediction.v = max(prediction.kxx - prediction.t2, LEAST_DOUBT * prediction.kxx);
    prediction.s = prediction.gamma2 = prediction.v + recipe.belief.noise;
}

template <class T> void predict_least_squares(Prediction<T>& prediction) {
    prediction.gamma2 = max(prediction.kxx - prediction.t2, 0.0);
    prediction.v = prediction.gamma2 + max(prediction.th, 0.0);
    prediction.s = prediction.v + 1.0;
}

// What the belief says of x, with all that it needs of the state in the prediction. No default: one that is not here does
// not compile.
template <class T> void conclude(const Recipe& recipe, const State<T>& state, Prediction<T>& prediction) {
    switch (recipe.belief) {
        case Belief::Prior: return predict_prior(recipe, prediction);
        case Belief::Beta: return predict_beta(recipe, state, prediction);
        case Belief::Isotropic: return predict_isotropic(recipe, prediction);
        case Belief::Posterior: return predict_posterior(recipe, prediction);
        case Belief::Exact: return predict_exact(recipe, prediction);
        case Belief::LeastSquares: return predict_least_squares(prediction);
    }
}
template <class T> void predict_belief(const Recipe& recipe, State<T>& state, Prediction<T>& prediction) {
    if (recipe.tracked()) whiten(state, prediction);
    conclude(recipe, state, prediction);
}

// Whether the centers express x already
template <class T> bool expresses(const Recipe& recipe, const Prediction<T>& prediction) {
    if (!recipe.projects()) return false;
    const bool posterior = recipe.belief == Belief::Posterior;
    const double share = posterior ? max(SMALLEST_NOVELTY, 4.0 * recipe.belief.jitter) : SMALLEST_NOVELTY;
    return prediction.gamma2 <= max(share * prediction.kxx, posterior ? WORTH_A_CENTER * recipe.belief.noise : 0.0);
}

// The gain g and the innovation variance s of a sample that goes to `slot`
template <class T> Gain<T> gain(const Recipe& recipe, const Prediction<T>& prediction, int64_t slot) {
    const T *k = prediction.k.data(), *h = prediction.h.data();
    const double r = std::sqrt(prediction.gamma2);
    switch (recipe.belief) {
        case Belief::Prior: return {nullptr, T(1), 1.0 / recipe.belief.step, T(0), T(1)};
        case Belief::Beta: return {k, T(1), prediction.s, T(prediction.beta), T(1)};
        case Belief::Isotropic: {
            const double g2 = prediction.k2 + (slot == NEW ? square(prediction.kxx) : 0.0);
            return {k, T(prediction.kxx), (recipe.belief.epsilon + g2) / recipe.belief.step};
        }
        case Belief::Posterior: return {h, T(r), prediction.s};
        case Belief::Exact: return {nullptr, T(r), prediction.s};
        case Belief::LeastSquares: break;
    }
    if (slot == NEW) return {nullptr, T(1.0 / r), 1.0};
    return {h, T(0), 1.0 + prediction.v - prediction.gamma2};
}

// Row sums

// The row sums with x admitted, as the last center
template <class T> void add_row_sums(State<T>& state, const Prediction<T>& prediction) {
    const T* k = prediction.k.data();
    const int64_t last = state.size - 1;
    Vec<T> rows{}, total{};
    for (int64_t i = 0; i < last; i += W<T>) {
        const Vec<T> a = magnitude<T>(load(k + i)), sums = load(state.rowsum + i) + a;
        store(state.rowsum + i, sums);
        rows = larger(rows, sums);
        total += a;
    }
    state.rowsum[last] = T(double(sum<T>(total)) + prediction.kxx);
    state.bound = max(state.bound, double(state.rowsum[last]));
    for (int i = 0; i < W<T>; i++) state.bound = max(state.bound, double(rows[i]));
}

// The row sums without center j
template <class T> void subtract_row_sums(const Kernel<T>& kernel, State<T>& state, Prediction<T>& prediction, int64_t j) {
    T *x = prediction.x.data(), *k = prediction.k.data();
    get_center(state.tiles, state.d, j, x);
    row(kernel, state.tiles, state.size, x, state.alpha, k);
    for (int64_t i = 0; i < state.size; i++) state.rowsum[i] -= std::fabs(k[i]);
}

// Tracking

// dQ as it is with x admitted, at W slots from i on; q = L^-T t
template <class T> INLINE Vec<T> admitted_dQ(const State<T>& state, const Prediction<T>& prediction, int64_t i) {
    const Vec<T> q = load(prediction.q.data() + i);
    return fma(q * q, splat<T>(T(1.0 / prediction.gamma2)), load(state.dQ + i));
}

// Append the row of L, and what dQ becomes with it; one entry of dQ in turn is made anew. x is the last center already.
template <class T> void extend(State<T>& state, Prediction<T>& prediction) {
    const int m = int(state.size), old = m - 1;
    T *t = prediction.t.data(), *n = prediction.n.data();
    if (state.dQ) {
        if (!prediction.projected) project(state, prediction, old);
        for (int i = 0; i < old; i += W<T>) store(state.dQ + i, admitted_dQ(state, prediction, i));
        state.dQ[old] = T(1.0 / prediction.gamma2);
    }
    state.L.append(old, t, T(std::sqrt(prediction.gamma2)));
    if (state.dQ && state.seen % RENEWED_EVERY == 0) {
        const int i = int(state.seen / RENEWED_EVERY % m);
        solve_unit(state, i, n);
        state.dQ[i] = dot(n, n, m);
    }
}
// q = L^-T t
template <class T> void project(const State<T>& state, Prediction<T>& prediction, int m) {
    T* q[] = {prediction.q.data()};
    copy(prediction.t.data(), q[0], m);
    state.L.backward(m, q);
}
// n = L^-1 e_j
template <class T> void solve_unit(const State<T>& state, int j, T* n) {
    clear(n, state.size);
    n[j] = 1;
    state.L.template forward<1>(int(state.size), {n}, j);
}

// After a correction; an admitted sample is the last center already
template <class T> void track(const Recipe& recipe, State<T>& state, Prediction<T>& prediction, const Gain<T>& gain, bool admitted) {
    if (admitted && state.rowsum) add_row_sums(state, prediction);
    if (!recipe.tracked()) return;
    const int m = int(state.size);
    T* h = prediction.h.data();
    if (admitted) extend(state, prediction);
    if (recipe.belief == Belief::Posterior) {
        if (admitted) state.S.append(m - 1, nullptr, T(1)), h[m - 1] = gain.last;
        state.S.add_outer(T(-1.0 / (gain.s * state.scale)), h, m);
        if (!(prediction.th > LEAST_DOUBT * prediction.t2)) state.scale *= 1.0 - LEAST_DOUBT;
    }
    if (recipe.belief == Belief::LeastSquares) {
        if (!admitted) return state.S.add_outer(T(-1.0 / gain.s), h, m);
        scale(T(-1.0 / std::sqrt(prediction.gamma2)), h, m - 1);
        state.S.append(m - 1, h, T((1.0 + prediction.th) / prediction.gamma2));
    }
}

// Let center j go; returns the slot of the newest
template <class T> int64_t drop(const Kernel<T>& kernel, State<T>& state, Prediction<T>& prediction, int64_t j) {
    if (state.rowsum) subtract_row_sums(kernel, state, prediction, j);
    if (!state.L.s) return state.move_last_to(j, prediction.x.data());
    const int m = int(state.size);
    T *n = prediction.n.data(), *z = prediction.q.data();
    if (prediction.leaves == NEW) solve_unit(state, int(j), n);
    else n[m - 1] = 0, n[m - 1] = -dot(prediction.t.data(), n, m - 1) * state.L.inverse[m - 1];
    if (state.dQ) {  // Q_ii - Q_ij^2 / Q_jj
        scaled(T(1.0 / std::sqrt(double(dot(n, n, m)))), n, z, m);
        state.L.template backward<1>(m, {z});
        for (int i = 0; i < m; i += W<T>) store(state.dQ + i, load(state.dQ + i) - load(z + i) * load(z + i));
    }
    const Turn<T> turn(n, int(j), m, prediction.e_turn.data(), prediction.f_turn.data(), prediction.a.data(), state.L.length(m - 1));
    if (state.S.s) state.S.turn(turn, prediction.h.data());
    for (int o = 0; o < state.p; o++) {
        turn.one(state.weights(o), state.weights(o), m - 1);
        state.weights(o)[m - 1] = 0;
    }
    state.L.turn(turn);
    state.close_gap(j);
    return state.size - 1;
}

}  // namespace onlinegp::ONLINEGP_ISA
