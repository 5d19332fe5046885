// Affine projections as a learner that owns its arrays. leaves/affine.hpp has the loop over rows.
#pragma once
#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>
#include "leaves/affine.hpp"

namespace onlinegp::ONLINEGP_ISA {

// Copy the first rows and columns of a matrix with a row stride to a matrix of another size, with zeros elsewhere
template <class T>
std::vector<T> resized(const std::vector<T>& from, int64_t rows, int64_t columns, int64_t stride, int64_t height,
                       int64_t width) {
    std::vector<T> to(size_t(height * width));
    for (int64_t i = 0; i < rows; i++) std::copy_n(from.begin() + i * stride, columns, to.begin() + i * width);
    return to;
}

// The state, with the shapes of AffineArrays.
struct AffineState {
    AffineState(const Program& kernel, int d, int p)
        : f(kernel, d), points(kernel, d), chosen(kernel, d), norms(size_t(p)), errors(p) {}
    Centers f, points, chosen;
    int64_t capacity = 0, room = 0, count = 0;  // capacity for centers, capacity for rows of the window, rows so far
    std::vector<double> numbers, K, Y, F, H, G, norms, along, length, KC;
    std::vector<int64_t> places;
    ErrorScale errors;
};

class AffineLearner final : public Learner {
  public:
    AffineLearner(const Plan& plan, AffineRule::Kind kind)
        : rule_{kind,
                AffineRule::Loss(plan.count("loss", 0)),
                plan.count("window"),
                plan.count("budget", 0),
                plan.count("selected", 1),
                plan.number("step"),
                plan.number("keep", 1),
                plan.number("epsilon", 0),
                plan.number("coherence", 1),
                plan.number("bend", 1),
                plan.number("radius", 0),
                plan.number("width", 0)},
          d_(plan.features),
          p_(plan.outputs),
          state(plan.kernels.at(0), plan.features, plan.outputs) {}

    int64_t size() const override { return state.f.size(); }
    int64_t seen() const override { return state.count; }
    int64_t work_per_row() const override { return 1 + size() + rows_of_window(); }
    int variances() const override { return int(p_); }
    void flush() override {}

    void reserve(int64_t rows) override {
        const int64_t centers = size() + rows, window = state.count + rows;
        reserve_centers(rule_.budget ? std::min(centers, rule_.budget) : centers);
        reserve_window(std::min(window, rule_.window));
        const size_t values = size_t(rows * p_);
        if (mean_.size() < values) mean_.resize(values);
        if (variance_.size() < values) variance_.resize(values);
        if (size_.size() < size_t(rows)) size_.resize(size_t(rows));
    }
    int64_t learn(int64_t n, const double* X, const double* Y, const Steps& steps, Stop& stop) override {
        for (int64_t done = 0; done < n;) {
            const int64_t rows = std::min(n - done, BLOCK);
            if (stop.asked(2 * rows * work_per_row())) return done;
            reserve(rows);
            AffineRun(rule_, arrays())
                .run(rows, X + done * d_, Y + done * p_, mean_.data(), variance_.data(), size_.data());
            state.count += rows;
            if (steps.mean) std::copy_n(mean_.begin(), rows * p_, steps.mean + done * p_);
            if (steps.variance) std::copy_n(variance_.begin(), rows * p_, steps.variance + done * p_);
            if (steps.size) std::copy_n(size_.begin(), rows, steps.size + done);
            done += rows;
        }
        return n;
    }
    void predict_next(const double* x, double* mean, double* variance) override {
        reserve(1);  // includes room for a kernel row
        look(x, mean, variance);
    }
    void predict(int64_t n, const double* X, double* mean, double* variance, Stop& stop) const override {
        const std::lock_guard<std::mutex> alone(looking_);  // because the centers have a single scratch buffer
        k_.resize(size_t(size()));
        for (int64_t i = 0; i < n && !stop.asked(work_per_row()); i++)
            look(X + i * d_, mean + i * p_, variance + i * p_);
    }

