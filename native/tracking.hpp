// What beliefs keep up to date: `track` a correction, let a center `drop` out. The twin of onlinegp.recipes.beliefs.
//
// A center that replaces another takes its slot at once: admitting, dropping and settling are one update of each matrix,
// which waits for the next product (symmetric.hpp).
#pragma once
#include "beliefs.hpp"

namespace onlinegp::ONLINEGP_ISA {

template <class T> INLINE void copy(const T* from, T* to, int64_t m) {
    for (int64_t i = 0; i < m; i += W<T>) store(to + i, load(from + i));
}

// S <- S + c u u', next time
template <class T> void add_outer(Symmetric<T>& S, const T* u, T c, int64_t m) {
    copy(u, S.u, m);
    S.c = c, S.pending = Pending::Rank1;
}
// The same with one more row, whose entry of u is `last`
template <class T> void extend(Symmetric<T>& S, const T* u, T last, T c, int64_t m) {
    add_outer(S, u, c, m);
    S.u[m] = last;
}

// Row `slot` of K, if it is kept, becomes [k, kxx]
template <class T> void set_kernel_row(State<T>& state, Prediction<T>& prediction, int64_t slot, int64_t m) {
    if (!state.K.s) return;
    T* k = prediction.k.data();
    const T before = k[slot];
    k[slot] = T(prediction.kxx);
    state.K.set_row(int(slot), int(m), k);
    k[slot] = before;
}

// Row `slot` of S becomes the unit vector times `value`
template <class T> void set_unit_row(Symmetric<T>& S, Prediction<T>& prediction, int64_t slot, int64_t m, T value) {
    T* row = prediction.r.data();
    for (int64_t i = 0; i < m; i += W<T>) store(row + i, Vec<T>{});
    row[slot] = value;
    S.set_row(int(slot), int(m), row);
    row[slot] = 0;
}

// The row sums with x admitted, as the last center
template <class T> void add_row_sums(State<T>& state, const Prediction<T>& prediction) {
    const T* k = prediction.k.data();
    const int64_t last = state.size - 1;
    Vec<T> rows{}, total{};
    for (int64_t i = 0; i < last; i += W<T>) {
        const Vec<T> a = magnitude<T>(load(k + i)), sums = load(state.rowsum + i) + a;
        store(state.rowsum + i, sums);
        rows = larger(rows, sums);
        total += a;
    }
    state.rowsum[last] = T(double(sum<T>(total)) + prediction.kxx);
    state.bound = max(state.bound, double(state.rowsum[last]));
    for (int i = 0; i < W<T>; i++) state.bound = max(state.bound, double(rows[i]));
}

// After a correction; an admitted sample is the last center already
template <class T> void track(const Recipe& recipe, State<T>& state, Prediction<T>& prediction, const Gain<T>& gain, bool admitted) {
    const int64_t old = admitted ? state.size - 1 : state.size;
    if (recipe.sums_rows() && admitted) add_row_sums(state, prediction);
    if (recipe.belief == Belief::Posterior) state.residual = max(prediction.residual, RESIDUAL_MEMORY * state.residual);
    if (recipe.has('A')) {
        const T c = T(1.0 / (gain.s * state.scale));
        if (admitted) extend(state.A, gain.g, gain.last, c, old);
        else add_outer(state.A, gain.g, c, old);
    }
    if (recipe.has('P')) {
        if (admitted) set_unit_row(state.P, prediction, old, old + 1, T(1));
        else add_outer(state.P, prediction.w.data(), T(-1.0 / gain.s), old);
    }
    if (!admitted) return;
    if (recipe.has('Q')) extend(state.Q, prediction.q.data(), T(-1), T(1.0 / prediction.gamma2), old);
    set_kernel_row(state, prediction, old, old + 1);
}

// What replacing center j by x does to a matrix that carries the removal:
//   S+ = S + c u u' with u = [u; last],   z = S+_j / S+_jj,   S <- S+ - S+_jj z z',   x in the place of j
// Returns z of x itself; z of the others is in `z`.
template <class T>
T replace_carrier(Symmetric<T>& S, Prediction<T>& prediction, const T* u, T last, T c, int64_t j, int64_t m, T* z) {
    S.get_row(int(j), int(m), z);
    const T uj = u[j], jj = z[j] + c * uj * uj, cj = c * uj;
    for (int64_t i = 0; i < m; i += W<T>) store(z + i, (load(z + i) + load(u + i) * cj) / jj);
    const T zx = cj * last / jj;
    copy(u, S.u, m), copy(z, S.z, m);
    S.u[j] = last, S.z[j] = zx, S.c = c, S.g = jj, S.pending = Pending::Replace1;
    set_unit_row(S, prediction, j, m, T(0));
    return zx;
}

// What it does to A, which follows:  A+ - z b' - b z'   with   b = A+_j - A+_jj z / 2
template <class T> void replace_follower(Symmetric<T>& S, Prediction<T>& prediction, const Gain<T>& gain, T c, int64_t j, int64_t m, T zx) {
    T *b = prediction.b.data(), *z = prediction.z.data();
    S.get_row(int(j), int(m), b);
    const T uj = gain.g[j], jj = b[j] + c * uj * uj, cj = c * uj;
    for (int64_t i = 0; i < m; i += W<T>)
        store(b + i, (load(b + i) + load(gain.g + i) * cj) - load(z + i) * (T(0.5) * jj));
    copy(gain.g, S.u, m), copy(z, S.z, m), copy(b, S.b, m);
    S.u[j] = gain.last, S.z[j] = zx, S.b[j] = cj * gain.last - T(0.5) * jj * zx;
    S.c = c, S.pending = Pending::Replace2;
    set_unit_row(S, prediction, j, m, T(0));
}

// x takes the slot of center j, which is projected onto the others (or leaves with its datum); the weights have been
// corrected, and `weight` (p,) holds that of x
template <class T> void replace(const Recipe& recipe, State<T>& state, Prediction<T>& prediction, const Gain<T>& gain, int64_t j) {
    const int64_t m = state.size;
    const T c = T(1.0 / (gain.s * state.scale));
    T *z = prediction.z.data(), zx;
    if (recipe.belief == Belief::Exact) zx = replace_carrier(state.A, prediction, gain.g, gain.last, c, j, m, z);
    else zx = replace_carrier(state.Q, prediction, prediction.q.data(), T(-1), T(1.0 / prediction.gamma2), j, m, z);
    if (recipe.belief == Belief::Posterior) {
        state.residual = max(prediction.residual, RESIDUAL_MEMORY * state.residual);
        replace_follower(state.A, prediction, gain, c, j, m, zx);
        set_kernel_row(state, prediction, j, m);
    }
    if (recipe.belief == Belief::LeastSquares) set_unit_row(state.P, prediction, j, m, T(1));
    for (int o = 0; o < state.p; o++) {  // alpha <- alpha - z alpha_j
        T* a = state.weights(o);
        const T aj = a[j], mine = T(double(gain.last) * (prediction.e[o] / gain.s));
        axpy(-aj, z, a, m);
        a[j] = mine - zx * aj;
    }
    state.put(j, prediction.x.data(), prediction.kxx);
}

// Beliefs with a fixed covariance truncate; the row sums lose what the center gave them
template <class T> void drop(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, Prediction<T>& prediction, int64_t j) {
    if (!recipe.sums_rows()) return;
    T *x = prediction.x.data(), *k = prediction.k.data();
    get_center(state.tiles, state.d, j, x);
    row(kernel, state.tiles, state.size, x, state.alpha, k);
    for (int64_t i = 0; i < state.size; i++) state.rowsum[i] -= std::fabs(k[i]);
}

}  // namespace onlinegp::ONLINEGP_ISA
