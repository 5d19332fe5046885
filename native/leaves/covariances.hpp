// The covariances of a point with stored rows, including the effect of time.
#pragma once
#include "leaves/neighbors.hpp"

namespace onlinegp::ONLINEGP_ISA {

// The covariances k(x, z) a^|t - u| of a point x of time t with stored rows z of times u
class Covariances {
  public:
    Covariances(const LocalPrior& prior, const Kernel<double>& kernel, const Store& store)
        : kernel_(kernel), store_(store), rate_(0.5 * prior.fade * LOG2E) {}

    // Places are scaled by the length scales, so that a stationary kernel needs only squared distances
    static bool needs_points(const Kernel<double>& kernel) { return !kernel.stationary_leaf(); }

    // Call body with the operation of the kernel as a type; Op::Add means a kernel that is not stationary
    template <class Body> INLINE void visit(const Body& body) const {
        switch (needs_points(kernel_) ? Op::Add : kernel_.code[0].op) {
            case Op::RBF: return body(Is<Op::RBF>{});
            case Op::Matern12: return body(Is<Op::Matern12>{});
            case Op::Matern32: return body(Is<Op::Matern32>{});
            case Op::Matern52: return body(Is<Op::Matern52>{});
            default: return body(Is<Op::Add>{});
        }
    }
    // A point: its place for the distance, its inputs, and its time
    struct Point {
        const double *place, *x;
        double time;
    };
    // The covariances of the point with N tiles of rows from `slot` on
    template <int N, Op op> INLINE void evaluate(int64_t slot, const Point& point, Vec<double>* k) const {
        if constexpr (op != Op::Add) {
            const Pairs<double, N, 1> pairs{store_.places() + slot * store_.width(), point.place, store_.width()};
            squared_distances<false>(kernel_.code[0], pairs, k);
        }
        from_distances<N, op>(slot, point.x, point.time, k);
    }
    // The same, if k already contains the squared distances
    template <int N, Op op>
    INLINE void from_distances(int64_t slot, const double* x, double time, Vec<double>* k) const {
        if constexpr (op == Op::Add) {
            Composed<double>{kernel_}.template evaluate<N, 1>(store_.points() + slot * kernel_.d, x, k);
        } else {
            of<N, op>(kernel_.code[0], 1.0, k);
            if (kernel_.scaled())
                EACH(n, N) k[n] *= kernel_.code[1].a;
        }
        if (rate_ > 0) fade<N>(store_.births() + slot, time, k);
    }
    // The covariance of the point with one row
    double with_row(const Point& point, int64_t slot) const {
        const int64_t in_block = slot % Store::BLOCK;
        Vec<double> k[Store::TILES];
        visit([&](auto op) { evaluate<Store::TILES, op>(slot - in_block, point, k); });
        return k[in_block / W<double>][in_block % W<double>];
    }

  private:
    template <Op op> using Is = std::integral_constant<Op, op>;

    template <int N> INLINE void fade(const double* births, double time, Vec<double>* k) const {
        Vec<double> f[N];
        EACH(n, N) f[n] = magnitude<double>(load(births + n * W<double>) - time) * rate_;
        EACH(n, N / 2) exp2_minus<2>(f + 2 * n);
        EACH(n, N) k[n] *= f[n];
    }

    const Kernel<double>& kernel_;
    const Store& store_;
    const double rate_;
};

}  // namespace onlinegp::ONLINEGP_ISA
