// An orthonormal basis E (m, m - 1) of the space orthogonal to a vector n, which is zero before j:
// onlinegp.recipes.linear_algebra.turned.
//
//   column i < j: e_i     column i > j: e_i nu_{i-1} / nu_i - n_{<i} n_i / (nu_i nu_{i-1}),   nu_i the length of n up
//   to i
//
// So x E needs only a running sum of n_k x_k.
#pragma once
#include "linear_algebra/simd.hpp"

namespace onlinegp::ONLINEGP_ISA {

template <class T> struct Turn {
    T *n, *e, *f;  // n, nu_{i-1} / nu_i, -n_i / (nu_i nu_{i-1}), (m,) and zero from there on; 0, 1, 0 before j, and e_j
                   // = f_j = 0
    int64_t j, m;

    void vector(T* x) const {  // x <- x E, for an x that is zero from m on
        T sum = n[j] * x[j];
        for (int64_t i = j + 1; i < m; i++) {
            const T own = x[i];
            x[i - 1] = fma1(sum, f[i], own * e[i]);
            sum = fma1(own, n[i], sum);
        }
        x[m - 1] = 0;
    }
};

}  // namespace onlinegp::ONLINEGP_ISA
