// Who becomes a centre, how the past fades, who leaves: the twins of onlinegp.dictionaries, .forgetting and .pruning.
#pragma once
#include "beliefs.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr double SMALLEST_SCALE = 1e-100, LARGEST_INFLATION = 1e12, PI = 3.141592653589793;

// Dictionaries

// NEW unless |k(x, c)| / sqrt(k(x, x) k(c, c)) exceeds the threshold for some c: then the most coherent centre
template <class T>
int64_t place_coherence(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state, const Look<T>& look) {
    const T* k = look.k.data();
    if (kernel.constant_diagonal) {  // one norm for all
        const double norm = std::sqrt(look.kxx * double(state.kcc[0]));
        if (double(T(double(look.largest) / norm)) <= recipe.threshold) return NEW;
        return smallest<T>(state.size, [&](int t) { return -magnitude<T>(load(k + t * W<T>)); }).slot;
    }
    const Best<T> best = smallest<T>(state.size, [&](int t) {
        const Vec<T> norm = root(load(state.kcc + t * W<T>) * T(look.kxx));
        const Vec<T> coherence = magnitude<T>(load(k + t * W<T>)) / norm;
        return norm > Vec<T>{} ? -coherence : Vec<T>{};
    });
    return -double(best.value) <= recipe.threshold ? NEW : best.slot;
}

template <class T> Best<T> nearest(const State<T>& state, const Look<T>& look) {
    return nearest(state.tiles, state.d, state.size, look.x.data());
}

// The slot alone, which a kernel that falls with the distance mostly tells without measuring
template <class T> int64_t nearest_slot(const Kernel<T>& kernel, const State<T>& state, const Look<T>& look) {
    const int64_t slot = nearest_by_kernel(kernel, state.size, look.k.data(), look.largest);
    return slot >= 0 ? slot : nearest(state, look).slot;
}

template <class T>
int64_t place_quantised(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state, const Look<T>& look) {
    if (double(look.largest) > kernel.inside) return nearest_slot(kernel, state, look);
    const Best<T> near = nearest(state, look);
    return double(near.value) <= square(recipe.radius) ? near.slot : NEW;
}

template <class T>
int64_t place_surprise(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state, const Look<T>& look) {
    double e2 = 0;
    for (int o = 0; o < state.p; o++) e2 += square(look.e[o]);
    const double surprise = 0.5 * (std::log(2 * PI * look.s) + e2 / state.p / look.s);
    if (surprise > recipe.abnormal) return IGNORE;
    if (state.size == 0 || surprise >= recipe.redundant) return NEW;
    return nearest_slot(kernel, state, look);
}

template <class T>
int64_t place_novelty(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state, const Look<T>& look) {
    double error = 0;
    for (int o = 0; o < state.p; o++) error = max(error, std::fabs(look.e[o]));
    if (error <= recipe.error || double(look.largest) > kernel.inside) return nearest_slot(kernel, state, look);
    const Best<T> near = nearest(state, look);
    return double(near.value) > square(recipe.radius) ? NEW : near.slot;
}

template <class T> int64_t place(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state, const Look<T>& look) {
    if (recipe.dictionary == Dictionary::Growing) return NEW;
    if (recipe.dictionary == Dictionary::ALD) return look.gamma2 > recipe.threshold * look.kxx ? NEW : 0;
    if (recipe.dictionary == Dictionary::Surprise) return place_surprise(recipe, kernel, state, look);
    if (state.size == 0) return NEW;
    switch (recipe.dictionary) {
        case Dictionary::Quantised: return place_quantised(recipe, kernel, state, look);
        case Dictionary::Coherence: return place_coherence(recipe, kernel, state, look);
        default: return place_novelty(recipe, kernel, state, look);
    }
}

// Forgetting

template <class T> void shrink(State<T>& state, Look<T>& look, double factor) {
    for (int o = 0; o < state.p; o++) {
        scale(T(factor), state.weights(o), state.size);
        look.mean[o] *= factor;
    }
}

