// A tree of learners with locks, chunks, and the check for diverged models.
#pragma once
#include <functional>
#include "engine.hpp"
#include "make.hpp"

namespace onlinegp {

// The output arrays of predictions: (n, p, K) each, the stretch (n, p), and the size after each row (n,)
struct Output {
    double *weights, *means, *scales, *stretch;
    int64_t* sizes;
    double *local_means = nullptr, *local_scales = nullptr;  // (n, p), of a ResidualGP's neighbors alone
};

using Stopped = std::function<bool()>;

class TreeEngine {
  public:
    explicit TreeEngine(Made made);
    ~TreeEngine();

    const int d, p;
    bool resting = false;  // single rows are refused while Python works on the leaves; changed only with the lock of
                           // the interpreter
    const std::vector<Lock*>& locks() const { return locks_; }
    Node& root() { return *root_; }
    Leaf* leaf() { return leaf_; }  // the root, if it is a leaf
    Lock& lock() { return lock_; }
    int64_t rows() const { return rows_; }  // number of rows learned since the creation of the tree
    bool at_once() const;
    bool due() const {
        return root_->until_due() == 0;
    }  // whether the Python learners have work to do before the next row

    // Learn one row. Return whether the prediction needs no further check, as LearnerEngine::learn_one does.
    bool learn_one(const double* x, const double* y);
    Moments predict_one(const double* x);  // mean and std of the first output
    // The stretched quantile p of the first output. `quantiles` are those of components with scale one.
    double quantile_one(const double* x, double p, const double* quantiles);
    void predict_one(const double* x, const Output& out);

    // Process rows in chunks, which the whole tree learns. Between two chunks, check whether to stop. Also stop when
    // other work is due. `rows` is the number of learned rows.
    void learn(int64_t n, const double* X, const double* Y, const Stopped& stopped);
    void run(int64_t n, const double* X, const double* Y, const Output& out, const Stopped& stopped);
    void predict(int64_t n, const double* X, const Output& out, int threads, const Stopped& stopped);
    void fields(Visitor& visit);
    // Predict a few rows of a fleet's call in the workspace of its thread, and learn them if Y is given. Predictions
    // are in the slot of the root, if `wants`.
    void work(int64_t rows, const double* X, const double* Y, bool wants, Workspace& w);
    Lines lines();  // the lines that such a call always reads

  private:
    Workspace& workspace();
    template <class Work> void in_chunks(int64_t n, const Stopped& stopped, const Work& work);
    void copy(int64_t begin, int64_t rows, Workspace& w, const Output& out) const;
    void look(const double* x);

    // In the order in which a fleet needs them: the first members share a cache line with `d` and `p`
    bool is_fresh_ = false;  // whether nothing has changed since `fresh_` was predicted
    Owned root_;
    int64_t rows_ = 0;
    Leaf* const leaf_;
    std::unique_ptr<Workspace> workspace_;  // created when needed, never in a fleet
    Lock lock_;
    std::vector<Lock*> locks_;
    Vector fresh_;            // the row that was predicted last
    int64_t fresh_seen_ = 0;  // the rows that a leaf had learned at that time
    int64_t chunk_;
    Plausible plausible_;
};

// The trees of a fleet by number. They have the same shape, and belong to the caller. One call processes events of many
// trees. Each event is learned by the whole tree or not at all.
class TreeFleet {
  public:
    TreeFleet(int d, int p) : d(d), p(p) {}

    const int d, p;
    Lock lock;

    int64_t count() const { return int64_t(trees_.size()); }
    void grow(int64_t count);
    // Add a tree. Return false for null and for trees of another shape.
    bool put(int64_t i, TreeEngine* tree);
    TreeEngine* operator[](int64_t i) const { return trees_[size_t(i)]; }
    Node* like() const { return like_ ? &like_->root() : nullptr; }  // the root of any tree; null without trees

    // Predict events of existing trees, then learn them if Y is given; see Rounds
    void work(int64_t n, const int64_t* who, const double* X, const double* Y, const Output& out, int threads,
              const Stopped& stopped);
    void spare() { rounds_.spare(); }
    void learned(bool* rows, int64_t n) const { rounds_.learned(rows, n); }
    void forget() { rounds_.forget(); }

  private:
    struct Worker {
        explicit Worker(Node& root) : workspace(root) {}
        Workspace workspace;
        Vector X, Y;  // rows that are learned together
    };
    void some(Worker& worker, const Event*& next, const Event* end, const double* X, const double* Y, const Output& out,
              Stop& stop);
    void copy(const Event* event, int64_t rows, TreeEngine& tree, Workspace& w, const Output& out) const;

    void fetch(const Event& event, const double* X, const double* Y) const;

    std::vector<TreeEngine*> trees_;
    static constexpr int64_t MOST_LINES = 40;
    std::vector<const char*> lines_;  // (count, MOST_LINES), the lines that each tree always reads, padded with null
    TreeEngine* like_ = nullptr;
    std::vector<std::unique_ptr<Worker>> workers_;
    Rounds rounds_;
};

}  // namespace onlinegp
