// A filter with the plain interface of learner.hpp.
#pragma once
#include <deque>
#include <memory>
#include <string_view>
#include "recipe/predict.hpp"

namespace onlinegp::ONLINEGP_ISA {

// Temporary arrays of a state, in the form in which they are stored
class StateRoom {
  public:
    // Let `arrays` point to the arrays that the recipe tracks, with room for its size
    void lend(Arrays& arrays, const Recipe& recipe, int64_t d, int64_t p) {
        arrays.each([&](const char* name, std::string_view kind, auto& field) {
            if constexpr (std::is_pointer_v<std::remove_reference_t<decltype(field)>>)
                if (recipe.tracks(name)) field = take(name, shape_of(kind, arrays.size, d, p), field);
        });
    }
    void list(Visitor& visit) {
        for (Entry& one : entries_) {
            if (one.is_counts)
                visit.integers(one.name, one.counts, one.shape);
            else
                visit.array(one.name, one.values, one.shape);
        }
    }

  private:
    struct Entry {
        std::string name;
        Shape shape;
        bool is_counts;
        std::vector<double> values;
        std::vector<int64_t> counts;
    };
    static Shape shape_of(std::string_view kind, int64_t m, int64_t d, int64_t p) {
        if (kind == "points") return {m, d};
        if (kind == "outputs") return {m, p};
        if (kind == "triangular" || kind == "symmetric") return {m * (m + 1) / 2};
        return {m};
    }
    static size_t length_of(const Shape& shape) { return size_t(shape.size() == 2 ? shape[0] * shape[1] : shape[0]); }
    double* take(const char* name, const Shape& shape, double*) {
        entries_.push_back({name, shape, false, std::vector<double>(length_of(shape)), {}});
        return entries_.back().values.data();
    }
    int64_t* take(const char* name, const Shape& shape, int64_t*) {
        entries_.push_back({name, shape, true, {}, std::vector<int64_t>(length_of(shape))});
        return entries_.back().counts.data();
    }

