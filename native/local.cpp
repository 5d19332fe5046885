// The models of neighbors of one instruction set, compiled as isa.cpp is.
#include "local.hpp"

namespace onlinegp::ONLINEGP_ISA {

Local* make_local(const LocalPrior& prior, int d, int p) { return new LocalModel(prior, d, p); }

}  // namespace onlinegp::ONLINEGP_ISA
