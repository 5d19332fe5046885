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

template <class T> INLINE Four<T> splat4(T x) { return Four<T>{x, x, x, x}; }

template <class T> struct Turn {
    const T *n, *e, *f;  // (m,): n, nu_{i-1} / nu_i, -n_i / (nu_i nu_{i-1}); e and f are zero up to j, and all beyond m
    const int j, m;

    // Fill e and f for n, which is zero before j; all three, and nu, are scratch with room for `room` entries
    Turn(T* n, int j, int m, T* e, T* f, T* nu, int room) : n(n), e(e), f(f), j(j), m(m) {
        const int begin = j / W<T> * W<T>;
        T sum = 0;
        for (int i = begin; i < m; i++) sum += n[i] * n[i], nu[i] = sum;
        for (int i = begin; i < j; i++) nu[i] = 1;
        for (int i = m; i < room; i++) nu[i] = 1, n[i] = 0;
        for (int i = begin; i < room; i += W<T>) {
            const Vec<T> length = root(load(nu + i));
            store(nu + i, length), store(e + i, T(1) / length);  // for now
        }
        T before = nu[j], inverse = e[j];
        for (int i = begin; i <= j; i++) e[i] = f[i] = 0;
        for (int i = j + 1; i < m; i++) {
            const T mine = e[i];
            e[i] = before * mine, f[i] = -n[i] * (mine * inverse);
            before = nu[i], inverse = mine;
        }
        for (int i = m; i < room; i++) e[i] = f[i] = 0;
    }

    // to[i - 1] = (x E)_i for i = j + 1 .. last; returns the sum of n_k x_k for k < last. `to` may be x itself.
    INLINE T one(const T* x, T* to, int last) const {
        T sum = 0;
        for (int c = j / 4 * 4;; c += 4) {
            const Four<T> own = load4(x + c), p = own * load4(n + c), none{};
            const Four<T> one = ONLINEGP_SHUFFLE(none, p, 0, 4, 5, 6), two = ONLINEGP_SHUFFLE(none, p, 0, 1, 4, 5);
            const Four<T> three = ONLINEGP_SHUFFLE(none, p, 0, 1, 2, 4), within = (one + two) + three;
            const Four<T> before = within + sum, out = fma4<T>(before, load4(f + c), own * load4(e + c));
            if (c > j && c + 4 <= last) {
                store4_anywhere(to + c - 1, out), sum += within[3] + p[3];
                continue;
            }
            EACH(k, 4) if (j < c + k && c + k <= last) to[c + k - 1] = out[k];
            if (c + 4 > last) return before[last - c];
            sum += within[3] + p[3];
        }
    }

    // Four rows on their way, tile after tile. Columns move one to the left from j + 1 on, so that a tile of the result
    // has its last column from the next tile of x.
    class Rows {
      public:
        Four<T> sum{};  // of n_k x_k, one for each row

        INLINE explicit Rows(const Turn& turn) : n(turn.n), e(turn.e), f(turn.f), j(turn.j) {}
        // The tile x of rows that holds column j
        INLINE void first(Four<T> (&x)[4]) {
            transpose<T>(x);
            const Four<T> left[3] = {x[0], x[1], x[2]};
            turn_columns(x, j / 4 * 4);
            EACH(k, 3) held_[k] = k < j % 4 ? left[k] : x[k + 1];
        }
        // The tile x from column c on becomes the tile of the result from column c - 4 on
        INLINE void next(Four<T> (&x)[4], int64_t c) {
            transpose<T>(x);
            turn_columns(x, c);
            const Four<T> last[3] = {x[1], x[2], x[3]};
            x[3] = x[0];
            EACH(k, 3) x[k] = held_[k], held_[k] = last[k];
            transpose<T>(x);
        }
        // Entry k of row k of the tile that was turned last; the first of them has left with the tile before
        INLINE Four<T> diagonal(T first) const {
            Four<T> x = ONLINEGP_SHUFFLE(held_[0], held_[1], 0, 1, 6, 3);
            x = ONLINEGP_SHUFFLE(x, held_[2], 0, 1, 2, 7);
            x[0] = first;
            return x;
        }
        // What is left: the last tile of the result, of which row k has the columns before k
        INLINE void finish(Four<T> (&x)[4]) const {
            EACH(k, 3) x[k] = held_[k];
            x[3] = Four<T>{};
            transpose<T>(x);
            EACH(k, 4) EACH(i, 4) if (i >= k) x[k][i] = 0;
        }

      private:
        INLINE void turn_columns(Four<T> (&x)[4], int64_t c) {
            const Four<T> p0 = x[0] * splat4(n[c]), p01 = fma4<T>(x[1], splat4(n[c + 1]), p0);
            const Four<T> p012 = fma4<T>(x[2], splat4(n[c + 2]), p01), all = fma4<T>(x[3], splat4(n[c + 3]), p012);
            const Four<T> before[4] = {sum, sum + p0, sum + p01, sum + p012};
            EACH(k, 4) x[k] = fma4<T>(before[k], splat4(f[c + k]), x[k] * splat4(e[c + k]));
            sum += all;
        }
        const T *const n, *const e, *const f;
        const int j;
        Four<T> held_[3];
    };
};

}  // namespace onlinegp::ONLINEGP_ISA
