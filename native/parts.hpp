// Who becomes a centre, how the past fades, who leaves: the twins of onlinegp.dictionaries, .forgetting and .pruning.
#pragma once
#include "beliefs.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr double SMALLEST_SCALE = 1e-100, LARGEST_INFLATION = 1e12, PI = 3.141592653589793;

// Dictionaries

// The most coherent centre, |k(x, c)| / sqrt(k(x, x) k(c, c)), negated
template <class T> Best<T> most_coherent(const Kernel<T>& kernel, const State<T>& state, const Look<T>& look) {
    const T* k = look.k.data();
    if (kernel.constant_diagonal) {  // one norm for all
        Best<T> best = smallest<T>(state.size, [&](int t) { return -magnitude<T>(load(k + t * W<T>)); });
        best.value = T(double(best.value) / std::sqrt(look.kxx * double(state.kcc[best.slot])));
        return best;
    }
    return smallest<T>(state.size, [&](int t) {
        const Vec<T> norm = root(load(state.kcc + t * W<T>) * T(look.kxx));
        const Vec<T> coherence = magnitude<T>(load(k + t * W<T>)) / norm;
        return norm > Vec<T>{} ? -coherence : Vec<T>{};
    });
}

template <class T> int64_t place_surprise(const Recipe& recipe, const State<T>& state, const Look<T>& look) {
    double e2 = 0;
    for (int o = 0; o < state.p; o++) e2 += square(look.e[o]);
    const double surprise = 0.5 * (std::log(2 * PI * look.s) + e2 / state.p / look.s);
    if (surprise > recipe.abnormal) return IGNORE;
    if (state.size == 0 || surprise >= recipe.redundant) return NEW;
    return nearest(state.tiles, state.d, state.size, look.x.data()).slot;
}

template <class T> int64_t place_novelty(const Recipe& recipe, const State<T>& state, const Look<T>& look) {
    const Best<T> near = nearest(state.tiles, state.d, state.size, look.x.data());
    double largest = 0;
    for (int o = 0; o < state.p; o++) largest = max(largest, std::fabs(look.e[o]));
    return double(near.value) > square(recipe.radius) && largest > recipe.error ? NEW : near.slot;
}

template <class T> int64_t place(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state, const Look<T>& look) {
    if (recipe.dictionary == Dictionary::Growing) return NEW;
    if (recipe.dictionary == Dictionary::ALD) return look.gamma2 > recipe.threshold * look.kxx ? NEW : 0;
    if (recipe.dictionary == Dictionary::Surprise) return place_surprise(recipe, state, look);
    if (state.size == 0) return NEW;
    switch (recipe.dictionary) {
        case Dictionary::Quantised: {
            const Best<T> near = nearest(state.tiles, state.d, state.size, look.x.data());
            return double(near.value) <= square(recipe.radius) ? near.slot : NEW;
        }
        case Dictionary::Coherence: {
            const Best<T> best = most_coherent(kernel, state, look);
            return -double(best.value) <= recipe.threshold ? NEW : best.slot;
        }
        default: return place_novelty(recipe, state, look);
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

// The diagonal of the matrix that carries a removal, as it is with x admitted, into d (m,); returns that of x
template <class T> double significance(const Recipe& recipe, const State<T>& state, const Look<T>& look, double s, T* d) {
    const int64_t m = state.size;
    if (recipe.belief == Belief::Exact) {
        for (int64_t i = 0; i < m; i++) d[i] = T(state.scale) * look.dA[i] + look.w[i] * look.w[i] / T(s);
        return 1.0 / s;
    }
    if (recipe.projects()) {
        const T inverse = T(1.0 / look.gamma2);
        for (int64_t i = 0; i < m; i++) d[i] = look.dQ[i] + look.q[i] * look.q[i] * inverse;
        return 1.0 / look.gamma2;
    }
    for (int64_t i = 0; i < m; i++) d[i] = 1;
    return 1.0;
}

// The slot whose centre leaves a full dictionary for x; m is x itself
template <class T> int64_t who_leaves(const Recipe& recipe, State<T>& state, Look<T>& look) {
    const int64_t m = state.size;
    if (recipe.pruning == Pruning::Oldest) {
        int64_t oldest = 0;
        for (int64_t i = 1; i < m; i++)
            if (state.born[i] < state.born[oldest]) oldest = i;
        return oldest;
    }
    const Gain<T> gained = gain(recipe, state, look, NEW);
    T *score = look.z.data(), *d = look.b.data();
    double mine = 0;
    for (int64_t i = 0; i < m; i += W<T>) store(score + i, Vec<T>{});
    for (int o = 0; o < state.p; o++) {
        const T c = T(look.e[o] / gained.s);
        const T* a = state.weights(o);
        for (int64_t i = 0; i < m; i += W<T>) {
            const Vec<T> after = gained.g ? load(a + i) + load(gained.g + i) * c : load(a + i);
            store(score + i, load(score + i) + after * after);
        }
        mine += square(double(gained.last) * (look.e[o] / gained.s));
    }
    if (recipe.pruning == Pruning::LeastError) {
        mine /= square(significance(recipe, state, look, gained.s, d));
        for (int64_t i = 0; i < m; i += W<T>) store(score + i, load(score + i) / (load(d + i) * load(d + i)));
    }
    const Best<T> least = smallest<T>(m, [&](int t) { return load(score + t * W<T>); });
    return double(least.value) <= mine ? least.slot : m;
}

}  // namespace onlinegp::ONLINEGP_ISA
