// Compiled once for each instruction set, with its flags and in its own namespace.
#include "leaves/affine_learner.hpp"
#include "leaves/gaussians.hpp"
#include "leaves/random_features.hpp"
#include "leaves/linear_filters.hpp"
#include "fleet.hpp"
#include "leaves/recipe_learner.hpp"

#define NAME_OF(isa) #isa
#define NAME(isa) NAME_OF(isa)

namespace onlinegp::ONLINEGP_ISA {

static Learner* make_filter(const Plan& plan) {
    if (plan.number("single") != 0) return new Filter<float>(*plan.recipe, plan.features, plan.outputs);
    return new Filter<double>(*plan.recipe, plan.features, plan.outputs);
}

Learner* make_neighbors(const Plan& plan);  // in leaves_local.cpp
Learner* make_steps(const Plan& plan);      // in leaves_lms.cpp

Learner* make_temporal(const Plan& plan);       // in leaves_temporal.cpp
Learner* make_smoothed_lags(const Plan& plan);  // in leaves_temporal.cpp
double temporal_likelihood(const TimedRows& rows, int64_t blocks, const double* table, double* sigma2,
                           double* gradient);  // in leaves_temporal.cpp

// The leaves by the kinds of their plans
static Learner* make_leaf(const Plan& plan) {
    const std::string& kind = plan.kind;
    if (kind == "recipe") return make_filter(plan);
    if (kind == "isotropic filter") return new Isotropic(plan);
    if (kind == "kalman filter") return new Kalman(plan);
    if (kind == "linear regression") return Information::made(plan);
    if (kind == "cosines") return new Cosines(plan);
    if (kind == "random features") return new Features(plan);
    if (kind == "persistence") return new Persistence(plan);
    if (kind == "temporal") return make_temporal(plan);
    if (kind == "smoothed lags") return make_smoothed_lags(plan);
    if (kind == "kap") return new AffineLearner(plan, AffineRule::KAP);
    if (kind == "lkapa") return new AffineLearner(plan, AffineRule::LKAPA);
    if (kind == "nlkapa") return new AffineLearner(plan, AffineRule::NLKAPA);
    if (kind == "kapsm") return new AffineLearner(plan, AffineRule::KAPSM);
    if (kind == "phypass") return new AffineLearner(plan, AffineRule::PHYPASS);
    if (kind == "gaussians") return new Gaussians(plan);
    if (Learner* learner = make_neighbors(plan)) return learner;
    return make_steps(plan);
}

static Models* make_many(const Recipe& recipe, int d, int p, bool single) {
    if (single) return new Fleet<float>(recipe, d, p);
    return new Fleet<double>(recipe, d, p);
}

// y = f(x), for tests of f
template <class F> static void each(int64_t n, const double* x, double* y, const F& f) {
    for (int64_t i = 0; i < n; i++) y[i] = f(splat<double>(x[i]))[0];
}
static void exp2_minus_each(int64_t n, const double* x, double* y) {
    each(n, x, y, [](Vec<double> v) { return exp2_minus<1>(&v), v; });
}
static void sin_pi_each(int64_t n, const double* x, double* y) {
    each(n, x, y, [](Vec<double> v) { return sin_pi<double>(v); });
}

extern const InstructionSet table;
const InstructionSet table{NAME(ONLINEGP_ISA), make_leaf, make_many, exp2_minus_each, sin_pi_each, temporal_likelihood};

}  // namespace onlinegp::ONLINEGP_ISA
