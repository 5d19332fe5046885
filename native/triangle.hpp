// Lower triangles, packed column by column: L, which is solved with, and S, a symmetric matrix.
//
// A column starts with the first row of its block of PAD, and is zero above the diagonal and beyond the size in use. Four
// columns are read at a time.
#pragma once
#include "memory.hpp"
#include "turn.hpp"

namespace onlinegp::ONLINEGP_ISA {
namespace narrow {

template <class T> struct Triangle {
    static constexpr int PAD = W<T> > 4 ? W<T> : 4;

    T *s = nullptr, *side = nullptr;  // the columns, and a vector (rows,) that goes with them
    int64_t rows = 0;                 // a multiple of PAD
    const T* next = nullptr;          // another of as many rows, which will be needed soon

    static int64_t top(int64_t c) { return c / PAD * PAD; }
    int64_t length(int64_t c) const { return rows - top(c); }
    T* column(int64_t c) const {  // [r] is the entry of row r
        const int64_t t = top(c);
        return s + t * rows - t * (t - PAD) / 2 + (c - t) * (rows - t) - t;
    }
    void carve(Carver& from, int64_t capacity) {
        s = from.take<T>(size_t(capacity * (capacity + PAD) / 2)), side = from.take<T>(size_t(capacity)), rows = capacity;
    }
    void copy(const Triangle& old) {
        std::memcpy(side, old.side, old.rows * sizeof(T));
        for (int64_t c = 0; c < old.rows; c++) std::memcpy(column(c) + top(c), old.column(c) + top(c), old.length(c) * sizeof(T));
    }
    void append(int64_t m, const T* x, T last) {  // the row [x, last]; x null for all zero
        for (int64_t c = 0; x && c < m; c++) column(c)[m] = x[c];
        column(m)[m] = last;
    }
    void ahead(int64_t c) const {  // columns c to c + 3 of the next one
        if (next) fetch(next + (column(c) + top(c) - s), 4 * length(c));
    }
};

// L; beside it the inverse of its diagonal, which is zero beyond the size in use
template <class T> struct Factor : Triangle<T> {
    using Triangle<T>::column, Triangle<T>::length, Triangle<T>::side;

    void append(int64_t m, const T* x, T last) {
        Triangle<T>::append(m, x, last);
        side[m] = 1 / last;
    }

    // x <- L^-1 x, of an x that is zero before `first`
    void forward(int64_t m, T* x, int64_t first = 0) const {
        for (int64_t i = first / 4 * 4; i < m; i += 4) {
            this->ahead(i);
            const T* p = column(i);
            const int64_t n = length(i);
            Corner(p + i, n, side + i).forward(x + i);
            Vec<T> y[4];
            EACH(c, 4) y[c] = splat<T>(-x[i + c]);
            const auto tile = [&](int64_t r, Int<T> lanes) ALWAYS {
                Vec<T> l[4];
                EACH(c, 4) l[c] = keep<T>(load(p + c * n + r), lanes);
                const Vec<T> half = fma(l[1], y[1], fma(l[0], y[0], load(x + r)));
                store(x + r, half + fma(l[3], y[3], l[2] * y[2]));
            };
            int64_t r = (i + 4) / W<T> * W<T>;  // from the diagonal on, as the next four wait for it
            if (W<T> > 4 && r < i + 4) tile(r, ~first_lanes<T>(int(i + 4 - r))), r += W<T>;
            for (; r < m; r += W<T>) tile(r, ~Int<T>{});
        }
    }

    // x <- L^-T x, of N vectors
    template <int N> void backward(int64_t m, T* const (&x)[N]) const {
        for (int64_t i = (m - 1) / 4 * 4; i >= 0; i -= 4) {
            const T* p = column(i);
            const int64_t n = length(i);
            Vec<T> sums[N][4] = {};
            const auto tile = [&](int64_t r, Int<T> lanes) ALWAYS {
                Vec<T> v[N];
                EACH(k, N) v[k] = keep<T>(load(x[k] + r), lanes);
                EACH(c, 4) {
                    const Vec<T> l = load(p + c * n + r);
                    EACH(k, N) sums[k][c] = fma(-l, v[k], sums[k][c]);
                }
            };
            int64_t r = (m - 1) / W<T> * W<T>;  // towards the diagonal, whose rows are the last to be known
            for (; r >= i + 4; r -= W<T>) tile(r, ~Int<T>{});
            if (W<T> > 4 && r + W<T> > i + 4) tile(r, ~first_lanes<T>(int(i + 4 - r)));
            const Corner corner(p + i, n, side + i);
            EACH(k, N) corner.backward(x[k] + i, sums[k]);
        }
    }

    // Without row j, in the basis of a turn, whose n = L^-1 e_j comes out on the way: with Y = sum of n_k L_k over the
    // columns so far, n_i = -Y_i / L_ii. `row` (m - 1,) becomes row j in that basis, over what was left of it outside.
    void remove(const Turn<T>& turn, T* row, T* Y) {
        const int64_t j = turn.j, m = turn.m;
        for (int64_t c = 0; c < j; c++) {
            T* p = column(c);
            row[c] = p[j];
            int64_t r = j;
            for (; r % W<T> && r < m; r++) p[r] = p[r + 1];
            for (; r < m; r += W<T>) store(p + r, load_anywhere<Vec<T>>(p + r + 1));
            p[this->rows - 1] = 0;
        }
        for (int64_t r = j / W<T> * W<T>; r < j; r++) turn.n[r] = turn.f[r] = 0, turn.e[r] = 1;
        for (int64_t r = m; r % W<T>; r++) turn.n[r] = turn.f[r] = turn.e[r] = 0;
        turn.n[j] = side[j], turn.e[j] = turn.f[j] = 0;
        std::memset(Y, 0, this->rows * sizeof(T));
        for (int64_t r = j + 1; r < m; r++) Y[r] = side[j] * column(j)[r];
        Length nu{square(side[j]), double(side[j]), 1.0 / double(side[j])};
        int64_t i = j + 1;
        for (; i % 4 && i < m; i++) turn_columns<1>(turn, i, Y, nu);
        for (; i + 4 <= m; i += 4) turn_columns<4>(turn, i, Y, nu);
        for (; i < m; i++) turn_columns<1>(turn, i, Y, nu);
        side[m - 1] = 0;
        for (int64_t c = 0; c < m - 1; c++) row[c] = T(nu.value) * (c < j ? row[c] : turn.f[c + 1]);
    }

  private:
    struct Length { double square, value, inverse; };  // of n so far
    // G columns from i on: to <- e x + f Y, and Y <- Y + n x, first in their own rows, then below
    template <int G> INLINE void turn_columns(const Turn<T>& turn, int64_t i, T* Y, Length& nu) {
        T *n = turn.n + i, *e = turn.e + i, *f = turn.f + i, x[G][G], y[G][G];
        double squares[G + 1] = {nu.square}, lengths[G + 1] = {nu.value}, inverses[G + 1] = {nu.inverse};
        const T* from[G];
        T* to[G];
        EACH(g, G) from[g] = column(i + g), to[g] = column(i + g - 1) - 1;
        EACH(g, G) {
            n[g] = -Y[i + g] * side[i + g], squares[g + 1] = squares[g] + square(n[g]);
            EACH(h, G) if (h > g) x[g][h] = from[g][i + h], y[g][h] = Y[i + h], Y[i + h] = fma1(n[g], x[g][h], Y[i + h]);
        }
        EACH(g, G) lengths[g + 1] = std::sqrt(squares[g + 1]), inverses[g + 1] = 1.0 / lengths[g + 1];
        nu = {squares[G], lengths[G], inverses[G]};
        EACH(g, G) {
            e[g] = T(lengths[g] * inverses[g + 1]), f[g] = T(-n[g] * (inverses[g] * inverses[g + 1]));
            const T own = T(from[g][i + g] * (lengths[g + 1] * inverses[g]));
            to[g][i + g] = own, side[i + g - 1] = 1 / own;
            EACH(h, G) if (h > g) to[g][i + h] = fma1(f[g], y[g][h], e[g] * x[g][h]);
        }
        int64_t r = i + G;
        for (; r % W<T> && r < turn.m; r++) EACH(g, G) {
            const T own = from[g][r];
            to[g][r] = fma1(f[g], Y[r], e[g] * own), Y[r] = fma1(n[g], own, Y[r]);
        }
        Vec<T> nc[G], ec[G], fc[G];
        EACH(g, G) nc[g] = splat<T>(n[g]), ec[g] = splat<T>(e[g]), fc[g] = splat<T>(f[g]);
        for (; r < turn.m; r += W<T>) {
            Vec<T> below = load(Y + r);
            EACH(g, G) {
                const Vec<T> own = load(from[g] + r);
                store_anywhere(to[g] + r, fma(fc[g], below, ec[g] * own)), below = fma(nc[g], own, below);
            }
            store(Y + r, below);
        }
        EACH(g, G) to[g][turn.m] = 0;
    }
    // The triangle of four rows on the diagonal. Rows are scaled first, so that a step waits for one multiplication only.
    struct Corner {
        typedef T Four __attribute__((vector_size(4 * sizeof(T))));  // stored at once: whoever waits for it reads it so
        T inv[4], low[4][4];
        INLINE Corner(const T* p, int64_t n, const T* inverse) {
            EACH(r, 4) inv[r] = inverse[r];
            EACH(r, 4) EACH(c, 4) if (c < r) low[r][c] = p[c * n + r];
        }
        INLINE void forward(T* x) const {
            Four y;
            EACH(r, 4) y[r] = x[r] * inv[r];
            EACH(c, 4) EACH(r, 4) if (c < r) y[r] = fma1(-(low[r][c] * inv[r]), T(y[c]), T(y[r]));
            store_anywhere(x, y);
        }
        INLINE void backward(T* x, const Vec<T> (&sums)[4]) const {
            Four y;
            add_sums<T>(x, sums[0], sums[1], sums[2], sums[3]);
            EACH(r, 4) y[r] = x[r] * inv[r];
            EACH(e, 4) EACH(c, 4) if (c < 3 - e) y[c] = fma1(-(low[3 - e][c] * inv[c]), T(y[3 - e]), T(y[c]));
            store_anywhere(x, y);
        }
    };
};

// S. An update S <- S + c u u' waits, with u beside it, for the next pass, which applies it on the way.
template <class T> struct Symmetric : Triangle<T> {
    using Triangle<T>::column, Triangle<T>::length, Triangle<T>::side;
    T c = 0;
    bool pending = false;

    void add_outer(T factor, const T* x, int64_t m) {  // S <- S + factor x x', next time
        for (int64_t i = 0; i < m; i += W<T>) store(side + i, keep<T>(load(x + i), first_lanes<T>(int(m - i))));
        c = factor, pending = true;
    }
    // S <- factor S + more I, with nothing pending
    void shrink(T factor, T more, int64_t m) {
        for (int64_t i = 0; i < this->rows * (this->rows + this->PAD) / 2; i++) this->s[i] *= factor;
        for (int64_t i = 0; i < m; i++) column(i)[i] += more;
    }

    // out = S x, after what was pending
    void multiply(int64_t m, const T* x, T* out) {
        if (pending) pass<true>(m, x, out);
        else pass<false>(m, x, out);
        if (pending) pending = false;  // several threads may come here with nothing
    }

    // E' S E, in tiles of W rows and columns. Columns are combined as those of L, to T = S E, with Y = sum of n_k S_k over
    // the columns so far; then the rows of T are, with `sums` of n_k T_k over the rows so far.
    void turn(const Turn<T>& turn, T* Y) {
        const int64_t first = turn.j / W<T> * W<T>;
        T q = 0;
        std::memset(Y, 0, this->rows * sizeof(T));
        for (int64_t i = 0; i < first; i += W<T>) turn_columns<false>(turn, i, Y, q);
        for (int64_t i = first; i < turn.m; i += W<T>) turn_columns<true>(turn, i, Y, q);
        column(turn.m - 1)[turn.m - 1] = 0;
        if (pending) turn.vector(side);
    }

  private:
    // Above the diagonal, symmetry tells `sums`: over the k before c, n_k T_kc add up to e_c Y_c + f_c q, with q the sum of
    // n_k S_kl n_l over k before the group, and l before c.
    template <bool After> INLINE void turn_columns(const Turn<T>& turn, int64_t i, T* Y, T& q) {
        constexpr int G = W<T>;
        const int64_t j = turn.j, first = After ? i : j / G * G;
        const T *n = turn.n, *e = turn.e, *f = turn.f;
        T *x[G], *to[G];
        Vec<T> sums{}, nc[G], ec[G], fc[G], out[G], held[G];
        EACH(g, G) x[g] = column(i) + g * length(i), to[g] = i + g <= j ? x[g] : g ? x[g - 1] : column(i - 1);
        if (After) {
            EACH(g, G) nc[g] = splat<T>(n[i + g]), ec[g] = splat<T>(e[i + g]), fc[g] = splat<T>(f[i + g]);
            EACH(g, G) sums[g] = fma1(f[i + g], q, e[i + g] * Y[i + g]), q = fma1(n[i + g], Y[i + g], q);
        }
        const auto tile = [&](int64_t r, bool corner) ALWAYS {  // out[k] becomes row r + k, lanes across the columns
            EACH(g, G) out[g] = load(x[g] + r);
            if (corner) {
                Vec<T> mirrored[G];
                EACH(g, G) mirrored[g] = out[g];
                transpose<T>(mirrored);
                EACH(g, G) out[g] += keep<T>(mirrored[g], first_lanes<T>(g));
            }
            if (After) {
                Vec<T> y = load(Y + r);
                EACH(g, G) {
                    const Vec<T> own = out[g];
                    out[g] = fma(fc[g], y, ec[g] * own), y = fma(nc[g], own, y);
                }
                store(Y + r, y);
            }
            transpose<T>(out);
            Vec<T> here{}, &running = After ? sums : here;  // where little else is to be done, `sums` is waited for only once
            EACH(k, G) {
                const Vec<T> own = out[k], before = After ? sums : sums + here;
                out[k] = fma(splat<T>(f[r + k]), before, own * splat<T>(e[r + k])), running = fma(splat<T>(n[r + k]), own, running);
            }
            if (!After) sums += here;
        };
        const auto write = [&](int64_t r, Vec<T> last) ALWAYS {
            held[G - 1] = last;
            transpose<T>(held);
            EACH(g, G) store(to[g] + r, held[g]);
        };
        tile(first, After);
        if (After) {
            EACH(g, G) q = fma1(n[i + g], Y[i + g], q), out[g] = keep<T>(out[g], first_lanes<T>(g + 1));
            if (i > j) to[0][i - 1] = out[0][0];
        }
        EACH(k, G - 1) held[k] = first + k < j ? out[k] : out[k + 1];  // row j is gone: those below it move up by one
        int64_t r = first + G;
        for (; r < turn.m; r += G) {
            tile(r, false);
            write(r - G, out[0]);
            EACH(k, G - 1) held[k] = out[k + 1];
        }
        write(r - G, Vec<T>{});
    }

    template <bool Update> __attribute__((noinline)) void pass(int64_t m, const T* x, T* out) {
        std::memset(out, 0, this->rows * sizeof(T));
        for (int64_t i = 0; i < m; i += 4) {
            this->ahead(i);
            T* p = column(i);
            const int64_t n = length(i);
            Vec<T> xc[4], uc[4], acc[4] = {};
            EACH(k, 4) xc[k] = splat<T>(x[i + k]), uc[k] = splat<T>(c * side[i + k]);
            const auto tile = [&](int64_t r, bool diagonal) ALWAYS {
                const Vec<T> xr = load(x + r), ur = load(side + r);
                Vec<T> row = load(out + r);
                EACH(k, 4) {
                    Vec<T> t = load(p + k * n + r), below = t;
                    if constexpr (Update) {
                        t = fma(uc[k], ur, t);
                        if (diagonal) t = keep<T>(t, ~first_lanes<T>(int(i + k - r)));
                        store(p + k * n + r, t), below = t;
                    }
                    if (diagonal) below = keep<T>(t, ~first_lanes<T>(int(i + k + 1 - r)));
                    acc[k] = fma(t, xr, acc[k]), row = fma(below, xc[k], row);
                }
                store(out + r, row);
            };
            int64_t r = i / W<T> * W<T>;
            for (; r < i + 4; r += W<T>) tile(r, true);
            for (; r < m; r += W<T>) tile(r, false);
            add_sums<T>(out + i, acc[0], acc[1], acc[2], acc[3]);
        }
    }
};

}  // namespace narrow
using narrow::Triangle, narrow::Factor, narrow::Symmetric;
}  // namespace onlinegp::ONLINEGP_ISA
