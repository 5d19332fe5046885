// The covariances of a point with all stored rows, in time too.
#pragma once
#include "leaves/neighbors.hpp"

namespace onlinegp::ONLINEGP_ISA {

// The covariances k(x, z) a^|t - u| of a point x of time t with all stored rows z of times u
class Covariances {
  public:
    Covariances(const LocalPrior& prior, const Kernel<double>& kernel, const Store& store)
        : kernel_(kernel), store_(store), rate_(0.5 * prior.fade * LOG2E) {}

    // Places have the length scales in them, so that a stationary kernel follows from squared distances alone
    static bool needs_points(const Kernel<double>& kernel) { return !kernel.stationary_leaf(); }

    // Call body with the kernel's operation as a type, Op::Add for all that are not stationary
    template <class Body> INLINE void visit(const Body& body) const {
        switch (needs_points(kernel_) ? Op::Add : kernel_.code[0].op) {
            case Op::RBF: return body(Is<Op::RBF>{});
            case Op::Matern12: return body(Is<Op::Matern12>{});
            case Op::Matern32: return body(Is<Op::Matern32>{});
            case Op::Matern52: return body(Is<Op::Matern52>{});
            default: return body(Is<Op::Add>{});
        }
    }
    // k: squared distances of N tiles of rows from `slot` on, which become covariances; to[slot] gets them
    template <int N, Op op>
    INLINE void write(int64_t slot, const double* x, double time, Vec<double>* k, double* to) const {
        if constexpr (op == Op::Add) {
            Composed<double>{kernel_}.template evaluate<N, 1>(store_.points() + slot * kernel_.d, x, k);
        } else {
            of<N, op>(kernel_.code[0], 1.0, k);
            if (kernel_.scaled())
                EACH(n, N) k[n] *= kernel_.code[1].a;
        }
        if (rate_ > 0) fade<N>(store_.births() + slot, time, k);
        EACH(n, N) store(to + slot + n * W<double>, k[n]);
    }
    // A stored row, and room for its covariances
    struct Row {
        int64_t slot;
        double* k;
    };
    // Those of a few rows, in one pass
    void fill(const Row* rows, int64_t count) {
        for (int64_t i = 0; i < count; i++) get_center(store_.places(), store_.width(), rows[i].slot, place(i));
        visit([&](auto op) {
            const int64_t end = store_.size();
            int64_t slot = 0;
            for (; slot + 2 * Store::BLOCK <= end; slot += 2 * Store::BLOCK)
                for (int64_t i = 0; i < count; i++) fill_block<2 * Store::TILES, op>(slot, rows[i], place(i));
            for (; slot < end; slot += Store::BLOCK)
                for (int64_t i = 0; i < count; i++) fill_block<Store::TILES, op>(slot, rows[i], place(i));
        });
    }
    void reserve(int64_t count) { places_.resize(size_t(count * store_.width())); }

  private:
    template <Op op> using Is = std::integral_constant<Op, op>;

    double* place(int64_t i) { return places_.data() + i * store_.width(); }
    template <int N, Op op> INLINE void fill_block(int64_t slot, const Row& row, const double* place) const {
        Vec<double> r2[N];
        if constexpr (op != Op::Add) {
            const Pairs<double, N, 1> pairs{store_.places() + slot * store_.width(), place, store_.width()};
            squared_distances<false>(kernel_.code[0], pairs, r2);
        }
        write<N, op>(slot, store_.x(row.slot), store_.born(row.slot), r2, row.k);
    }
    template <int N> INLINE void fade(const double* births, double time, Vec<double>* k) const {
        Vec<double> f[N];
        EACH(n, N) f[n] = magnitude<double>(load(births + n * W<double>) - time) * rate_;
        EACH(n, N / 2) exp2_minus<2>(f + 2 * n);
        EACH(n, N) k[n] *= f[n];
    }

    const Kernel<double>& kernel_;
    const Store& store_;
    const double rate_;
    Buffer<double> places_;
};

}  // namespace onlinegp::ONLINEGP_ISA
