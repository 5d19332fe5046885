// An orthonormal basis E (m, m - 1) of all that is orthogonal to a vector n, which is zero before j: onlinegp.recipes.beliefs.turned.
//
//   column i < j: e_i     column i > j: e_i nu_{i-1} / nu_i - n_{<i} n_i / (nu_i nu_{i-1}),   nu_i the length of n up to i
//
// so that x E needs one sum of n_k x_k that runs along with it.
#pragma once
#include "simd.hpp"

namespace onlinegp::ONLINEGP_ISA {

template <class T> struct Turn {
    const T *n, *e, *f;  // (m,): n, nu_{i-1} / nu_i, n_i / (nu_i nu_{i-1})
    int j;

    // Fill e and f for n, which is zero before j
    Turn(const T* n, int j, int m, T* e, T* f) : n(n), e(e), f(f), j(j) {
        double before = double(n[j]) * double(n[j]);
        for (int i = j + 1; i < m; i++) {
            const double now = before + double(n[i]) * double(n[i]);
            e[i] = T(before / now), f[i] = T(before * now);
            before = now;
        }
        for (int i = j / W<T> * W<T>; i < m; i += W<T>) {
            store(e + i, root(load(e + i)));
            store(f + i, load(n + i) / root(load(f + i)));
        }
    }

    // to[i - 1] = (x E)_i for i = j + 1 .. last, zero in the rest of the tile; returns the sum of n_k x_k for k < last.
    // `to` may be x itself.
    INLINE T apply(const T* x, T* to, int last) const {
        T sum = n[j] * x[j];
        int i = j + 1;
        for (; i <= last && i % W<T>; i++) {
            if (i == last) return to[i - 1] = x[i] * e[i] - sum * f[i], sum;
            const T xi = x[i];
            to[i - 1] = xi * e[i] - sum * f[i];
            sum += n[i] * xi;
        }
        for (; i + W<T> <= last; i += W<T>) {
            const Vec<T> xi = load(x + i), before = running(xi * load(n + i), sum);
            store_anywhere(to + i - 1, xi * load(e + i) - before * load(f + i));
        }
        for (; i < last; i++) {
            const T xi = x[i];
            to[i - 1] = xi * e[i] - sum * f[i];
            sum += n[i] * xi;
        }
        to[last - 1] = x[last] * e[last] - sum * f[last];
        return sum;
    }

  private:
    // Lane i: sum + p_0 + .. + p_{i-1}; then sum includes all of them
    static INLINE Vec<T> running(Vec<T> p, T& sum) {
        Vec<T> before;
        EACH(i, W<T>) before[i] = sum, sum += p[i];
        return before;
    }
    static INLINE void store_anywhere(T* p, Vec<T> x) { __builtin_memcpy(p, &x, sizeof x); }
};

}  // namespace onlinegp::ONLINEGP_ISA
