// The centers of a kernel expansion, and its kernel rows: the twin of onlinegp.models.expansion.
#pragma once
#include <algorithm>
#include "learner.hpp"
#include "linear_algebra/tiles.hpp"

namespace onlinegp::ONLINEGP_ISA {

// The weights belong to the caller
class Centers {
  public:
    Centers(const Program& kernel, int d) : d_(d), kernel_(kernel, d) {}

    int64_t size() const { return m_; }
    double diagonal(const double* x) const { return onlinegp::ONLINEGP_ISA::diagonal(kernel_, x); }

    void append(const double* x) {
        reserve(m_ + 1);
        set_center(tiles_.data(), d_, m_++, x);
    }
    void replace(int64_t j, const double* x) { set_center(tiles_.data(), d_, j, x); }
    void remove(int64_t j) {
        remove_center(tiles_.data(), d_, j, m_--);
        alpha_[size_t(m_)] = 0;
    }

    // weights (p, stride): only the first `size` columns are used
    void row(const double* x, int64_t p, int64_t stride, const double* weights, double* k, double* mean) {
        for (int64_t o = 0; o < p; o++) {
            std::copy(weights + o * stride, weights + o * stride + m_, alpha_.data());
            mean[o] = o ? dot(k_.data(), alpha_.data(), m_) : fill(x);
        }
        std::copy(k_.data(), k_.data() + m_, k);
    }
    void rows(int64_t n, const double* X, double* K) {
        for (int64_t i = 0; i < n; i++) {
            fill(X + i * d_);
            std::copy(k_.data(), k_.data() + m_, K + i * m_);
        }
    }
    void get(int64_t j, double* x) const { get_center(tiles_.data(), d_, j, x); }

  private:
    double fill(const double* x) {
        if (m_ == 0) return 0;
        return onlinegp::ONLINEGP_ISA::row(kernel_, tiles_.data(), m_, x, alpha_.data(), k_.data());
    }
    void reserve(int64_t m) {
        if (m <= room_) return;
        const int64_t room = tile_count<double>(std::max(m, 2 * room_)) * W<double>;
        Buffer<double> tiles(size_t(room * d_)), k(static_cast<size_t>(room)), alpha(static_cast<size_t>(room));
        if (room_) std::copy(tiles_.data(), tiles_.data() + room_ * d_, tiles.data());
        tiles_.swap(tiles);
        k_.swap(k);
        alpha_.swap(alpha);
        room_ = room;
    }

    const int d_;
    const Kernel<double> kernel_;
    int64_t m_ = 0, room_ = 0;
    Buffer<double> tiles_, k_, alpha_;  // alpha_ is zero from m_ on, where k_ is too
};

}  // namespace onlinegp::ONLINEGP_ISA
