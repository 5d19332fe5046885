// A model that several threads may use: who learns has it alone, and many rows are predicted on many cores.
#pragma once
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>
#include "api.hpp"

namespace onlinegp {

constexpr double LARGEST = 1e150;           // the square of anything larger overflows a double
constexpr int64_t PAIRS_A_THREAD = 200000;  // kernel evaluations below which a thread costs more than it brings

// Call work(begin, end) over [0, n), split evenly between threads; what one of them throws is thrown here
template <class Work> void in_parallel(int64_t n, int threads, const Work& work) {
    const int64_t share = (n + threads - 1) / threads;
    std::vector<std::thread> others;
    std::exception_ptr failure;
    std::mutex failing;
    const auto part = [&](int64_t i) {
        try {
            work(i * share, (i + 1) * share < n ? (i + 1) * share : n);
        } catch (...) {
            std::lock_guard<std::mutex> guard(failing);
            failure = std::current_exception();
        }
    };
    for (int64_t i = 1; i < threads && i * share < n; i++) {
        try {
            others.emplace_back(part, i);
        } catch (const std::system_error&) {  // no more threads to be had
            part(i);
        }
    }
    part(0);
    for (auto& thread : others) thread.join();
    if (failure) std::rethrow_exception(failure);
}

class Engine {
  public:
    Engine(const InstructionSet& set, const Recipe& recipe, int d, int p, bool single)
        : d(d), p(p), recipe_(recipe), model_(set.make(recipe_, d, p, single)) {}

    const int d, p;
    std::mutex lock;

    Model& model() { return *model_; }
    const Recipe& recipe() const { return recipe_; }

    void predict(int64_t n, const double* X, double* mean, double* variance, int threads) {
        model_->flush();
        const int64_t m = model_->size() + 1, cost = n * (recipe_.tracked() ? m * m / 16 + m : m);
        const int64_t useful = cost / PAIRS_A_THREAD + 1;
        in_parallel(n, int(useful < threads ? useful : threads), [&](int64_t begin, int64_t end) {
            model_->predict(end - begin, X + begin * d, mean + begin * p, variance + begin);
        });
    }

    static bool sound(const double* x, int64_t n) {  // NaN fails the comparison too
        for (int64_t i = 0; i < n; i++)
            if (!(std::fabs(x[i]) < LARGEST)) return false;
        return true;
    }

  private:
    const Recipe recipe_;
    std::unique_ptr<Model> model_;
};

// The same for a fleet. Events are worked off filter by filter, so that memory is walked through once and in order, and
// each thread takes a stretch of the filters; those of one filter stay in the order in which they came.
class FleetEngine {
  public:
    FleetEngine(const InstructionSet& set, const Recipe& recipe, int d, int p, bool single)
        : d(d), p(p), recipe_(recipe), models_(set.make_many(recipe_, d, p, single)) {}

    const int d, p;
    std::mutex lock;

    Models& models() { return *models_; }
    const Recipe& recipe() const { return recipe_; }

    void work(int64_t n, const int64_t* who, const double* X, const double* Y, double* mean, double* variance,
              int threads) {
        sort(n, who);
        const int workers = n < EVENTS_A_THREAD * threads ? int(n / EVENTS_A_THREAD) + 1 : threads;
        models_->employ(workers);
        in_parallel(workers, workers, [&](int64_t worker, int64_t) {
            const int64_t begin = border(n * worker / workers), end = border(n * (worker + 1) / workers);
            models_->work(int(worker), end - begin, events_.data() + begin, X, Y, mean, variance);
        });
    }

  private:
    // By filter, and by row within it: digit after digit, from the last to the first
    void sort(int64_t n, const int64_t* who) {
        events_.resize(n), sorted_.resize(n);
        for (int64_t i = 0; i < n; i++) events_[i] = {who[i], i};
        for (int shift = 0; (models_->count() - 1) >> shift; shift += DIGIT) {
            int64_t start[(1 << DIGIT) + 1] = {};
            const auto digit = [&](const Event& event) { return (event.who >> shift) & ((1 << DIGIT) - 1); };
            for (const Event& event : events_) start[digit(event) + 1]++;
            for (int i = 0; i < 1 << DIGIT; i++) start[i + 1] += start[i];
            for (const Event& event : events_) sorted_[start[digit(event)]++] = event;
            events_.swap(sorted_);
        }
    }
    // The first event from i on that belongs to another filter than the one before
    int64_t border(int64_t i) const {
        const int64_t n = int64_t(events_.size());
        while (0 < i && i < n && events_[i].who == events_[i - 1].who) i++;
        return i;
    }

    static constexpr int64_t EVENTS_A_THREAD = 64;
    static constexpr int DIGIT = 8;
    std::vector<Event> events_, sorted_;
    const Recipe recipe_;
    std::unique_ptr<Models> models_;
};

}  // namespace onlinegp
