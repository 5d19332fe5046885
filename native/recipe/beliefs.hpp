// The assumed posterior covariance of a filter: the twin of onlinegp.recipes.beliefs, which has the equations and
// sources.
#pragma once
#include "recipe/forgetting.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr double LEAST_DOUBT = 1e-15, SMALLEST_NOVELTY = 1e-12, WORTH_A_CENTER = 1e-3;
constexpr double LEAST_POWER = 1e-4, MOST_POWER = 1e4;
constexpr int64_t RENEWED_EVERY = 16;

// The variance of the noise in units of the prior
template <class T> double noise_of(const Recipe& recipe, const State<T>& state) {
    return recipe.belief == Belief::StateSpace ? recipe.belief.noise / state.power : recipe.belief.noise;
}

// R, the running maximum of the row sums of |k| over m centers, with x as an additional row
template <class T> double row_bound(const State<T>& state, int64_t m, const T* k, double kxx) {
    Vec<T> rows{}, total{};
    for (int64_t i = 0; i < m; i += W<T>) {
        const Vec<T> a = magnitude<T>(load(k + i));
        rows = larger(rows, load(state.rowsum + i) + a);
        total += a;
    }
    double bound = max(state.bound, double(sum<T>(total)) + kxx);
    for (int i = 0; i < W<T>; i++) bound = max(bound, double(rows[i]));
    return bound;
}

// t = L^-1 k, unless it was computed ahead; the mean t . b, if the weights are in these coordinates; and h = S t, if S
// is tracked, as scale S + (1 - scale) I
template <class T> void whiten(State<T>& state, Prediction<T>& prediction, bool tracked, bool foreseen) {
    const int m = int(state.size);
    T *t = prediction.t.data(), *h = prediction.h.data();
    if (!foreseen) {
        copy(prediction.k.data(), t, m);
        state.L.forward(m, t);
    }
    prediction.t2 = double(dot(t, t, m));
    for (int o = 0; tracked && o < state.p; o++) prediction.mean[o] = double(dot(t, state.weights(o), m));
    if (!state.S.s) return;
    state.S.multiply(m, t, h);
    if (state.scale != 1.0) mix(T(state.scale), h, T(1.0 - state.scale), t, m);
    prediction.th = double(dot(t, h, m));
}

// The prediction of the belief at x. There is no default, so that a missing belief does not compile.
template <class T> void conclude(const Recipe& recipe, const State<T>& state, Prediction<T>& prediction) {
    const BeliefPart& belief = recipe.belief;
    double &kxx = prediction.kxx, &v = prediction.v, &s = prediction.s, &gamma2 = prediction.gamma2;
    const double k2 = prediction.k2, t2 = prediction.t2;
    kxx *= 1.0 + belief.jitter;
    gamma2 = max(kxx - t2, 0.0);
    switch (belief) {
        case Belief::Prior:
            v = kxx;
            s = max(1.0 / belief.step, kxx);
            return;
        case Belief::Beta:
            prediction.beta = belief.automatic
                                  ? -1.0 / (row_bound(state, state.size, prediction.k.data(), kxx) + belief.noise)
                                  : belief.beta;
            v = max(kxx + prediction.beta * k2, 0.0);
            s = v + belief.noise;
            return;
        case Belief::Isotropic:
            v = kxx + k2;
            s = max((belief.epsilon + k2 + square(kxx)) / belief.step, v);
            return;
        case Belief::Posterior:
        case Belief::StateSpace:
            v = gamma2 + max(prediction.th, LEAST_DOUBT * t2);
            s = v + noise_of(recipe, state);
            return;
        case Belief::Exact:
            v = max(kxx - t2, LEAST_DOUBT * kxx);
            s = gamma2 = v + belief.noise;
            return;
        case Belief::LeastSquares:
            v = gamma2 + max(prediction.th, LEAST_DOUBT * t2);
            s = v + 1.0;
            return;
    }
}
template <class T>
void predict_belief(const Recipe& recipe, State<T>& state, Prediction<T>& prediction, bool foreseen = false) {
    if (state.L.s) whiten(state, prediction, recipe.tracked(), foreseen);
    conclude(recipe, state, prediction);
}

