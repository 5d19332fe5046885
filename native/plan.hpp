// The description from which a compiled learner is created: onlinegp.engine.plan.Plan, without Python.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "recipe/recipe.hpp"

namespace onlinegp {

class Learner;
class Lock;

// A leaf that is shared with another tree
struct SharedLeaf {
    Learner* learner = nullptr;
    Lock* lock = nullptr;
};

// The kind of a learner, its constants, its kernels, and the plans of the inner learners
struct Plan {
    std::string kind;
    int features = 0, outputs = 0;
    std::map<std::string, std::vector<double>> constants;
    std::vector<std::pair<std::string, Plan>> inside;
    std::vector<Program> kernels;
    std::shared_ptr<const Recipe> recipe;  // the recipe of a filter
    SharedLeaf shared;

    // These throw std::out_of_range for an unknown name, unless there is a fallback
    double number(const char* name) const;
    double number(const char* name, double fallback) const;
    int64_t count(const char* name) const;
    int64_t count(const char* name, int64_t fallback) const;
    const std::vector<double>& vector(const char* name) const;
};

}  // namespace onlinegp
