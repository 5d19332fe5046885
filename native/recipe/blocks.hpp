// Blocks of samples for filters that only append centers. Samples share as much work as possible, and every result is
// rounded as if samples were learned one at a time.
#pragma once
#include "recipe/update.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr int AHEAD = 4;  // number of points that share a pass over the centers

// KLMS: alpha <- [alpha; step e]. W samples are evaluated against the full tiles, and together become the next tile.
template <class T> bool is_klms(const Recipe& recipe, const State<T>& state) {
    return recipe.belief == Belief::Prior && recipe.dictionary == Dictionary::Growing &&
           recipe.forgetting == Forgetting::Keep && recipe.pruning == Pruning::None && !recipe.learn_power &&
           state.p == 1;
}

// mean[b] = sum over tiles t < n of alpha_t k(C_t, x_b)
template <class T>
INLINE void accumulate(const Kernel<T>& kernel, const State<T>& state, int n, const T* x, Sum<T>* mean) {
    visit(kernel, [&, tiles = state.tiles, alpha = state.alpha, step = size_t(state.d) * W<T>](auto shape) {
        Vec<T> k[2 * AHEAD];
        int t = 0;
        for (; t + 2 <= n; t += 2) {
            shape.template evaluate<2, AHEAD>(tiles + t * step, x, k);
            EACH(b, AHEAD) {
                mean[b].add(t % 4, k[b], load(alpha + t * W<T>));
                mean[b].add(t % 4 + 1, k[AHEAD + b], load(alpha + (t + 1) * W<T>));
            }
        }
        if (t < n) {
            shape.template evaluate<1, AHEAD>(tiles + t * step, x, k);
            EACH(b, AHEAD) mean[b].add(t % 4, k[b], load(alpha + t * W<T>));
        }
        return 0;
    });
}

// Learn W samples, x (W, d), if the dictionary ends with a full tile; mean (W,)
template <class T>
void learn_klms_tile(const Recipe& recipe, const Kernel<T>& kernel, State<T>& state, const T* x, const double* y,
                     double* mean, double* kxx) {
    constexpr int B = W<T> < AHEAD ? AHEAD : W<T>;
    const int n = tile_count<T>(state.size);
    Sum<T> acc[B];
    Vec<T> k[1];
    for (int b = 0; b < W<T>; b += AHEAD) accumulate(kernel, state, n, x + b * state.d, acc + b);
    T* tile = state.tiles + size_t(n) * state.d * W<T>;
    T* alpha = state.alpha + n * W<T>;
    for (int b = 0; b < W<T>; b++) {
        const T* xb = x + b * state.d;
        visit(kernel, [&](auto shape) {
            shape.template evaluate<1, 1>(tile, xb, k);
            return 0;
        });
        if (b > 0) acc[b].add(n % 4, keep<T>(k[0], first_lanes<T>(b)), load(alpha));
        mean[b] = double(acc[b].total());
        kxx[b] = diagonal(kernel, xb);
        state.push(xb, kxx[b]);
        alpha[b] = T((y[b] - mean[b]) / (1.0 / recipe.belief.step));
        if (state.seen < INT64_MAX) state.seen++;
    }
}

// Kernel rows of the next few samples and the current centers. Each row is completed when its sample is learned.
template <class T> class RowsAhead {
  public:
    void reserve(int64_t room) {  // rows are swapped with rows of a prediction, which may be shared
        if (room == room_) return;
        for (Buffer<T>& row : rows_) row.resize(room);
        room_ = room;
    }
    // The kernel rows of x (AHEAD, d), with the capacity of the rows of a prediction
    void prepare(const Kernel<T>& kernel, const State<T>& state, const T* x, int64_t room) {
        size_ = state.size;
        reserve(room);
        visit(kernel, [&, tiles = state.tiles, step = size_t(state.d) * W<T>, n = tile_count<T>(size_)](auto shape) {
            T* out[AHEAD];
            EACH(b, AHEAD) out[b] = rows_[b].data();
            Vec<T> k[2 * AHEAD];
            int t = 0;
            for (; t + 2 <= n; t += 2) {
                shape.template evaluate<2, AHEAD>(tiles + t * step, x, k);
                EACH(i, 2 * AHEAD) store(out[i % AHEAD] + (t + i / AHEAD) * W<T>, k[i]);
            }
            if (t < n) {
                shape.template evaluate<1, AHEAD>(tiles + t * step, x, k);
                EACH(b, AHEAD) store(out[b] + t * W<T>, k[b]);
            }
            return 0;
        });
        for (Buffer<T>& row : rows_)  // without centers, the kernel is zero
            for (int64_t i = size_; i % W<T>; i++) row[i] = 0;
    }
    // prediction.k = k(C, x_b), its largest entry, |k|^2 if needed, and k . alpha, as for one sample. Tiles with newer
    // centers are computed again.
    template <bool Norm> void finish(const Kernel<T>& kernel, const State<T>& state, int b, Prediction<T>& prediction) {
        prediction.k.swap(rows_[b]);
        if (state.size > size_) renew(kernel, state, prediction);
        Sum<T> mean, k2;
        Vec<T> most[2] = {};
        each_tile(tile_count<T>(state.size), [&, k = prediction.k.data(), alpha = state.alpha](int t, int i) ALWAYS {
            const Vec<T> kt = load(k + t * W<T>);
            most[i % 2] = larger(most[i % 2], magnitude<T>(kt));
            mean.add(i, kt, load(alpha + t * W<T>));
            if constexpr (Norm) k2.add(i, kt, kt);
        });
        prediction.mean[0] = double(mean.total());
        prediction.k2 = double(k2.total());
        prediction.largest = largest_lane<T>(larger(most[0], most[1]));
    }

  private:
    void renew(const Kernel<T>& kernel, const State<T>& state, Prediction<T>& prediction) const {
        visit(kernel, [&](auto shape) {
            Vec<T> k[1];
            for (int t = int(size_ / W<T>); t * W<T> < state.size; t++) {
                shape.template evaluate<1, 1>(state.tiles + size_t(t) * state.d * W<T>, prediction.x.data(), k);
                store(prediction.k.data() + t * W<T>, keep<T>(k[0], first_lanes<T>(int(state.size - t * W<T>))));
            }
            return 0;
        });
    }

    Buffer<T> rows_[AHEAD];
    int64_t room_ = 0, size_ = 0;
};

}  // namespace onlinegp::ONLINEGP_ISA
