// Learners that contain learners. Their Python twins in onlinegp.models.combined are the definition.
#pragma once
#include <memory>
#include <string>
#include <typeinfo>
#include "learner.hpp"
#include "predictions.hpp"

namespace onlinegp {

constexpr int64_t NEVER_DUE = int64_t(1) << 62;

using Owned = std::unique_ptr<Node>;

// The scratch memory of a call, by the number of a node in its tree. Each thread that predicts has its own.
class Workspace {
  public:
    explicit Workspace(Node& root);
    struct Slot {
        explicit Slot(const Node& node);
        void reserve(int64_t rows, const Node& node);  // at least enough for a block
        Predictions predictions;
        int64_t room = 0;                  // rows
        Vector inputs, targets;            // inputs and targets of the inner node, if they differ from the row
        std::vector<int64_t> sizes;        // after each row of a block
        std::unique_ptr<Scratch> scratch;  // of a leaf, in a fleet
        int relearning = 0;                // how many outer nodes let this node learn rows from scratch at the moment
    };
    std::vector<Slot> slots;
};

// All nodes of a tree learn a row, or none: calls consist of whole chunks, and nothing in a chunk can fail after
// `reserve`, which allocates all memory for learning.
class Node {
  public:
    Node(int d, int p, const Vector& degrees) : d(d), p(p), kinds(kinds_of(degrees)) {}
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    virtual ~Node() = default;
    // Nodes are next to each other in large pages, because a fleet visits many nodes, and translating addresses takes
    // time
    static void* operator new(size_t bytes);
    static void operator delete(void* node, size_t bytes);

    const int d, p;
    const Kinds& kinds;
    int number = 0;
    int bytes = sizeof(Node);  // the size of the object in memory

    // One row: predict it, then learn the row just predicted. Predictions are in row 0 of its slot.
    virtual void predict_next(const double* x, Workspace& w) = 0;
    virtual void learn_next(const double* x, const double* y, Workspace& w) = 0;
    // A block: predict each row, then learn it
    virtual void run(int64_t n, const double* X, const double* Y, Workspace& w) = 0;
    virtual void learn(int64_t n, const double* X, const double* Y, Workspace& w) { run(n, X, Y, w); }
    // Predict rows without learning. Several threads may call it, after `flush`.
    virtual void predict(int64_t n, const double* X, Workspace& w) const = 0;
    virtual void flush(Workspace& w) = 0;  // complete what is pending
    virtual void reserve(int64_t rows, Workspace& w) { slot(w).reserve(rows, *this); }
    virtual int64_t size() const = 0;
    // The number of rows until a chunk must end; zero if the Python learners have work now
    virtual int64_t until_due() const { return NEVER_DUE; }
    virtual int64_t work() const = 0;                   // approximate work of a row, in kernel evaluations
    virtual bool shares_rows() const { return false; }  // whether it shares rows with a node that must run before
    virtual bool only_stores() const { return false; }  // `learn` only stores the row, without a prediction
    virtual void fields(Visitor& visit) = 0;
    // Whether another node of the same class can use its place in a workspace
    virtual bool like(const Node& other) const {
        return p == other.p && d == other.d && kinds.degrees == other.kinds.degrees;
    }
    // In a fleet, before and after a call: use the scratch memory of a workspace, and prefetch what `next`, a similar
    // node, will need, if there is one
    virtual void enter(Workspace&, const Node*) {}
    virtual void leave() {}
    virtual void lines(Lines& needed) const { needed.add(this, bytes); }  // the lines that it always reads

