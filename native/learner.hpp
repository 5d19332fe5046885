// The interface of each instruction set to the rest of the program. It has plain types only, no Python and no vectors.
#pragma once
#include <chrono>
#include <cstdint>
#include <utility>
#include "fields.hpp"
#include "plan.hpp"
#include "recipe/recipe.hpp"

namespace onlinegp {

// The approximate work of a sample with m centers, in kernel evaluations
inline int64_t work(const Recipe& recipe, int64_t m) {
    return m + 1 + (recipe.tracked() || recipe.spans() ? m * m / 16 : 0);
}

// Tells a long call between two samples whether to stop. It checks every two milliseconds, and measures this time in
// work, because reading the clock takes as long as a small sample. This base class never stops a call.
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

// onlinegp.recipes.state.State without padding: centers (size, d), alpha (size, p), the lower triangles of matrices row
// by row. Arrays that do not exist are null.
struct Arrays {
    double *centers = nullptr, *alpha = nullptr, *kcc = nullptr;
    int64_t* born = nullptr;
    double *L = nullptr, *S = nullptr, *dQ = nullptr, *rowsum = nullptr;
    int64_t size = 0, seen = 0;
    double scale = 1, bound = 0, power = 1, evidence = 1;

    // Call visit(name, kind, field) for each field, in the order and with the kinds of Python
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

// The results, one row per sample. Results whose pointer is null are not computed.
struct Steps {
    double *mean = nullptr, *variance = nullptr;  // (n, p), (n, variances): predicted before learning
    int64_t *size = nullptr, *slot = nullptr, *admitted = nullptr, *left = nullptr;
    double *local_mean = nullptr,
           *local_variance = nullptr;  // predictions from the neighbors alone, for models that have them
};

// Scratch memory of a model
class Scratch {
  public:
    virtual ~Scratch();
};

// Cache lines that a model will need, as addresses within the lines. They stay valid as long as the model lives.
struct Lines {
    std::vector<const char*> at;
    void add(const void* from, size_t bytes);
};

// A learner: it learns rows and predicts rows
class Learner {
  public:
    virtual ~Learner();
    virtual int64_t size() const = 0;
    virtual int64_t seen() const = 0;
    virtual int64_t work_per_row() const = 0;    // approximate work of a prediction, in kernel evaluations
    virtual int variances() const { return 1; }  // per row: one for all outputs, or one per output
    // Return the number of learned rows: n, unless the call was stopped
    virtual int64_t learn(int64_t n, const double* X, const double* Y, const Steps& steps, Stop& stop) = 0;
    virtual void predict_next(const double* x, double* mean,
                              double* variance) = 0;  // a sample that may be learned next
    virtual void flush() = 0;                         // apply pending updates, before `predict`
    virtual void reserve(int64_t) {}                  // allocate memory to learn this many rows
    virtual void predict(int64_t n, const double* X, double* mean, double* variance,
                         Stop& stop) const = 0;         // several threads may call it
    virtual void fields(Visitor&) {}                    // everything that the next row needs
    virtual bool only_stores() const { return false; }  // `learn` only stores the row, without a prediction
    // While this learner works, prefetch what `next`, a learner of the same class, will need. Null for no prefetch.
    virtual void fetch_meanwhile(const Learner*) {}
    virtual void lines(Lines&) const {}  // the lines that it always reads, except the lines from `fetch_meanwhile`
    // Models of a class that work one after the other can share scratch memory. Null if each model has its own.
    virtual Scratch* make_scratch() const { return nullptr; }
    virtual void use(Scratch*) {}
};

// A filter: the learner of a recipe
class Model : public Learner {
  public:
    virtual void rows(int64_t n, const double* X, double* K) const = 0;  // kernel rows, (n, size)
};

// The exact GP on the nearest rows
class Local : public Learner {
  public:
    virtual int64_t neighbors() const = 0;  // the largest number of neighbors
    virtual void nearest(int64_t n, const double* X,
                         int64_t* rows) const = 0;  // numbers of the neighbors, the nearest first
};

// The GP on current residuals
class Residual : public Local {
  public:
    // Learn rows. Return both means and both variances before learning, if `steps` has arrays for them.
    virtual void predict_both(int64_t n, const double* X, const Steps& steps, Stop& stop) const = 0;
    // `predict_next` with both means (p,) and both variances. Learning the same x next does not solve again.
    virtual void predict_next_both(const double* x, double* mean, double* variance, double* local_mean,
                                   double* local_variance) = 0;
};

// An event of a fleet: its filter, and its row in X, Y, mean and variance
struct Event {
    int64_t who, row;
};

// Many filters of one recipe. Each thread is one of `workers`, and works on filters that no other thread uses.
class Models {
  public:
    virtual ~Models();
    virtual int64_t count() const = 0;
    virtual void grow(int64_t count) = 0;
    virtual void employ(int workers) = 0;  // call this before the work is split between them
    virtual int64_t size(int64_t i) const = 0;
    virtual void load(int64_t i, const Arrays& in) = 0;
    virtual void save(int64_t i, Arrays& out) = 0;
    // Compact states, without L, S, kcc and dQ. S = R R'; R is a lower triangle, row by row, and null if there is no S.
    virtual void load_compact(int64_t i, const Arrays& in, const float* R) = 0;
    virtual void save_compact(int64_t i, Arrays& out, float* R) = 0;
    // Predict each event, then learn it (if Y is given). `next` is always the first event that was not processed, even
    // after an exception.
    virtual void work(int worker, const Event*& next, const Event* end, const double* X, const double* Y,
                      const Steps& steps, Stop& stop) = 0;
};

// The data for the fit of a Gaussian process over time: rows X (n, d), whose first column is the time, and z (n,). Rows
// before `first` do not count, and errors beyond `robust` deviations count less.
struct TimedRows {
    int64_t n, d;
    const double *X, *z;
    int64_t first;
    double robust;
};

struct InstructionSet {
    const char* name;
    Learner* (*make_leaf)(const Plan& plan);  // returns null for an unknown kind
    Models* (*make_many)(const Recipe& recipe, int d, int p, bool single);
    void (*exp2_minus)(int64_t n, const double* x, double* y);
    void (*sin_pi)(int64_t n, const double* x, double* y);
    // The likelihood of a table of blocks, the variance sigma^2, and the gradient for four parameters of each block
    double (*temporal_likelihood)(const TimedRows& rows, int64_t blocks, const double* table, double* sigma2,
                                  double* gradient);
};

extern const InstructionSet* const available[];  // the instruction sets of this build, the best first; ends with null

const InstructionSet* choose(
    const char* at_most);              // the best instruction set that this machine supports, up to `at_most`
const InstructionSet& instructions();  // as limited by ONLINEGP_ISA; std::runtime_error if there is none

}  // namespace onlinegp
