// Models that several threads may use. Only one thread at a time learns; many rows are predicted on several cores.
#pragma once
#include <cmath>
#include <condition_variable>
#include <exception>
#include <memory>
#include <vector>
#include "learner.hpp"
#include "lock.hpp"

namespace onlinegp {

constexpr double LARGEST = 1e150;                    // larger squares overflow a double
constexpr double FAR = 1e3, SURE = 1e5, LOST = 1e9;  // as in onlinegp.models.breakdown
constexpr int64_t MOST_AT_ONCE = 1000000;  // largest work of a row, in kernel evaluations, for which other threads wait
constexpr int64_t PAIRS_A_THREAD = 200000;  // minimum work of an additional thread, in kernel evaluations

// Stop when look() returns true
template <class Look> class StopIf final : public Stop {
  public:
    explicit StopIf(const Look& look) : Stop(1), look_(look) {}

  private:
    bool look() override { return look_(); }
    const Look look_;
};

// Call work(begin, end) over [0, n), split evenly between threads. While this thread waits for the others, it calls
// meanwhile() from time to time. An exception of any thread is thrown here.
template <class Work, class Meanwhile>
void in_parallel(int64_t n, int threads, const Work& work, const Meanwhile& meanwhile) {
    const int64_t share = (n + threads - 1) / threads;
    std::vector<std::thread> others;
    others.reserve(size_t(threads));
    std::mutex mutex;  // protects the three variables below
    std::condition_variable ended;
    std::exception_ptr failure;
    size_t done = 0;
    const auto part = [&](int64_t i) {
        std::exception_ptr thrown;
        try {
            work(i * share, (i + 1) * share < n ? (i + 1) * share : n);
        } catch (...) {
            thrown = std::current_exception();
        }
        std::lock_guard<std::mutex> guard(mutex);
        if (thrown) failure = thrown;
        done++;
        ended.notify_one();
    };
    size_t parts = 1;
    for (int64_t i = 1; i < threads && i * share < n; i++, parts++) {
        try {
            others.emplace_back(part, i);
        } catch (const std::exception&) {  // the system has no more threads, or no memory for one
            part(i);
        }
    }
    part(0);
    std::unique_lock<std::mutex> guard(mutex);
    while (done < parts) {
        if (ended.wait_for(guard, std::chrono::milliseconds(10)) == std::cv_status::no_timeout) continue;
        guard.unlock();
        meanwhile();
        guard.lock();
    }
    guard.unlock();
    for (auto& thread : others) thread.join();
    if (failure) std::rethrow_exception(failure);
}

// Check the predictions of rows that are learned one by one: the rule of onlinegp.models.breakdown, as far as it can
// be checked here
class Plausible {
  public:
    // Whether |y| is at most twice the known largest |y|. If not, it becomes the largest.
    bool target(double y) {
        if (std::fabs(y) <= 2 * largest_) return true;
        largest_ = std::fabs(y);
        return false;
    }
    bool prediction(double mean, double std, double y) const {
        if (!std::isfinite(mean) || !std::isfinite(std)) return false;
        const double size = std::fabs(mean);
        return size <= FAR * largest_ || (size <= LOST * largest_ && std::fabs(y - mean) <= SURE * std);
    }