    Workspace::Slot& slot(Workspace& w) const { return w.slots[size_t(number)]; }
    Predictions& predicted(Workspace& w) const { return slot(w).predictions; }
};

inline size_t bytes_between(const void* from, const void* end) {
    return size_t(static_cast<const char*>(end) - static_cast<const char*>(from));
}

inline Vector joined(Vector a, const Vector& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

// NodeNumbers of a node, in cache lines of their own beside it
class NodeNumbers {
  public:
    explicit NodeNumbers(int size) : size_(size), at_(static_cast<double*>(Node::operator new(bytes()))) {
        std::fill(at_, at_ + size_, 0.0);
    }
    NodeNumbers(const NodeNumbers&) = delete;
    NodeNumbers& operator=(const NodeNumbers&) = delete;
    ~NodeNumbers() { Node::operator delete(at_, bytes()); }
    double& operator[](int i) { return at_[i]; }
    double operator[](int i) const { return at_[i]; }
    double* at(int i) { return at_ + i; }
    const double* at(int i) const { return at_ + i; }
    // Show some of them as an array
    void field(Visitor& visit, const char* name, int first, int count) {
        if (visit.looks()) return;
        Vector values(at(first), at(first + count));
        visit.array(name, values);
        if (visit.loads()) std::copy(values.begin(), values.end(), at(first));
    }
    void lines(Lines& needed) const { needed.add(at_, bytes()); }

  private:
    size_t bytes() const { return size_t(size_) * sizeof(double); }
    const int size_;
    double* const at_;
};

// A node around an inner node. A subclass defines how to change a prediction and what to learn from y. The loops are
// here, so that single rows give the same bits as a block.
class Outer : public Node {
  public:
    Outer(int d, Owned one, const Vector& more)
        : Node(d, one->p, joined(one->kinds.degrees, more)), inner(std::move(one)) {}

    void predict_next(const double* x, Workspace& w) override {
        inner->predict_next(x, w);
        change(0, w);
    }
    void learn_next(const double* x, const double* y, Workspace& w) override {
        update(0, y, w);
        inner->learn_next(x, y, w);
    }
    void run(int64_t n, const double* X, const double* Y, Workspace& w) override {
        inner->run(n, X, Y, w);
        predicted(w).resize(n);
        slot(w).sizes = inner->slot(w).sizes;
        for (int64_t i = 0; i < n; i++) {
            change(i, w);
            update(i, Y + i * p, w);
        }
    }
    void predict(int64_t n, const double* X, Workspace& w) const override {
        inner->predict(n, X, w);
        predicted(w).resize(n);
        for (int64_t i = 0; i < n; i++) change(i, w);
    }
    void flush(Workspace& w) override { inner->flush(w); }
    void reserve(int64_t rows, Workspace& w) override {
        Node::reserve(rows, w);
        inner->reserve(rows, w);
    }
    int64_t size() const override { return inner->size(); }
    int64_t until_due() const override { return inner->until_due(); }
    int64_t work() const override { return inner->work(); }
    bool shares_rows() const override { return inner->shares_rows(); }
    void enter(Workspace& w, const Node* next) override {
        inner->enter(w, next ? static_cast<const Outer*>(next)->inner.get() : nullptr);
    }
    void leave() override { inner->leave(); }

  protected:
    virtual void change(int64_t i, Workspace& w) const = 0;             // from row i of the inner node to its own row i
    virtual void update(int64_t i, const double* y, Workspace& w) = 0;  // update its fields from row i and y

    // Copy row `from` of the inner node to its own row `to`
    void copy_row(int64_t from, int64_t to, Workspace& w) const {
        Predictions &in = inner->predicted(w), &out = predicted(w);
        const int64_t K = kinds.count();
        for (int o = 0; o < p; o++) {
            const Components source = in(from, o), copy = out(to, o);
            std::copy(source.weight, source.weight + K, copy.weight);
            std::copy(source.mean, source.mean + K, copy.mean);
            std::copy(source.scale, source.scale + K, copy.scale);
            out.stretch(to, o) = in.stretch(from, o);
        }
    }

    const Owned inner;
};

// A model with normal predictions, which this tree owns or shares with another tree that stores it
class Leaf : public Node {
  public:
    Leaf(Learner& learner, int d, int p) : Node(d, p, {NORMAL}), learner_(learner), variances_(learner.variances()) {}
    void own(std::unique_ptr<Learner> learner) { own_ = std::move(learner); }  // take ownership of the learner
    bool only_stores() const override { return learner_.only_stores(); }
    Learner& learner() const { return learner_; }

    void predict_next(const double* x, Workspace& w) override {
        Workspace::Slot& own = slot(w);
        const Steps steps = room(1, own);
        learner_.predict_next(x, steps.mean, steps.variance);
        fill(0, steps.mean, steps.variance, own.predictions);
    }
    void learn_next(const double* x, const double* y, Workspace&) override {
        Stop never;
        learner_.learn(1, x, y, {}, never);
    }
    void run(int64_t n, const double* X, const double* Y, Workspace& w) override {
        Workspace::Slot& own = slot(w);
        Steps steps = room(n, own);
        own.sizes.resize(size_t(n));
        steps.size = own.sizes.data();
        Stop never;
        learner_.learn(n, X, Y, steps, never);
        fill_all(n, steps, own.predictions);
    }
    void learn(int64_t n, const double* X, const double* Y, Workspace&) override {
        Stop never;
        learner_.learn(n, X, Y, {}, never);
    }
    void predict(int64_t n, const double* X, Workspace& w) const override {
        Workspace::Slot& own = slot(w);
        const Steps steps = room(n, own);
        Stop never;
        learner_.predict(n, X, steps.mean, steps.variance, never);
        fill_all(n, steps, own.predictions);
    }
    void flush(Workspace&) override { learner_.flush(); }
    void reserve(int64_t rows, Workspace& w) override {
        Node::reserve(rows, w);
        learner_.reserve(rows);
    }
    int64_t size() const override { return learner_.size(); }
    int64_t work() const override { return learner_.work_per_row(); }
    void fields(Visitor& visit) override {
        if (own_) learner_.fields(visit);
    }
    bool like(const Node& other) const override {
        const Leaf* leaf = dynamic_cast<const Leaf*>(&other);
        return Node::like(other) && leaf && typeid(learner_) == typeid(leaf->learner_);
    }
    void enter(Workspace& w, const Node* next) override {
        std::unique_ptr<Scratch>& scratch = slot(w).scratch;
        if (!scratch) scratch.reset(learner_.make_scratch());
        learner_.use(scratch.get());
        learner_.fetch_meanwhile(next ? &static_cast<const Leaf*>(next)->learner_ : nullptr);
    }
    void leave() override {
        learner_.use(nullptr);
        learner_.fetch_meanwhile(nullptr);
    }
    void lines(Lines& needed) const override {
        Node::lines(needed);
        learner_.lines(needed);
    }

  protected:
    // Means (n, p) and variances (n, variances) of a block, in the slot
    Steps room(int64_t n, Workspace::Slot& own) const {
        own.predictions.resize(n);
        own.targets.resize(size_t(n * (p + variances_)));
        Steps steps;
        steps.mean = own.targets.data();
        steps.variance = own.targets.data() + n * p;
        return steps;
    }
    void fill_all(int64_t n, const Steps& steps, Predictions& out) const {
        for (int64_t i = 0; i < n; i++) fill(i, steps.mean + i * p, steps.variance + i * variances_, out);
    }
    void fill(int64_t i, const double* mean, const double* variance, Predictions& out) const {
        double std = 0;
        for (int o = 0; o < p; o++) {
            if (o < variances_) std = std::sqrt(variance[o]);
            const Components row = out(i, o);
            row.weight[0] = 1;
            row.mean[0] = mean[o];
            row.scale[0] = std;
        }
    }

    std::unique_ptr<Learner> own_;
    Learner& learner_;
    const int64_t variances_;  // number of variances per row
};

inline Workspace::Slot::Slot(const Node& node) : predictions(node.kinds, node.p) {}

// Memory for at most two means and two variances per row, or two numbers per component
inline void Workspace::Slot::reserve(int64_t rows, const Node& node) {
    if (rows <= room) return;
    predictions.resize(rows);
    targets.reserve(size_t(2 * (rows * (node.p + 1) + node.kinds.count())));
    sizes.reserve(size_t(rows));
    room = rows;  // after an error there is less room than allocated, never more
}

// The nodes of a tree, in the order of their numbers
inline std::vector<Node*> nodes_of(Node& root) {
    struct Collect final : Visitor {
        Collect() : Visitor(Purpose::Look) {}
        int64_t array(const std::string&, Vector&, const Shape&) override { return 0; }
        void node(const std::string&, Node& one) override {
            nodes.push_back(&one);
            one.fields(*this);
        }
        std::vector<Node*> nodes;
    };
    Collect all;
    all.node("", root);
    return all.nodes;
}

// The contents of a tree, also of leaves that it shares, as a list of numbers
class Snapshot {
  public:
    explicit Snapshot(Vector numbers = {}) : numbers_(std::move(numbers)) {}
    explicit Snapshot(Node& root) { Copy(Visitor::Purpose::Save, numbers_).node("", root); }
    bool empty() const { return numbers_.empty(); }
    void load(Node& root) { Copy(Visitor::Purpose::Load, numbers_).node("", root); }
    const Vector& numbers() const { return numbers_; }

  private:
    class Copy final : public Visitor {
      public:
        Copy(Purpose purpose, Vector& numbers) : Visitor(purpose), numbers_(numbers) {}
        void integer(const std::string&, int64_t& value) override { exchange(value); }
        void number(const std::string&, double& value) override { exchange(value); }
        int64_t array(const std::string&, Vector& values, const Shape& shape) override { return all(values, shape); }
        int64_t integers(const std::string&, std::vector<int64_t>& values, const Shape& shape) override {
            return all(values, shape);
        }
        void node(const std::string&, Node& one) override {
            if (Leaf* leaf = dynamic_cast<Leaf*>(&one))
                leaf->learner().fields(*this);
            else
                one.fields(*this);
        }

      private:
        template <class T> void exchange(T& value) {
            if (saves()) numbers_.push_back(double(value));
            if (loads()) value = T(numbers_[at_++]);
        }
        template <class T> int64_t all(std::vector<T>& values, const Shape& shape) {
            int64_t count = int64_t(values.size()), first = shape.empty() ? count : shape[0];
            exchange(count);
            exchange(first);
            values.resize(size_t(count));
            for (T& value : values) exchange(value);
            return first;
        }
        Vector& numbers_;
        size_t at_ = 0;
    };
    Vector numbers_;
};

inline Workspace::Workspace(Node& root) {
    for (const Node* one : nodes_of(root)) slots.emplace_back(*one);
}

}  // namespace onlinegp
