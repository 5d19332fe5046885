// The centers, in tiles of W: [tile][d][W], so that one load reads a coordinate of W centers.
#pragma once
#include "linear_algebra/kernels.hpp"

namespace onlinegp::ONLINEGP_ISA {

template <class T> constexpr int tile_count(int64_t m) { return int((m + W<T> - 1) / W<T>); }

template <class T> INLINE void set_center(T* tiles, int d, int64_t i, const T* x) {
    T* p = tiles + i / W<T> * W<T> * d + i % W<T>;
    for (int j = 0; j < d; j++) p[j * W<T>] = x[j];
}
template <class T> INLINE void get_center(const T* tiles, int d, int64_t i, T* x) {
    const T* p = tiles + i / W<T> * W<T> * d + i % W<T>;
    for (int j = 0; j < d; j++) x[j] = p[j * W<T>];
}

// Remove center j of m: later centers move up by one, and the last slot becomes zero
template <class T> INLINE void remove_center(T* tiles, int d, int64_t j, int64_t m) {
    const int64_t step = int64_t(d) * W<T>, last = (m - 1) / W<T>;
    Int<T> moved = ~first_lanes<T>(int(j % W<T>));
    for (int64_t t = j / W<T>; t <= last; t++, moved = ~Int<T>{}) {
        T* p = tiles + t * step;
        for (int f = 0; f < d; f++, p += W<T>) {
            Vec<T> up{};
            EACH(i, W<T> - 1) up[i] = p[i + 1];
            up[W<T> - 1] = t < last ? p[step] : T(0);
            store(p, moved ? up : load(p));
        }
    }
}

// A sum of products over tiles in four parts. Tile t belongs to part t mod 4 in all code paths, for the same bits.
template <class T> struct Sum {
    Vec<T> part[4] = {};
    INLINE void add(int i, Vec<T> a, Vec<T> b) { part[i] = fma(a, b, part[i]); }
    INLINE T total() const { return sum<T>((part[0] + part[2]) + (part[1] + part[3])); }
};

// Call body(t, t mod 4) for each tile t of n; t mod 4 is a compile-time constant
template <class Body> INLINE void each_tile(int n, const Body& body) {
    int t = 0;
    for (; t + 4 <= n; t += 4)
        EACH(i, 4) body(t + i, i);
    EACH(i, 3)
        if (t + i < n) body(t + i, i);
}

template <class T> INLINE T dot(const T* x, const T* y, int64_t m) {
    Sum<T> xy;
    each_tile(tile_count<T>(m), [&](int t, int i) ALWAYS { xy.add(i, load(x + t * W<T>), load(y + t * W<T>)); });
    return xy.total();
}

// The largest of |x|
template <class T> INLINE T largest(const T* x, int64_t m) {
    Vec<T> most[4] = {};
    each_tile(tile_count<T>(m),
              [&](int t, int i) ALWAYS { most[i] = larger(most[i], magnitude<T>(load(x + t * W<T>))); });
    return largest_lane<T>(larger(larger(most[0], most[2]), larger(most[1], most[3])));
}

// k = k(C, x), zero from m on; returns k . alpha
template <class T> INLINE T row(const Kernel<T>& kernel, const T* tiles, int64_t m, const T* x, const T* alpha, T* k) {
    return visit(kernel, [&, n = tile_count<T>(m), step = size_t(kernel.d) * W<T>](auto shape) {
        Sum<T> mean;
        Vec<T> kt[4];
        int t = 0;
        for (; t + 4 <= n; t += 4) {
            shape.template evaluate<4, 1>(tiles + t * step, x, kt);
            kt[3] = keep<T>(kt[3], first_lanes<T>(int(m - (t + 3) * W<T>)));
            EACH(i, 4) {
                store(k + (t + i) * W<T>, kt[i]);
                mean.add(i, kt[i], load(alpha + (t + i) * W<T>));
            }
        }
        for (int u = t; u < n; u++) {
            shape.template evaluate<1, 1>(tiles + u * step, x, kt);
            store(k + u * W<T>, keep<T>(kt[0], first_lanes<T>(int(m - u * W<T>))));
        }
        EACH(i, 3)
            if (t + i < n) mean.add(i, load(k + (t + i) * W<T>), load(alpha + (t + i) * W<T>));
        return mean.total();
    });
}

// The index of the smallest value, and the value. Ties go to the first.
template <class T> struct Best {
    int64_t slot;
    T value;
};

// Each lane keeps its smallest value over the tiles; at the end the smallest of all lanes is taken
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

// The smallest of m values; value(t) returns the values of tile t
template <class T, class Value> INLINE Best<T> smallest(int64_t m, const Value& value) {
    Smallest<T> all;
    for (int t = 0; t * W<T> < m; t++) all.add(infinite_beyond<T>(value(t), m - t * W<T>));
    return all.best();
}

// The squared Euclidean distances of N tiles to x, rounded as in NumPy
template <int N, class T> INLINE void euclidean(const T* tiles, int d, const T* x, Vec<T>* r2) {
    for (int n = 0; n < N; n++) r2[n] = Vec<T>{};
    for (int j = 0; j < d; j++) {
        EACH(n, N) {
            const Vec<T> e = load(tiles + (n * d + j) * W<T>) - x[j];
            r2[n] += e * e;
        }
    }
}

// The nearest center and its squared Euclidean distance
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

// The nearest center, found from the kernel row k and its largest entry; -1 if they do not determine it.
//
// If the kernel decreases with the distance, the nearest center has the largest k, up to rounding. No other center may
// have a k that is nearly as large.
template <class T> INLINE int64_t nearest_by_kernel(const Kernel<T>& kernel, int64_t m, const T* k, T most) {
    if (!kernel.tells_distance() || !(most >= T(Kernel<T>::LEAST))) return -1;
    const Vec<T> close = splat<T>(most * T(1.0 - Kernel<T>::CLOSE));
    Int<T> here = lanes<T>(), count{}, where{};
    for (int t = 0; t * W<T> < m; t++, here += W<T>) {
        const Int<T> hit = load(k + t * W<T>) >= close;
        count -= hit;
        where |= hit & here;
    }
    int64_t total = 0, slot = 0;
    EACH(i, W<T>) {
        total += count[i];
        slot += where[i];
    }
    return total == 1 ? slot : -1;
}

}  // namespace onlinegp::ONLINEGP_ISA
