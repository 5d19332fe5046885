// The choice of the instruction set for this machine, and code that is compiled once for all instruction sets.
#include "learner.hpp"
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace onlinegp {

Learner::~Learner() = default;
Scratch::~Scratch() = default;
Models::~Models() = default;
Stop::~Stop() = default;

bool Stop::look() { return false; }

// The work until the next check equals the work of the last two milliseconds, at most twice the previous amount
bool Stop::look_now() {
    constexpr double LOOK = 2e-3;  // seconds
    const auto now = std::chrono::steady_clock::now();
    const double elapsed = std::chrono::duration<double>(now - last_).count(), done = double(every_ - left_);
    every_ = int64_t(elapsed < LOOK / 2 ? 2 * done : done * LOOK / elapsed) + 1;
    stopped_ = stopped_ || look();
    left_ = stopped_ ? 0 : every_;
    last_ = now;
    return stopped_;
}

#ifdef ONLINEGP_X86
namespace avx512 {
extern const InstructionSet table;
}
namespace avx2 {
extern const InstructionSet table;
}
namespace sse2 {
extern const InstructionSet table;
}
const InstructionSet* const available[] = {&avx512::table, &avx2::table, &sse2::table, nullptr};

static bool runs(const InstructionSet* set) {
    if (set == &avx512::table)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("fma");
    if (set == &avx2::table)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    return true;
}
#else
namespace generic {
extern const InstructionSet table;
}
const InstructionSet* const available[] = {&generic::table, nullptr};
static bool runs(const InstructionSet*) { return true; }
#endif

const InstructionSet* choose(const char* at_most) {
    bool allowed = at_most == nullptr || *at_most == 0;
    for (const InstructionSet* const* set = available; *set; set++) {
        allowed = allowed || std::strcmp((*set)->name, at_most) == 0;
        if (allowed && runs(*set)) return *set;
    }
    return nullptr;
}

const InstructionSet& instructions() {
    static const InstructionSet* set = choose(std::getenv("ONLINEGP_ISA"));
    if (!set) throw std::runtime_error("ONLINEGP_ISA is not an instruction set of this build; unset it.");
    return *set;
}

}  // namespace onlinegp