    void fields(Visitor& visit) override {
        if (visit.looks()) return;
        AffineState& s = state;
        visit.integer("seen", s.count);
        list_centers(visit);
        s.errors.fields(visit, "errors.");
        const int64_t n = rows_of_window(), m = s.f.size(), each = rule_.selected;
        list_points(visit, "window.X", s.points, n);
        if (visit.loads()) reserve_window(n);
        list_block(visit, "window.K", s.K, n, n, s.room);
        list_block(visit, "window.Y", s.Y, n, p_, p_);
        list_block(visit, "window.F", s.F, n, p_, p_);
        visit.integer("window.count", s.count);
        if (is_coherent()) list_block(visit, "window.H", s.H, n, m, s.capacity);
        if (rule_.kind == AffineRule::KAP) list_block(visit, "gram.G", s.G, n, n, s.room);
        if (rule_.kind == AffineRule::KAPSM) visit.array("norms.squares", s.norms, {p_});
        if (rule_.kind == AffineRule::PHYPASS) list_chosen(visit, n, each);
        if (visit.loads()) reserve(0);  // the scratch of this size
    }

  private:
    static constexpr int64_t BLOCK = 64;  // rows between two checks for a signal

    bool is_coherent() const { return rule_.kind == AffineRule::KAP || rule_.kind == AffineRule::PHYPASS; }
    int64_t rows_of_numbers() const { return p_ + is_coherent(); }
    int64_t rows_of_window() const { return std::min(state.count, rule_.window); }

    // Fields: the first rows and columns of a matrix with a row stride
    static void list(Visitor& visit, const std::string& name, std::vector<double>& values, const Shape& shape) {
        visit.array(name, values, shape);
    }
    static void list(Visitor& visit, const std::string& name, std::vector<int64_t>& values, const Shape& shape) {
        visit.integers(name, values, shape);
    }
    template <class T>
    static void list_block(Visitor& visit, const std::string& name, std::vector<T>& matrix, int64_t rows,
                           int64_t columns, int64_t stride) {
        std::vector<T> block = resized(matrix, rows, columns, stride, rows, columns);
        list(visit, name, block, {rows, columns});
        for (int64_t i = 0; i < rows; i++)
            std::copy_n(block.begin() + i * columns, columns, matrix.begin() + i * stride);
    }
    // Visit points with an expected count, and return their actual count
    int64_t list_points(Visitor& visit, const std::string& name, Centers& centers, int64_t count) {
        std::vector<double> points(size_t(centers.size() * d_));
        for (int64_t j = 0; j < centers.size(); j++) centers.get(j, points.data() + j * d_);
        count = visit.array(name, points, {visit.loads() ? FREE : count, d_});
        if (!visit.loads()) return count;
        while (centers.size()) centers.remove(centers.size() - 1);
        for (int64_t j = 0; j < count; j++) centers.append(points.data() + j * d_);
        return count;
    }
    void list_centers(Visitor& visit) {
        AffineState& s = state;
        const int64_t m = list_points(visit, "f.centers", s.f, s.f.size());
        if (visit.loads()) reserve_centers(m);
        std::vector<double> weights(size_t(m * p_)), kcc(static_cast<size_t>(m));
        for (int64_t i = 0; i < m * p_; i++) weights[size_t(i)] = s.numbers[size_t(i % p_ * s.capacity + i / p_)];
        visit.array("f.weights", weights, {m, p_});
        for (int64_t i = 0; i < m * p_; i++) s.numbers[size_t(i % p_ * s.capacity + i / p_)] = weights[size_t(i)];
        if (!is_coherent()) return;
        std::copy_n(s.numbers.begin() + p_ * s.capacity, m, kcc.begin());
        visit.array("f.kcc", kcc, {m});
        std::copy_n(kcc.begin(), m, s.numbers.begin() + p_ * s.capacity);
    }
    // The chosen centers of each stored row. There may be fewer rows than in a full window. Placeholders of missing
    // centers are not stored.
    void list_chosen(Visitor& visit, int64_t n, int64_t each) {
        AffineState& s = state;
        const int64_t rows = visit.loads() ? FREE : n;
        std::vector<int64_t> places(s.places.begin(), s.places.begin() + n * each);
        std::vector<double> along(s.along.begin(), s.along.begin() + n * each),
            length(s.length.begin(), s.length.begin() + n);
        std::vector<double> KC = resized(s.KC, n * each, n * each, s.room * each, n * each, n * each),
                            C(size_t(n * each * d_));
        const auto is_missing = [&](int64_t slot) { return places[size_t(slot)] < 0; };
        for (int64_t i = 0; i < n * each; i++) {
            if (!is_missing(i)) s.chosen.get(i, C.data() + i * d_);
            for (int64_t j = 0; j < n * each; j++)
                if (is_missing(i) || is_missing(j)) KC[size_t(i * n * each + j)] = 0;
        }
        const int64_t stored = visit.integers("chosen.places", places, {rows, each});
        visit.array("chosen.a", along, {rows, each});
        visit.array("chosen.d", length, {rows});
        const int64_t slots = visit.array("chosen.K", KC, {visit.loads() ? FREE : n * each, n * each});
        visit.array("chosen.C", C, {visit.loads() ? FREE : n * each, d_});
        if (!visit.loads()) return;
        std::copy_n(places.begin(), stored * each, s.places.begin());
        std::copy_n(along.begin(), stored * each, s.along.begin());
        std::copy_n(length.begin(), stored, s.length.begin());
        for (int64_t i = 0; i < slots; i++)
            std::copy_n(KC.begin() + i * slots, slots, s.KC.begin() + i * s.room * each);
        for (int64_t j = 0; j < slots; j++) s.chosen.replace(j, C.data() + j * d_);
    }

