// Build a tree of learners from a plan.
#pragma once
#include "lock.hpp"
#include "plan.hpp"
#include "tree.hpp"

namespace onlinegp {

struct Made {
    Owned root;
    std::vector<Lock*> locks;  // locks of leaves that other trees share
};

Made make(const Plan& plan);  // throws std::invalid_argument for an unknown kind

}  // namespace onlinegp
