// An orthonormal basis E (m, m - 1) of all that is orthogonal to a vector n, which is zero before j: onlinegp.recipes.beliefs.turned.
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
    T *n, *e, *f;  // (m,): n, nu_{i-1} / nu_i, -n_i / (nu_i nu_{i-1}), from j on
    int64_t j, m;

    // Of G vectors: to[i - 1] = (x E)_i for i from `first` on, where `sum` has the n_k x_k before; `to` may be x
    template <int G> INLINE void along(const T* const (&x)[G], T* const (&to)[G], int64_t first, T (&sum)[G]) const {
        int64_t i = first;
        for (; i % W<T> && i < m; i++) EACH(g, G) one(x[g], to[g], i, sum[g]);
        for (; i + W<T> <= m; i += W<T>) {
            const Vec<T> ni = load(n + i), ei = load(e + i), fi = load(f + i);
            Vec<T> later[W<T>];  // n_k, where i > k
            EACH(k, W<T>) later[k] = keep<T>(splat<T>(n[i + k]), ~first_lanes<T>(k + 1));
            EACH(g, G) {
                const Vec<T> own = load(x[g] + i);
                Vec<T> within = splat<T>(x[g][i]) * later[0];
                EACH(k, W<T> - 2) within = fma(splat<T>(x[g][i + k + 1]), later[k + 1], within);
                store_anywhere(to[g] + i - 1, fma(within + sum[g], fi, own * ei));
                sum[g] += fma(own, ni, within)[W<T> - 1];
            }
        }
        for (; i < m; i++) EACH(g, G) one(x[g], to[g], i, sum[g]);
        EACH(g, G) to[g][m - 1] = 0;
    }
    INLINE void one(const T* x, T* to, int64_t i, T& sum) const {
        const T own = x[i];
        to[i - 1] = fma1(sum, f[i], own * e[i]);
        sum = fma1(own, n[i], sum);
    }
    void vector(T* x) const {  // x <- x E
        T sum[] = {n[j] * x[j]};
        along<1>({x}, {x}, j + 1, sum);
    }
};

}  // namespace onlinegp::ONLINEGP_ISA
