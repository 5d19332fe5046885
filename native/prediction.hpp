// What the model says of one input before it knows the output: onlinegp.recipes.state.Prediction, with room for the step's vectors.
#pragma once
#include "state.hpp"

namespace onlinegp::ONLINEGP_ISA {

template <class T> struct Prediction {
    Buffer<T> x;           // (d,), the input
    Buffer<double> mean;   // (p,)
    Buffer<double> e;      // (p,), y - mean after forgetting
    Buffer<T> c;           // (p,), e / s, scratch
    Buffer<T> k, t, h;     // (m,), the kernel row, L^-1 k, S t
    Buffer<T> q;           // (m,), L^-T t, where it was asked for (`projected`)
    Buffer<T> n, e_turn, f_turn, a;  // (m,), a turn of the basis; scratch
    double kxx = 0, v = 0, s = 0, gamma2 = 0, beta = 0;
    double k2 = 0;           // |k|^2, Beta and Isotropic
    double t2 = 0, th = 0;   // t . t, t . h
    T largest = 0;           // of |k|, where the dictionary compares
    bool projected = false;  // q belongs to t
    bool fresh = false;      // it belongs to x and the state as they are
    int64_t room = 0;

    Prediction(int d, int p) : x(d), mean(p), e(p), c(p) {}
    void reserve(int64_t capacity) {
        if (capacity <= room) return;
        for (Buffer<T>* buffer : {&k, &t, &h, &q, &n, &a, &e_turn, &f_turn}) buffer->resize(capacity);
        room = capacity, fresh = false;
    }
};

// How much of each weight an error corrects: `factor` g (m,), null for all zero; `own` more of the weight that x is
// merged into; `last` for x itself if it is admitted
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
