// Lower triangles, packed row by row: L, which is solved with, and S, a symmetric matrix.
//
// A row is as long as the last of its block of PAD rows, and zero beyond the diagonal; so are the rows beyond the size in
// use. Four rows are read at a time.
#pragma once
#include "memory.hpp"
#include "turn.hpp"

namespace onlinegp::ONLINEGP_ISA {

template <class T> struct Triangle {
    static constexpr int PAD = W<T> > 4 ? W<T> : 4;

    T* s = nullptr;
    const T* next = nullptr;  // another of the same capacity, which will be needed soon

    static int64_t length(int64_t r) { return (r | (PAD - 1)) + 1; }  // of row r
    static int64_t offset(int64_t r) { return (r + PAD / 2 - length(r) / 2) * length(r); }
    static size_t entries(int capacity) { return size_t(offset((capacity + PAD - 1) / PAD * PAD)); }
    T* row(int64_t r) { return s + offset(r); }
    const T* row(int64_t r) const { return s + offset(r); }

    void append(int m, const T* x, T last) {  // the row [x, last]; x is zero from m on, or null for all zero
        T* p = row(m);
        for (int j = 0; j < length(m); j += W<T>) store(p + j, x && j < m ? load(x + j) : Vec<T>{});
        p[m] = last;
    }
    void clear(int r) { std::memset(row(r), 0, length(r) * sizeof(T)); }
    void ahead(int64_t r) const {  // rows r to r + 3 of the next one
        if (next) fetch(next + offset(r), 4 * length(r));
    }
    void copy(const Triangle& old, int capacity) { std::memcpy(s, old.s, entries(capacity) * sizeof(T)); }
};

// L, with the inverse of its diagonal, which is zero beyond the size in use
template <class T> struct Factor : Triangle<T> {
    using Triangle<T>::row, Triangle<T>::length;
    T* inverse = nullptr;

    void carve(Carver& from, int capacity) {
        this->s = from.take<T>(Triangle<T>::entries(capacity));
        inverse = from.take<T>(capacity);
    }
    void copy(const Factor& old, int capacity) {
        Triangle<T>::copy(old, capacity);
        std::memcpy(inverse, old.inverse, capacity * sizeof(T));
    }
    void append(int m, const T* x, T last) {
        Triangle<T>::append(m, x, last);
        inverse[m] = 1 / last;
    }

    // x <- L^-1 x, of N vectors, which are zero before `first`. The four entries y before i stay numbers on their own: the
    // next four wait for them, and for nothing that goes through memory.
    template <int N> void forward(int m, T* const (&x)[N], int first = 0) const {
        const int64_t start = first / 4 * 4, begin = first / W<T> * W<T>;
        const T* p = row(start);
        T y[N][4];
        for (int64_t i = start, n = length(i); i < m; i += 4, p += 4 * n, n = length(i)) {
            this->ahead(i);
            const int64_t end = i - 4;
            const Corner corner(p + i, n, inverse + i);
            Vec<T> a[N][4] = {}, b[N][4] = {};
            const auto tile = [&](int64_t j, Vec<T> (&sums)[N][4], Int<T> lanes) ALWAYS {
                Vec<T> v[N];
                EACH(k, N) v[k] = keep<T>(load(x[k] + j), lanes);
                EACH(r, 4) {
                    const Vec<T> l = load(p + r * n + j);
                    EACH(k, N) sums[k][r] = fma(l, v[k], sums[k][r]);
                }
            };
            int64_t j = begin;
            if constexpr (N == 1)
                for (; j + 2 * W<T> <= end; j += 2 * W<T>) tile(j, a, ~Int<T>{}), tile(j + W<T>, b, ~Int<T>{});
            for (; j + W<T> <= end; j += W<T>) tile(j, a, ~Int<T>{});
            if (j < end) tile(j, a, first_lanes<T>(int(end - j)));
            EACH(k, N) {
                T sums[4] = {}, rest[4];
                add_sums<T>(sums, a[k][0] + b[k][0], a[k][1] + b[k][1], a[k][2] + b[k][2], a[k][3] + b[k][3]);
                EACH(r, 4) rest[r] = x[k][i + r] - sums[r];
                if (i > start) EACH(c, 4) EACH(r, 4) rest[r] = less(rest[r], p[r * n + end + c], y[k][c]);
                corner.forward(rest, y[k]);
                store4(x[k] + i, Four<T>{y[k][0], y[k][1], y[k][2], y[k][3]});
            }
        }
    }

    // x <- L^-T x, of N vectors
    template <int N> void backward(int m, T* const (&x)[N]) const {
        for (int64_t i = (m - 1) / 4 * 4; i >= 0; i -= 4) {
            const T* p = row(i);
            const int64_t n = length(i);
            const Corner corner(p + i, n, inverse + i);
            Vec<T> c[N][4];
            EACH(k, N) {
                corner.backward(x[k] + i);
                EACH(r, 4) c[k][r] = splat<T>(-x[k][i + r]);
            }
            const auto tile = [&](int64_t j, Int<T> lanes) ALWAYS {
                Vec<T> l[4];
                EACH(r, 4) l[r] = keep<T>(load(p + r * n + j), lanes);
                EACH(k, N) {
                    const Vec<T> low = fma(l[1], c[k][1], fma(l[0], c[k][0], load(x[k] + j)));
                    store(x[k] + j, low + fma(l[3], c[k][3], l[2] * c[k][2]));
                }
            };
            int64_t j = i / W<T> * W<T>;  // from the diagonal on, as the next four rows wait for it
            if (j < i) tile(j, first_lanes<T>(int(i - j)));
            for (j -= W<T>; j >= 0; j -= W<T>) tile(j, ~Int<T>{});
        }
    }

    // L without row j, in the basis that the turn describes
    void turn(const Turn<T>& turn) {
        const int j = turn.j, m = turn.m, first = (j + 4) / 4 * 4;
        for (int r = j + 1; r < first && r < m; r++) {
            const T own = row(r)[r];
            for (int i = 0; i < j; i++) row(r - 1)[i] = row(r)[i];
            turn.one(row(r), row(r - 1), r);
            if (!(row(r - 1)[r - 1] > own)) row(r - 1)[r - 1] = own;  // no turn makes it smaller
            inverse[r - 1] = 1 / row(r - 1)[r - 1];
        }
        for (int r = first; r < m; r += 4) turn_four(turn, r);
        this->clear(m - 1);
        inverse[m - 1] = 0;
    }

  private:
    static INLINE T less(T x, T a, T b) {  // x - a b, rounded once where the machine can
#if defined(__FMA__) || defined(__aarch64__)
        return std::fma(-a, b, x);
#else
        return x - a * b;
#endif
    }
    INLINE void turn_four(const Turn<T>& turn, int64_t r) {  // r and the next three
        const int64_t n = length(r), j = turn.j;
        const T* const from = row(r);
        const Four<T> own{from[r], from[n + r + 1], from[2 * n + r + 2], from[3 * n + r + 3]};
        T* const to[4] = {row(r - 1), row(r), row(r + 1), row(r + 2)};
        typename Turn<T>::Rows rows(turn);
        Four<T> x[4];
        const auto take = [&](int64_t c) ALWAYS { EACH(k, 4) x[k] = load4(from + k * n + c); };
        const auto put = [&](int64_t c) ALWAYS { EACH(k, 4) store4(to[k] + c, x[k]); };
        int64_t c = 0;
        for (; c + 4 <= j; c += 4) take(c), put(c);
        take(c), rows.first(x);
        for (c += 4; c <= r; c += 4) take(c), rows.next(x, c), put(c - 4);
        Four<T> now = rows.diagonal(x[0][3]);
        now = now > own ? now : own;  // no turn makes an entry on the diagonal smaller
        rows.finish(x);
        EACH(k, 3) store4(to[k + 1] + r, x[k + 1]);
        EACH(k, 4) to[k][r + k - 1] = now[k];
        store4_anywhere(inverse + r - 1, Four<T>(now > Four<T>{} ? T(1) / now : Four<T>{}));  // zero beyond the last
    }
    // The triangle of four rows on the diagonal. Rows are scaled first, so that a step waits for one multiplication only.
    struct Corner {
        T inv[4], low[4][4], up[4][4];  // L_rc / L_rr and L_rc / L_cc
        INLINE Corner(const T* p, int64_t n, const T* inverse) {
            EACH(r, 4) inv[r] = inverse[r];
            EACH(r, 4) EACH(c, 4) if (c < r) low[r][c] = p[r * n + c] * inv[r], up[r][c] = p[r * n + c] * inv[c];
        }
        INLINE void forward(const T (&x)[4], T (&y)[4]) const {
            EACH(r, 4) y[r] = x[r] * inv[r];
            EACH(c, 4) EACH(r, 4) if (c < r) y[r] = less(y[r], low[r][c], y[c]);
        }
        INLINE void backward(T* x) const {
            T y[4];
            EACH(r, 4) y[r] = x[r] * inv[r];
            EACH(e, 4) EACH(c, 4) if (c < 3 - e) y[c] = less(y[c], up[3 - e][c], y[3 - e]);
            store4(x, Four<T>{y[0], y[1], y[2], y[3]});
        }
    };
};

// S. An update S <- S + c u u' waits for the next pass, which applies it on the way.
template <class T> struct Symmetric : Triangle<T> {
    using Triangle<T>::row, Triangle<T>::length;
    T *u = nullptr, c = 0;
    bool pending = false;

    void carve(Carver& from, int capacity) {
        this->s = from.take<T>(Triangle<T>::entries(capacity));
        u = from.take<T>(capacity);
    }
    void copy(const Symmetric& old, int capacity) {
        Triangle<T>::copy(old, capacity);
        std::memcpy(u, old.u, capacity * sizeof(T));
    }
    void add_outer(T factor, const T* x, int m) {  // S <- S + factor x x', next time
        for (int i = 0; i < length(m - 1); i += W<T>) store(u + i, keep<T>(load(x + i), first_lanes<T>(m - i)));
        c = factor, pending = true;
    }
    // S <- factor S + more I, with nothing pending
    void shrink(T factor, T more, int m) {
        for (size_t i = 0, n = this->entries(m); i < n; i++) this->s[i] *= factor;
        for (int r = 0; r < m; r++) row(r)[r] += more;
    }

    // out = S x, after what was pending
    void multiply(int m, const T* x, T* out) {
        if (pending) pass<true>(m, x, out);
        else pass<false>(m, x, out);
        if (pending) pending = false;  // several threads may come here with nothing
    }

    // E' S E without its column and row j, after what was pending. With T = S E and Y = sum of n_k T_k over the rows so
    // far, row r becomes e_r T_r + f_r Y; Y starts, on the diagonal, with what symmetry tells of the rows before. Y: (m,)
    void turn(const Turn<T>& turn, T* Y) {
        const int j = turn.j, m = turn.m, first = (j + 4) / 4 * 4;
        for (int i = 0; i < length(m - 1); i += W<T>) store(Y + i, Vec<T>{});
        T q = 0;  // sum of n_k S_kl n_l over the rows so far
        for (int r = 0; r < first && r < m; r++) {
            T* x = row(r);
            if (pending) add_row(x, r);
            if (r == j) start(x, turn, Y, q);
            if (r > j) turn_row(x, turn, r, Y, q);
        }
        for (int r = first; r < m; r += 4) turn_four(turn, r, Y, q);
        this->clear(m - 1);
        pending = false;
    }

  private:
    void add_row(T* x, int r) const {  // what was pending of row r
        const T* const v = u;
        const Vec<T> cu = splat<T>(c * v[r]);
        for (int i = 0; i <= r; i += W<T>) store(x + i, keep<T>(fma(cu, load(v + i), load(x + i)), first_lanes<T>(r + 1 - i)));
    }
    static void start(const T* x, const Turn<T>& turn, T* Y, T& q) {
        const T n = turn.n[turn.j];
        for (int i = 0; i < turn.j; i++) Y[i] = n * x[i];
        q = n * n * x[turn.j];
    }
    void turn_row(const T* x, const Turn<T>& turn, int r, T* Y, T& q) {
        const int j = turn.j;
        const T n = turn.n[r], e = turn.e[r], f = turn.f[r], own = x[r];
        T* to = row(r - 1);
        for (int i = 0; i < j; i++) to[i] = x[i];
        const T sum = turn.one(x, to, r);  // of n_k S_rk, k < r
        Y[r - 1] = e * sum + f * q;
        for (int i = 0; i < r; i++) {
            const T t = to[i];
            to[i] = e * t + f * Y[i], Y[i] += n * t;
        }
        q += n * (2 * sum + n * own);
    }
    INLINE void turn_four(const Turn<T>& turn, int64_t r, T* Y, T& q) {  // r and the next three
        const T *const from = row(r), *const v = u;
        const int64_t size = length(r), j = turn.j;
        T* const to[4] = {row(r - 1), row(r), row(r + 1), row(r + 2)};
        T n[4], e[4], f[4];
        EACH(k, 4) n[k] = turn.n[r + k], e[k] = turn.e[r + k], f[k] = turn.f[r + k];
        typename Turn<T>::Rows rows(turn);
        Four<T> x[4], cu[4];
        EACH(k, 4) cu[k] = splat4(pending ? c * v[r + k] : T(0));
        const auto take = [&](int64_t i) ALWAYS {
            const Four<T> ui = load4(v + i);
            EACH(k, 4) x[k] = fma4<T>(cu[k], ui, load4(from + k * size + i));
        };
        const auto combine = [&](int64_t i) ALWAYS {
            Four<T> y = load4(Y + i);
            EACH(k, 4) {
                store4(to[k] + i, fma4<T>(y, splat4(f[k]), x[k] * splat4(e[k])));
                y = fma4<T>(x[k], splat4(n[k]), y);
            }
            store4(Y + i, y);
        };
        int64_t i = 0;
        for (; i + 4 <= j; i += 4) take(i), combine(i);
        take(i), rows.first(x);
        for (i += 4; i < r; i += 4) take(i), rows.next(x, i), combine(i - 4);
        // Across the diagonal: before[k] is the sum of n_i S_ki over i < k
        take(r);
        T before[4];
        Four<T> own[4];
        EACH(k, 4) {
            own[k] = x[k], before[k] = rows.sum[k];
            EACH(l, 4) if (l < k) before[k] += n[l] * x[k][l];
        }
        Y[r - 1] = e[0] * before[0] + f[0] * q;
        rows.next(x, r), combine(r - 4);
        rows.finish(x);
        EACH(k, 4) {
            T* const out = to[k] + r;
            if (k > 0) Y[r + k - 1] = e[k] * before[k] + f[k] * q;
            EACH(l, 4) if (l < k) out[l] = e[k] * x[k][l] + f[k] * Y[r + l], Y[r + l] += n[k] * x[k][l];
            q += n[k] * (2 * before[k] + n[k] * own[k][k]);
        }
    }

    template <bool Update> __attribute__((noinline)) void pass(int m, const T* x, T* out) {
        std::memset(out, 0, length(m - 1) * sizeof(T) * (m > 0));
        const T *const from = u, factor = c;
        T* p = this->s;
        for (int64_t i = 0, n = length(i); i < m; i += 4, p += 4 * n, n = length(i)) {
            this->ahead(i);
            Vec<T> xr[4], ur[4], acc[4] = {};
            EACH(r, 4) xr[r] = splat<T>(x[i + r]), ur[r] = splat<T>(factor * from[i + r]);
            int64_t j = 0;
            for (; j + W<T> <= i; j += W<T>) {
                const Vec<T> xj = load(x + j), uj = load(from + j);
                Vec<T> column = load(out + j);
                EACH(r, 4) {
                    Vec<T> t = load(p + r * n + j);
                    if constexpr (Update) t = fma(ur[r], uj, t), store(p + r * n + j, t);
                    acc[r] = fma(t, xj, acc[r]), column = fma(t, xr[r], column);
                }
                store(out + j, column);
            }
            for (; j < i + 4; j += W<T>) {  // across the diagonal
                const Vec<T> xj = load(x + j), uj = load(from + j);
                Vec<T> column = load(out + j);
                EACH(r, 4) {
                    Vec<T> t = load(p + r * n + j);
                    if constexpr (Update) {
                        t = keep<T>(fma(ur[r], uj, t), first_lanes<T>(int(i + r + 1 - j)));
                        store(p + r * n + j, t);
                    }
                    acc[r] = fma(t, xj, acc[r]);
                    column = fma(keep<T>(t, first_lanes<T>(int(i + r - j))), xr[r], column);
                }
                store(out + j, column);
            }
            add_sums<T>(out + i, acc[0], acc[1], acc[2], acc[3]);
        }
    }
};

}  // namespace onlinegp::ONLINEGP_ISA
