// The prediction for one input, before the output is known: onlinegp.recipes.state.Prediction, with the scratch vectors
// of the update.
#pragma once
#include "recipe/state.hpp"

namespace onlinegp::ONLINEGP_ISA {

// Scores whose squares are at most this count as the smallest, because of rounding
INLINE double tie_limit(double least, double most) {
    constexpr double TIE = 1e-9;
    const double limit = std::sqrt(least) + TIE * std::sqrt(most);
    return limit * limit;
}

template <class T> struct Prediction final : Scratch {
    Buffer<T> x;                     // (d,), the input
    Buffer<double> mean;             // (p,)
    Buffer<double> e;                // (p,), y - mean after forgetting
    Buffer<T> c;                     // (p,), e / s, scratch
    Buffer<T> k, t, h;               // (m,), the kernel row, L^-1 k, S t
    Buffer<T> q;                     // (m,), L^-T t, if it was requested (`projected`)
    Buffer<T> n, e_turn, f_turn, a;  // (m,), a rotation of the basis; scratch
    Buffer<T> next_x, next_k,
        next_t;  // (d,), the next input, if it is `announced`; (m,), its k and t, if they are `foreseen`
    double kxx = 0, v = 0, s = 0, gamma2 = 0, beta = 0;
    double k2 = 0;           // |k|^2, Beta and Isotropic
    double t2 = 0, th = 0;   // t . t, t . h
    T largest = 0;           // largest |k|, if the dictionary compares centers
    bool projected = false;  // q belongs to t
    bool fresh = false;      // whether this is the prediction for the current x and state
    bool announced = false, foreseen = false;
    int64_t room = 0;

    Prediction(int d, int p) : x(d), mean(p), e(p), c(p), next_x(d) {}
    void reserve(int64_t capacity) {
        if (capacity <= room) return;
        for (Buffer<T>* buffer : {&k, &t, &h, &q, &n, &a, &e_turn, &f_turn, &next_k, &next_t}) buffer->resize(capacity);
        room = capacity;
        fresh = foreseen = false;
    }
    void announce(int d, const double* later) {  // the next input; null if it is not known
        announced = later != nullptr;
        for (int j = 0; announced && j < d; j++) next_x[j] = T(later[j]);
    }
    // The kernel row of the next input, to solve for while L changes; null if it is not announced
    T* foresee(const Kernel<T>& kernel, const State<T>& state) {
        foreseen = announced;
        if (!announced) return nullptr;
        row(kernel, state.tiles, state.size, next_x.data(), state.alpha, next_k.data());
        std::memcpy(next_t.data(), next_k.data(), size_t(room) * sizeof(T));
        return next_t.data();
    }
    // Whether k and t of x were computed ahead. If so, they are used.
    bool recall(int d) {
        for (int j = 0; foreseen && j < d; j++) foreseen = x[j] == next_x[j];
        if (!foreseen) return false;
        k.swap(next_k);
        t.swap(next_t);
        foreseen = false;
        return true;
    }
};

// The change of each weight per unit of error: `factor` g (m,), null for zeros; in addition `own` for the weight of the
// center that x is merged into; `last` for x itself if it is admitted
template <class T> struct Gain {
    const T* g;
    T last;
    double s;
    T factor = 1, own = 0;
};

// y <- y + a x over the tiles of m
template <class T> INLINE void axpy(T a, const T* x, T* y, int64_t m) {
    for (int64_t i = 0; i < m; i += W<T>) store(y + i, fma(splat<T>(a), load(x + i), load(y + i)));
}
template <class T> INLINE void scale(T a, T* y, int64_t m) {
    for (int64_t i = 0; i < m; i += W<T>) store(y + i, load(y + i) * a);
}
template <class T> INLINE void scaled(T a, const T* x, T* y, int64_t m) {
    for (int64_t i = 0; i < m; i += W<T>) store(y + i, load(x + i) * a);
}
template <class T> INLINE void copy(const T* x, T* y, int64_t m) {
    for (int64_t i = 0; i < m; i += W<T>) store(y + i, load(x + i));
}
template <class T> INLINE void clear(T* y, int64_t m) {
    for (int64_t i = 0; i < m; i += W<T>) store(y + i, Vec<T>{});
}
template <class T> INLINE void mix(T a, T* y, T b, const T* x, int64_t m) {  // y <- a y + b x
    for (int64_t i = 0; i < m; i += W<T>) store(y + i, fma(splat<T>(b), load(x + i), load(y + i) * a));
}
INLINE double max(double a, double b) { return a > b ? a : b; }

}  // namespace onlinegp::ONLINEGP_ISA
