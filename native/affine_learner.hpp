// Affine projections as a learner that owns what it keeps; affine.hpp has the loop over rows.
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <vector>
#include "api.hpp"

namespace onlinegp {

// The first rows and columns of a matrix with rows `stride` apart, in one of another height and width; zeros elsewhere
template <class T>
std::vector<T> resized(const std::vector<T>& from, int64_t rows, int64_t columns, int64_t stride, int64_t height, int64_t width) {
    std::vector<T> to(size_t(height * width));
    for (int64_t i = 0; i < rows; i++) std::copy_n(from.begin() + i * stride, columns, to.begin() + i * width);
    return to;
}

// What it keeps. The shapes are those of AffineArrays.
struct AffineState {
    std::unique_ptr<Centers> f, points, chosen;
    int64_t capacity = 0, room = 0, count = 0;  // centers and rows of the window that there is room for; rows so far
    std::vector<double> numbers, K, Y, F, H, G, norms, along, length, KC;
    std::vector<int64_t> places;
    std::vector<double> squares;  // (3, p), of the errors
    double errors = 1;
};

class AffineLearner final : public Learner {
  public:
    AffineLearner(const InstructionSet& set, const AffineRule& rule, const Recipe& kernel, int d, int p)
        : set_(set), rule_(rule), kernel_(kernel), d_(d), p_(p) {
        state = fresh();
    }
    AffineState state;

    const AffineRule& rule() const { return rule_; }
    const Recipe& kernel() const { return kernel_; }
    bool coherent() const { return rule_.kind == AffineRule::KAP || rule_.kind == AffineRule::PHYPASS; }
    int64_t rows_of_numbers() const { return p_ + coherent(); }
    int64_t rows_of_window() const { return std::min(state.count, rule_.window); }

    int64_t size() const override { return state.f->size(); }
    int64_t seen() const override { return state.count; }
    int64_t work_per_row() const override { return 1 + size() + rows_of_window(); }
    int variances() const override { return int(p_); }
    void flush() override {}

    // A state without rows
    AffineState fresh() const {
        AffineState s;
        for (std::unique_ptr<Centers>* one : {&s.f, &s.points, &s.chosen}) one->reset(set_.make_centers(kernel_, int(d_)));
        s.norms.resize(size_t(p_));
        s.squares.resize(size_t(3 * p_));
        std::fill_n(s.squares.begin(), p_, 1.0);
        return s;
    }

    void reserve(int64_t rows) override {
        const int64_t centers = size() + rows, window = state.count + rows;
        reserve_centers(rule_.budget ? std::min(centers, rule_.budget) : centers);
        reserve_window(std::min(window, rule_.window));
        const size_t values = size_t(rows * p_);
        if (mean_.size() < values) mean_.resize(values);
        if (std_.size() < values) std_.resize(values);
        if (size_.size() < size_t(rows)) size_.resize(size_t(rows));
    }
    int64_t learn(int64_t n, const double* X, const double* Y, const Steps& steps, Stop& stop) override {
        for (int64_t done = 0; done < n;) {
            const int64_t rows = std::min(n - done, BLOCK);
            if (stop.asked(2 * rows * work_per_row())) return done;
            reserve(rows);
            state.errors = set_.affine_run(rule_, arrays(), rows, X + done * d_, Y + done * p_, mean_.data(), std_.data(), size_.data());
            state.count += rows;
            if (steps.mean) std::copy_n(mean_.begin(), rows * p_, steps.mean + done * p_);
            if (steps.size) std::copy_n(size_.begin(), rows, steps.size + done);
            for (int64_t i = 0; steps.variance && i < rows * p_; i++) steps.variance[done * p_ + i] = std_[size_t(i)] * std_[size_t(i)];
            done += rows;
        }
        return n;
    }
    void predict_next(const double* x, double* mean, double* variance) override {
        reserve(1);  // and room for a kernel row
        look(x, mean, variance);
    }
    void predict(int64_t n, const double* X, double* mean, double* variance, Stop& stop) const override {
        const std::lock_guard<std::mutex> alone(looking_);  // the centers have one scratch
        k_.resize(size_t(size()));
        for (int64_t i = 0; i < n && !stop.asked(work_per_row()); i++) look(X + i * d_, mean + i * p_, variance + i * p_);
    }

