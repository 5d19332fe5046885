// Lower triangles: L, a factor to solve with, packed by columns, and S, a symmetric matrix, packed by rows.
//
// Columns and rows are grouped in blocks of four of equal length, so that all start with a full vector. Entries on the
// other side of the diagonal and beyond the size in use are zero. The code reads one block at a time.
#pragma once
#include "linear_algebra/memory.hpp"
#include "linear_algebra/basis_rotation.hpp"

namespace onlinegp::ONLINEGP_ISA {
namespace narrow {

template <class T> struct Triangle {
    T *s = nullptr, *side = nullptr;  // the entries, and an additional vector (rows,)
    int64_t rows = 0;                 // a multiple of four
    const T* next = nullptr;          // another triangle with as many rows, which will be needed soon

    static int64_t top(int64_t i) { return i / 4 * 4; }  // the first index of its block
    int64_t size() const { return rows * (rows + 4) / 2; }
    void carve(Carver& from, int64_t capacity) {
        rows = capacity;
        s = from.take<T>(size_t(size()));
        side = from.take<T>(size_t(capacity));
    }
};

// L: a column starts with the first row of its block. The additional vector is the inverse of the diagonal, zero beyond
// the size in use.
template <class T> struct Factor : Triangle<T> {
    using Triangle<T>::s, Triangle<T>::side, Triangle<T>::rows, Triangle<T>::next, Triangle<T>::top;

    int64_t length(int64_t c) const { return rows - top(c); }
    T* column(int64_t c) const {  // [r] is the entry of row r
        const int64_t t = top(c);
        return s + t * rows - t * (t - 4) / 2 + (c - t) * (rows - t) - t;
    }
    T& at(int64_t r, int64_t c) const { return column(c)[r]; }
    void copy(const Factor& old) {
        std::memcpy(side, old.side, old.rows * sizeof(T));
        for (int64_t c = 0; c < old.rows; c++)
            std::memcpy(column(c) + top(c), old.column(c) + top(c), old.length(c) * sizeof(T));
    }
    void append(int64_t m, const T* x, T last) {  // the row [x, last], where x is zero from m on
        for (int64_t c = 0; c < m; c += 4)
            EACH(k, 4) column(c)[m + k * length(c)] = x[c + k];
        at(m, m) = last;
        side[m] = 1 / last;
    }

    // x <- L^-1 x for the entries from `first` to `last`; earlier entries are zero or already solved
    void forward(int64_t m, T* x, int64_t first = 0, int64_t last = INT64_MAX) const {
        for (int64_t i = first / 4 * 4; i < m && i < last; i += 4) {
            if (next) fetch(next + (column(i) + i - s), 4 * length(i));
            const Columns four(*this, i, x);
            for (int64_t r = i + 4; r < m; r += W<T>)
                four.subtract(x + r, [&](int c) ALWAYS { return load(four.at(c, r)); });
        }
    }

    // x <- L^-T x for N vectors
    template <int N> void backward(int64_t m, T* const (&x)[N]) const {
        for (int64_t i = (m - 1) / 4 * 4; i >= 0; i -= 4) {
            const T* p = column(i);
            const int64_t n = length(i);
            Vec<T> sums[N][4] = {};
            for (int64_t r = (m - 1) / W<T> * W<T>; r >= i + 4;
                 r -= W<T>) {  // to the rows that are the last to be solved
                Vec<T> v[N];
                EACH(k, N) v[k] = load(x[k] + r);
                EACH(c, 4) {
                    const Vec<T> l = load(p + c * n + r);
                    EACH(k, N) sums[k][c] = fma(l, v[k], sums[k][c]);
                }
            }
            const Columns four(*this, i);
            EACH(k, N) four.backward(x[k] + i, sums[k]);
        }
    }

    // Without row j, in the basis of a turn, whose n = L^-1 e_j comes out on the way: with Y = sum of n_k L_k over the
    // columns so far, n_i = -Y_i / L_ii. `row` (m - 1,) becomes row j in that basis, over what was left of it outside.
    // With Solve, x (m - 1,) becomes L^-1 x as well, column by column while they are in registers.
    template <bool Solve> void remove(const Turn<T>& turn, T* row, T* Y, T* x) {
        const int64_t j = turn.j, m = turn.m, middle = j / W<T> * W<T>;
        const Int<T> above = first_lanes<T>(int(j % W<T>));
        const auto moved = [](T* p, Int<T> kept) ALWAYS {  // up by one, except for these lanes
            const Vec<T> l = kept ? load(p) : load_anywhere<Vec<T>>(p + 1);
            return store(p, l), l;
        };
        int64_t c = 0;
        for (; Solve && c + 4 <= j; c += 4) {
            const Columns four(*this, c, x);
            EACH(k, 4) row[c + k] = *four.at(k, j);
            for (int64_t r = c + 4; r < middle; r += W<T>)
                four.subtract(x + r, [&](int k) ALWAYS { return load(four.at(k, r)); });
            four.subtract(x + middle, [&](int k) ALWAYS { return moved(four.at(k, middle), above); });
            for (int64_t r = middle + W<T>; r < m; r += W<T>)
                four.subtract(x + r, [&](int k) ALWAYS { return moved(four.at(k, r), Int<T>{}); });
            EACH(k, 4) *four.at(k, rows - 1) = 0;
        }
        for (int64_t i = c; i < j; i++) {
            T* p = column(i);
            row[i] = p[j];
            moved(p + middle, above);
            for (int64_t r = middle + W<T>; r < m; r += W<T>) moved(p + r, Int<T>{});
            p[rows - 1] = 0;
        }
        for (int64_t r = middle; r < j; r++) {
            turn.n[r] = turn.f[r] = 0;
            turn.e[r] = 1;
        }
        for (int64_t r = m; r % W<T>; r++) turn.n[r] = turn.f[r] = turn.e[r] = 0;
        turn.n[j] = side[j];
        turn.e[j] = turn.f[j] = 0;
        std::memset(Y, 0, rows * sizeof(T));
        Y--;  // the value of row r is stored at row r - 1, its new place
        for (int64_t r = j + 1; r < m; r++) Y[r] = side[j] * column(j)[r];
        Length nu{square(side[j]), double(side[j]), 1.0 / double(side[j])};
        int64_t i = j + 1;
        for (; i % 4 != 1 && i < m; i++) turn_columns<1, false>(turn, i, Y, nu, x);
        if (Solve && i == c + 5) forward(m - 1, x, c, i - 1);
        for (; i + 4 <= m; i += 4) turn_columns<4, Solve>(turn, i, Y, nu, x);
        for (; i < m; i++) turn_columns<1, false>(turn, i, Y, nu, x);
        side[m - 1] = 0;
        if (Solve) {
            forward(m - 1, x, m - 1);
            x[rows - 1] = 0;  // the last lane may have come from the next column
        }
        for (int64_t k = 0; k < m - 1; k++) row[k] = T(nu.value) * (k < j ? row[k] : turn.f[k + 1]);
    }

  private:
    struct Length {
        double square, value, inverse;
    };  // the length of n up to here
    // G columns from i on: to <- e l + f Y, and Y <- Y + n l, first in their own rows, then below
    template <int G, bool Solve> INLINE void turn_columns(const Turn<T>& turn, int64_t i, T* Y, Length& nu, T* x) {
        T *n = turn.n + i, *e = turn.e + i, *f = turn.f + i, l[G][G], y[G][G];
        double squares[G + 1] = {nu.square}, lengths[G + 1] = {nu.value}, inverses[G + 1] = {nu.inverse};
        T *from[G], *to[G];
        EACH(g, G) {
            from[g] = column(i + g);
            to[g] = column(i + g - 1) - 1;
        }
        EACH(g, G) {
            n[g] = -Y[i + g] * side[i + g];
            squares[g + 1] = squares[g] + square(n[g]);
            EACH(h, G)
                if (h > g) {
                    l[g][h] = from[g][i + h];
                    y[g][h] = Y[i + h];
                    Y[i + h] = fma1(n[g], l[g][h], Y[i + h]);
                }
        }
        EACH(g, G) {
            lengths[g + 1] = std::sqrt(squares[g + 1]);
            inverses[g + 1] = 1.0 / lengths[g + 1];
        }
        nu = {squares[G], lengths[G], inverses[G]};
        EACH(g, G) {
            e[g] = T(lengths[g] * inverses[g + 1]);
            f[g] = T(-n[g] * (inverses[g] * inverses[g + 1]));
            const T own = T(from[g][i + g] * (lengths[g + 1] * inverses[g]));
            to[g][i + g] = own;
            side[i + g - 1] = 1 / own;
            EACH(h, G)
                if (h > g) to[g][i + h] = fma1(f[g], y[g][h], e[g] * l[g][h]);
        }
        int64_t r = i + G;
        for (; (r - 1) % W<T> && r < turn.m; r++)
            EACH(g, G) {
                const T own = from[g][r];
                to[g][r] = fma1(f[g], Y[r], e[g] * own);
                Y[r] = fma1(n[g], own, Y[r]);
            }
        Vec<T> nc[G], ec[G], fc[G];
        EACH(g, G) {
            nc[g] = splat<T>(n[g]);
            ec[g] = splat<T>(e[g]);
            fc[g] = splat<T>(f[g]);
        }
        const Columns four = Solve ? Columns(*this, i - 1, x) : Columns(*this, top(i - 1));
        for (; r < turn.m; r += W<T>) {
            Vec<T> below = load(Y + r), out[4];
            EACH(g, G) {
                const Vec<T> own = load_anywhere<Vec<T>>(from[g] + r);
                out[g] = fma(fc[g], below, ec[g] * own);
                below = fma(nc[g], own, below);
                store(to[g] + r, out[g]);
            }
            store(Y + r, below);
            if (Solve) four.subtract(x + r - 1, [&](int g) ALWAYS { return out[g]; });
        }
        EACH(g, G) to[g][turn.m] = to[g][rows] = 0;  // the last lane may have come from the next column
    }
    // Four columns from i on. The rows of their corner are scaled first, so that each step waits only for one
    // multiplication.
    struct Columns {
        typedef T Four __attribute__((vector_size(4 * sizeof(T))));  // stored and read with one instruction
        T *p, inv[4], low[4][4];
        int64_t n;
        Vec<T> y[4];
        INLINE Columns(const Factor& L, int64_t i) : p(L.column(i)), n(L.length(i)) {
            EACH(r, 4) inv[r] = L.side[i + r];
            EACH(r, 4)
                EACH(c, 4)
                    if (c < r) low[r][c] = *at(c, i + r);
        }
        INLINE Columns(const Factor& L, int64_t i, T* x) : Columns(L, i) {  // solve for x here
            Four s;
            EACH(r, 4) s[r] = x[i + r] * inv[r];
            EACH(c, 4)
                EACH(r, 4)
                    if (c < r) s[r] = fma1(-(low[r][c] * inv[r]), T(s[c]), T(s[r]));
            store_anywhere(x + i, s);
            EACH(c, 4) y[c] = splat<T>(-x[i + c]);
        }
        INLINE T* at(int c, int64_t r) const { return p + c * n + r; }
        template <class Column> INLINE void subtract(T* x, const Column& l) const {  // their part of x in W rows
            const Vec<T> half = fma(l(1), y[1], fma(l(0), y[0], load(x)));
            store(x, half + fma(l(3), y[3], l(2) * y[2]));
        }
        INLINE void backward(T* x, const Vec<T> (&sums)[4]) const {
            Four s;
            add_sums<T>(x, -sums[0], -sums[1], -sums[2], -sums[3]);
            EACH(r, 4) s[r] = x[r] * inv[r];
            EACH(e, 4)
                EACH(c, 4)
                    if (c < 3 - e) s[c] = fma1(-(low[3 - e][c] * inv[c]), T(s[3 - e]), T(s[c]));
            store_anywhere(x, s);
        }
    };
};

// S, packed row by row: a row ends with the last column of its block. An update S <- S + c u u' is pending, with u in
// the additional vector, until the next pass applies it.
template <class T> struct Symmetric : Triangle<T> {
    using Triangle<T>::s, Triangle<T>::side, Triangle<T>::next, Triangle<T>::top;
    T c = 0;
    bool pending = false;

    static int64_t length(int64_t r) { return top(r) + 4; }
    T* row(int64_t r) const { return s + top(r) * length(r) / 2 + (r - top(r)) * length(r); }
    T& at(int64_t r, int64_t c) const { return row(r)[c]; }
    void copy(const Symmetric& old) {
        std::memcpy(side, old.side, old.rows * sizeof(T));
        std::memcpy(s, old.s, old.size() * sizeof(T));
    }
    void append(int64_t m, const T* x, T last) {  // the row [x, last]; a null x means zeros
        if (x) std::memcpy(row(m), x, m * sizeof(T));
        at(m, m) = last;
    }
    void add_outer(T factor, const T* x, int64_t m) {  // S <- S + factor x x', applied in the next pass
        for (int64_t i = 0; i < m; i += W<T>) store(side + i, keep<T>(load(x + i), first_lanes<T>(int(m - i))));
        c = factor;
        pending = true;
    }
    void shrink(T factor, T more, int64_t m) {  // S <- factor S + more I; nothing may be pending
        for (int64_t i = 0; i < this->size(); i++) s[i] *= factor;
        for (int64_t i = 0; i < m; i++) at(i, i) += more;
    }
    void multiply(int64_t m, const T* x, T* out) {  // out = S x, after the pending update
        if (pending) {
            pass<true>(m, x, out);
            pending = false;
        } else
            pass<false>(m, x, out);  // several threads may call this
    }

    // E' S E, in tiles of W rows and columns. Columns are combined as those of L, to T = S E, with Y = sum of n_k S_k
    // over the columns so far; then the rows of T are, with `sums` of n_k T_k over the rows so far.
    void turn(const Turn<T>& turn, T* sums) {
        const int64_t first = turn.j / W<T> * W<T>, m = turn.m;
        T q = 0;
        std::memset(sums, 0, this->rows * sizeof(T));
        for (int64_t i = first; i < m; i += W<T>) turn_rows(turn, first, i, sums, q);
        std::memset(row(m - 1), 0, length(m - 1) * sizeof(T));
        if (pending) turn.vector(side);
    }

  private:
    // Above the diagonal, `sums` follows from symmetry: the sum of n_k T_kc over k before c is e_c Y_c + f_c q, where q
    // is the sum of n_k S_kl n_l over k before the group and l before c.
    INLINE void turn_rows(const Turn<T>& turn, int64_t first, int64_t i, T* sums, T& q) {
        constexpr int G = W<T>;
        const int64_t j = turn.j;
        const T *n = turn.n, *e = turn.e, *f = turn.f;
        T *x[G], *to[G];
        Vec<T> Y{}, nc[G], ec[G], fc[G], own[G], held[G];
        EACH(k, G) {
            x[k] = row(i + k);
            to[k] = i + k <= j ? x[k] : k ? x[k - 1] : row(i - 1);
        }
        EACH(k, G) {
            nc[k] = splat<T>(n[i + k]);
            ec[k] = splat<T>(e[i + k]);
            fc[k] = splat<T>(f[i + k]);
        }
        const auto read = [&](int64_t r) ALWAYS {
            EACH(k, G) own[k] = load(x[k] + r);
        };
        const auto combine_columns = [&](int64_t r) ALWAYS {
            EACH(g, G) {
                const Vec<T> before = own[g];
                own[g] = fma(splat<T>(f[r + g]), Y, before * splat<T>(e[r + g])),
                Y = fma(splat<T>(n[r + g]), before, Y);
            }
        };
        const auto combine_rows = [&](int64_t r, const Vec<T>(&rows)[G], bool corner) ALWAYS {
            Vec<T> sum = load(sums + r);
            EACH(k, G) {
                const Vec<T> out = fma(fc[k], sum, ec[k] * rows[k]);
                sum = fma(nc[k], rows[k], sum);
                if (!corner)
                    store(to[k] + r, out);
                else if (i + k < j || k)
                    store(to[k] + r, keep<T>(out, first_lanes<T>(i + k < j ? k + 1 : k)));
            }
            store(sums + r, sum);
        };
        const auto write = [&](int64_t r, bool corner) ALWAYS { transpose<T>(held), combine_rows(r, held, corner); };
        for (int64_t r = 0; r < first; r += G) {
            read(r);
            combine_rows(r, own, false);
        }
        const auto tile = [&](int64_t r) ALWAYS { read(r), transpose<T>(own), combine_columns(r); };
        if (first < i) tile(first);
        EACH(g, G - 1)
            held[g] = first + g < j ? own[g] : own[g + 1];  // without column j: later columns move left by one
        for (int64_t r = first + G; r < i; r += G) {
            tile(r);
            held[G - 1] = own[0];
            write(r - G, false);
            EACH(g, G - 1) held[g] = own[g + 1];
        }
        EACH(g, G) {
            if (i + g > j) sums[i + g - 1] = fma1(f[i + g], q, e[i + g] * Y[g]);
            q = fma1(n[i + g], T(Y[g]), q);
        }
        read(i);
        Vec<T> mirrored[G];
        EACH(g, G) mirrored[g] = own[g];
        transpose<T>(mirrored);
        EACH(g, G) own[g] += keep<T>(mirrored[g], ~first_lanes<T>(g + 1));
        combine_columns(i);
        EACH(g, G) q = fma1(n[i + g], T(Y[g]), q);
        if (i > first) {
            held[G - 1] = own[0];
            write(i - G, false);
        }
        EACH(g, G) held[g] = i + g < j ? own[g] : g < G - 1 ? own[g + 1] : Vec<T>{};
        write(i, true);
    }

    template <bool Update> __attribute__((noinline)) void pass(int64_t m, const T* x, T* out) {
        std::memset(out, 0, this->rows * sizeof(T));
        for (int64_t i = 0; i < m; i += 4) {
            if (next) fetch(next + (row(i) - s), 4 * length(i));
            T* p = row(i);
            const int64_t n = length(i);
            Vec<T> xr[4], ur[4], acc[4] = {};
            EACH(k, 4) {
                xr[k] = splat<T>(x[i + k]);
                ur[k] = splat<T>(c * side[i + k]);
            }
            const auto tile = [&](int64_t r, bool diagonal, int lane) ALWAYS {
                const Vec<T> xc = load(x + r), uc = load(side + r);
                Vec<T> column = load(out + r);
                EACH(k, 4) {
                    Vec<T> t = load(p + k * n + r);
                    if constexpr (Update) {
                        t = diagonal ? keep<T>(fma(ur[k], uc, t), first_lanes<T>(lane + k + 1)) : fma(ur[k], uc, t);
                        store(p + k * n + r, t);
                    }
                    const Vec<T> below = diagonal ? keep<T>(t, first_lanes<T>(lane + k)) : t;
                    acc[k] = fma(t, xc, acc[k]);
                    column = fma(below, xr[k], column);
                }
                store(out + r, column);
            };
            for (int64_t r = 0; r < i; r += W<T>) tile(r, false, 0);
            EACH(k, 4 / W<T>) tile(i + k * W<T>, true, -k * W<T>);
            add_sums<T>(out + i, acc[0], acc[1], acc[2], acc[3]);
        }
    }
};

}  // namespace narrow
using narrow::Triangle, narrow::Factor, narrow::Symmetric;
}  // namespace onlinegp::ONLINEGP_ISA
