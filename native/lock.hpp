// One call at a time on a model. Python-free.
#pragma once
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace onlinegp {

inline std::atomic<int> forks{0};  // that this process is the child of; kept by the module

// It knows the thread that holds it, since a signal handler may run within that thread's call, and the process, since a
// child that is forked in the middle of another thread's call has the lock but not the thread that would open it.
class Lock {
  public:
    // For a call that keeps the interpreter's lock: within it there are neither signal handlers nor forks
    bool try_lock() { return mutex_.try_lock(); }
    void unlock() { mutex_.unlock(); }

    // For the others
    template <class Duration> bool take_within(Duration patience) {
        if (!mutex_.try_lock_for(patience)) return false;
        thread_ = std::this_thread::get_id();
        process_ = forks.load();
        return true;
    }
    void give_back() {
        thread_ = std::thread::id();
        process_ = -1;
        unlock();
    }
    bool held_here() const { return thread_.load() == std::this_thread::get_id(); }
    bool lost() const { return process_ >= 0 && process_ != forks.load() && !held_here(); }

  private:
    std::timed_mutex mutex_;
    std::atomic<std::thread::id> thread_{std::thread::id()};
    std::atomic<int> process_{-1};
};

}  // namespace onlinegp
