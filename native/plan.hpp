// What a compiled learner is made from. onlinegp.engine.plan.Plan, without Python.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace onlinegp {

class Learner;
class Lock;

// A leaf of another tree, which works on it as well
struct SharedLeaf {
    Learner* learner = nullptr;
    Lock* lock = nullptr;
};

// The kind of a learner, its constants, and what is inside
struct Plan {
    std::string kind;
    int features = 0, outputs = 0;
    std::map<std::string, std::vector<double>> constants;
    std::vector<std::pair<std::string, Plan>> inside;
    SharedLeaf shared;

    double number(const char* name) const;
    const std::vector<double>& vector(const char* name) const;  // both throw std::out_of_range for a name that is not there
};

}  // namespace onlinegp
