// Blocks of samples for filters that only ever append centres: what can be shared between samples is shared, and every
// rounding is that of one sample at a time.
#pragma once
#include "filter.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr int AHEAD = 4;  // points that share one pass over the centres

// KLMS: alpha <- [alpha; step e]. W samples against the finished tiles; they become the next tile together.
template <class T> bool is_klms(const Recipe& recipe, const State<T>& state) {
    return recipe.belief == Belief::Prior && recipe.dictionary == Dictionary::Growing &&
           recipe.forgetting == Forgetting::Keep && recipe.pruning == Pruning::None && !recipe.learn_power &&
           state.p == 1;
}

// acc[b] = sum over tiles t < n of alpha_t k(C_t, x_b), lane by lane
template <class T>
INLINE void accumulate(const Kernel<T>& kernel, const State<T>& state, int n, const T* x, Vec<T>* acc) {
    visit(kernel, [&](auto shape) {
        Vec<T> sums[AHEAD] = {}, k[AHEAD];
        for (int t = 0; t < n; t++) {
            shape.template evaluate<AHEAD, true>(state.tiles + size_t(t) * state.d * W<T>, x, k);
            const Vec<T> a = load(state.alpha + t * W<T>);
#pragma GCC unroll 4
            for (int b = 0; b < AHEAD; b++) sums[b] = fma(k[b], a, sums[b]);
        }
        for (int b = 0; b < AHEAD; b++) acc[b] = sums[b];
        return 0;
    });
}

// Learn W samples, x (W, d), where the dictionary ends with a full tile; mean (W,)
template <class T>
void learn_klms_tile(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, const T* x, const double* y,
                     double* mean, double* kxx) {
    constexpr int B = W<T> < AHEAD ? AHEAD : W<T>;
    const int n = tile_count<T>(state.size);
    Vec<T> acc[B], k[1];
    for (int b = 0; b < W<T>; b += AHEAD) accumulate(kernel, state, n, x + b * state.d, acc + b);
    T* tile = state.tiles + size_t(n) * state.d * W<T>;
    T* alpha = state.alpha + n * W<T>;
    for (int b = 0; b < W<T>; b++) {
        const T* xb = x + b * state.d;
        visit(kernel, [&](auto shape) {
            shape.template evaluate<1, false>(tile, xb, k);
            return 0;
        });
        if (b > 0) acc[b] = fma(keep<T>(k[0], first_lanes<T>(b)), load(alpha), acc[b]);
        mean[b] = double(sum<T>(acc[b]));
        kxx[b] = diagonal(kernel, xb);
        state.push(xb, kxx[b]);
        alpha[b] = T((y[b] - mean[b]) / (1.0 / recipe.step));
        state.seen++;
    }
}

// Kernel rows of the next few samples against the centres of now; each is completed when its turn comes.
template <class T> class RowsAhead {
  public:
    // The rows of x (AHEAD, d)
    void prepare(const Kernel<T>& kernel, const State<T>& state, const T* x) {
        size_ = state.size;
        if (state.capacity > room_) rows_.resize(AHEAD * (room_ = state.capacity));
        visit(kernel, [&](auto shape) {
            Vec<T> k[AHEAD];
            for (int t = 0; t < tile_count<T>(size_); t++) {
                shape.template evaluate<AHEAD, true>(state.tiles + size_t(t) * state.d * W<T>, x, k);
                for (int b = 0; b < AHEAD; b++) store(rows_.data() + b * room_ + t * W<T>, k[b]);
            }
            return 0;
        });
        for (int b = 0; b < AHEAD; b++)  // no centres, no kernel
            for (int64_t i = size_; i % W<T>; i++) rows_[b * room_ + i] = 0;
    }
    // k = k(C, x_b), its largest entry, and k . alpha, as `row` gives them; a last tile with centres that are newer is done again
    T finish(const Kernel<T>& kernel, const State<T>& state, int b, Look<T>& look) const {
        T* k = look.k.data();
        Vec<T> acc{}, most{};
        const T* ready = rows_.data() + b * room_;
        const int done = state.size == size_ ? tile_count<T>(size_) : int(size_ / W<T>);
        for (int t = 0; t < done; t++) {
            const Vec<T> kt = load(ready + t * W<T>);
            store(k + t * W<T>, kt);
            most = larger(most, magnitude<T>(kt));
            acc = fma(kt, load(state.alpha + t * W<T>), acc);
        }
        return visit(kernel, [&](auto shape) {
            Vec<T> kt[1];
            for (int t = done; t * W<T> < state.size; t++) {
                shape.template evaluate<1, false>(state.tiles + size_t(t) * state.d * W<T>, look.x.data(), kt);
                kt[0] = keep<T>(kt[0], first_lanes<T>(int(state.size - t * W<T>)));
                store(k + t * W<T>, kt[0]);
                most = larger(most, magnitude<T>(kt[0]));
                acc = fma(kt[0], load(state.alpha + t * W<T>), acc);
            }
            look.largest = largest_lane<T>(most);
            return sum<T>(acc);
        });
    }

  private:
    Buffer<T> rows_;
    int64_t room_ = 0, size_ = 0;
};

}  // namespace onlinegp::ONLINEGP_ISA
