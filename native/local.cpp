// The models of neighbors of one instruction set, compiled as isa.cpp is.
#include "local.hpp"
#include "residual.hpp"

namespace onlinegp::ONLINEGP_ISA {

Learner* make_neighbors(const Plan& plan) {
    if (plan.kind == "local gp") return new LocalModel(plan);
    if (plan.kind == "residual gp") return new ResidualModel(plan);
    return nullptr;
}

}  // namespace onlinegp::ONLINEGP_ISA
