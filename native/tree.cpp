// Trees of learners. Compiled once for all instruction sets, because their own work is scalar.
#include "tree_engine.hpp"
#include "mixtures.hpp"
#include "wrappers/shared_rows.hpp"
#include <new>

namespace onlinegp {

constexpr int64_t FEWEST_ROWS = 64;          // smallest number of rows of a chunk
constexpr int64_t MOST_COMPONENTS = 65536;   // largest number of components in a chunk
constexpr int64_t AHEAD_EVENTS = 2;          // cache lines of a tree are read this number of events ahead
constexpr uintptr_t LINE = 64;               // bytes of a cache line
constexpr double SHORT = 5e-3, LONG = 2e-2;  // seconds that a chunk should take

TreeEngine::TreeEngine(Made made)
    : d(made.root->d),
      p(made.root->p),
      root_(std::move(made.root)),
      leaf_(dynamic_cast<Leaf*>(root_.get())),
      fresh_(size_t(d)),
      chunk_(FEWEST_ROWS) {
    int number = 0;
    for (Node* one : nodes_of(*root_)) one->number = number++;
    locks_.push_back(&lock_);
    locks_.insert(locks_.end(), made.locks.begin(), made.locks.end());
}

TreeEngine::~TreeEngine() {
    if (!lock_.lost()) return;
    (void)root_.release();  // a call was interrupted while it changed them
    (void)workspace_.release();
}

Workspace& TreeEngine::workspace() {
    if (!workspace_) workspace_ = std::make_unique<Workspace>(*root_);
    return *workspace_;
}

bool TreeEngine::at_once() const { return root_->work() <= MOST_AT_ONCE; }

void TreeEngine::look(const double* x) {
    const bool same = is_fresh_ && std::equal(x, x + d, fresh_.begin());
    if (same && (!leaf_ || leaf_->learner().seen() == fresh_seen_)) return;  // another tree may share the leaf
    is_fresh_ = false;
    root_->reserve(1, workspace());
    root_->predict_next(x, workspace());
    std::copy(x, x + d, fresh_.begin());
    is_fresh_ = true;
    if (leaf_) fresh_seen_ = leaf_->learner().seen();
}

Moments TreeEngine::predict_one(const double* x) {
    look(x);
    return root_->predicted(workspace()).moments(0, 0);
}

double TreeEngine::quantile_one(const double* x, double p, const double* quantiles) {
    look(x);
    Predictions& predicted = root_->predicted(workspace());
    const double y = quantile(predicted.kinds, predicted(0, 0), p, quantiles), stretch = predicted.stretch(0, 0);
    const double mean = predicted.moments(0, 0).mean;
    return stretch == 1 ? y : mean + stretch * (y - mean);
}

void TreeEngine::predict_one(const double* x, const Output& out) {
    look(x);
    copy(0, 1, workspace(), out);
}

bool TreeEngine::learn_one(const double* x, const double* y) {
    bool sound = true;
    for (int o = 0; o < p; o++) sound = plausible_.target(y[o]) && sound;
    if (root_->only_stores()) {
        is_fresh_ = false;
        root_->reserve(1, workspace());
        root_->learn(1, x, y, workspace());
    } else {
        look(x);
        for (int o = 0; o < p; o++) {
            const Moments predicted = root_->predicted(workspace()).moments(0, o);
            sound = plausible_.prediction(predicted.mean, predicted.std, y[o]) && sound;
        }
        is_fresh_ = false;
        root_->learn_next(x, y, workspace());
    }
    rows_++;
    return sound;
}

template <class Work> void TreeEngine::in_chunks(int64_t n, const Stopped& stopped, const Work& work) {
    const int64_t most = std::max(FEWEST_ROWS, MOST_COMPONENTS / (p * root_->kinds.count()));
    for (int64_t begin = 0; begin < n;) {
        const int64_t until_due = root_->until_due();
        if (until_due == 0) return;
        const int64_t rows = std::min(
            {n - begin, chunk_, std::max(FEWEST_ROWS, root_->size()), until_due});  // at most twice the last chunk
        const auto start = std::chrono::steady_clock::now();
        work(begin, rows);
        begin += rows;
        const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (took > LONG)
            chunk_ = std::max(FEWEST_ROWS / 8, chunk_ / 2);
        else if (took < SHORT && rows == chunk_)
            chunk_ = std::min(most, 2 * chunk_);
        if (begin < n && stopped()) return;
    }
}

void TreeEngine::learn(int64_t n, const double* X, const double* Y, const Stopped& stopped) {
    in_chunks(n, stopped, [&](int64_t begin, int64_t rows) {
        is_fresh_ = false;
        root_->reserve(rows, workspace());
        root_->learn(rows, X + begin * d, Y + begin * p, workspace());
        rows_ += rows;
    });
}

void TreeEngine::run(int64_t n, const double* X, const double* Y, const Output& out, const Stopped& stopped) {
    in_chunks(n, stopped, [&](int64_t begin, int64_t rows) {
        is_fresh_ = false;
        root_->reserve(rows, workspace());
        root_->run(rows, X + begin * d, Y + begin * p, workspace());
        rows_ += rows;
        copy(begin, rows, workspace(), out);
    });
}

void TreeEngine::predict(int64_t n, const double* X, const Output& out, int threads, const Stopped& stopped) {
    is_fresh_ = false;
    root_->flush(workspace());
    const int64_t useful = std::min<int64_t>(threads, n * root_->work() / PAIRS_A_THREAD + 1);
    const auto here = std::this_thread::get_id();
    std::atomic<bool> stop{false};
    const auto ask = [&] {
        if (std::this_thread::get_id() == here && stopped()) stop = true;
        return stop.load();
    };
    Workspace& mine = workspace();
    const int64_t rows_at_once =
        std::max<int64_t>(1, std::min<int64_t>(256, MOST_COMPONENTS / (p * root_->kinds.count())));
    const auto part = [&](int64_t first, int64_t end) {
        std::unique_ptr<Workspace> own;
        if (std::this_thread::get_id() != here) own = std::make_unique<Workspace>(*root_);
        Workspace& w = own ? *own : mine;
        for (int64_t i = first; i < end && !ask(); i += rows_at_once) {
            const int64_t rows = std::min(end - i, rows_at_once);
            root_->predict(rows, X + i * d, w);
            copy(i, rows, w, out);
        }
    };
    in_parallel(n, int(useful), part, ask);
}

void TreeEngine::copy(int64_t begin, int64_t rows, Workspace& w, const Output& out) const {
    const Predictions& from = root_->predicted(w);
    const int64_t values = rows * p, components = values * root_->kinds.count(), at = begin * p * root_->kinds.count();
    std::copy_n(from.weights().data(), components, out.weights + at);
    std::copy_n(from.means().data(), components, out.means + at);
    std::copy_n(from.scales().data(), components, out.scales + at);
    std::copy_n(from.stretches().data(), values, out.stretch + begin * p);
    if (out.sizes) std::copy_n(root_->slot(w).sizes.data(), rows, out.sizes + begin);
    if (out.local_means)
        static_cast<const ResidualLeaf*>(leaf_)->copy_local(rows, w, out.local_means + begin * p,
                                                            out.local_scales + begin * p);
}

void TreeEngine::fields(Visitor& visit) {
    is_fresh_ = false;
    if (visit.saves()) {
        Workspace scratch(*root_);
        root_->flush(scratch);
    }
    visit.node("", *root_);
}

void TreeEngine::work(int64_t rows, const double* X, const double* Y, bool wants, Workspace& w) {
    is_fresh_ = false;
    if (!Y) {
        root_->flush(w);
        root_->predict(rows, X, w);
        return;
    }
    root_->reserve(rows, w);
    if (rows == 1 && (wants || !root_->only_stores())) {
        root_->predict_next(X, w);
        root_->learn_next(X, Y, w);
    } else if (wants) {
        root_->run(rows, X, Y, w);
    } else {
        root_->learn(rows, X, Y, w);
    }
    rows_ += rows;
}

Lines TreeEngine::lines() {
    Lines needed;
    needed.add(this, bytes_between(this, &leaf_));
    struct Arrays final : Visitor {
        explicit Arrays(Lines& needed) : Visitor(Purpose::Look), needed(needed) {}
        int64_t array(const std::string&, Vector& values, const Shape&) override {
            needed.add(values.data(), values.size() * sizeof(double));
            return 0;
        }
        void node(const std::string&, Node& one) override {
            one.lines(needed);
            one.fields(*this);
        }
        Lines& needed;
    };
    Arrays(needed).node("", *root_);
    std::sort(needed.at.begin(), needed.at.end());
    const auto same_line = [](const char* a, const char* b) {
        return reinterpret_cast<uintptr_t>(a) / LINE == reinterpret_cast<uintptr_t>(b) / LINE;
    };
    needed.at.erase(std::unique(needed.at.begin(), needed.at.end(), same_line), needed.at.end());
    return needed;
}

void Lines::add(const void* from, size_t bytes) {
    const char* first = static_cast<const char*>(from);
    const size_t offset = reinterpret_cast<uintptr_t>(first) % LINE;
    for (size_t i = 0; i < std::min<size_t>(bytes + offset, 1024); i += LINE)
        at.push_back(i < offset ? first : first - offset + i);
}

// Lend a node the scratch memory of a fleet until the end of a block
class Entered {
  public:
    Entered(Node& root, Workspace& w, const Node* next) : root_(root) {
        try {
            root_.enter(w, next);
        } catch (...) {  // some of its leaves have entered
            root_.leave();
            throw;
        }
    }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    ~Entered() { root_.leave(); }

