// The one update: forget, predict the row, admit or not, gain, correct, prune. The twin of onlinegp.recipes.update.
#pragma once
#include "parts.hpp"
#include "tracking.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr double SMALLEST_NOVELTY = 1e-12;

struct Step {
    int64_t slot, left;
    bool admitted;
};

template <class T> void predict_one(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, Prediction<T>& prediction) {
    T* k = prediction.k.data();
    prediction.mean[0] = double(row(kernel, state.tiles, state.size, prediction.x.data(), state.alpha, k));
    for (int o = 1; o < state.p; o++) prediction.mean[o] = double(dot(k, state.weights(o), state.size));
    prediction.kxx = diagonal(kernel, prediction.x.data());
    if (recipe.compares()) prediction.largest = largest(k, state.size);
    if (recipe.uses_norm()) prediction.k2 = double(dot(k, k, state.size));
    predict_belief(recipe, kernel, state, prediction);
}

// Apply the updates that wait for a product: one with anything does
template <class T> void flush(State<T>& state, Prediction<T>& prediction) {
    prediction.reserve(state.capacity);
    for (Symmetric<T>* S : {&state.A, &state.Q, &state.P})
        if (S->pending != Pending::Nothing) S->multiply(int(state.size), prediction.k.data(), prediction.r.data());
}

template <class T> void load(const Kernel<T>& kernel, State<T>& state, Prediction<T>& prediction, const Arrays& in) {
    state.load_from(in);
    if (!state.recipe.has('K')) return;
    probe_anew(kernel, state, prediction);
    if (state.residual > REFINE_ABOVE) keep_gram(kernel, state);
}
template <class T> void save(const Kernel<T>& kernel, State<T>& state, Prediction<T>& prediction, Arrays& out) {
    flush(state, prediction);
    state.save_to(out);
    if (!state.recipe.has('K')) return;
    for (int64_t i = 0; i < state.size; i++) {
        gram_row(kernel, state, i, prediction.center.data(), prediction.r.data());
        for (int64_t j = 0; j < state.size; j++) out.K[i * state.size + j] = double(prediction.r[j]);
    }
}

// alpha <- alpha + g e / s; the weight of an admitted sample is its own
template <class T> void correct(State<T>& state, const Prediction<T>& prediction, const Gain<T>& gain, int64_t slot, bool grown) {
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
    state.evidence = recipe.factor * state.evidence + 1.0;
    state.power += (e2 / state.p / prediction.s - state.power) / state.evidence;
}

// Learn the sample that was predicted; y (p,)
template <class T> Step learn(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, Prediction<T>& prediction, const double* y) {
    if (recipe.belief == Belief::Posterior) steady(recipe, state, prediction);
    forget(recipe, state, prediction);
    for (int o = 0; o < state.p; o++) prediction.e[o] = y[o] - prediction.mean[o];

    int64_t slot = place(recipe, kernel, state, prediction), left = NEW;
    if (slot == NEW && recipe.projects() && prediction.gamma2 <= SMALLEST_NOVELTY * prediction.kxx) slot = 0;
    if (slot == NEW && recipe.budget && state.size == recipe.budget) {
        left = center_to_remove(recipe, state, prediction);
        if (left == state.size) {  // x itself: what it says is projected onto the centers, or lost
            slot = recipe.projects() ? 0 : IGNORE;
            left = NEW;
        }
    }
    const bool admitted = slot == NEW, tracked = state.A.s || state.Q.s;
    if (slot != IGNORE) {
        const Gain<T> gained = gain(recipe, state, prediction, slot);
        const bool grown = admitted && !(left != NEW && tracked);
        if (grown) state.push(prediction.x.data(), prediction.kxx);
        correct(state, prediction, gained, slot, grown);
        if (left != NEW && tracked) replace(recipe, state, prediction, gained, left);
        else track(recipe, state, prediction, gained, admitted);
    }
    if (left != NEW && !tracked) {
        drop(recipe, kernel, state, prediction, left);
        state.move_last_to(left, prediction.x.data());
    }
    if (recipe.learn_power) learn_power(recipe, state, prediction);
    state.seen++;
    if (admitted) slot = left == NEW ? state.size - 1 : left;
    if (recipe.has('K')) {
        keep_probe(kernel, state, prediction, admitted ? slot : NEW);
        if (prediction.refined) keep_gram(kernel, state);
    }
    return {slot, left, admitted};
}

}  // namespace onlinegp::ONLINEGP_ISA
