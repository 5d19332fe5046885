// Which instruction set this machine runs.
#include "api.hpp"
#include <cstring>

namespace onlinegp {

Model::~Model() = default;
Models::~Models() = default;

#ifdef ONLINEGP_X86
namespace avx512 { extern const InstructionSet table; }
namespace avx2 { extern const InstructionSet table; }
namespace sse2 { extern const InstructionSet table; }
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
namespace generic { extern const InstructionSet table; }
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

}  // namespace onlinegp
