// A recipe as plain data: the parts of onlinegp.recipes.update.Recipe, in the same words. No instruction set, no
// Python.
#pragma once
#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

namespace onlinegp {

enum class Belief { Prior, Beta, Isotropic, Posterior, StateSpace, Exact, LeastSquares };
enum class Dictionary { Growing, Quantized, Coherence, ALD, Novelty, Surprise };
enum class Forgetting { Keep, Leak, BackToPrior, UncertaintyInjection };
enum class Pruning { None, Oldest, LeastWeight, LeastError };

// A kernel is a postfix program: leaves push k(c, x), Add and Multiply combine the last two, Scale scales the last one.
enum class Op : int64_t {
    RBF,
    Matern12,
    Matern32,
    Matern52,
    RationalQuadratic,
    Periodic,
    Linear,
    Polynomial,
    Constant,
    Add,
    Multiply,
    Scale
};

constexpr const char* OP_NAMES[] = {"RBF",      "Matern12", "Matern32",   "Matern52", "RationalQuadratic",
                                    "Periodic", "Linear",   "Polynomial", "Constant", "Add",
                                    "Multiply", "Scale"};  // in the same order

struct Instruction {
    Op op;
    bool each;       // one value per dimension, in Program::values from `start`; otherwise all are equal
    int64_t start;   // rates 1 / length_scale, (d,); Periodic: then frequencies 1 / period, (d,); Linear: variances
    double a, b, c;  // RationalQuadratic: alpha; Polynomial: scale, offset, degree; Constant, Scale: variance
};

inline bool operator==(const Instruction& a, const Instruction& b) {
    return std::tie(a.op, a.each, a.start, a.a, a.b, a.c) == std::tie(b.op, b.each, b.start, b.a, b.b, b.c);
}

struct Program {
    std::vector<Instruction> code;
    std::vector<double> values;
};

constexpr int DEEPEST = 32;  // the largest number of operands on the stack

// A part: its type, and the parameters of all parts of its kind. Each type has its own, so that names cannot collide.
struct BeliefPart {
    Belief kind = Belief::Prior;
    double step = 1, beta = 0, noise = 0, epsilon = 0, jitter = 0;
    double transition = 1, drift = 0, forgetting = 1;
    bool automatic = false;  // beta="auto"
    auto values() const {
        return std::tie(kind, step, beta, noise, epsilon, jitter, transition, drift, forgetting, automatic);
    }
    operator Belief() const { return kind; }
};
struct DictionaryPart {
    Dictionary kind = Dictionary::Growing;
    double radius = 0, threshold = 0, error = 0, redundant = 0, abnormal = 0;
    auto values() const { return std::tie(kind, radius, threshold, error, redundant, abnormal); }
    operator Dictionary() const { return kind; }
};
struct ForgettingPart {
    Forgetting kind = Forgetting::Keep;
    double rate = 0, factor = 1;
    auto values() const { return std::tie(kind, rate, factor); }
    operator Forgetting() const { return kind; }
};
struct PruningPart {
    Pruning kind = Pruning::None;
    int64_t budget = 0;  // 0 means none
    auto values() const { return std::tie(kind, budget); }
    operator Pruning() const { return kind; }
};

struct Recipe {
    Program kernel;
    BeliefPart belief;
    DictionaryPart dictionary;
    ForgettingPart forgetting;
    PruningPart pruning;
    bool learn_power = false;

    bool posterior() const { return belief == Belief::Posterior || belief == Belief::StateSpace; }
    bool projects() const { return posterior() || belief == Belief::LeastSquares; }
    bool tracked() const { return projects() || belief == Belief::Exact; }
    bool spans() const { return dictionary == Dictionary::ALD && !tracked(); }  // L is kept only for the dictionary
    bool scores() const { return tracked() && pruning == Pruning::LeastError; }
    bool tracks(std::string_view name) const {  // whether a state has this field
        if (name == "L") return tracked() || spans();
        if (name == "S") return projects();
        if (name == "dQ") return scores();
        if (name == "rowsum") return belief == Belief::Beta && belief.automatic;
        return true;
    }
    bool compares() const {  // whether the dictionary compares x with individual centers
        return dictionary != Dictionary::Growing && dictionary != Dictionary::ALD;
    }
    bool uses_norm() const { return belief == Belief::Beta || belief == Belief::Isotropic; }  // |k|
    bool operator==(const Recipe& other) const {
        return kernel.code == other.kernel.code && kernel.values == other.kernel.values &&
               belief.values() == other.belief.values() && dictionary.values() == other.dictionary.values() &&
               forgetting.values() == other.forgetting.values() && pruning.values() == other.pruning.values() &&
               learn_power == other.learn_power;
    }
};

constexpr int64_t NEW = -1, IGNORE = -2,
                  PROJECTED = -3;  // results of a dictionary other than the slot of a center to reuse

}  // namespace onlinegp