// Sigma <- lambda Sigma + (1 - lambda) K:  A <- lambda A, alpha <- sqrt(lambda) alpha
template <class T> void back_to_prior(const Recipe& recipe, State<T>& state, Look<T>& look) {
    const double factor = recipe.factor;
    shrink(state, look, std::sqrt(factor));
    if (!state.A.s) return;
    state.scale *= factor;
    if (state.scale < SMALLEST_SCALE) {
        state.A.scale(T(state.scale), int(state.size));
        scale(T(state.scale), look.dA.data(), state.size);
        state.scale = 1.0;
    }
    const double v = look.kxx - factor * (look.kxx - look.v);
    scale(T(factor), look.w.data(), state.size);
    look.s += v - look.v, look.v = v;
}

// Sigma <- Sigma / lambda:  A <- A / lambda + (1 - 1 / lambda) Q
template <class T> void inject_uncertainty(const Recipe& recipe, State<T>& state, Look<T>& look) {
    const int64_t m = state.size;
    const double inverse = 1.0 / recipe.factor, share = (1.0 - inverse) / state.scale;
    for (int64_t i = 0; i < m; i++)
        if (look.dQ[i] - state.scale * look.dA[i] > LARGEST_INFLATION * look.dQ[i]) return;
    if (m == 0) return;
    state.A.combine(T(inverse), T(share), state.Q, int(m));
    T* w = look.w.data();
    for (int64_t i = 0; i < m; i += W<T>)
        store(w + i, load(w + i) * T(inverse) + load(look.q.data() + i) * T(1.0 - inverse));
    const double v = max(look.kxx - double(dot(look.k.data(), w, m)), look.gamma2);
    look.s += v - look.v, look.v = v;
}

template <class T> void forget(const Recipe& recipe, State<T>& state, Look<T>& look) {
    switch (recipe.forgetting) {
        case Forgetting::Keep: return;
        case Forgetting::Leak: return shrink(state, look, 1.0 - recipe.rate);
        case Forgetting::BackToPrior: return back_to_prior(recipe, state, look);
        case Forgetting::UncertaintyInjection: return inject_uncertainty(recipe, state, look);
    }
}

// Pruning

// The diagonal of the matrix that carries a removal, as it is with x admitted, at W slots from i on
template <class T>
INLINE Vec<T> significance(const Recipe& recipe, const State<T>& state, const Look<T>& look, T s, int64_t i) {
    if (recipe.belief == Belief::Exact) {
        const Vec<T> w = load(look.w.data() + i);
        return load(look.dA.data() + i) * T(state.scale) + w * w / s;
    }
    if (recipe.projects()) {
        const Vec<T> q = load(look.q.data() + i);
        return load(look.dQ.data() + i) + q * q * T(1.0 / look.gamma2);
    }
    return Vec<T>{} + T(1);
}
// The same of x itself
template <class T> double own_significance(const Recipe& recipe, const Look<T>& look, double s) {
    if (recipe.belief == Belief::Exact) return 1.0 / s;
    return recipe.projects() ? 1.0 / look.gamma2 : 1.0;
}

template <class T> int64_t oldest(const State<T>& state) {
    int64_t first = 0;
    for (int64_t i = 1; i < state.size; i++)
        if (state.born[i] < state.born[first]) first = i;
    return first;
}

// The slot whose centre leaves a full dictionary for x; m is x itself
template <class T> int64_t who_leaves(const Recipe& recipe, State<T>& state, Look<T>& look) {
    if (recipe.pruning == Pruning::Oldest) return oldest(state);
    const Gain<T> gained = gain(recipe, state, look, NEW);
    const bool by_error = recipe.pruning == Pruning::LeastError;
    double mine = 0;
    for (int o = 0; o < state.p; o++) {
        look.c[o] = T(look.e[o] / gained.s);
        mine += square(double(gained.last) * (look.e[o] / gained.s));
    }
    if (by_error) mine /= square(own_significance(recipe, look, gained.s));
    const Best<T> least = smallest<T>(state.size, [&](int t) {  // |alpha_i|^2 with x admitted, over d_i^2
        const int64_t i = int64_t(t) * W<T>;
        Vec<T> score{};
        for (int o = 0; o < state.p; o++) {
            const Vec<T> a = load(state.weights(o) + i);
            const Vec<T> after = gained.g ? a + load(gained.g + i) * (gained.factor * look.c[o]) : a;
            score += after * after;
        }
        if (!by_error) return score;
        const Vec<T> d = significance(recipe, state, look, T(gained.s), i);
        return score / (d * d);
    });
    return double(least.value) <= mine ? least.slot : state.size;
}

}  // namespace onlinegp::ONLINEGP_ISA
