// Many filters of a recipe, in slabs of memory. They share only the scratch memory of an update.
#pragma once
#include "recipe/compact.hpp"

namespace onlinegp::ONLINEGP_ISA {

// A list of pointers that grows
template <class P> class List {
  public:
    List() = default;
    List(const List&) = delete;
    List& operator=(const List&) = delete;
    ~List() {
        for (int64_t i = 0; i < count_; i++) delete items_[i];
        std::free(items_);
    }
    int64_t count() const { return count_; }
    P& operator[](int64_t i) const { return *items_[i]; }
    template <class... From> void add(From&&... from) {
        if (count_ == room_) {
            const int64_t room = room_ ? 2 * room_ : 16;
            void* bigger = std::realloc(items_, size_t(room) * sizeof(P*));
            if (!bigger) throw std::bad_alloc();
            items_ = static_cast<P**>(bigger);
            room_ = room;
        }
        items_[count_] = new P(from...);
        count_++;
    }

  private:
    P** items_ = nullptr;
    int64_t count_ = 0, room_ = 0;
};

template <class T> class Fleet final : public Models {
  public:
    Fleet(const Recipe& recipe, int d, int p) : recipe_(recipe), kernel_(recipe, d), d_(d), p_(p) { employ(1); }

    int64_t count() const override { return states_.count(); }
    void grow(int64_t count) override {
        while (states_.count() < count) states_.add(recipe_, d_, p_);
    }
    void employ(int workers) override {
        while (workers_.count() < workers) workers_.add(d_, p_);
    }
    int64_t size(int64_t i) const override { return states_[i].size; }
    void load(int64_t i, const Arrays& in) override {
        states_[i].pool = &workers_[0].pool;
        states_[i].load(in);
    }
    void save(int64_t i, Arrays& out) override {
        flush(states_[i], workers_[0].prediction);
        states_[i].save(out);
    }
    void load_compact(int64_t i, const Arrays& in, const float* R) override {
        load(i, in);
        workers_[0].prediction.reserve(states_[i].capacity);
        if (R) multiply_factor(states_[i], R);
        factor_again(recipe_, kernel_, states_[i], workers_[0].prediction);
    }
    void save_compact(int64_t i, Arrays& out, float* R) override {
        save(i, out);
        if (R) factor_covariance(states_[i], R);
        out.scale = 1;
    }

    void work(int worker, const Event*& next, const Event* end, const double* X, const double* Y, const Steps& steps,
              Stop& stop) override {
        for (bool stopped = false; next < end && !stopped; next++) {
            if (next + 2 < end) fetch_early(next[2], X, Y);
            State<T>& state = states_[next->who];
            state.fetch_meanwhile(next + 1 < end ? &states_[next[1].who] : nullptr);
            const int64_t row = next->row;
            event(workers_[worker], state, X + row * d_, Y ? Y + row * p_ : nullptr, steps, row);
            state.fetch_meanwhile(nullptr);
            stopped = stop.asked(onlinegp::work(recipe_, state.size));
        }
    }

  private:
    struct Worker {
        Prediction<T> prediction;
        Pool pool;
        Worker(int d, int p) : prediction(d, p) {}
    };

    void fetch_early(const Event& next, const double* X, const double* Y) const {
        fetch(reinterpret_cast<const char*>(&states_[next.who]), sizeof(State<T>));
        fetch(X + next.row * d_, d_);
        if (Y) fetch(Y + next.row * p_, p_);
    }
    void event(Worker& worker, State<T>& state, const double* x, const double* y, const Steps& steps, int64_t row) {
        Prediction<T>& prediction = worker.prediction;
        state.pool = &worker.pool;
        state.reserve(state.size + 1);
        prediction.reserve(state.capacity);
        for (int j = 0; j < d_; j++) prediction.x[j] = T(x[j]);
        predict_one(recipe_, kernel_, state, prediction);
        if (steps.mean)
            for (int o = 0; o < p_; o++) steps.mean[row * p_ + o] = prediction.mean[o];
        if (steps.variance) steps.variance[row] = state.power * prediction.s;
        if (y) learn(recipe_, kernel_, state, prediction, y);
        if (steps.size) steps.size[row] = state.size;
    }

    const Recipe& recipe_;
    Kernel<T> kernel_;
    const int d_, p_;
    List<Worker> workers_;   // their pools outlive the states,
    List<State<T>> states_;  // which are destroyed first
};

}  // namespace onlinegp::ONLINEGP_ISA
