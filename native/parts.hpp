// Who becomes a center, how the past fades, who leaves: the twins of onlinegp.recipes.dictionaries, .forgetting and .pruning.
#pragma once
#include "beliefs.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr double SMALLEST_SCALE = 1e-100, LARGEST_INFLATION = 1e12, PI = 3.141592653589793;

// Dictionaries

// NEW unless |k(x, c)| / sqrt(k(x, x) k(c, c)) exceeds the threshold for some c: then the most coherent center
template <class T>
int64_t place_coherence(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state, const Prediction<T>& prediction) {
    const T* k = prediction.k.data();
    if (kernel.constant_diagonal) {  // one norm for all
        const double norm = std::sqrt(prediction.kxx * double(state.kcc[0]));
        if (double(T(double(prediction.largest) / norm)) <= recipe.threshold) return NEW;
        return smallest<T>(state.size, [&](int t) { return -magnitude<T>(load(k + t * W<T>)); }).slot;
    }
    const Best<T> best = smallest<T>(state.size, [&](int t) {
        const Vec<T> norm = root(load(state.kcc + t * W<T>) * T(prediction.kxx));
        const Vec<T> coherence = magnitude<T>(load(k + t * W<T>)) / norm;
        return norm > Vec<T>{} ? -coherence : Vec<T>{};
    });
    return -double(best.value) <= recipe.threshold ? NEW : best.slot;
}

template <class T> Best<T> nearest(const State<T>& state, const Prediction<T>& prediction) {
    return nearest(state.tiles, state.d, state.size, prediction.x.data());
}

// The slot alone, which a kernel that falls with the distance mostly tells without measuring
template <class T> int64_t nearest_slot(const Kernel<T>& kernel, const State<T>& state, const Prediction<T>& prediction) {
    const int64_t slot = nearest_by_kernel(kernel, state.size, prediction.k.data(), prediction.largest);
    return slot >= 0 ? slot : nearest(state, prediction).slot;
}

template <class T>
int64_t place_quantized(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state, const Prediction<T>& prediction) {
    if (double(prediction.largest) > kernel.inside) return nearest_slot(kernel, state, prediction);
    const Best<T> near = nearest(state, prediction);
    return double(near.value) <= square(recipe.radius) ? near.slot : NEW;
}

template <class T>
int64_t place_surprise(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state, const Prediction<T>& prediction) {
    double e2 = 0;
    for (int o = 0; o < state.p; o++) e2 += square(prediction.e[o]);
    const double surprise = 0.5 * (std::log(2 * PI * prediction.s) + e2 / state.p / prediction.s);
    if (surprise > recipe.abnormal) return IGNORE;
    if (state.size == 0 || surprise >= recipe.redundant) return NEW;
    return nearest_slot(kernel, state, prediction);
}

template <class T>
int64_t place_novelty(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state, const Prediction<T>& prediction) {
    double error = 0;
    for (int o = 0; o < state.p; o++) error = max(error, std::fabs(prediction.e[o]));
    if (error <= recipe.error || double(prediction.largest) > kernel.inside) return nearest_slot(kernel, state, prediction);
    const Best<T> near = nearest(state, prediction);
    return double(near.value) > square(recipe.radius) ? NEW : near.slot;
}

template <class T> int64_t place(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state, const Prediction<T>& prediction) {
    if (recipe.dictionary == Dictionary::Growing) return NEW;
    if (recipe.dictionary == Dictionary::ALD) return prediction.gamma2 > recipe.threshold * prediction.kxx ? NEW : 0;
    if (recipe.dictionary == Dictionary::Surprise) return place_surprise(recipe, kernel, state, prediction);
    if (state.size == 0) return NEW;
    switch (recipe.dictionary) {
        case Dictionary::Quantized: return place_quantized(recipe, kernel, state, prediction);
        case Dictionary::Coherence: return place_coherence(recipe, kernel, state, prediction);
        default: return place_novelty(recipe, kernel, state, prediction);
    }
}

// Forgetting

template <class T> void shrink(State<T>& state, Prediction<T>& prediction, double factor) {
    for (int o = 0; o < state.p; o++) {
        scale(T(factor), state.weights(o), state.size);
        prediction.mean[o] *= factor;
    }
}

