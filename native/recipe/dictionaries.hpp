// Decide which samples become centers: the twin of onlinegp.recipes.dictionaries.
#pragma once
#include "recipe/beliefs.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr double PI = 3.141592653589793;

// NEW, or the most coherent center if |k(x, c)| / sqrt(k(x, x) k(c, c)) exceeds the threshold for some c
template <class T>
int64_t place_coherence(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state,
                        const Prediction<T>& prediction) {
    const T* k = prediction.k.data();
    if (kernel.constant_diagonal) {  // all centers have the same norm
        const double norm = std::sqrt(prediction.kxx * double(state.kcc[0]));
        if (double(T(double(prediction.largest) / norm)) <= recipe.dictionary.threshold) return NEW;
        return smallest<T>(state.size, [&](int t) { return -magnitude<T>(load(k + t * W<T>)); }).slot;
    }
    const Best<T> best = smallest<T>(state.size, [&](int t) {
        const Vec<T> norm = root(load(state.kcc + t * W<T>) * T(prediction.kxx));
        const Vec<T> coherence = magnitude<T>(load(k + t * W<T>)) / norm;
        return norm > Vec<T>{} ? -coherence : Vec<T>{};
    });
    return -double(best.value) <= recipe.dictionary.threshold ? NEW : best.slot;
}

template <class T> Best<T> nearest(const State<T>& state, const Prediction<T>& prediction) {
    return nearest(state.tiles, state.d, state.size, prediction.x.data());
}

// Only the slot. If the kernel decreases with the distance, k mostly determines it without computing distances.
template <class T>
int64_t nearest_slot(const Kernel<T>& kernel, const State<T>& state, const Prediction<T>& prediction) {
    const int64_t slot = nearest_by_kernel(kernel, state.size, prediction.k.data(), prediction.largest);
    return slot >= 0 ? slot : nearest(state, prediction).slot;
}

template <class T>
int64_t place_quantized(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state,
                        const Prediction<T>& prediction) {
    if (double(prediction.largest) > kernel.inside) return nearest_slot(kernel, state, prediction);
    const Best<T> near = nearest(state, prediction);
    return double(near.value) <= square(recipe.dictionary.radius) ? near.slot : NEW;
}

template <class T>
int64_t place_surprise(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state,
                       const Prediction<T>& prediction) {
    double e2 = 0;
    for (int o = 0; o < state.p; o++) e2 += square(prediction.e[o]);
    const double surprise = 0.5 * (std::log(2 * PI * prediction.s) + e2 / state.p / prediction.s);
    if (surprise > recipe.dictionary.abnormal) return IGNORE;
    if (state.size == 0 || surprise >= recipe.dictionary.redundant) return NEW;
    return nearest_slot(kernel, state, prediction);
}

template <class T>
int64_t place_novelty(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state,
                      const Prediction<T>& prediction) {
    double error = 0;
    for (int o = 0; o < state.p; o++) error = max(error, std::fabs(prediction.e[o]));
    if (error <= recipe.dictionary.error || double(prediction.largest) > kernel.inside)
        return nearest_slot(kernel, state, prediction);
    const Best<T> near = nearest(state, prediction);
    return double(near.value) > square(recipe.dictionary.radius) ? NEW : near.slot;
}

template <class T>
int64_t place(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state, const Prediction<T>& prediction) {
    if (recipe.dictionary == Dictionary::Growing) return NEW;
    if (recipe.dictionary == Dictionary::ALD)
        return prediction.gamma2 > recipe.dictionary.threshold * prediction.kxx ? NEW : recipe.spans() ? PROJECTED : 0;
    if (recipe.dictionary == Dictionary::Surprise) return place_surprise(recipe, kernel, state, prediction);
    if (state.size == 0) return NEW;
    switch (recipe.dictionary) {
        case Dictionary::Quantized: return place_quantized(recipe, kernel, state, prediction);
        case Dictionary::Coherence: return place_coherence(recipe, kernel, state, prediction);
        default: return place_novelty(recipe, kernel, state, prediction);
    }
}

}  // namespace onlinegp::ONLINEGP_ISA