  private:
    double largest_ = 0;  // |y|, up to a factor of two
};

inline bool is_sound(const double* x, int64_t n) {  // false for NaN
    for (int64_t i = 0; i < n; i++)
        if (!(std::fabs(x[i]) < LARGEST)) return false;
    return true;
}

// The events of one call of a fleet. They are processed model by model, so that memory is read once and in order. Each
// thread processes a range of the models. The events of a model stay in order.
class Rounds {
  public:
    // Call employ(workers), then work(worker, next, end, stop) in rounds; work advances `next`. Between two rounds all
    // threads pause, and this thread checks whether it is `interrupted`.
    template <class Employ, class Work, class Interrupted>
    void go(int64_t n, const int64_t* who, int64_t models, int threads, const Employ& employ, const Work& work,
            const Interrupted& interrupted) {
        shares_.clear();
        sort(n, who, models);
        const int workers = n < EVENTS_A_THREAD * threads ? int(n / EVENTS_A_THREAD) + 1 : threads;
        employ(workers);
        for (int64_t i = 0; i < workers; i++) {
            const Event* begin = events_.data() + border(n * i / workers);
            shares_.push_back({begin, begin, events_.data() + border(n * (i + 1) / workers)});
        }
        do {
            const auto until = std::chrono::steady_clock::now() + ROUND;
            const auto part = [&](int64_t worker, int64_t) {
                StopIf late([&] { return std::chrono::steady_clock::now() >= until; });
                Share& share = shares_[size_t(worker)];
                work(int(worker), share.next, share.end, late);
            };
            in_parallel(workers, workers, part, [] {});
        } while (!finished() && !interrupted());
    }
    void forget() { shares_.clear(); }  // which rows the last call processed
    // Free memory that only the next call needs
    void spare() { std::vector<Event>().swap(sorted_); }

    // Mark the rows that the last call processed. If a call has another number of rows, it never began.
    void learned(bool* rows, int64_t n) const {
        if (n != int64_t(events_.size())) return;
        for (const Share& share : shares_)
            for (const Event* event = share.begin; event < share.next; event++) rows[event->row] = true;
    }

  private:
    struct Share {
        const Event *begin, *next, *end;
    };
    bool finished() const {
        for (const Share& share : shares_)
            if (share.next < share.end) return false;
        return true;
    }
    // Sort by model, then by row: radix sort, from the last digit to the first
    void sort(int64_t n, const int64_t* who, int64_t models) {
        events_.resize(n);
        sorted_.resize(n);
        for (int64_t i = 0; i < n; i++) events_[i] = {who[i], i};
        for (int shift = 0; (models - 1) >> shift; shift += DIGIT) {
            int64_t start[(1 << DIGIT) + 1] = {};
            const auto digit = [&](const Event& event) { return (event.who >> shift) & ((1 << DIGIT) - 1); };
            for (const Event& event : events_) start[digit(event) + 1]++;
            for (int i = 0; i < 1 << DIGIT; i++) start[i + 1] += start[i];
            for (const Event& event : events_) sorted_[start[digit(event)]++] = event;
            events_.swap(sorted_);
        }
    }
    // The first event from i on with another model than the event before
    int64_t border(int64_t i) const {
        const int64_t n = int64_t(events_.size());
        while (0 < i && i < n && events_[i].who == events_[i - 1].who) i++;
        return i;
    }

    static constexpr int64_t EVENTS_A_THREAD = 64;
    static constexpr auto ROUND = std::chrono::milliseconds(25);
    static constexpr int DIGIT = 8;
    std::vector<Event> events_, sorted_;
    std::vector<Share> shares_;
};

// Many filters of one recipe
class FleetEngine {
  public:
    FleetEngine(const InstructionSet& set, const Recipe& recipe, int d, int p, bool single)
        : d(d), p(p), recipe_(recipe), models_(set.make_many(recipe_, d, p, single)) {}
    ~FleetEngine() {
        if (lock.lost()) (void)models_.release();  // a call was interrupted while it changed them
    }

    const int d, p;
    Lock lock;

    Models& models() { return *models_; }
    const Recipe& recipe() const { return recipe_; }

    template <class Interrupted>
    void work(int64_t n, const int64_t* who, const double* X, const double* Y, const Steps& steps, int threads,
              const Interrupted& interrupted) {
        const auto employ = [&](int workers) { models_->employ(workers); };
        const auto some = [&](int worker, const Event*& next, const Event* end, Stop& stop) {
            models_->work(worker, next, end, X, Y, steps, stop);
        };
        rounds_.go(n, who, models_->count(), threads, employ, some, interrupted);
    }
    void spare() { rounds_.spare(); }
    void learned(bool* rows, int64_t n) const { rounds_.learned(rows, n); }
    void forget() { rounds_.forget(); }

  private:
    Rounds rounds_;
    const Recipe recipe_;
    std::unique_ptr<Models> models_;
};

}  // namespace onlinegp
