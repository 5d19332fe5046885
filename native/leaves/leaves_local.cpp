// The models on the nearest rows. Compiled like leaves.cpp, once for each instruction set.
#include "leaves/local.hpp"
#include "leaves/residual.hpp"

namespace onlinegp::ONLINEGP_ISA {

Learner* make_neighbors(const Plan& plan) {
    if (plan.kind == "local gp") return new LocalModel(plan);
    if (plan.kind == "residual gp") return new ResidualModel(plan);
    return nullptr;
}

}  // namespace onlinegp::ONLINEGP_ISA
