// From a plan to a tree of learners.
#pragma once
#include "lock.hpp"
#include "plan.hpp"
#include "tree.hpp"

namespace onlinegp {

struct Made {
    Owned root;
    std::vector<Lock*> locks;  // of leaves that other trees have, too
};

Made make(const Plan& plan);  // it throws std::invalid_argument for a kind that does not exist

}  // namespace onlinegp
