// K, the kernel matrix of the centers: the check of Q needs a row of it, the refinement of Q the whole.
//
// The row that is checked is kept, and another one computed every few samples. The whole is kept from the first
// refinement on; until then it takes no memory.
#pragma once
#include "prediction.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr int64_t PROBED_FOR = 16;  // samples that check the same row

template <class T> int64_t probed_row(const State<T>& state) {
    return state.size ? state.seen / PROBED_FOR % state.size : 0;
}

// K_i, with the jitter on its diagonal; x (d,) is scratch
template <class T> void gram_row(const Kernel<T>& kernel, const State<T>& state, int64_t i, T* x, T* k) {
    get_center(state.tiles, state.d, i, x);
    row(kernel, state.tiles, state.size, x, state.alpha, k);
    k[i] = state.kcc[i];
}

// The row that the next sample checks. K is symmetric to the last bit, so that a row kept up equals one made anew.
template <class T> void probe_anew(const Kernel<T>& kernel, State<T>& state, Prediction<T>& prediction) {
    state.probed = probed_row(state);
    if (state.size) gram_row(kernel, state, state.probed, prediction.center.data(), state.probe);
}
// After a step that admitted x to `slot`, or did not (-1)
template <class T> void keep_probe(const Kernel<T>& kernel, State<T>& state, Prediction<T>& prediction, int64_t slot) {
    if (state.probed != probed_row(state) || state.probed == slot) return probe_anew(kernel, state, prediction);
    if (slot >= 0) state.probe[slot] = prediction.k[state.probed];
}

// Fill K, whose memory is there
template <class T> void fill_gram(const Kernel<T>& kernel, const State<T>& state, Symmetric<T>& K) {
    Buffer<T> x(state.d), k(state.capacity);
    for (int64_t i = 0; i < state.size; i++) {
        gram_row(kernel, state, i, x.data(), k.data());
        K.set_row(int(i), int(state.size), k.data());
    }
}

// From now on every step keeps K; not where there is no memory for it, as a step that needs it will notice
template <class T> void keep_gram(const Kernel<T>& kernel, State<T>& state) {
    if (state.K.s) return;
    try {
        state.reserve_gram();
        fill_gram(kernel, state, state.K);
    } catch (const std::bad_alloc&) {
        state.release_gram();
    }
}

// out = K x
template <class T> void gram_product(const Kernel<T>& kernel, const State<T>& state, const T* x, T* out) {
    if (state.K.s) return state.K.product(int(state.size), x, out);
    Buffer<T> memory(Symmetric<T>::entries(int(state.capacity)));
    Symmetric<T> K;
    K.s = memory.data();
    fill_gram(kernel, state, K);
    K.product(int(state.size), x, out);
}

}  // namespace onlinegp::ONLINEGP_ISA