// Sigma <- lambda Sigma + (1 - lambda) K:  A <- lambda A, alpha <- sqrt(lambda) alpha
template <class T> void back_to_prior(const Recipe& recipe, State<T>& state, Prediction<T>& prediction) {
    const double factor = recipe.factor;
    shrink(state, prediction, std::sqrt(factor));
    if (!state.A.s) return;
    state.scale *= factor;
    if (state.scale < SMALLEST_SCALE) {
        state.A.scale(T(state.scale), int(state.size));
        scale(T(state.scale), prediction.dA.data(), state.size);
        state.scale = 1.0;
    }
    const double v = prediction.kxx - factor * (prediction.kxx - prediction.v);
    scale(T(factor), prediction.w.data(), state.size);
    prediction.s += v - prediction.v, prediction.v = v;
}

// Sigma <- Sigma / lambda:  A <- A / lambda + (1 - 1 / lambda) Q
template <class T> void inject_uncertainty(const Recipe& recipe, State<T>& state, Prediction<T>& prediction) {
    const int64_t m = state.size;
    const double inverse = 1.0 / recipe.factor, share = (1.0 - inverse) / state.scale;
    for (int64_t i = 0; i < m; i++)
        if (prediction.dQ[i] - state.scale * prediction.dA[i] > LARGEST_INFLATION * prediction.dQ[i]) return;
    if (m == 0) return;
    state.A.combine(T(inverse), T(share), state.Q, int(m));
    T* w = prediction.w.data();
    for (int64_t i = 0; i < m; i += W<T>)
        store(w + i, load(w + i) * T(inverse) + load(prediction.q.data() + i) * T(1.0 - inverse));
    const double v = max(prediction.kxx - double(dot(prediction.k.data(), w, m)), prediction.gamma2);
    prediction.s += v - prediction.v, prediction.v = v;
}

template <class T> void forget(const Recipe& recipe, State<T>& state, Prediction<T>& prediction) {
    switch (recipe.forgetting) {
        case Forgetting::Keep: return;
        case Forgetting::Leak: return shrink(state, prediction, 1.0 - recipe.rate);
        case Forgetting::BackToPrior: return back_to_prior(recipe, state, prediction);
        case Forgetting::UncertaintyInjection: return inject_uncertainty(recipe, state, prediction);
    }
}

// Pruning

// The diagonal of the matrix that carries a removal, as it is with x admitted, at W slots from i on
template <class T>
INLINE Vec<T> significance(const Recipe& recipe, const State<T>& state, const Prediction<T>& prediction, T s, int64_t i) {
    if (recipe.belief == Belief::Exact) {
        const Vec<T> w = load(prediction.w.data() + i);
        return load(prediction.dA.data() + i) * T(state.scale) + w * w / s;
    }
    if (recipe.projects()) {
        const Vec<T> q = load(prediction.q.data() + i);
        return load(prediction.dQ.data() + i) + q * q * T(1.0 / prediction.gamma2);
    }
    return Vec<T>{} + T(1);
}
// The same of x itself
template <class T> double own_significance(const Recipe& recipe, const Prediction<T>& prediction, double s) {
    if (recipe.belief == Belief::Exact) return 1.0 / s;
    return recipe.projects() ? 1.0 / prediction.gamma2 : 1.0;
}

template <class T> int64_t oldest(const State<T>& state) {
    int64_t first = 0;
    for (int64_t i = 1; i < state.size; i++)
        if (state.born[i] < state.born[first]) first = i;
    return first;
}

// The slot whose center leaves a full dictionary for x; m is x itself
template <class T> int64_t center_to_remove(const Recipe& recipe, State<T>& state, Prediction<T>& prediction) {
    if (recipe.pruning == Pruning::Oldest) return oldest(state);
    const Gain<T> gained = gain(recipe, state, prediction, NEW);
    const bool by_error = recipe.pruning == Pruning::LeastError;
    double mine = 0;
    for (int o = 0; o < state.p; o++) {
        prediction.c[o] = T(prediction.e[o] / gained.s);
        mine += square(double(gained.last) * (prediction.e[o] / gained.s));
    }
    if (by_error) mine /= square(own_significance(recipe, prediction, gained.s));
    const Best<T> least = smallest<T>(state.size, [&](int t) {  // |alpha_i|^2 with x admitted, over d_i^2
        const int64_t i = int64_t(t) * W<T>;
        Vec<T> score{};
        for (int o = 0; o < state.p; o++) {
            const Vec<T> a = load(state.weights(o) + i);
            const Vec<T> after = gained.g ? a + load(gained.g + i) * (gained.factor * prediction.c[o]) : a;
            score += after * after;
        }
        if (!by_error) return score;
        const Vec<T> d = significance(recipe, state, prediction, T(gained.s), i);
        return score / (d * d);
    });
    return double(least.value) <= mine ? least.slot : state.size;
}

}  // namespace onlinegp::ONLINEGP_ISA