// Whether x lies in the span of the centers
template <class T> bool expresses(const Recipe& recipe, const State<T>& state, const Prediction<T>& prediction) {
    if (!recipe.projects()) return false;
    const double share = max(SMALLEST_NOVELTY, 4.0 * recipe.belief.jitter);
    const double worth = recipe.posterior() ? WORTH_A_CENTER * noise_of(recipe, state) : 0.0;
    return prediction.gamma2 <= max(share * prediction.kxx, worth);
}

// The gain g and the innovation variance s of a sample assigned to `slot`
template <class T> Gain<T> gain(const Recipe& recipe, const State<T>& state, Prediction<T>& prediction, int64_t slot) {
    if (slot == PROJECTED && recipe.belief != Belief::Isotropic) {  // q = L^-T t, and beta k
        const int m = int(state.size);
        T* q = prediction.q.data();
        copy(prediction.t.data(), q, m);
        if (m) state.L.template backward<1>(m, {q});
        if (recipe.belief == Belief::Prior) return {q, T(0), 1.0 / recipe.belief.step};
        axpy(T(prediction.beta), prediction.k.data(), q, m);
        return {q, T(0), prediction.s};
    }
    const T *k = prediction.k.data(), *h = prediction.h.data();
    const double r = std::sqrt(prediction.gamma2);
    switch (recipe.belief) {
        case Belief::Prior: return {nullptr, T(1), 1.0 / recipe.belief.step, T(0), T(1)};
        case Belief::Beta: return {k, T(1), prediction.s, T(prediction.beta), T(1)};
        case Belief::Isotropic: {
            const double g2 = prediction.k2 + (slot == NEW ? square(prediction.kxx) : 0.0);
            return {k, T(prediction.kxx), (recipe.belief.epsilon + g2) / recipe.belief.step};
        }
        case Belief::Posterior:
        case Belief::StateSpace: return {h, T(r), prediction.s};
        case Belief::Exact: return {nullptr, T(r), prediction.s};
        case Belief::LeastSquares: break;
    }
    if (slot == NEW) return {nullptr, T(1.0 / r), 1.0};
    return {h, T(0), 1.0 + prediction.v - prediction.gamma2};
}

// The row sums after x was admitted as the last center
template <class T> void add_row_sums(State<T>& state, const Prediction<T>& prediction) {
    const int64_t last = state.size - 1;
    double total = prediction.kxx;
    state.bound = row_bound(state, last, prediction.k.data(), prediction.kxx);
    for (int64_t i = 0; i < last; i++) {
        state.rowsum[i] += std::fabs(prediction.k[i]);
        total += std::fabs(prediction.k[i]);
    }
    state.rowsum[last] = T(total);
}

// The row sums without center j
template <class T>
void subtract_row_sums(const Kernel<T>& kernel, State<T>& state, Prediction<T>& prediction, int64_t j) {
    T *x = prediction.x.data(), *k = prediction.k.data();
    get_center(state.tiles, state.d, j, x);
    row(kernel, state.tiles, state.size, x, state.alpha, k);
    for (int64_t i = 0; i < state.size; i++) state.rowsum[i] -= std::fabs(k[i]);
}

// dQ after x is admitted, for W slots from i on; q = L^-T t
template <class T> INLINE Vec<T> admitted_dQ(const State<T>& state, const Prediction<T>& prediction, int64_t i) {
    const Vec<T> q = load(prediction.q.data() + i);
    return fma(q * q, splat<T>(T(1.0 / prediction.gamma2)), load(state.dQ + i));
}

// The contribution of the last removed center to dQ: z^2, where z = L^-T applied to its row of L, divided by the last
// entry; z is already solved
template <class T> void settle(State<T>& state) {
    for (int64_t i = 0; i < state.size; i += W<T>)
        store(state.dQ + i, load(state.dQ + i) - load(state.gone + i) * load(state.gone + i));
    state.owed = false;
}

