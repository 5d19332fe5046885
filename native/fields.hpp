// The fields of a learner: its state between rows, with the same names as in Python.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace onlinegp {

class Node;
using Shape = std::vector<int64_t>;

constexpr int64_t FREE = -1;  // in a shape: any length

// A learner shows its fields to a visitor, in the order in which they are stored. A learner with another internal form
// converts them to arrays before it shows them (`saves`), or reads the arrays afterwards (`loads`).
class Visitor {
  public:
    enum class Purpose { Look, Save, Load };
    explicit Visitor(Purpose purpose) : purpose_(purpose) {}
    virtual ~Visitor() = default;
    bool looks() const { return purpose_ == Purpose::Look; }  // only inspects the arrays in place
    bool saves() const { return purpose_ == Purpose::Save; }
    bool loads() const { return purpose_ == Purpose::Load; }

    virtual void integer(const std::string&, int64_t&) {}
    virtual void number(const std::string&, double&) {}
    // An empty shape means a vector. Both return the first length of the shape, which may be free when fields are
    // loaded.
    virtual int64_t array(const std::string& name, std::vector<double>& values, const Shape& shape = {}) = 0;
    virtual int64_t integers(const std::string&, std::vector<int64_t>&, const Shape& = {}) { return 0; }
    virtual void node(const std::string&, Node&) {}

  private:
    const Purpose purpose_;
};

}  // namespace onlinegp
