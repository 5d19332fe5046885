// The update: forget, predict the row, admit or not, gain, correct, prune. The twin of onlinegp.recipes.update.
#pragma once
#include "recipe/dictionaries.hpp"
#include "recipe/forgetting.hpp"
#include "recipe/pruning.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr double TINIEST = 1e-290;  // the smallest learned power

struct Step {
    int64_t slot, left;
    bool admitted;
};

template <class T>
void predict_one(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, Prediction<T>& prediction) {
    const bool foreseen = prediction.recall(state.d);
    T* k = prediction.k.data();
    if (!foreseen)
        prediction.mean[0] = double(row(kernel, state.tiles, state.size, prediction.x.data(), state.alpha, k));
    for (int o = 1; o < state.p; o++) prediction.mean[o] = double(dot(k, state.weights(o), state.size));
    prediction.kxx = diagonal(kernel, prediction.x.data());
    if (recipe.compares()) prediction.largest = largest(k, state.size);
    if (recipe.uses_norm()) prediction.k2 = double(dot(k, k, state.size));
    predict_belief(recipe, state, prediction, foreseen);
    prediction.projected = false;
}

// Apply the pending updates of S (by a product with any vector) and of dQ
template <class T> void flush(State<T>& state, Prediction<T>& prediction) {
    prediction.reserve(state.capacity);
    if (state.S.pending) state.S.multiply(int(state.size), prediction.k.data(), prediction.n.data());
    if (state.owed) {
        state.L.template backward<1>(state.size, {state.gone});
        settle(state);
    }
}

// alpha <- alpha + g e / s. An admitted sample has its own weight.
template <class T>
void correct(State<T>& state, const Prediction<T>& prediction, const Gain<T>& gain, int64_t slot, bool grown) {
    const int64_t old = grown ? state.size - 1 : state.size;
    for (int o = 0; o < state.p; o++) {
        const T c = T(prediction.e[o] / gain.s);
        T* a = state.weights(o);
        if (gain.g) axpy(gain.factor * c, gain.g, a, old);
        if (slot >= 0 && gain.own != T(0)) a[slot] += gain.own * c;
        if (grown) a[old] = T(double(gain.last) * (prediction.e[o] / gain.s));
    }
}

template <class T> void learn_power(const Recipe& recipe, State<T>& state, const Prediction<T>& prediction) {
    double e2 = 0;
    for (int o = 0; o < state.p; o++) e2 += square(prediction.e[o]);
    state.evidence = recipe.forgetting.factor * state.evidence + 1.0;
    state.power += (e2 / state.p / prediction.s - state.power) / state.evidence;
    if (state.power < TINIEST) state.power = TINIEST;  // NaN stays NaN, so that the check detects it
}

// Learn the sample that was predicted last; y (p,)
template <class T>
Step learn(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, Prediction<T>& prediction, const double* y) {
    prediction.foreseen = false;
    forget(recipe, state, prediction);
    for (int o = 0; o < state.p; o++) prediction.e[o] = y[o] - prediction.mean[o];

    int64_t slot = place(recipe, kernel, state, prediction), left = NEW;
    if (slot == NEW && expresses(recipe, state, prediction)) slot = 0;
    if (slot == NEW && state.full()) {
        left = center_to_remove(recipe, state, prediction);
        if (left == state.size) {  // x itself is removed: project it onto the centers, or ignore it
            slot = recipe.projects() ? 0 : IGNORE;
            left = NEW;
        }
    }
    const bool admitted = slot == NEW;
    if (slot != IGNORE) {
        const Gain<T> gained = gain(recipe, state, prediction, slot);
        if (admitted) state.push(prediction.x.data(), prediction.kxx);
        correct(state, prediction, gained, slot, admitted);
        track(recipe, state, prediction, gained, admitted);
    }
    if (admitted) slot = left == NEW ? state.size - 1 : drop(kernel, state, prediction, left);
    if (recipe.learn_power) learn_power(recipe, state, prediction);
    if (state.seen < INT64_MAX) state.seen++;
    return {slot, left, admitted};
}

}  // namespace onlinegp::ONLINEGP_ISA