    std::deque<Entry> entries_;  // whose addresses do not change
};

// Shared data of the filters of one recipe
template <class T> struct FilterParts {
    FilterParts(const Recipe& recipe, int d) : recipe(recipe), kernel(this->recipe, d) {}
    const Recipe recipe;
    const Kernel<T> kernel;

    // Reuse those of the last filter if they are equal, because a fleet has many. The caller holds
    // the interpreter's lock.
    static std::shared_ptr<const FilterParts> of(const Recipe& recipe, int d) {
        static std::weak_ptr<const FilterParts> last;
        std::shared_ptr<const FilterParts> parts = last.lock();
        if (parts && parts->kernel.d == d && parts->recipe == recipe) return parts;
        parts = std::make_shared<const FilterParts>(recipe, d);
        last = parts;
        return parts;
    }
};

template <class T> class Filter final : public Model {
  public:
    Filter(const Recipe& recipe, int d, int p)
        : parts_(FilterParts<T>::of(recipe, d)),
          recipe_(parts_->recipe),
          kernel_(parts_->kernel),
          state_(recipe_, d, p),
          ahead_x_(size_t(block_rows) * d) {
        state_.reserve(1);
    }
    ~Filter() override { delete own_; }

    int64_t size() const override { return state_.size; }
    int64_t seen() const override { return state_.seen; }
    int64_t work_per_row() const override { return work(recipe_, state_.size + 1); }
    // The numbers of a state, then its arrays
    void fields(Visitor& visit) override {
        if (visit.looks()) return;
        StateRoom room;
        Arrays arrays;
        arrays.size = state_.size;
        if (visit.saves()) {
            room.lend(arrays, recipe_, state_.d, state_.p);
            flush();
            state_.save(arrays);
        }
        arrays.each([&](const char* name, const char*, auto& field) { list_number(visit, name, field); });
        if (visit.loads()) room.lend(arrays, recipe_, state_.d, state_.p);
        room.list(visit);
        if (!visit.loads()) return;
        prediction().fresh = prediction().foreseen = false;
        state_.load(arrays);
    }

    int64_t learn(int64_t n, const double* X, const double* Y, const Steps& steps, Stop& stop) override {
        int64_t i = 0;
        if (is_klms(recipe_, state_))
            i = learn_klms(n, X, Y, steps, stop);
        else if (appends() && n >= 2 * AHEAD)
            i = learn_ahead(n, X, Y, steps, stop);
        for (; i < n && !stop.asked(work(recipe_, state_.size)); i++) {
            see(X + i * state_.d);
            prediction().announce(state_.d, looks_ahead() && i + 1 < n ? X + (i + 1) * state_.d : nullptr);
            learn_seen(i, Y, steps);
        }
        return i;
    }

    void predict_next(const double* x, double* mean, double* variance) override {
        see(x);
        for (int o = 0; o < state_.p; o++) mean[o] = prediction().mean[o];
        *variance = state_.power * prediction().s;
    }

    void flush() override { onlinegp::ONLINEGP_ISA::flush(state_, prediction()); }

    Scratch* make_scratch() const override { return new Prediction<T>(state_.d, state_.p); }
    void use(Scratch* lent) override {
        lent_ = static_cast<Prediction<T>*>(lent);
        if (!lent_) return;
        delete own_;  // it does not contain what is learned in the meantime
        own_ = nullptr;
        lent_->fresh = lent_->foreseen = false;
    }
    void lines(Lines& needed) const override { needed.add(this, sizeof(*this)); }
    void fetch_meanwhile(const Learner* next) override {
        state_.fetch_meanwhile(next ? &static_cast<const Filter*>(next)->state_ : nullptr);
    }

    void reserve(int64_t rows) override {
        const int64_t budget = recipe_.pruning.budget;
        const int64_t most = state_.size + rows;
        const int64_t wanted = budget && budget + 1 < most ? budget + 1 : most;
        if (wanted > state_.capacity || state_.capacity > prediction().room) {
            flush();  // pending updates are in vectors that are replaced
            prediction().fresh = false;
            state_.reserve(wanted);
            prediction().reserve(state_.capacity);
        }
        if (appends() && rows >= 2 * AHEAD) ahead_.reserve(prediction().room);
    }

    void predict(int64_t n, const double* X, double* mean, double* variance, Stop& stop) const override {
        auto& state = const_cast<State<T>&>(state_);  // without pending updates, a product does not change the state
        onlinegp::ONLINEGP_ISA::predict(recipe_, kernel_, state, n, X, mean, variance, stop);
    }

    void rows(int64_t n, const double* X, double* K) const override {
        Buffer<T> x(state_.d), k(state_.capacity);
        for (int64_t i = 0; i < n; i++) {
            for (int j = 0; j < state_.d; j++) x[j] = T(X[i * state_.d + j]);
            row(kernel_, state_.tiles, state_.size, x.data(), state_.alpha, k.data());
            for (int64_t j = 0; j < state_.size; j++) K[i * state_.size + j] = double(k[j]);
        }
    }

  private:
    static void list_number(Visitor& visit, const char* name, int64_t& number) { visit.integer(name, number); }
    static void list_number(Visitor& visit, const char* name, double& number) { visit.number(name, number); }
    template <class Array> static void list_number(Visitor&, const char*, Array*&) {}

    static constexpr int block_rows = W<T> < AHEAD ? AHEAD : W<T>;

    Prediction<T>& prediction() {
        if (lent_) return *lent_;
        if (!own_) own_ = new Prediction<T>(state_.d, state_.p);
        return *own_;
    }

    // If L is too large for the first cache, removing a center, which reads L, also solves for the next input
    bool looks_ahead() const { return recipe_.tracked() && state_.size >= 128; }

    // Centers are only added, and the belief needs only their kernel row
    bool appends() const { return !recipe_.pruning.budget && !recipe_.tracked(); }

    void see(const double* x) {
        bool same = prediction().fresh;
        for (int j = 0; j < state_.d; j++) {
            same = same && prediction().x[j] == T(x[j]);
            prediction().x[j] = T(x[j]);
        }
        if (same) return;
        prediction().fresh = false;  // the next call may fail for lack of memory
        state_.reserve(state_.size + 1);
        prediction().reserve(state_.capacity);
        predict_one(recipe_, kernel_, state_, prediction());
        prediction().fresh = true;
    }

    void learn_seen(int64_t i, const double* Y, const Steps& steps) {
        if (steps.mean)
            for (int o = 0; o < state_.p; o++) steps.mean[i * state_.p + o] = prediction().mean[o];
        if (steps.variance) steps.variance[i] = state_.power * prediction().s;
        const Step step = onlinegp::ONLINEGP_ISA::learn(recipe_, kernel_, state_, prediction(), Y + i * state_.p);
        prediction().fresh = false;
        if (steps.size) steps.size[i] = state_.size;
        if (steps.slot) {
            steps.slot[i] = step.slot;
            steps.admitted[i] = step.admitted;
            steps.left[i] = step.left;
        }
    }

    // Learn row by row until the tile is full, then tile by tile. Return the number of rows learned.
    int64_t learn_klms(int64_t n, const double* X, const double* Y, const Steps& steps, Stop& stop) {
        const int d = state_.d;
        int64_t i = 0;
        for (; i < n && state_.size % W<T>; i++) {
            see(X + i * d);
            learn_seen(i, Y, steps);
        }
        double mean[block_rows], kxx[block_rows];
        for (; i + W<T> <= n && !stop.asked(W<T> * work(recipe_, state_.size)); i += W<T>) {
            prediction().fresh = false;
            state_.reserve(state_.size + W<T>);
            for (int j = 0; j < W<T> * d; j++) ahead_x_[j] = T(X[i * d + j]);
            learn_klms_tile(recipe_, kernel_, state_, ahead_x_.data(), Y + i, mean, kxx);
            for (int b = 0; b < W<T>; b++) {
                const int64_t slot = state_.size - W<T> + b;
                if (steps.mean) steps.mean[i + b] = mean[b];
                if (steps.variance) steps.variance[i + b] = state_.power * max(1.0 / recipe_.belief.step, kxx[b]);
                if (steps.size) steps.size[i + b] = slot + 1;
                if (steps.slot) {
                    steps.slot[i + b] = slot;
                    steps.admitted[i + b] = 1;
                    steps.left[i + b] = NEW;
                }
            }
        }
        return i;
    }

    // Kernel rows of four samples at a time
    int64_t learn_ahead(int64_t n, const double* X, const double* Y, const Steps& steps, Stop& stop) {
        const int d = state_.d;
        int64_t i = 0;
        for (; i + AHEAD <= n && !stop.asked(AHEAD * work(recipe_, state_.size)); i += AHEAD) {
            prediction().fresh = false;
            for (int j = 0; j < AHEAD * d; j++) ahead_x_[j] = T(X[i * d + j]);
            state_.reserve(state_.size + AHEAD);
            prediction().reserve(state_.capacity);
            ahead_.prepare(kernel_, state_, ahead_x_.data(), prediction().room);
            for (int b = 0; b < AHEAD; b++) {
                for (int j = 0; j < d; j++) prediction().x[j] = ahead_x_[b * d + j];
                if (recipe_.uses_norm())
                    ahead_.template finish<true>(kernel_, state_, b, prediction());
                else
                    ahead_.template finish<false>(kernel_, state_, b, prediction());
                for (int o = 1; o < state_.p; o++)
                    prediction().mean[o] = double(dot(prediction().k.data(), state_.weights(o), state_.size));
                prediction().kxx = diagonal(kernel_, prediction().x.data());
                predict_belief(recipe_, state_, prediction());
                learn_seen(i + b, Y, steps);
            }
        }
        return i;
    }

    const std::shared_ptr<const FilterParts<T>> parts_;
    const Recipe& recipe_;
    const Kernel<T>& kernel_;
    State<T> state_;
    Prediction<T>*own_ = nullptr, *lent_ = nullptr;
    Buffer<T> ahead_x_;
    RowsAhead<T> ahead_;
};

}  // namespace onlinegp::ONLINEGP_ISA
