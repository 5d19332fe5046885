// An orthonormal basis E (m, m - 1) of all that is orthogonal to a vector n, which is zero before j: onlinegp.recipes.beliefs.turned.
//
//   column i < j: e_i     column i > j: e_i nu_{i-1} / nu_i - n_{<i} n_i / (nu_i nu_{i-1}),   nu_i the length of n up to i
//
// so that x E needs one sum of n_k x_k that runs along with it. Four rows x are turned together, in tiles of 4 x 4.
#pragma once
#include "simd.hpp"

namespace onlinegp::ONLINEGP_ISA {

// Four numbers, whatever the instruction set
template <class T> struct Tile;
template <> struct Tile<double> {
    typedef double Four __attribute__((vector_size(32), may_alias));
    typedef double Anywhere __attribute__((vector_size(32), may_alias, aligned(8)));
    typedef int64_t Mask __attribute__((vector_size(32)));
};
template <> struct Tile<float> {
    typedef float Four __attribute__((vector_size(16), may_alias));
    typedef float Anywhere __attribute__((vector_size(16), may_alias, aligned(4)));
    typedef int32_t Mask __attribute__((vector_size(16)));
};
template <class T> using Four = typename Tile<T>::Four;

template <class T> INLINE Four<T> load4(const T* p) { return *reinterpret_cast<const Four<T>*>(p); }
template <class T> INLINE void store4(T* p, Four<T> x) { *reinterpret_cast<Four<T>*>(p) = x; }
template <class T> INLINE void store4_anywhere(T* p, Four<T> x) { *reinterpret_cast<typename Tile<T>::Anywhere*>(p) = x; }

template <class T> INLINE Four<T> fma4(Four<T> a, Four<T> b, Four<T> c) {
#if defined(__FMA__)
    if constexpr (sizeof(T) == 8) return (Four<T>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
    else return (Four<T>)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
#else
    return a * b + c;
#endif
}

#if defined(__clang__)
#define ONLINEGP_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define ONLINEGP_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, typename Tile<T>::Mask{__VA_ARGS__})
#endif
template <class T> INLINE void transpose(Four<T> (&x)[4]) {
    const Four<T> a = ONLINEGP_SHUFFLE(x[0], x[1], 0, 4, 2, 6), b = ONLINEGP_SHUFFLE(x[0], x[1], 1, 5, 3, 7);
    const Four<T> c = ONLINEGP_SHUFFLE(x[2], x[3], 0, 4, 2, 6), d = ONLINEGP_SHUFFLE(x[2], x[3], 1, 5, 3, 7);
    x[0] = ONLINEGP_SHUFFLE(a, c, 0, 1, 4, 5), x[1] = ONLINEGP_SHUFFLE(b, d, 0, 1, 4, 5);
    x[2] = ONLINEGP_SHUFFLE(a, c, 2, 3, 6, 7), x[3] = ONLINEGP_SHUFFLE(b, d, 2, 3, 6, 7);
}

template <class T> struct Turn {
    const T *n, *e, *f;  // (m,): n, nu_{i-1} / nu_i, n_i / (nu_i nu_{i-1}); zero beyond, and e and f zero up to j
    const int j, m;

    // Fill e and f, which have room for `room` entries, for n, which is zero before j
    Turn(const T* n, int j, int m, T* e, T* f, int room) : n(n), e(e), f(f), j(j), m(m) {
        double before = double(n[j]) * double(n[j]);
        const int begin = (j + 1) / W<T> * W<T>;
        for (int i = j / 4 * 4; i <= j; i++) e[i] = f[i] = T(0);
        for (int i = begin; i <= j; i++) e[i] = T(0), f[i] = T(1);
        for (int i = j + 1; i < m; i++) {
            const double now = before + double(n[i]) * double(n[i]);
            e[i] = T(before / now), f[i] = T(before * now);
            before = now;
        }
        for (int i = m; i < room; i++) e[i] = T(0), f[i] = T(1);
        for (int i = begin; i < m; i += W<T>) {
            store(e + i, root(load(e + i)));
            store(f + i, keep<T>(load(n + i) / root(load(f + i)), first_lanes<T>(m - i) & ~first_lanes<T>(j + 1 - i)));
        }
        for (int i = m; i < room; i++) f[i] = T(0);
    }

    // to[i - 1] = (x E)_i for i = j + 1 .. last; returns the sum of n_k x_k for k < last. `to` may be x itself.
    T one(const T* x, T* to, int last) const {
        T sum = n[j] * x[j];
        for (int i = j + 1; i < last; i++) {
            const T xi = x[i];
            to[i - 1] = xi * e[i] - sum * f[i];
            sum += n[i] * xi;
        }
        to[last - 1] = x[last] * e[last] - sum * f[last];
        return sum;
    }

    // x E in the columns c to c + 3 of four rows x; `sum`, one for each row, runs on
    INLINE void tile(Four<T> (&x)[4], Four<T>& sum, int c) const {
        transpose<T>(x);
        const Four<T> p0 = x[0] * n[c], p01 = fma4<T>(x[1], Four<T>{} + n[c + 1], p0);
        const Four<T> p012 = fma4<T>(x[2], Four<T>{} + n[c + 2], p01), all = fma4<T>(x[3], Four<T>{} + n[c + 3], p012);
        const Four<T> before[4] = {sum, sum + p0, sum + p01, sum + p012};
        EACH(k, 4) x[k] = fma4<T>(before[k], Four<T>{} - f[c + k], x[k] * e[c + k]);
        sum += all;
        transpose<T>(x);
    }
    // A tile goes to its columns, one to the left from j + 1 on
    INLINE void put(T* to, int c, Four<T> x) const {
        if (c > j) return store4_anywhere(to + c - 1, x);
        if (c + 4 <= j) return store4(to + c, x);
        EACH(k, 4) if (c + k < j) to[c + k] = x[k];
        else if (c + k > j) to[c + k - 1] = x[k];
    }
};

}  // namespace onlinegp::ONLINEGP_ISA
