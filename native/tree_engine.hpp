// A tree of learners behind one call: locks, chunks, the rule for predictions that make no sense.
#pragma once
#include <functional>
#include "engine.hpp"
#include "tree.hpp"

namespace onlinegp {

// Where predictions of rows go: (n, p, K) each, the stretch (n, p), the size after each row (n,)
struct Output {
    double *weights, *means, *scales, *stretch;
    int64_t* sizes;
};

using Stopped = std::function<bool()>;

class TreeEngine {
  public:
    TreeEngine(Owned root, const std::vector<LearnerEngine*>& leaves);

    const int d, p;
    std::vector<Lock*> locks() const { return locks_; }
    Node& root() { return *root_; }
    int64_t rows() const { return rows_; }  // learned since it was made
    bool at_once() const;

    // One row. Returns whether no further look at it is needed, as LearnerEngine::learn_one
    bool learn_one(const double* x, const double* y);
    Moments predict_one(const double* x);  // of the first output

    // Rows in chunks, all of which the whole tree learns; between two of them it asks whether to stop
    void learn(int64_t n, const double* X, const double* Y, const Stopped& stopped);
    void run(int64_t n, const double* X, const double* Y, const Output& out, const Stopped& stopped);
    void predict(int64_t n, const double* X, const Output& out, int threads, const Stopped& stopped);
    void fields(Visitor& visit);

  private:
    template <class Work> void in_chunks(int64_t n, const Stopped& stopped, const Work& work);
    void copy(int64_t begin, int64_t rows, Workspace& w, const Output& out) const;
    void look(const double* x);
    void reserve(int64_t rows);  // all that learning so many takes: what may fail does so here, before anything changes

    const Owned root_;
    Workspace workspace_;
    Lock lock_;
    std::vector<Lock*> locks_;
    Vector fresh_;           // the row that was predicted last
    bool is_fresh_ = false;  // and nothing has changed since
    int64_t rows_ = 0, chunk_, reserved_ = 0;
    Plausible plausible_;
};

}  // namespace onlinegp
