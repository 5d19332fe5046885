// What each instruction set offers to the rest of the program. Plain types; neither Python nor vectors.
#pragma once
#include <chrono>
#include <cstdint>
#include <utility>
#include "fields.hpp"
#include "plan.hpp"
#include "recipe/recipe.hpp"

namespace onlinegp {

// About how much work a sample is with m centers, in kernel evaluations
inline int64_t work(const Recipe& recipe, int64_t m) {
    return m + 1 + (recipe.tracked() || recipe.spans() ? m * m / 16 : 0);
}

// A long call asks it between two samples whether to stop. It looks every two milliseconds, which it measures in work,
// since a look at the clock costs as much as a small sample. This one never says stop.
class Stop {
  public:
    Stop() = default;
    virtual ~Stop();
    bool asked(int64_t work) {
        left_ -= work;
        return left_ <= 0 && look_now();
    }

  protected:
    explicit Stop(int64_t first) : every_(first), left_(first) {}
    virtual bool look();

  private:
    bool look_now();
    int64_t every_ = INT64_MAX, left_ = INT64_MAX;
    bool stopped_ = false;
    std::chrono::steady_clock::time_point last_{};
};

// onlinegp.recipes.state.State without padding: centers (size, d), alpha (size, p), the lower triangles of the matrices
// row by row; absent ones are null
struct Arrays {
    double *centers = nullptr, *alpha = nullptr, *kcc = nullptr;
    int64_t* born = nullptr;
    double *L = nullptr, *S = nullptr, *dQ = nullptr, *rowsum = nullptr;
    int64_t size = 0, seen = 0;
    double scale = 1, bound = 0, power = 1, evidence = 1;

    // Call visit(name, kind, field) for each of them, in the order and with the kinds that Python has
    template <class Visit> void each(const Visit& visit) {
        visit("centers", "points", centers);
        visit("alpha", "outputs", alpha);
        visit("kcc", "vector", kcc);
        visit("born", "counts", born);
        visit("L", "triangular", L);
        visit("S", "symmetric", S);
        visit("dQ", "vector", dQ);
        visit("rowsum", "vector", rowsum);
        visit("size", "integer", size);
        visit("seen", "integer", seen);
        visit("scale", "number", scale);
        visit("bound", "number", bound);
        visit("power", "number", power);
        visit("evidence", "number", evidence);
    }
};

// What happened, a row a sample; whatever is null is not wanted
struct Steps {
    double *mean = nullptr, *variance = nullptr;  // (n, p), (n, variances): predicted before learning
    int64_t *size = nullptr, *slot = nullptr, *admitted = nullptr, *left = nullptr;
    double *local_mean = nullptr, *local_variance = nullptr;  // of a model that predicts with neighbors alone as well
};

// What a model needs for a moment only
class Scratch {
  public:
    virtual ~Scratch();
};

// Lines of the cache that a model will need, by an address in each of them that is the model's own for as long as it
// lives
struct Lines {
    std::vector<const char*> at;
    void add(const void* from, size_t bytes);
};

// Whatever learns rows and predicts them
class Learner {
  public:
    virtual ~Learner();
    virtual int64_t size() const = 0;
    virtual int64_t seen() const = 0;
    virtual int64_t work_per_row() const = 0;    // of a prediction, about, in kernel evaluations
    virtual int variances() const { return 1; }  // of a row: one that all outputs share, or one for each
    // Returns how many rows were learned: n, unless it was stopped
    virtual int64_t learn(int64_t n, const double* X, const double* Y, const Steps& steps, Stop& stop) = 0;
    virtual void predict_next(const double* x, double* mean,
                              double* variance) = 0;  // one sample, which may be learned next
    virtual void flush() = 0;                         // finish what waits, before `predict`
    virtual void reserve(int64_t) {}                  // allocate what learning so many rows takes
    virtual void predict(int64_t n, const double* X, double* mean, double* variance,
                         Stop& stop) const = 0;         // by several threads
    virtual void fields(Visitor&) {}                    // all that the next row needs
    virtual bool only_stores() const { return false; }  // `learn` needs no prediction and only keeps the row
    // While this one is at work, bring into the cache what `next`, of the same class, will need. Null: nothing.
    virtual void fetch_meanwhile(const Learner*) {}
    virtual void lines(Lines&) const {}  // of what it always reads, but for what `fetch_meanwhile` brings
    // Models of one class that work one after the other can share their scratch. Null: each has its own.
    virtual Scratch* make_scratch() const { return nullptr; }
    virtual void use(Scratch*) {}
};

// A filter: a learner that a recipe describes
class Model : public Learner {
  public:
    virtual void rows(int64_t n, const double* X, double* K) const = 0;  // kernel rows, (n, size)
};

// The exact GP on the nearest rows
class Local : public Learner {
  public:
    virtual int64_t neighbors() const = 0;                                      // that it has at most
    virtual void nearest(int64_t n, const double* X, int64_t* rows) const = 0;  // their numbers, the nearest first
};

// The GP on current residuals
class Residual : public Local {
  public:
    // What `steps` has room for: both means and both variances, before learning
    virtual void predict_both(int64_t n, const double* X, const Steps& steps, Stop& stop) const = 0;
    // `predict_next` with both means (p,) and both variances; learning the same x next does not solve again
    virtual void predict_next_both(const double* x, double* mean, double* variance, double* local_mean,
                                   double* local_variance) = 0;
};

// One event of a fleet: the filter that it belongs to, and its row in X, Y, mean and variance
struct Event {
    int64_t who, row;
};

// Many filters of one recipe. Each thread works as one of `workers`, on filters that no other has at that time.
class Models {
  public:
    virtual ~Models();
    virtual int64_t count() const = 0;
    virtual void grow(int64_t count) = 0;
    virtual void employ(int workers) = 0;  // before work is shared between so many
    virtual int64_t size(int64_t i) const = 0;
    virtual void load(int64_t i, const Arrays& in) = 0;
    virtual void save(int64_t i, Arrays& out) = 0;
    // Without L, S, kcc and dQ; S is R R', of which R is the lower triangle row by row, null where there is no S
    virtual void load_compact(int64_t i, const Arrays& in, const float* R) = 0;
    virtual void save_compact(int64_t i, Arrays& out, float* R) = 0;
    // For each event predict and then learn (where Y is given); `next` is the first that was not worked off, whatever
    // happens
    virtual void work(int worker, const Event*& next, const Event* end, const double* X, const double* Y,
                      const Steps& steps, Stop& stop) = 0;
};

struct InstructionSet {
    const char* name;
    Learner* (*make_leaf)(const Plan& plan);  // null: there is no leaf of this kind
    Models* (*make_many)(const Recipe& recipe, int d, int p, bool single);
    void (*exp2_minus)(int64_t n, const double* x, double* y);
    void (*sin_pi)(int64_t n, const double* x, double* y);
};

extern const InstructionSet* const available[];  // that this program was built with, best first; ends with null

const InstructionSet* choose(const char* at_most);  // the best that this machine runs, and no better than asked for
const InstructionSet& instructions();               // what ONLINEGP_ISA allows; std::runtime_error if that is none

}  // namespace onlinegp
