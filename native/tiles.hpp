// The centres, in tiles of W: [tile][d][W], so that one load brings a coordinate of W of them.
#pragma once
#include "kernels.hpp"

namespace onlinegp::ONLINEGP_ISA {

template <class T> constexpr int tile_count(int64_t m) { return int((m + W<T> - 1) / W<T>); }

template <class T> INLINE void set_centre(T* tiles, int d, int64_t i, const T* x) {
    T* p = tiles + i / W<T> * W<T> * d + i % W<T>;
    for (int j = 0; j < d; j++) p[j * W<T>] = x[j];
}
template <class T> INLINE void get_centre(const T* tiles, int d, int64_t i, T* x) {
    const T* p = tiles + i / W<T> * W<T> * d + i % W<T>;
    for (int j = 0; j < d; j++) x[j] = p[j * W<T>];
}

template <class T> INLINE T dot(const T* x, const T* y, int64_t m) {
    Vec<T> acc[4] = {};
    int t = 0;
    const int n = tile_count<T>(m);
    for (; t + 4 <= n; t += 4)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) acc[i] = fma(load(x + (t + i) * W<T>), load(y + (t + i) * W<T>), acc[i]);
    for (; t < n; t++) acc[0] = fma(load(x + t * W<T>), load(y + t * W<T>), acc[0]);
    return sum<T>((acc[0] + acc[2]) + (acc[1] + acc[3]));
}

template <class T> INLINE T largest_lane(Vec<T> x) {
    T result = x[0];
    for (int i = 1; i < W<T>; i++) result = x[i] > result ? x[i] : result;
    return result;
}

// The largest of |x|
template <class T> INLINE T largest(const T* x, int64_t m) {
    Vec<T> most[4] = {};
    int t = 0;
    const int n = tile_count<T>(m);
    for (; t + 4 <= n; t += 4)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) most[i] = larger(most[i], magnitude<T>(load(x + (t + i) * W<T>)));
    for (; t < n; t++) most[0] = larger(most[0], magnitude<T>(load(x + t * W<T>)));
    return largest_lane<T>(larger(larger(most[0], most[2]), larger(most[1], most[3])));
}

// k = k(C, x), zero from m on; returns k . alpha, summed tile after tile
template <class T>
INLINE T row(const Kernel<T>& kernel, const T* tiles, int64_t m, const T* x, const T* alpha, T* k) {
    const int n = tile_count<T>(m), step = kernel.d * W<T>;
    return visit(kernel, [&](auto shape) {
        Vec<T> acc{}, kt[4];
        int t = 0;
        for (; (t + 4) * W<T> <= m; t += 4) {
            shape.template evaluate<4, false>(tiles + size_t(t) * step, x, kt);
            for (int i = 0; i < 4; i++) {
                store(k + (t + i) * W<T>, kt[i]);
                acc = fma(kt[i], load(alpha + (t + i) * W<T>), acc);
            }
        }
        for (; t < n; t++) {
            shape.template evaluate<1, false>(tiles + size_t(t) * step, x, kt);
            kt[0] = keep<T>(kt[0], first_lanes<T>(int(m - t * W<T>)));
            store(k + t * W<T>, kt[0]);
            acc = fma(kt[0], load(alpha + t * W<T>), acc);
        }
        return sum<T>(acc);
    });
}

// The place of the smallest value and the value; the first of equals
template <class T> struct Best {
    int64_t slot;
    T value;
};

// Each lane keeps its own best of the tiles it has seen, and the best of the lanes is taken at the end
template <class T> class Smallest {
  public:
    INLINE void add(Vec<T> v) {
        const Int<T> better = v < best_;
        where_ = better ? here_ : where_;
        best_ = better ? v : best_;
        here_ += 1;
    }
    INLINE Best<T> best() const {
        Best<T> result{0, T(INFINITY)};
        for (int i = 0; i < W<T>; i++) {
            const int64_t slot = int64_t(where_[i]) * W<T> + i;
            if (best_[i] < result.value || (best_[i] == result.value && slot < result.slot)) result = {slot, best_[i]};
        }
        return result;
    }

  private:
    Vec<T> best_ = Vec<T>{} + T(INFINITY);
    Int<T> where_{}, here_{};
};

template <class T> INLINE Vec<T> infinite_beyond(Vec<T> v, int64_t lanes) {
    return lanes >= W<T> ? v : (first_lanes<T>(int(lanes)) ? v : Vec<T>{} + T(INFINITY));
}

// The smallest of m values; value(t) gives those of tile t
template <class T, class Value> INLINE Best<T> smallest(int64_t m, const Value& value) {
    Smallest<T> all;
    for (int t = 0; t * W<T> < m; t++) all.add(infinite_beyond<T>(value(t), m - t * W<T>));
    return all.best();
}

// The squared Euclidean distances of N tiles to x, each rounding as NumPy does it
template <int N, class T> INLINE void euclidean(const T* tiles, int d, const T* x, Vec<T>* r2) {
    for (int n = 0; n < N; n++) r2[n] = Vec<T>{};
    for (int j = 0; j < d; j++) {
#pragma GCC unroll 4
        for (int n = 0; n < N; n++) {
            const Vec<T> e = load(tiles + (n * d + j) * W<T>) - x[j];
            r2[n] += e * e;
        }
    }
}

// The nearest centre and its squared Euclidean distance
template <class T> INLINE Best<T> nearest(const T* tiles, int d, int64_t m, const T* x) {
    Smallest<T> all;
    Vec<T> r2[4];
    int t = 0;
    for (; (t + 4) * W<T> <= m; t += 4) {
        euclidean<4>(tiles + size_t(t) * d * W<T>, d, x, r2);
        for (int n = 0; n < 4; n++) all.add(r2[n]);
    }
    for (; t * W<T> < m; t++) {
        euclidean<1>(tiles + size_t(t) * d * W<T>, d, x, r2);
        all.add(infinite_beyond<T>(r2[0], m - t * W<T>));
    }
    return all.best();
}

// The same where the kernel row k and its largest entry are at hand. Where the kernel is a falling function of the
// distance, the nearest centre has the largest k but for rounding: only centres with nearly that much are measured.
template <class T>
INLINE Best<T> nearest(const Kernel<T>& kernel, const T* tiles, int64_t m, const T* x, const T* k, double most) {
    constexpr double CLOSE = sizeof(T) == 8 ? 1e-6 : 1e-2, LEAST = sizeof(T) == 8 ? 1e-100 : 1e-4;
    constexpr int WIDEST = 1000;  // the rounding errors of log k, at most 4 d eps |log LEAST|, stay below CLOSE
    if (!kernel.isotropic() || kernel.d > WIDEST || !(most >= LEAST)) return nearest(tiles, kernel.d, m, x);
    const Vec<T> close = splat<T>(T(most * (1.0 - CLOSE)));
    Best<T> best{0, T(INFINITY)};
    for (int t = 0; t * W<T> < m; t++) {
        if (!any<T>(load(k + t * W<T>) >= close)) continue;
        Vec<T> r2[1];
        euclidean<1>(tiles + size_t(t) * kernel.d * W<T>, kernel.d, x, r2);
        for (int i = 0; i < W<T> && t * W<T> + i < m; i++)
            if (r2[0][i] < best.value) best = {t * W<T> + i, r2[0][i]};
    }
    return best;
}

}  // namespace onlinegp::ONLINEGP_ISA
