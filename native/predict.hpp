// Prediction of many rows: what a prediction of each of them says, in blocks.
#pragma once
#include "blocks.hpp"

namespace onlinegp::ONLINEGP_ISA {

// One row after the other; nothing may be pending
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
                    sums[b].add(t % 4, k[b], a), norms[b].add(t % 4, k[b], k[b]);
                }
            }
            return 0;
        });
        for (int b = 0; b < AHEAD; b++) {
            const double kxx = diagonal(kernel, x.data() + b * state.d), k2 = double(norms[b].total());
            mean[i + b] = double(sums[b].total());
            double s = max(1.0 / recipe.step, kxx);
            if (recipe.belief == Belief::Beta) s = max(kxx + recipe.beta * k2, 0.0) + recipe.noise;
            if (recipe.belief == Belief::Isotropic)
                s = max((recipe.epsilon + k2 + square(kxx)) / recipe.step, kxx + k2);
            variance[i + b] = state.power * s;
        }
    }
}

// Quadratic forms k_b . S k_b of B rows, lanes across the rows: K (m, B), S unpacked row by row
template <class T> class QuadraticForms {
  public:
    static constexpr int B = 2 * W<T>;  // rows at a time

    void unpack(const Symmetric<T>& S, int m) {
        m_ = m, wide_ = (m + 3) / 4 * 4;
        full_.resize(size_t(wide_) * wide_);
        Buffer<T> row(Symmetric<T>::padded(m));
        for (int i = 0; i < m; i++) {
            S.get_row(i, m, row.data());
            for (int j = 0; j <= i; j++) full_[at(i, j)] = j == i ? row[j] : 2 * row[j];
        }
    }
    // out (B,) = sum_i k_i (S_ii k_i + 2 sum_{j<i} S_ij k_j)
    void evaluate(const T* K, T* out) const {
        Vec<T> total[2] = {};
        for (int i = 0; i < m_; i += 4) {
            Vec<T> acc[4][2] = {};
            for (int j = 0; j < i + 4 && j < m_; j++) {
                const Vec<T> k0 = load(K + j * B), k1 = load(K + j * B + W<T>);
                const T* s = full_.data() + at(i, j);
                EACH(r, 4) {
                    const Vec<T> sv = splat<T>(s[r]);
                    acc[r][0] = fma(sv, k0, acc[r][0]), acc[r][1] = fma(sv, k1, acc[r][1]);
                }
            }
            for (int r = 0; r < 4 && i + r < m_; r++)
                for (int h = 0; h < 2; h++) total[h] = fma(acc[r][h], load(K + (i + r) * B + h * W<T>), total[h]);
        }
        store(out, total[0]), store(out + W<T>, total[1]);
    }

  private:
    size_t at(int i, int j) const { return (size_t(i / 4) * wide_ + j) * 4 + i % 4; }  // four rows side by side
    int m_ = 0, wide_ = 0;
    Buffer<T> full_;
};

// The tracked beliefs A alone, or A and Q, whose v is kxx - k A k: rows whose numbers are unsound are done one by one
template <class T>
void predict_tracked(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, int64_t n, const double* X,
                     double* mean, double* variance, Stop& stop) {
    constexpr int B = QuadraticForms<T>::B;
    const int m = int(state.size), d = state.d, p = state.p;
    const bool posterior = recipe.belief == Belief::Posterior;
    QuadraticForms<T> formA, formQ;
    formA.unpack(state.A, m);
    Buffer<T> x(d), k(state.capacity), K(size_t(m) * B), kAk(B), kQk(B), check(state.capacity);
    if (posterior) {
        formQ.unpack(state.Q, m);
        state.Q.product(m, state.probe, check.data());  // K_row . Q k = (Q K_row) . k
    }
    for (int64_t i = 0; i < n && !stop.asked(B * work(recipe, m)); i += B) {
        const int rows = int(n - i < B ? n - i : B);
        double kxx[B], residual[B] = {};
        for (int b = 0; b < rows; b++) {
            for (int j = 0; j < d; j++) x[j] = T(X[(i + b) * d + j]);
            double* mu = mean + (i + b) * p;
            mu[0] = double(row(kernel, state.tiles, m, x.data(), state.alpha, k.data()));
            for (int o = 1; o < p; o++) mu[o] = double(dot(k.data(), state.weights(o), m));
            kxx[b] = diagonal(kernel, x.data()) * (posterior ? 1.0 + recipe.jitter : 1.0);
            if (posterior && m && kxx[b] != 0)
                residual[b] = std::fabs(double(dot(check.data(), k.data(), m)) - double(k[state.probed])) / kxx[b];
            for (int j = 0; j < m; j++) K[size_t(j) * B + b] = k[j];
        }
        formA.evaluate(K.data(), kAk.data());
        if (posterior) formQ.evaluate(K.data(), kQk.data());
        for (int b = 0; b < rows; b++) {
            double v = kxx[b] - state.scale * double(kAk[b]);
            const double gamma2 = kxx[b] - double(kQk[b]);
            const bool sound = max(residual[b], state.residual) <= REFINE_ABOVE && 0.0 <= gamma2 && gamma2 <= v;
            if (posterior && !sound) predict_rows(recipe, kernel, state, 1, X + (i + b) * d, mean + (i + b) * p, &v, stop);
            variance[i + b] = posterior && !sound ? v : state.power * (max(v, 0.0) + recipe.noise);
        }
    }
}

template <class T>
void predict(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, int64_t n, const double* X, double* mean,
             double* variance, Stop& stop) {
    int64_t done = 0;
    if (recipe.has('A')) {
        const bool alarm = state.residual > REFINE_ABOVE;
        if (!alarm && n >= QuadraticForms<T>::B) {
            predict_tracked(recipe, kernel, state, n, X, mean, variance, stop);
            done = n;
        }
    } else if (recipe.belief != Belief::LeastSquares && !recipe.automatic && state.p == 1) {
        done = n / AHEAD * AHEAD;
        predict_fixed(recipe, kernel, state, done, X, mean, variance, stop);
    }
    predict_rows(recipe, kernel, state, n - done, X + done * state.d, mean + done * state.p, variance + done, stop);
}

}  // namespace onlinegp::ONLINEGP_ISA