    void reserve_centers(int64_t m) {
        AffineState& s = state;
        if (size_t(m) > k_.size()) k_.resize(size_t(std::max<int64_t>(m, 2 * s.capacity)));
        if (m <= s.capacity) return;
        const int64_t wanted = std::max<int64_t>({m, 2 * s.capacity, 16}), had = s.capacity;
        std::vector<double> numbers = resized(s.numbers, rows_of_numbers(), had, had, rows_of_numbers(), wanted);
        std::vector<double> H;
        if (is_coherent()) H = resized(s.H, s.room, had, had, s.room, wanted);
        make_room(s.f, wanted);
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
        if (is_coherent()) H = resized(s.H, had, s.capacity, s.capacity, wanted, s.capacity);
        if (rule_.kind == AffineRule::KAP) G = resized(s.G, had, had, had, wanted, wanted);
        make_room(s.points, wanted);
        if (rule_.kind == AffineRule::PHYPASS) {
            along = resized(s.along, had, each, each, wanted, each);
            length = resized(s.length, had, 1, 1, wanted, 1);
            KC = resized(s.KC, had * each, had * each, had * each, slots, slots);
            s.places.resize(size_t(slots), -1);
            const std::vector<double> nowhere(static_cast<size_t>(d_));
            while (s.chosen.size() < slots) s.chosen.append(nowhere.data());
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

    // Append or remove points to reach this number
    void make_room(Centers& centers, int64_t wanted) const {
        const int64_t there = centers.size();
        const std::vector<double> nowhere(static_cast<size_t>(d_));
        while (centers.size() < wanted) centers.append(nowhere.data());
        while (centers.size() > there) centers.remove(centers.size() - 1);
    }
    void look(const double* x, double* mean, double* variance) const {
        if (size())
            state.f.row(x, p_, state.capacity, state.numbers.data(), k_.data(), mean);
        else
            std::fill_n(mean, p_, 0.0);
        state.errors.variances(variance);
    }
    AffineArrays arrays() {
        AffineState& s = state;
        return {s.f,
                s.points,
                s.chosen,
                d_,
                p_,
                s.capacity,
                s.room,
                s.count,
                s.numbers.data(),
                s.K.data(),
                s.Y.data(),
                s.F.data(),
                s.H.data(),
                s.G.data(),
                s.norms.data(),
                s.places.data(),
                s.along.data(),
                s.length.data(),
                s.KC.data(),
                s.errors};
    }

    const AffineRule rule_;
    const int64_t d_, p_;
    mutable AffineState state;  // mutable because the centers have a scratch buffer
    std::vector<double> mean_, variance_;
    std::vector<int64_t> size_;
    mutable std::vector<double> k_;
    mutable std::mutex looking_;
};

}  // namespace onlinegp::ONLINEGP_ISA