    void reserve_centers(int64_t m) {
        AffineState& s = state;
        if (size_t(m) > k_.size()) k_.resize(size_t(std::max<int64_t>(m, 2 * s.capacity)));
        if (m <= s.capacity) return;
        const int64_t wanted = std::max<int64_t>({m, 2 * s.capacity, 16}), had = s.capacity;
        std::vector<double> numbers = resized(s.numbers, rows_of_numbers(), had, had, rows_of_numbers(), wanted);
        std::vector<double> H;
        if (coherent()) H = resized(s.H, s.room, had, had, s.room, wanted);
        make_room(*s.f, wanted);
        s.numbers.swap(numbers);
        s.H.swap(H);
        s.capacity = wanted;
    }
    void reserve_window(int64_t n) {
        AffineState& s = state;
        if (n <= s.room) return;
        const int64_t wanted = std::min(std::max<int64_t>({n, 2 * s.room, 8}), rule_.window);
        const int64_t had = s.room, each = rule_.selected, slots = wanted * each;
        std::vector<double> K = resized(s.K, had, had, had, wanted, wanted);
        std::vector<double> Y = resized(s.Y, had, p_, p_, wanted, p_);
        std::vector<double> F = resized(s.F, had, p_, p_, wanted, p_);
        std::vector<double> H, G, along, length, KC;
        if (coherent()) H = resized(s.H, had, s.capacity, s.capacity, wanted, s.capacity);
        if (rule_.kind == AffineRule::KAP) G = resized(s.G, had, had, had, wanted, wanted);
        make_room(*s.points, wanted);
        if (rule_.kind == AffineRule::PHYPASS) {
            along = resized(s.along, had, each, each, wanted, each);
            length = resized(s.length, had, 1, 1, wanted, 1);
            KC = resized(s.KC, had * each, had * each, had * each, slots, slots);
            s.places.resize(size_t(slots), -1);
            const std::vector<double> nowhere(static_cast<size_t>(d_));
            while (s.chosen->size() < slots) s.chosen->append(nowhere.data());
        }
        s.K.swap(K);
        s.Y.swap(Y);
        s.F.swap(F);
        s.H.swap(H);
        s.G.swap(G);
        s.along.swap(along);
        s.length.swap(length);
        s.KC.swap(KC);
        s.room = wanted;
    }

  private:
    static constexpr int64_t BLOCK = 64;  // rows between two looks for a signal

    // Allocate what so many points take: they are added, and those that are too many removed
    void make_room(Centers& centers, int64_t wanted) const {
        const int64_t there = centers.size();
        const std::vector<double> nowhere(static_cast<size_t>(d_));
        while (centers.size() < wanted) centers.append(nowhere.data());
        while (centers.size() > there) centers.remove(centers.size() - 1);
    }
    void look(const double* x, double* mean, double* variance) const {
        if (size()) state.f->row(x, p_, state.capacity, state.numbers.data(), k_.data(), mean);
        else std::fill_n(mean, p_, 0.0);
        for (int64_t o = 0; o < p_; o++) {
            const double std = std::sqrt(state.squares[size_t(o)] / state.errors);
            variance[o] = std * std;  // whose root is the same again
        }
    }
    AffineArrays arrays() {
        AffineState& s = state;
        return {*s.f, *s.points, s.chosen.get(), d_, p_, s.capacity, s.room, s.count,
                s.numbers.data(), s.K.data(), s.Y.data(), s.F.data(), s.H.data(), s.G.data(), s.norms.data(), s.squares.data(),
                s.places.data(), s.along.data(), s.length.data(), s.KC.data(), s.errors, FADE};
    }

    static constexpr double FADE = 1.0 - 1.0 / 100.0;  // as in onlinegp.models.rowwise: about the last hundred errors count
    const InstructionSet& set_;
    const AffineRule rule_;
    const Recipe kernel_;
    const int64_t d_, p_;
    std::vector<double> mean_, std_;
    std::vector<int64_t> size_;
    mutable std::vector<double> k_;
    mutable std::mutex looking_;
};

}  // namespace onlinegp
