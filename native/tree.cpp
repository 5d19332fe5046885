// Trees of learners, compiled once: what they do themselves is scalar work.
#include "tree_engine.hpp"

namespace onlinegp {

constexpr int64_t FEWEST_ROWS = 64;         // of a chunk at first,
constexpr int64_t MOST_COMPONENTS = 65536;  // and its components at most
constexpr double SHORT = 5e-3, LONG = 2e-2;  // seconds that a chunk should take

TreeEngine::TreeEngine(Owned root, const std::vector<LearnerEngine*>& leaves)
    : d(root->d), p(root->p), root_(std::move(root)), workspace_(*root_), fresh_(size_t(d)), chunk_(FEWEST_ROWS) {
    locks_.push_back(&lock_);
    for (LearnerEngine* leaf : leaves) locks_.push_back(&leaf->lock);
}

bool TreeEngine::at_once() const { return root_->work() <= MOST_AT_ONCE; }

void TreeEngine::reserve(int64_t rows) {
    root_->reserve(rows);
    if (rows > reserved_) workspace_.reserve(rows);
    reserved_ = std::max(reserved_, rows);
}

void TreeEngine::look(const double* x) {
    const bool same = is_fresh_ && std::equal(x, x + d, fresh_.begin());
    if (same) return;
    is_fresh_ = false;
    reserve(1);
    root_->predict_next(x, workspace_);
    std::copy(x, x + d, fresh_.begin());
    is_fresh_ = true;
}

Moments TreeEngine::predict_one(const double* x) {
    look(x);
    return root_->predicted(workspace_).moments(0, 0);
}

bool TreeEngine::learn_one(const double* x, const double* y) {
    bool sound = true;
    for (int o = 0; o < p; o++) sound = plausible_.target(y[o]) && sound;
    if (root_->only_stores() && !is_fresh_) {
        reserve(1);
        root_->learn(1, x, y, workspace_);
    } else {
        look(x);
        for (int o = 0; o < p; o++) {
            const Moments predicted = root_->predicted(workspace_).moments(0, o);
            sound = plausible_.prediction(predicted.mean, predicted.std, y[o]) && sound;
        }
        is_fresh_ = false;
        root_->learn_next(x, y, workspace_);
    }
    rows_++;
    return sound;
}

template <class Work> void TreeEngine::in_chunks(int64_t n, const Stopped& stopped, const Work& work) {
    const int64_t most = std::max(FEWEST_ROWS, MOST_COMPONENTS / (p * root_->kinds.count()));
    for (int64_t begin = 0; begin < n;) {
        const int64_t rows = std::min({n - begin, chunk_, std::max(FEWEST_ROWS, root_->size())});  // doubles at most
        const auto start = std::chrono::steady_clock::now();
        work(begin, rows);
        begin += rows;
        const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (took > LONG) chunk_ = std::max(FEWEST_ROWS / 8, chunk_ / 2);
        else if (took < SHORT && rows == chunk_) chunk_ = std::min(most, 2 * chunk_);
        if (begin < n && stopped()) return;
    }
}

void TreeEngine::learn(int64_t n, const double* X, const double* Y, const Stopped& stopped) {
    in_chunks(n, stopped, [&](int64_t begin, int64_t rows) {
        is_fresh_ = false;
        reserve(rows);
        root_->learn(rows, X + begin * d, Y + begin * p, workspace_);
        rows_ += rows;
    });
}

void TreeEngine::run(int64_t n, const double* X, const double* Y, const Output& out, const Stopped& stopped) {
    in_chunks(n, stopped, [&](int64_t begin, int64_t rows) {
        is_fresh_ = false;
        reserve(rows);
        root_->run(rows, X + begin * d, Y + begin * p, workspace_);
        rows_ += rows;
        copy(begin, rows, workspace_, out);
    });
}

void TreeEngine::predict(int64_t n, const double* X, const Output& out, int threads, const Stopped& stopped) {
    is_fresh_ = false;
    root_->flush();
    const int64_t useful = std::min<int64_t>(threads, n * root_->work() / PAIRS_A_THREAD + 1);
    const auto here = std::this_thread::get_id();
    std::atomic<bool> stop{false};
    const auto ask = [&] {
        if (std::this_thread::get_id() == here && stopped()) stop = true;
        return stop.load();
    };
    const int64_t rows_at_once = std::max<int64_t>(1, std::min<int64_t>(256, MOST_COMPONENTS / (p * root_->kinds.count())));
    const auto part = [&](int64_t first, int64_t end) {
        std::unique_ptr<Workspace> own;
        if (std::this_thread::get_id() != here) own = std::make_unique<Workspace>(*root_);
        Workspace& w = own ? *own : workspace_;
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
}

void TreeEngine::fields(Visitor& visit) {
    is_fresh_ = false;
    visit.node("", *root_);
}

}  // namespace onlinegp
