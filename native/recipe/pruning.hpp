// Choose the center to remove from a full dictionary: the twin of onlinegp.recipes.pruning.
#pragma once
#include "recipe/beliefs.hpp"

namespace onlinegp::ONLINEGP_ISA {

// The weights of the current centers after admitting x, a (m,) for output o, and q = L^-T t for dQ
template <class T> void foretell(State<T>& state, Prediction<T>& prediction, const Gain<T>& gained, int o, T* a) {
    const int m = int(state.size);
    const T c = prediction.c[o], *b = state.weights(o), *t = prediction.t.data();
    if (!state.L.s) {
        copy(b, a, m);
        if (gained.g) axpy(gained.factor * c, gained.g, a, m);
        return;
    }
    const T last = T(double(gained.last) / std::sqrt(prediction.gamma2)) * c;  // the weight of x
    for (int i = 0; i < m; i += W<T>) {
        const Vec<T> g = gained.g ? load(gained.g + i) * c : Vec<T>{};
        store(a + i, load(b + i) + (g - load(t + i) * last));
    }
    if (state.dQ && !prediction.projected) {
        T* q = prediction.q.data();
        copy(t, q, m);
        if (state.owed) {
            state.L.template backward<3>(m, {a, q, state.gone});
            settle(state);
        } else
            state.L.template backward<2>(m, {a, q});
        prediction.projected = true;
    } else
        state.L.template backward<1>(m, {a});
}

// The slot of the center to remove for x from a full dictionary. Ties go to the oldest; m means x itself.
template <class T> int64_t center_to_remove(const Recipe& recipe, State<T>& state, Prediction<T>& prediction) {
    if (recipe.pruning == Pruning::Oldest) return state.oldest();
    const Gain<T> gained = gain(recipe, state, prediction, NEW);
    const double share = double(gained.last) / (state.L.s ? std::sqrt(prediction.gamma2) : 1.0);
    T *a = prediction.a.data(), *scores = prediction.n.data();
    double mine = 0;
    clear(scores, state.size);
    for (int o = 0; o < state.p; o++) {
        prediction.c[o] = T(prediction.e[o] / gained.s);
        mine += square(share * (prediction.e[o] / gained.s));
        foretell(state, prediction, gained, o, a);
        for (int64_t i = 0; i < state.size; i += W<T>) store(scores + i, load(scores + i) + load(a + i) * load(a + i));
    }
    for (int64_t i = 0; state.dQ && i < state.size; i += W<T>) {  // |alpha_i|^2 with x admitted, over dQ_i^2
        const Vec<T> d = admitted_dQ(state, prediction, i);
        store(scores + i, load(scores + i) / (d * d));
    }
    if (state.dQ) mine *= square(prediction.gamma2);
    const double least = smallest<T>(state.size, [&](int t) { return load(scores + t * W<T>); }).value;
    const double limit = tie_limit(least < mine ? least : mine, max(double(largest(scores, state.size)), mine));
    int64_t oldest = state.size, born = INT64_MAX;
    for (int64_t i = 0; i < state.size; i++)
        if (!(double(scores[i]) > limit) && state.born[i] < born) {
            oldest = i;
            born = state.born[i];
        }
    return oldest;
}

}  // namespace onlinegp::ONLINEGP_ISA
