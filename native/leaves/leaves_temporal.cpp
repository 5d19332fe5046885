// Models of series. Compiled like leaves.cpp, once for each instruction set.
#include <stdexcept>
#include "leaves/smoothed_lags.hpp"
#include "leaves/temporal.hpp"
#include "leaves/temporal_likelihood.hpp"

namespace onlinegp::ONLINEGP_ISA {

Learner* make_temporal(const Plan& plan) { return new temporal::Temporal(plan); }
Learner* make_smoothed_lags(const Plan& plan) { return new temporal::SmoothedLags(plan); }

// Sizes of arrays for states: the first size that is large enough is used
template <int64_t S, int64_t... LARGER>
static double likelihood(const TimedRows& rows, const std::vector<temporal::Block>& blocks, double* sigma2,
                         double* gradient) {
    if constexpr (sizeof...(LARGER) > 0)
        if (blocks.back().first + blocks.back().states() > S)
            return likelihood<LARGER...>(rows, blocks, sigma2, gradient);
    temporal::Likelihood<S> likelihood(blocks, rows);
    const double value = likelihood.forward();
    *sigma2 = likelihood.sigma2();
    likelihood.backward(gradient);
    return value;
}

double temporal_likelihood(const TimedRows& rows, int64_t blocks, const double* table, double* sigma2,
                           double* gradient) {
    constexpr int64_t MOST = 256;
    const auto own = temporal::blocks_of(table, blocks);
    if (own.back().first + own.back().states() > MOST) throw std::invalid_argument("there are too many states.");
    return likelihood<8, 16, 24, 32, 40, 64, 128, MOST>(rows, own, sigma2, gradient);
}

}  // namespace onlinegp::ONLINEGP_ISA
