// The least mean squares algorithms that are not recipes. Compiled like leaves.cpp, once for each instruction set.
#include "leaves/lms_variants.hpp"

namespace onlinegp::ONLINEGP_ISA {

Learner* make_steps(const Plan& plan) {
    const std::string& kind = plan.kind;
    if (kind == "normalized steps") return new StepFilter(plan, StepKind::Normalized);
    if (kind == "penalized steps") return new StepFilter(plan, StepKind::Penalized);
    if (kind == "adaptively penalized steps") return new StepFilter(plan, StepKind::AdaptivelyPenalized);
    if (kind == "significant centers") return new StepFilter(plan, StepKind::Significant);
    if (kind == "mixed kernels") return new StepFilter(plan, StepKind::Mixed);
    return nullptr;
}

}  // namespace onlinegp::ONLINEGP_ISA
