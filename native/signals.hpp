// Signals such as Ctrl-C during long calls, which only the main thread of Python receives, and the locks of such calls.
#pragma once
#include <nanobind/nanobind.h>
#include "lock.hpp"
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace onlinegp {

namespace nb = nanobind;
using Clock = std::chrono::steady_clock;
constexpr auto BETWEEN_SIGNALS = std::chrono::milliseconds(50);  // the longest time until a signal is noticed

inline std::atomic<unsigned long> main_thread{0};

// When the module is loaded
inline void watch_processes() {
    main_thread = nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
#if defined(__unix__) || defined(__APPLE__)
    pthread_atfork(nullptr, nullptr, [] { forks++, main_thread = PyThread_get_thread_ident(); });
#endif
}

// Checks for signals twenty times a second in the main thread. Python reports none in other threads.
class Signals {
  public:
    // Called without the interpreter's lock. A signal handler runs here, and `raise` raises its exception.
    bool came() {
        if (came_ || !main_ || Clock::now() < next_) return came_;
        nb::gil_scoped_acquire hold;
        came_ = PyErr_CheckSignals() != 0;
        next_ = Clock::now() + BETWEEN_SIGNALS;
        return came_;
    }
    bool raised() const { return came_; }
    void raise() const {  // with the interpreter's lock
        if (came_) throw nb::python_error();
    }

  private:
    const bool main_ = PyThread_get_thread_ident() == main_thread;
    bool came_ = false;
    Clock::time_point next_ = Clock::now() + BETWEEN_SIGNALS;
};

enum class Use { Read, Change };

// Holds the lock of a model or fleet. The holder may wait for the lock of the interpreter, so no thread waits for the
// model while it has the lock of the interpreter. A signal handler within a call of its own thread may read, because it
// runs between two samples.
class Held {
  public:
    Held(Lock& lock, Use use) : lock_(lock), inside_(lock.held_here()) {
        if (inside_ && use == Use::Change)
            throw std::runtime_error(
                "the model is at work in the call that this signal handler interrupts: the handler may read it (save "
                "it, "
                "ask for its centers), not change it. Set a flag in the handler, and act on it after the call.");
        if (!inside_ && !take())
            throw std::runtime_error(
                "the model cannot be used in this process: it was forked while another thread was in the middle of a "
                "call "
                "on the model. Fork between calls, or give the process a copy (to_bytes, pickle).");
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() {
        if (!inside_) lock_.give_back();
    }

  private:
    bool take() {  // false if the lock will never be released
        Signals signals;
        bool taken = false;
        {
            nb::gil_scoped_release release;
            while (!taken && !signals.came() && !lock_.lost()) taken = lock_.take_within(BETWEEN_SIGNALS);
        }
        if (taken) return true;
        signals.raise();
        return false;
    }

    Lock& lock_;
    const bool inside_;
};

}  // namespace onlinegp
