// Predict many rows in blocks, with the same results as one by one.
#pragma once
#include "recipe/blocks.hpp"

namespace onlinegp::ONLINEGP_ISA {

// Row by row; nothing may be pending
template <class T>
void predict_rows(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, int64_t n, const double* X,
                  double* mean, double* variance, Stop& stop) {
    Prediction<T> prediction(state.d, state.p);
    prediction.reserve(state.capacity);
    for (int64_t i = 0; i < n && !stop.asked(work(recipe, state.size)); i++) {
        for (int j = 0; j < state.d; j++) prediction.x[j] = T(X[i * state.d + j]);
        predict_one(recipe, kernel, state, prediction);
        for (int o = 0; o < state.p; o++) mean[i * state.p + o] = prediction.mean[o];
        variance[i] = state.power * prediction.s;
    }
}

// Filters with a fixed covariance and one output: four rows share a pass over the centers
template <class T>
void predict_fixed(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state, int64_t n, const double* X,
                   double* mean, double* variance, Stop& stop) {
    Prediction<T> prediction(state.d, 1);
    Buffer<T> x(AHEAD * state.d);
    const int full = int(state.size / W<T>), rest = int(state.size % W<T>);
    for (int64_t i = 0; i + AHEAD <= n && !stop.asked(AHEAD * work(recipe, state.size)); i += AHEAD) {
        for (int j = 0; j < AHEAD * state.d; j++) x[j] = T(X[i * state.d + j]);
        Sum<T> sums[AHEAD], norms[AHEAD];
        visit(kernel, [&](auto shape) {
            Vec<T> k[AHEAD];
            for (int t = 0; t < full + (rest > 0); t++) {
                shape.template evaluate<1, AHEAD>(state.tiles + size_t(t) * state.d * W<T>, x.data(), k);
                const Vec<T> a = load(state.alpha + t * W<T>);
                for (int b = 0; b < AHEAD; b++) {
                    if (t == full) k[b] = keep<T>(k[b], first_lanes<T>(rest));
                    sums[b].add(t % 4, k[b], a);
                    norms[b].add(t % 4, k[b], k[b]);
                }
            }
            return 0;
        });
        for (int b = 0; b < AHEAD; b++) {
            prediction.kxx = diagonal(kernel, x.data() + b * state.d);
            prediction.k2 = double(norms[b].total());
            mean[i + b] = double(sums[b].total());
            conclude(recipe, state, prediction);
            variance[i + b] = state.power * prediction.s;
        }
    }
}

// Tracked beliefs, B rows at a time, lanes across the rows: T = L^-1 K, then the mean T' b and the sums t . t and t . S
// t
template <class T> class Block {
  public:
    static constexpr int B = 2 * W<T>;

    explicit Block(const State<T>& state) : state_(state), m_(int(state.size)), t_(size_t(state.capacity + 4) * B) {}

    T* column(int b) { return t_.data() + b; }  // the kernel row of x_b, with a stride of B
    // K becomes T
    void whiten() {
        each_four(state_.L, [&](int i, Vec<T>(&acc)[4][2]) ALWAYS {
            EACH(r, 4) {
                EACH(h, 2) {
                    Vec<T> x = at(i + r, h) - acc[r][h];
                    EACH(c, 4)
                        if (c < r) x = fma(splat<T>(-state_.L.at(i + r, i + c)), at(i + c, h), x);
                    store(t_.data() + size_t(i + r) * B + h * W<T>, x * state_.L.side[i + r]);
                }
            }
        });
    }
    void norms(T* out) const {  // t . t
        sum(out, [&](int i, int h) ALWAYS { return at(i, h); });
    }
    void means(int o, T* out) const {  // t . b
        sum(out, [&, b = state_.weights(o)](int i, int) ALWAYS { return splat<T>(b[i]); });
    }
    void forms(T* out) {  // t . S t = sum of t_i (S_ii t_i + 2 sum of S_ij t_j over j < i)
        Vec<T> total[2] = {};
        each_four(state_.S, [&](int i, Vec<T>(&acc)[4][2]) ALWAYS {
            EACH(r, 4) {
                EACH(h, 2) {
                    Vec<T> x = acc[r][h];
                    EACH(c, 4)
                        if (c < r) x = fma(splat<T>(state_.S.at(i + r, i + c)), at(i + c, h), x);
                    total[h] =
                        fma(at(i + r, h), fma(splat<T>(state_.S.at(i + r, i + r)), at(i + r, h), x + x), total[h]);
                }
            }
        });
        store(out, total[0]);
        store(out + W<T>, total[1]);
    }

  private:
    INLINE Vec<T> at(int i, int h) const { return load(t_.data() + size_t(i) * B + h * W<T>); }
    // For four rows from i on: their products with the rows of T before i, then `finish`
    template <class Matrix, class Finish> INLINE void each_four(const Matrix& matrix, const Finish& finish) {
        for (int i = 0; i < m_; i += 4) {
            Vec<T> acc[4][2] = {};
            for (int j = 0; j < i; j++) {
                const Vec<T> t0 = at(j, 0), t1 = at(j, 1);
                EACH(r, 4) {
                    const Vec<T> l = splat<T>(matrix.at(i + r, j));
                    acc[r][0] = fma(l, t0, acc[r][0]);
                    acc[r][1] = fma(l, t1, acc[r][1]);
                }
            }
            finish(i, acc);
        }
    }
    template <class Other> INLINE void sum(T* out, const Other& other) const {
        Vec<T> total[2] = {};
        for (int i = 0; i < m_; i++)
            EACH(h, 2) total[h] = fma(at(i, h), other(i, h), total[h]);
        store(out, total[0]);
        store(out + W<T>, total[1]);
    }

    const State<T>& state_;
    const int m_;
    Buffer<T> t_;
};

template <class T>
void predict_tracked(const Recipe& recipe, const Kernel<T>& kernel, const State<T>& state, int64_t n, const double* X,
                     double* mean, double* variance, Stop& stop) {
    constexpr int B = Block<T>::B;
    const int d = state.d, p = state.p;
    Block<T> block(state);
    Prediction<T> prediction(d, p);
    Buffer<T> x(d), k(state.capacity), means(B), t2(B), tSt(B);
    for (int64_t i = 0; i < n && !stop.asked(B * work(recipe, state.size)); i += B) {
        const int rows = int(n - i < B ? n - i : B);
        double kxx[B];
        for (int b = 0; b < rows; b++) {
            for (int j = 0; j < d; j++) x[j] = T(X[(i + b) * d + j]);
            row(kernel, state.tiles, state.size, x.data(), state.alpha, k.data());
            kxx[b] = diagonal(kernel, x.data());
            for (int64_t j = 0; j < state.size; j++) block.column(b)[size_t(j) * B] = k[j];
        }
        block.whiten();
        block.norms(t2.data());
        if (state.S.s) block.forms(tSt.data());
        for (int b = 0; b < rows; b++) {
            prediction.kxx = kxx[b];
            prediction.t2 = double(t2[b]);
            prediction.th = state.scale * double(tSt[b]) + (1.0 - state.scale) * prediction.t2;
            conclude(recipe, state, prediction);
            variance[i + b] = state.power * prediction.s;
        }
        for (int o = 0; o < p; o++) {
            block.means(o, means.data());
            for (int b = 0; b < rows; b++) mean[(i + b) * p + o] = double(means[b]);
        }
    }
}

template <class T>
void predict(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, int64_t n, const double* X, double* mean,
             double* variance, Stop& stop) {
    int64_t done = 0;
    if (recipe.tracked()) {
        if (n >= Block<T>::B) predict_tracked(recipe, kernel, state, done = n, X, mean, variance, stop);
    } else if (!state.rowsum && state.p == 1) {
        done = n / AHEAD * AHEAD;
        predict_fixed(recipe, kernel, state, done, X, mean, variance, stop);
    }
    predict_rows(recipe, kernel, state, n - done, X + done * state.d, mean + done * state.p, variance + done, stop);
}

}  // namespace onlinegp::ONLINEGP_ISA
