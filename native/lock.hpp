// A lock that allows one call at a time on a model. Without Python.
#pragma once
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace onlinegp {

inline std::atomic<int> forks{0};  // number of forks before this process; the module updates it

// The lock stores its thread, because a signal handler may run within a call of this thread. It stores its process,
// because a child that is forked during a call of another thread has the lock but not the thread that releases it.
class Lock {
  public:
    // For calls that keep the lock of the interpreter, in which neither signal handlers nor forks can occur
    bool try_lock() { return mutex_.try_lock(); }
    void unlock() { mutex_.unlock(); }

    // For other calls
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
