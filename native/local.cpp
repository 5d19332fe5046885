// The models of neighbors of one instruction set, compiled as isa.cpp is.
#include "local.hpp"
#include "residual.hpp"

namespace onlinegp::ONLINEGP_ISA {

Local* make_local(const LocalPrior& prior, int d, int p) { return new LocalModel(prior, d, p); }
Residual* make_residual(const LocalPrior& prior, int d, int p) { return new ResidualModel(prior, d, p); }

}  // namespace onlinegp::ONLINEGP_ISA
