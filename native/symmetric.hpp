// Symmetric matrices, packed: the lower triangle in row blocks of four, each a run of tiles of 4 x W.
//
// A tile that crosses the diagonal holds its upper part too, mirrored bit for bit. Entries beyond the size in use are
// zero. An update of the matrix waits until the next product, which applies it on the way: one pass over the memory for
// both. Waiting changes no bit: every entry sees the same operations in the same order.
#pragma once
#include "memory.hpp"
#include "simd.hpp"

namespace onlinegp::ONLINEGP_ISA {

// What waits to be added to S:
//   Rank1      c u u'
//   Replace1   c u u' - g z z'
//   Replace2   c u u' - z b' - b z'
enum class Pending { Nothing, Rank1, Replace1, Replace2 };

template <class T> struct Symmetric {
    static constexpr int R = 4, L = W<T>, TILE = R * L;

    T* s = nullptr;
    T *u = nullptr, *z = nullptr, *b = nullptr;  // b only where Replace2 can be pending
    Pending pending = Pending::Nothing;
    T c = 0, g = 0;
    const T* next = nullptr;  // a matrix of the same layout that will be needed soon

    // Layout

    static constexpr int tiles(int block) { return (R * block + R - 1) / L + 1; }
    static size_t offset(int block) {  // TILE * sum of tiles(r) over r < block
        if constexpr (L < R) return size_t(TILE) * (R / L) * block * (block + 1) / 2;
        constexpr int same = L < R ? 1 : L / R;  // consecutive blocks with equally many tiles
        const size_t full = block / same, rest = block % same;
        return TILE * (same * (full * (full + 1) / 2) + rest * (full + 1));
    }
    static size_t entries(int capacity) { return offset((capacity + R - 1) / R); }
    void carve(Carver& from, int capacity, bool follows = false) {
        s = from.take<T>(entries(capacity));
        u = from.take<T>(capacity), z = from.take<T>(capacity);
        b = follows ? from.take<T>(capacity) : nullptr;
    }
    void copy(const Symmetric& old, int capacity) {
        std::memcpy(s, old.s, entries(capacity) * sizeof(T));
        std::memcpy(u, old.u, capacity * sizeof(T));
        std::memcpy(z, old.z, capacity * sizeof(T));
        if (b) std::memcpy(b, old.b, capacity * sizeof(T));
    }

    // Rows (which are columns)

    static int first_block(int j) { return j / L * L / R; }  // of those that hold column j
    static int padded(int m) { return (m + (L > R ? L : R) - 1) / (L > R ? L : R) * (L > R ? L : R); }
    void get_row(int j, int m, T* row) const {  // up to a full tile
        const T* p = s + offset(j / R) + j % R * L;
        for (int t = 0; t < tiles(j / R); t++) store(row + t * L, load(p + t * TILE));
        for (int block = tiles(j / R) * L / R; block * R < padded(m); block++) {
            p = s + offset(block) + size_t(j / L) * TILE + j % L;
            for (int r = 0; r < R; r++) row[block * R + r] = p[r * L];
        }
    }
    void set_row(int j, int m, const T* row) {  // row is zero from m on
        T* p = s + offset(j / R) + j % R * L;
        for (int t = 0; t < tiles(j / R); t++) store(p + t * TILE, load(row + t * L));
        for (int block = first_block(j); block * R < m; block++) {
            p = s + offset(block) + size_t(j / L) * TILE + j % L;
            for (int r = 0; r < R; r++) p[r * L] = row[block * R + r];
        }
    }
    void scale(T factor, int m) {
        for (size_t i = 0, n = entries(m); i < n; i++) s[i] *= factor;
    }
    void combine(T mine, T its, const Symmetric& other, int m) {  // S <- mine S + its other
        for (size_t i = 0, n = entries(m); i < n; i++) s[i] = mine * s[i] + its * other.s[i];
    }

    // Products

    // out = S x and diagonal = diag S after what was pending; out and diagonal may be null
    void multiply(int m, const T* x, T* out, T* diagonal = nullptr) {
        switch (pending) {
            case Pending::Nothing: pass<Pending::Nothing>(m, x, out, diagonal); break;
            case Pending::Rank1: pass<Pending::Rank1>(m, x, out, diagonal); break;
            case Pending::Replace1: pass<Pending::Replace1>(m, x, out, diagonal); break;
            case Pending::Replace2: pass<Pending::Replace2>(m, x, out, diagonal); break;
        }
        if (pending != Pending::Nothing) pending = Pending::Nothing;  // several threads may come here with nothing
    }
    void product(int m, const T* x, T* out) const {  // nothing may be pending
        const_cast<Symmetric*>(this)->template pass<Pending::Nothing>(m, x, out, nullptr);
    }

  private:
    // What a pass reads besides S
    struct Sources {
        const T *x, *u, *z, *b;
        T c, g;
    };
    // The factors of four rows: row r of S changes by  u[r] u' + z[r] z'  or  u[r] u' + z[r] b' + b[r] z'
    struct Rows {
        Vec<T> x[R], acc[R], u[R], z[R], b[R];
    };

    template <Pending P> static INLINE void begin(Rows& rows, const Sources& from, int i) {
        EACH(r, R) {
            rows.x[r] = splat<T>(from.x[i + r]), rows.acc[r] = Vec<T>{};
            if constexpr (P >= Pending::Rank1) rows.u[r] = splat<T>(from.c * from.u[i + r]);
            if constexpr (P == Pending::Replace1) rows.z[r] = splat<T>(-from.g * from.z[i + r]);
            if constexpr (P == Pending::Replace2) rows.z[r] = splat<T>(-from.z[i + r]);
            if constexpr (P == Pending::Replace2) rows.b[r] = splat<T>(-from.b[i + r]);
        }
    }

    // Left of the diagonal a tile serves twice: S_ij x_j for the rows, S_ij x_i for the columns
    template <Pending P> static INLINE void left_tile(T* p, Rows& rows, const Sources& from, int j, T* out) {
        const Vec<T> x = load(from.x + j);
        Vec<T> u, z, b, column = load(out + j);
        if constexpr (P >= Pending::Rank1) u = load(from.u + j);
        if constexpr (P >= Pending::Replace1) z = load(from.z + j);
        if constexpr (P == Pending::Replace2) b = load(from.b + j);
        EACH(r, R) {
            Vec<T> t = load(p + r * L);
            if constexpr (P >= Pending::Rank1) t = fma(rows.u[r], u, t);
            if constexpr (P == Pending::Replace1) t = fma(rows.z[r], z, t);
            if constexpr (P == Pending::Replace2) t = fma(rows.b[r], z, fma(rows.z[r], b, t));
            if constexpr (P >= Pending::Rank1) store(p + r * L, t);
            rows.acc[r] = fma(t, x, rows.acc[r]);
            column = fma(t, rows.x[r], column);
        }
        store(out + j, column);
    }

    // On the diagonal an entry (i, j) above it changes as (j, i) does, factor by factor, to stay its mirror image
    template <Pending P>
    static INLINE void diagonal_tile(T* p, Rows& rows, const Sources& from, int i, int j, T* diagonal) {
        const int ahead = L == R ? 0 : i - j;  // a constant where it can be
        const Vec<T> x = load(from.x + j);
        Vec<T> u, cu, z, gz, b;
        if constexpr (P >= Pending::Rank1) u = load(from.u + j), cu = u * from.c;
        if constexpr (P >= Pending::Replace1) z = load(from.z + j);
        if constexpr (P == Pending::Replace1) gz = z * -from.g;
        if constexpr (P == Pending::Replace2) b = load(from.b + j);
        EACH(r, R) {
            const Int<T> lower = first_lanes<T>(ahead + r + 1);
            Vec<T> t = load(p + r * L);
            if constexpr (P >= Pending::Rank1)
                t = fma(lower ? rows.u[r] : cu, lower ? u : splat<T>(from.u[i + r]), t);
            if constexpr (P == Pending::Replace1)
                t = fma(lower ? rows.z[r] : gz, lower ? z : splat<T>(from.z[i + r]), t);
            if constexpr (P == Pending::Replace2) {
                t = fma(lower ? rows.z[r] : rows.b[r], lower ? b : z, t);
                t = fma(lower ? rows.b[r] : rows.z[r], lower ? z : b, t);
            }
            if constexpr (P >= Pending::Rank1) store(p + r * L, t);
            rows.acc[r] = fma(t, x, rows.acc[r]);
        }
        if (diagonal)
            EACH(r, R)
                if (0 <= ahead + r && ahead + r < L) diagonal[i + r] = p[r * L + ahead + r];
    }

    template <Pending P> __attribute__((noinline)) void pass(int m, const T* x, T* out, T* diagonal) {
        std::memset(out, 0, padded(m) * sizeof(T));
        const Sources from{x, u, z, b, c, g};  // a copy, which the compiler knows that no store changes
        T* p = s;
        Rows rows;
        for (int i = 0; i < m; i += R) {
            if (next) fetch(next + (p - s), tiles(i / R) * TILE);
            begin<P>(rows, from, i);
            int j = 0;
            for (; j + L <= i; j += L, p += TILE) left_tile<P>(p, rows, from, j, out);
            for (; j < i + R; j += L, p += TILE) diagonal_tile<P>(p, rows, from, i, j, diagonal);
            add_sums<T>(out + i, rows.acc[0], rows.acc[1], rows.acc[2], rows.acc[3]);
        }
        if (next) fetch(next + (u - s), ((b ? b : z) - u) + m);
    }
};

}  // namespace onlinegp::ONLINEGP_ISA
