// Models of series. Compiled like leaves.cpp, once for each instruction set.
#include "leaves/smoothed_lags.hpp"
#include "leaves/temporal.hpp"

namespace onlinegp::ONLINEGP_ISA {

Learner* make_temporal(const Plan& plan) { return new temporal::Temporal(plan); }
Learner* make_smoothed_lags(const Plan& plan) { return new temporal::SmoothedLags(plan); }

}  // namespace onlinegp::ONLINEGP_ISA