  private:
    Node& root_;
};

void TreeFleet::grow(int64_t count) {
    if (count <= this->count()) return;
    lines_.resize(size_t(count * MOST_LINES));
    trees_.resize(size_t(count));
}

// Read the cache lines of a tree instead of prefetching them: they are scattered, and processors drop prefetch requests
// when many are pending, as they are while the matrices of a model are prefetched
void TreeFleet::fetch(const Event& event, const double* X, const double* Y) const {
    const char* const* lines = lines_.data() + event.who * MOST_LINES;
    for (int64_t i = 0; i < MOST_LINES && lines[i]; i++) (void)*static_cast<const volatile char*>(lines[i]);
    for (int j = 0; j < d; j += 8) __builtin_prefetch(X + event.row * d + j, 0, 2);
    if (Y) __builtin_prefetch(Y + event.row * p, 0, 2);
}

bool TreeFleet::put(int64_t i, TreeEngine* tree) {
    TreeEngine*& place = trees_[size_t(i)];
    if (place && place == like_) {
        like_ = nullptr;
        for (TreeEngine* one : trees_)
            if (one && one != place) like_ = one;
    }
    place = nullptr;
    if (!tree) return false;
    Lines lines = tree->lines();
    lines.at.resize(size_t(MOST_LINES));
    if (like_) {
        const std::vector<Node*> mine = nodes_of(tree->root()), theirs = nodes_of(like_->root());
        if (mine.size() != theirs.size()) return false;
        for (size_t j = 0; j < mine.size(); j++) {
            const Node &left = *mine[j], &right = *theirs[j];
            if (typeid(left) != typeid(right) || !left.like(right)) return false;
        }
    } else {
        like_ = tree;
        workers_.clear();
    }
    std::copy(lines.at.begin(), lines.at.end(), lines_.begin() + i * MOST_LINES);
    place = tree;
    return true;
}

void TreeFleet::work(int64_t n, const int64_t* who, const double* X, const double* Y, const Output& out, int threads,
                     const Stopped& stopped) {
    const auto employ = [&](int workers) {
        while (int(workers_.size()) < workers) workers_.push_back(std::make_unique<Worker>(like_->root()));
    };
    const auto part = [&](int worker, const Event*& next, const Event* end, Stop& stop) {
        some(*workers_[size_t(worker)], next, end, X, Y, out, stop);
    };
    rounds_.go(n, who, count(), threads, employ, part, stopped);
}

void TreeFleet::some(Worker& worker, const Event*& next, const Event* end, const double* X, const double* Y,
                     const Output& out, Stop& stop) {
    for (bool stopped = false; next < end && !stopped;) {
        TreeEngine& tree = *trees_[size_t(next->who)];
        const int64_t work = tree.root().work();
        const auto more = [&](int64_t rows) { return next + rows < end && next[rows].who == next->who; };
        int64_t rows = 1;
        if (more(1)) {
            const int64_t few = std::clamp<int64_t>(MOST_AT_ONCE / work, 1, FEWEST_ROWS);
            const int64_t most = Y ? std::min(few, tree.root().until_due()) : few;
            while (rows < most && more(rows)) rows++;
        }
        const Event* later = next + rows;
        if (later + AHEAD_EVENTS < end) fetch(later[AHEAD_EVENTS], X, Y);
        const double *x = X + next->row * d, *y = Y ? Y + next->row * p : nullptr;
        if (rows > 1) {
            worker.X.resize(std::max(worker.X.size(), size_t(rows * d)));
            worker.Y.resize(std::max(worker.Y.size(), size_t(rows * p)));
            for (int64_t i = 0; i < rows; i++) {
                std::copy_n(X + next[i].row * d, d, worker.X.data() + i * d);
                if (Y) std::copy_n(Y + next[i].row * p, p, worker.Y.data() + i * p);
            }
            x = worker.X.data();
            y = Y ? worker.Y.data() : nullptr;
        }
        {
            const Entered entered(tree.root(), worker.workspace,
                                  later < end ? &trees_[size_t(later->who)]->root() : nullptr);
            tree.work(rows, x, y, out.means, worker.workspace);
        }
        if (out.means) copy(next, rows, tree, worker.workspace, out);
        next = later;
        stopped = stop.asked(rows * work);
    }
}

void TreeFleet::copy(const Event* event, int64_t rows, TreeEngine& tree, Workspace& w, const Output& out) const {
    Node& root = tree.root();
    const Predictions& from = root.predicted(w);
    const int64_t values = p * root.kinds.count();
    for (int64_t i = 0; i < rows; i++) {
        const int64_t to = event[i].row * values;
        std::copy_n(from.weights().data() + i * values, values, out.weights + to);
        std::copy_n(from.means().data() + i * values, values, out.means + to);
        std::copy_n(from.scales().data() + i * values, values, out.scales + to);
        std::copy_n(from.stretches().data() + i * p, p, out.stretch + event[i].row * p);
        if (out.sizes) out.sizes[event[i].row] = rows == 1 ? root.size() : root.slot(w).sizes[size_t(i)];
    }
}

}  // namespace onlinegp