// Append the row of L and update dQ. One entry of dQ in turn is computed from scratch. x is already the last center.
template <class T> void extend(State<T>& state, Prediction<T>& prediction) {
    const int m = int(state.size), old = m - 1;
    T *t = prediction.t.data(), *q = prediction.q.data(), *n = prediction.n.data();
    if (state.dQ) {
        if (!prediction.projected) {
            copy(t, q, old);
            state.L.template backward<1>(old, {q});
        }
        for (int i = 0; i < old; i += W<T>) store(state.dQ + i, admitted_dQ(state, prediction, i));
        state.dQ[old] = T(1.0 / prediction.gamma2);
    }
    state.L.append(old, t, T(std::sqrt(prediction.gamma2)));
    if (state.dQ && state.seen % RENEWED_EVERY == 0) {
        const int i = int(state.seen / RENEWED_EVERY % m);
        clear(n, m);
        n[i] = 1;
        state.L.forward(m, n, i);
        state.dQ[i] = dot(n, n, m);
    }
}

// Advance a state to the next sample: its mean, its power, and S <- w S + (1 - w) I
template <class T> void advance(const BeliefPart& belief, State<T>& state) {
    const double kept = square(belief.transition) * state.power, power = kept + belief.drift * belief.noise;
    state.power = power / belief.forgetting;
    state.power = state.power < LEAST_POWER ? LEAST_POWER : state.power > MOST_POWER ? MOST_POWER : state.power;
    state.scale *= kept / power;
    for (int o = 0; o < state.p; o++) scale(T(belief.transition), state.weights(o), state.size);
}

// Update after a correction. An admitted sample is already the last center.
template <class T>
void track(const Recipe& recipe, State<T>& state, Prediction<T>& prediction, const Gain<T>& gain, bool admitted) {
    if (admitted && state.rowsum) add_row_sums(state, prediction);
    if (admitted && recipe.spans())
        state.L.append(int(state.size) - 1, prediction.t.data(), T(std::sqrt(prediction.gamma2)));
    if (!recipe.tracked()) return;
    const int m = int(state.size);
    T* h = prediction.h.data();
    if (admitted) extend(state, prediction);
    if (recipe.posterior()) {
        if (admitted) {
            state.S.append(m - 1, nullptr, T(1));
            h[m - 1] = gain.last;
        }
        if (recipe.belief == Belief::StateSpace) settle_scale(state);
        state.S.add_outer(T(-1.0 / (gain.s * state.scale)), h, m);
        if (!(prediction.th > LEAST_DOUBT * prediction.t2)) state.scale *= 1.0 - LEAST_DOUBT;
        if (recipe.belief == Belief::StateSpace) advance(recipe.belief, state);
    }
    if (recipe.belief == Belief::LeastSquares) {
        if (!admitted) return state.S.add_outer(T(-1.0 / gain.s), h, m);
        scale(T(-1.0 / std::sqrt(prediction.gamma2)), h, m - 1);
        state.S.append(m - 1, h, T((1.0 + prediction.th) / prediction.gamma2));
    }
}

// Remove center j, and return the slot of the newest center
template <class T> int64_t drop(const Kernel<T>& kernel, State<T>& state, Prediction<T>& prediction, int64_t j) {
    if (state.rowsum) subtract_row_sums(kernel, state, prediction, j);
    if (!state.L.s) return state.move_last_to(j, prediction.x.data());
    const int64_t m = state.size;
    T *Y = prediction.a.data(), *row = state.dQ ? state.gone : prediction.q.data();
    const Turn<T> turn{prediction.n.data(), prediction.e_turn.data(), prediction.f_turn.data(), j, m};
    state.close_gap(j);
    if (T* x = prediction.foresee(kernel, state))
        state.L.template remove<true>(turn, row, Y, x);
    else
        state.L.template remove<false>(turn, row, Y, x);
    if (state.S.s) state.S.turn(turn, Y);
    for (int o = 0; o < state.p; o++) turn.vector(state.weights(o));
    state.owed = state.dQ;
    return state.size - 1;
}

}  // namespace onlinegp::ONLINEGP_ISA
