// From a plan to a tree of learners.
#pragma once
#include <map>
#include "engine.hpp"
#include "tree.hpp"

namespace onlinegp {

// onlinegp.engine.plan.Plan: the kind of a learner, its constants, what is inside, and the compiled model of a leaf
struct Plan {
    std::string kind;
    std::map<std::string, Vector> constants;
    std::vector<std::pair<std::string, Plan>> inside;
    LearnerEngine* core = nullptr;

    double number(const char* name) const { return constants.at(name).at(0); }
    const Vector& vector(const char* name) const { return constants.at(name); }
};

struct Made {
    Owned root;
    std::vector<LearnerEngine*> leaves;
};

Made make(const Plan& plan);  // it throws std::invalid_argument for a kind that does not exist

}  // namespace onlinegp
