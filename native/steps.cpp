// The least mean squares algorithms that are no recipe, of one instruction set, compiled as isa.cpp is.
#include "steps.hpp"

namespace onlinegp::ONLINEGP_ISA {

StepModel* make_steps(const StepRule& rule, int d, int p) { return new StepFilter(rule, d, p); }

}  // namespace onlinegp::ONLINEGP_ISA
