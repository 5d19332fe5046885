// An orthonormal basis E (m, m - 1) of all that is orthogonal to a vector n, which is zero before j: onlinegp.recipes.belief.turned.
//
//   column i < j: e_i     column i > j: e_i nu_{i-1} / nu_i - n_{<i} n_i / (nu_i nu_{i-1}),   nu_i the length of n up to i
//
// so that x E needs one sum of n_k x_k that runs along with it.
#pragma once
#include <cstring>
#include "simd.hpp"

namespace onlinegp::ONLINEGP_ISA {

template <class X, class T> INLINE void store_anywhere(T* p, X x) { std::memcpy(p, &x, sizeof x); }
template <class T> INLINE double square(T a) { return double(a) * double(a); }
template <class T> INLINE T fma1(T a, T b, T c) {  // rounded once where the machine can
#if defined(__FMA__) || defined(__aarch64__)
    return std::fma(a, b, c);
#else
    return a * b + c;
#endif
}

template <int G> struct Group {};  // so many columns at a time

// Call body(i, Group) for all i from begin to end: one by one up to a multiple of four, then by fours, then one by one
template <class Body> INLINE void in_groups(int64_t begin, int64_t end, const Body& body) {
    int64_t i = begin;
    for (; i % 4 && i < end; i++) body(i, Group<1>{});
    for (; i + 4 <= end; i += 4) body(i, Group<4>{});
    for (; i < end; i++) body(i, Group<1>{});
}

template <class T> struct Turn {
    T *n, *e, *f;  // n, nu_{i-1} / nu_i, -n_i / (nu_i nu_{i-1}), (m,) and zero from there on; 0, 1, 0 before j, and e_j = f_j = 0
    int64_t j, m;

    void vector(T* x) const {  // x <- x E, of an x that is zero from m on
        T sum = n[j] * x[j];
        int64_t i = j + 1;
        for (; i % W<T> && i < m; i++) {
            const T own = x[i];
            x[i - 1] = fma1(sum, f[i], own * e[i]), sum = fma1(own, n[i], sum);
        }
        for (; i < m; i += W<T>) {
            const Vec<T> own = load(x + i);
            Vec<T> within{};  // n_k x_k, over k < i
            EACH(k, W<T> - 1) within = fma(splat<T>(own[k]), keep<T>(splat<T>(n[i + k]), ~first_lanes<T>(k + 1)), within);
            store_anywhere(x + i - 1, fma(within + sum, load(f + i), own * load(e + i)));
            sum += fma(own, load(n + i), within)[W<T> - 1];
        }
        x[m - 1] = 0;
    }
};

}  // namespace onlinegp::ONLINEGP_ISA
