// The one update: forget, look at the row, admit or not, gain, correct, prune. The twin of onlinegp.learn.
#pragma once
#include "parts.hpp"
#include "tracking.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr double SMALLEST_NOVELTY = 1e-12;

struct Step {
    int64_t slot, left;
    bool admitted;
};

template <class T> void look_at(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, Look<T>& look) {
    T* k = look.k.data();
    look.mean[0] = double(row(kernel, state.tiles, state.size, look.x.data(), state.alpha, k));
    for (int o = 1; o < state.p; o++) look.mean[o] = double(dot(k, state.weights(o), state.size));
    look.kxx = diagonal(kernel, look.x.data());
    if (recipe.compares()) look.largest = largest(k, state.size);
    if (recipe.uses_norm()) look.k2 = double(dot(k, k, state.size));
    look_belief(recipe, kernel, state, look);
}

// Apply the updates that wait for a product: one with anything does
template <class T> void flush(State<T>& state, Look<T>& look) {
    look.reserve(state.capacity);
    for (Symmetric<T>* S : {&state.A, &state.Q, &state.P})
        if (S->pending != Pending::Nothing) S->multiply(int(state.size), look.k.data(), look.r.data());
}

template <class T> void load(const Kernel<T>& kernel, State<T>& state, Look<T>& look, const Arrays& in) {
    state.load_from(in);
    if (!state.recipe.has('K')) return;
    probe_anew(kernel, state, look);
    if (state.residual > REFINE_ABOVE) keep_gram(kernel, state);
}
template <class T> void save(const Kernel<T>& kernel, State<T>& state, Look<T>& look, Arrays& out) {
    flush(state, look);
    state.save_to(out);
    if (!state.recipe.has('K')) return;
    for (int64_t i = 0; i < state.size; i++) {
        gram_row(kernel, state, i, look.centre.data(), look.r.data());
        for (int64_t j = 0; j < state.size; j++) out.K[i * state.size + j] = double(look.r[j]);
    }
}

// alpha <- alpha + g e / s; the weight of an admitted sample is its own
template <class T> void correct(State<T>& state, const Look<T>& look, const Gain<T>& gain, int64_t slot, bool grown) {
    const int64_t old = grown ? state.size - 1 : state.size;
    for (int o = 0; o < state.p; o++) {
        const T c = T(look.e[o] / gain.s);
        T* a = state.weights(o);
        if (gain.g) axpy(gain.factor * c, gain.g, a, old);
        if (slot >= 0 && gain.own != T(0)) a[slot] += gain.own * c;
        if (grown) a[old] = T(double(gain.last) * (look.e[o] / gain.s));
    }
}

template <class T> void learn_power(const Recipe& recipe, State<T>& state, const Look<T>& look) {
    double e2 = 0;
    for (int o = 0; o < state.p; o++) e2 += square(look.e[o]);
    state.evidence = recipe.factor * state.evidence + 1.0;
    state.power += (e2 / state.p / look.s - state.power) / state.evidence;
}

// Learn the sample that `look` has seen; y (p,)
template <class T> Step learn(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, Look<T>& look, const double* y) {
    if (recipe.belief == Belief::Posterior) steady(recipe, state, look);
    forget(recipe, state, look);
    for (int o = 0; o < state.p; o++) look.e[o] = y[o] - look.mean[o];

    int64_t slot = place(recipe, kernel, state, look), left = NEW;
    if (slot == NEW && recipe.projects() && look.gamma2 <= SMALLEST_NOVELTY * look.kxx) slot = 0;
    if (slot == NEW && recipe.budget && state.size == recipe.budget) {
        left = who_leaves(recipe, state, look);
        if (left == state.size) {  // x itself: what it says is projected onto the centres, or lost
            slot = recipe.projects() ? 0 : IGNORE;
            left = NEW;
        }
    }
    const bool admitted = slot == NEW, tracked = state.A.s || state.Q.s;
    if (slot != IGNORE) {
        const Gain<T> gained = gain(recipe, state, look, slot);
        const bool grown = admitted && !(left != NEW && tracked);
        if (grown) state.push(look.x.data(), look.kxx);
        correct(state, look, gained, slot, grown);
        if (left != NEW && tracked) replace(recipe, state, look, gained, left);
        else track(recipe, state, look, gained, admitted);
    }
    if (left != NEW && !tracked) {
        drop(recipe, kernel, state, look, left);
        state.settle(left, look.x.data());
    }
    if (recipe.learn_power) learn_power(recipe, state, look);
    state.seen++;
    if (admitted) slot = left == NEW ? state.size - 1 : left;
    if (recipe.has('K')) {
        keep_probe(kernel, state, look, admitted ? slot : NEW);
        if (look.refined) keep_gram(kernel, state);
    }
    return {slot, left, admitted};
}

}  // namespace onlinegp::ONLINEGP_ISA
