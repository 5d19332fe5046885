// The kinds of learners by name. The kinds of leaves are in leaves/leaves.cpp.
#include "make.hpp"
#include <stdexcept>
#include "wrappers/calibrated.hpp"
#include "wrappers/conformal.hpp"
#include "wrappers/heavy_tailed.hpp"
#include "wrappers/lagged.hpp"
#include "wrappers/mixture.hpp"
#include "wrappers/robust.hpp"
#include "wrappers/scaled.hpp"
#include "wrappers/shared_rows.hpp"

namespace onlinegp {

double Plan::number(const char* name) const { return vector(name).at(0); }
double Plan::number(const char* name, double fallback) const { return constants.count(name) ? number(name) : fallback; }
int64_t Plan::count(const char* name) const {
    constexpr double LARGEST =
        9007199254740992.0;  // 2^53, the limit of exact counts in a double; larger values mean no limit
    return int64_t(std::min(number(name), LARGEST));
}
int64_t Plan::count(const char* name, int64_t fallback) const { return constants.count(name) ? count(name) : fallback; }
const Vector& Plan::vector(const char* name) const { return constants.at(name); }

static FadingScaleRule scale_rule(const Plan& plan) {
    return {0, plan.number("keep"), plan.number("far"), plan.number("tiny")};
}
static FadingWeightsRule weights_rule(const Plan& plan) {
    return {plan.number("fade"), plan.number("cut"), plan.number("least")};
}
static GateRule gate_rule(const Plan& plan) {
    return {plan.number("gate"), plan.number("usual_keep"), plan.number("largest"), plan.number("better"),
            plan.number("surer")};
}
static Scaled::Rule scaled_rule(const Plan& plan) {
    return {plan.count("rows"), plan.number("x_given") != 0, plan.number("y_given") != 0, plan.number("limit")};
}
static StretchRule stretch_rule(const Plan& plan) {
    const Vector& c = plan.vector("rule");
    return {c.at(0), c.at(1), c.at(2), c.at(3),  c.at(4),  c.at(5), c.at(6),
            c.at(7), c.at(8), c.at(9), c.at(10), c.at(11), c.at(12)};
}

static std::unique_ptr<ChangeDetector> detector(const Plan& plan, int d, int p) {
    if (!plan.constants.count("change")) return nullptr;
    const Vector& c = plan.vector("change");
    ChangeDetector::Rule rule = {c.at(0),
                                 c.at(1),
                                 c.at(2),
                                 c.at(3),
                                 c.at(4),
                                 c.at(5),
                                 int64_t(c.at(6)),
                                 c.at(7),
                                 plan.vector("pauses"),
                                 {},
                                 size_t(plan.number("window"))};
    for (const double one : plan.vector("fresh")) rule.fresh.push_back(size_t(one));
    return std::make_unique<ChangeDetector>(std::move(rule), d, p);
}

template <class T, class... From> static std::unique_ptr<T> sized(From&&... from) {
    auto node = std::make_unique<T>(std::forward<From>(from)...);
    node->bytes = sizeof(T);
    return node;
}

class Maker {
  public:
    Owned node(const Plan& plan) {
        const std::string& kind = plan.kind;
        if (kind == "leaf") return shared_leaf(plan);
        if (kind == "shared rows") return shared_rows(plan);
        const int d = plan.features;
        std::vector<Owned> inside;
        std::vector<std::string> names;
        for (const auto& [name, one] : plan.inside) {
            names.push_back(name);
            inside.push_back(node(one));
        }
        if (kind == "mixture") {
            const int p = inside.at(0)->p;
            return sized<Mixture>(d, std::move(inside), std::move(names), weights_rule(plan), gate_rule(plan),
                                  RecordRule{plan.number("lasting"), plan.number("most_behind")},
                                  int(plan.number("threads")), detector(plan, d, p));
        }
        if (inside.empty()) return own_leaf(plan);
        Owned one = std::move(inside.at(0));
        if (kind == "scaled") return sized<Scaled>(d, std::move(one), scaled_rule(plan), plan.vector("fresh"));
        if (kind == "lagged")
            return sized<Lagged>(d, std::move(one), plan.vector("lags"), plan.vector("sizes"),
                                 int64_t(plan.number("horizon")), plan.vector("degrees"), plan.number("normal"),
                                 scale_rule(plan));
        if (kind == "robust")
            return sized<Robust>(d, std::move(one), plan.number("bound"), plan.number("reject"),
                                 int64_t(plan.number("rows")), int64_t(plan.number("in_a_row")));
        if (kind == "calibrated") return sized<Calibrated>(d, std::move(one), scale_rule(plan));
        if (kind == "heavy tailed")
            return sized<HeavyTailed>(d, std::move(one), plan.vector("degrees"), scale_rule(plan), weights_rule(plan));
        if (kind == "conformal") return sized<Conformal>(d, std::move(one), plan.number("level"), stretch_rule(plan));
        throw std::invalid_argument("there is no compiled learner of kind " + kind);
    }
    // After the whole tree is built, connect learners that share rows with their source
    std::vector<Lock*> connected() {
        for (auto& [node, source] : sharing_) node->use(*residual_.at(source));
        return locks_;
    }

  private:
    Owned own_leaf(const Plan& plan) {
        std::unique_ptr<Learner> learner(instructions().make_leaf(plan));
        if (!learner) throw std::invalid_argument("there is no compiled learner of kind " + plan.kind);
        std::unique_ptr<Leaf> node = leaf(*learner, plan);
        node->own(std::move(learner));
        return node;
    }
    Owned shared_leaf(const Plan& plan) {
        locks_.push_back(plan.shared.lock);
        return leaf(*plan.shared.learner, plan);
    }
    std::unique_ptr<Leaf> leaf(Learner& learner, const Plan& plan) {
        auto* residual = dynamic_cast<Residual*>(&learner);
        if (!residual) return sized<Leaf>(learner, plan.features, plan.outputs);
        auto node = sized<ResidualLeaf>(*residual, plan.features, plan.outputs);
        residual_[&learner] = node.get();
        return node;
    }
    Owned shared_rows(const Plan& plan) {
        auto node = sized<SharedRows>(plan.features, plan.outputs);
        sharing_.emplace_back(node.get(), plan.shared.learner);
        return node;
    }

    std::vector<Lock*> locks_;
    std::map<const Learner*, const ResidualLeaf*> residual_;
    std::vector<std::pair<SharedRows*, const Learner*>> sharing_;
};

Made make(const Plan& plan) {
    Maker maker;
    Owned root = maker.node(plan);
    return {std::move(root), maker.connected()};
}

}  // namespace onlinegp
