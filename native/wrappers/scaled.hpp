// Standardized x and y: the twin of ScaledLearner in onlinegp.models.combined.scaled.
#pragma once
#include "tree.hpp"
#include "wrappers/standardize.hpp"

namespace onlinegp {

constexpr int64_t MIN_SCALE_ROWS = 5;  // rows before the scales are first estimated

// Scales that are not given are learned from the first rows. Whenever they are estimated again, the inner node learns
// these rows from scratch.
class Scaled final : public Outer {
  public:
    struct Rule {
        int64_t rows;           // number of rows to learn the scales from
        bool x_given, y_given;  // whether the scales of x and of y are given
        double limit;           // the largest magnitude that the inner node can square
    };
    // `fresh` has the contents of the inner node before its first row; empty means the current contents
    Scaled(int d, Owned inside, const Rule& rule, const Vector& fresh)
        : Outer(d, std::move(inside), {}), early_(new Early(p)), units_(2 * (d + p) + 1), rule_(rule) {
        units_[2 * (d + p)] = rule.limit;
        early_->fresh = Snapshot(fresh);
    }

    void predict_next(const double* x, Workspace& w) override {
        inner->predict_next(inputs(1, x, w), w);
        change(0, w);
    }
    void learn_next(const double* x, const double* y, Workspace& w) override {
        const bool keeps = early_ && !early_->fixed;
        if (early_ && early_->fixed) scale_by_first_deviation(y);
        if (!keeps || kept() >= first_rows()) inner->learn_next(slot(w).inputs.data(), targets(1, y, w), w);
        if (keeps) keep(1, x, y, w);
    }
    void run(int64_t n, const double* X, const double* Y, Workspace& w) override {
        predicted(w).resize(n);
        std::vector<int64_t>& sizes = slot(w).sizes;
        sizes.resize(size_t(n));
        for (int64_t begin = 0, rows; begin < n; begin += rows) {
            const double *x = X + begin * d, *y = Y + begin * p;
            rows = rows_of_one_scale(n - begin, y);
            if (early_ && rows == 1) {
                inner->predict_next(inputs(1, x, w), w);
                convert(0, begin, w);
                learn_next(x, y, w);
                sizes[size_t(begin)] = inner->size();
                continue;
            }
            inner->run(rows, inputs(rows, x, w), targets(rows, y, w), w);
            for (int64_t i = 0; i < rows; i++) convert(i, begin + i, w);
            std::copy_n(inner->slot(w).sizes.begin(), rows, sizes.begin() + begin);
            if (early_ && !early_->fixed) {
                keep(rows, x, y, w);
                sizes[size_t(begin + rows - 1)] = inner->size();
            }
        }
    }
    void learn(int64_t n, const double* X, const double* Y, Workspace& w) override {
        if (early_) return run(n, X, Y, w);
        inner->learn(n, inputs(n, X, w), targets(n, Y, w), w);
    }
    void reserve(int64_t rows, Workspace& w) override {
        if (early_ && early_->behind) start_again(w);  // first, because a node inside may be half loaded
        const int64_t most = kept() + rows;            // the stored rows may be learned again
        Outer::reserve(most, w);
        slot(w).inputs.reserve(size_t(most * inner->d));
        if (!early_ || early_->fixed) return;
        if (early_->fresh.empty()) early_->fresh = Snapshot(*inner);
        const int64_t room = std::max(due(), std::min(most, rule_.rows));
        early_->X.reserve(size_t(room * d));
        early_->Y.reserve(size_t(room * p));
    }
    // A chunk ends where scales are estimated, because the node inside may then be incomplete for lack of memory
    int64_t until_due() const override {
        const int64_t rows = Outer::until_due();
        return early_ && !early_->fixed ? std::min(rows, std::max<int64_t>(1, due() - kept())) : rows;
    }
    void flush(Workspace& w) override {
        if (early_ && early_->behind) start_again(w);
        inner->flush(w);
    }
    bool only_stores() const override { return !early_ && inner->only_stores(); }
    void predict(int64_t n, const double* X, Workspace& w) const override { Outer::predict(n, inputs(n, X, w), w); }

    // varies: 1 for each output with a known scale, else 0. x, y: the stored rows. fixed: whether no more rows are
    // stored
    void fields(Visitor& visit) override {
        if (!visit.looks()) {
            if (visit.loads() && !early_) early_ = std::make_unique<Early>(p);
            Early final_one(p);
            Early& early = early_ ? *early_ : final_one;
            Vector fixed{double(early.fixed)};
            const int64_t length = visit.loads() ? FREE : kept();
            units_.field(visit, "x_center", 0, d);
            units_.field(visit, "x_scale", d, d);
            units_.field(visit, "y_center", 2 * d, p);
            units_.field(visit, "y_scale", 2 * d + p, p);
            visit.array("varies", early.varies);
            visit.array("x", early.X, {length, d});
            visit.array("y", early.Y, {length, p});
            visit.array("fixed", fixed);
            early.fixed = fixed[0] != 0;
            if (visit.loads()) {
                early.behind = false;
                drop_early_if_final();
            }
        }
        visit.node("model", *inner);
    }
    void lines(Lines& needed) const override {
        needed.add(this, bytes_between(this, &rule_));
        units_.lines(needed);
    }

  private:
    // Marks only the nodes inside, because members of a mixture share the workspace on several threads
    struct Relearning {
        Relearning(Node& inside, Workspace& w) : nodes(nodes_of(inside)), w(w) {
            for (const Node* one : nodes) one->slot(w).relearning++;
        }
        ~Relearning() {
            for (const Node* one : nodes) one->slot(w).relearning--;
        }
        const std::vector<Node*> nodes;
        Workspace& w;
    };
    // Until the scales are final
    struct Early {
        explicit Early(int p) : varies(size_t(p), 1.0) {}
        bool fixed = true;    // whether rows are no longer stored
        bool behind = false;  // whether memory ran out before the inner node had learned the stored rows again
        Vector X, Y, varies;
        Snapshot fresh;
    };

    // Stored rows

    int64_t kept() const { return early_ ? int64_t(early_->Y.size()) / p : 0; }
    int64_t first_rows() const { return std::min(MIN_SCALE_ROWS, rule_.rows); }
    // The number of rows at which the scales are next estimated: 1, ..., 5, 10, 20, ..., `rows`
    int64_t due() const {
        int64_t n = std::min(MIN_SCALE_ROWS, kept() + 1);
        while (n <= kept()) n *= 2;
        return std::min(n, rule_.rows);
    }
    // The number of next rows with equal scales, at least one. The last of them may change the scales.
    int64_t rows_of_one_scale(int64_t n, const double* Y) const {
        if (!early_) return n;
        if (!early_->fixed) return std::min(n, due() - kept());
        int64_t rows = 0;
        while (rows < n && !first_deviation(Y + rows * p)) rows++;
        return std::max<int64_t>(1, rows);
    }
    void keep(int64_t n, const double* X, const double* Y, Workspace& w) {
        const bool last = kept() + n == due();
        early_->X.insert(early_->X.end(), X, X + n * d);
        early_->Y.insert(early_->Y.end(), Y, Y + n * p);
        if (!last) return;
        estimate();
        if (kept() < first_rows()) return;
        try {
            start_again(w);
        } catch (const std::bad_alloc&) {  // `reserve` and `flush` try again, unless an outer node does
            if (slot(w).relearning) throw;
        }
    }
    void estimate() {
        for (int j = 0; j < d && !rule_.x_given; j++) {
            const ColumnMoments column = column_moments(early_->X.data() + j, kept(), d);
            units_[j] = column.center;
            units_[d + j] = column.varies ? column.std : 1;
        }
        for (int o = 0; o < p && !rule_.y_given; o++) {
            const ColumnMoments column = column_moments(early_->Y.data() + o, kept(), p);
            y_center()[o] = column.center;
            y_scale()[o] = column.varies ? column.std : own_size(column.center);
            early_->varies[size_t(o)] = column.varies;
        }
    }
    // Let the inner node learn the stored rows from scratch
    void start_again(Workspace& w) {
        const int64_t n = kept();
        early_->behind = true;
        early_->fresh.load(*inner);
        inner->reserve(n, w);
        const Relearning relearning(*inner, w);
        inner->learn(n, inputs(n, early_->X.data(), w), targets(n, early_->Y.data(), w), w);
        early_->behind = false;
        if (n < rule_.rows) return;
        early_->fixed = true;
        early_->X = early_->Y = Vector();
        drop_early_if_final();
    }
    void drop_early_if_final() {
        if (early_->fixed && *std::min_element(early_->varies.begin(), early_->varies.end()) > 0) early_.reset();
    }

    // Outputs that were constant so far. The inner node got zeros for them, which are zeros on any scale.

    bool first_deviation(const double* y) const {
        for (int o = 0; o < p; o++)
            if (!early_->varies[size_t(o)] && deviates(y[o], y_center()[o])) return true;
        return false;
    }
    void scale_by_first_deviation(const double* y) {
        for (int o = 0; o < p; o++) {
            if (early_->varies[size_t(o)] || !deviates(y[o], y_center()[o])) continue;
            y_scale()[o] = std::fabs(y[o] - y_center()[o]);
            early_->varies[size_t(o)] = 1;
        }
        drop_early_if_final();
    }

    // Units

    double* y_center() { return units_.at(2 * d); }
    double* y_scale() { return y_center() + p; }
    const double* y_center() const { return units_.at(2 * d); }
    const double* y_scale() const { return y_center() + p; }

    const double* inputs(int64_t n, const double* X, Workspace& w) const {
        return standardized(n, d, X, units_.at(0), slot(w).inputs);
    }
    const double* targets(int64_t n, const double* Y, Workspace& w) const {
        return standardized(n, p, Y, y_center(), slot(w).targets);
    }
    // (values - center) / scale, within the limit; `units` has the centers, then the scales
    const double* standardized(int64_t n, int width, const double* values, const double* units, Vector& out) const {
        out.resize(std::max(out.size(), size_t(n * width)));
        const double limit = units_[2 * (d + p)];
        for (int64_t i = 0; i < n; i++)
            for (int j = 0; j < width; j++) {
                const double z = (values[i * width + j] - units[j]) / units[width + j];
                out[size_t(i * width + j)] = std::max(std::min(z, limit), -limit);
            }
        return out.data();
    }
    void change(int64_t i, Workspace& w) const override { convert(i, i, w); }
    // From row `from` of the inner node to its own row `to`, in the units of the data
    void convert(int64_t from, int64_t to, Workspace& w) const {
        Predictions &in = inner->predicted(w), &out = predicted(w);
        const bool blank = early_ && !early_->fixed && !rule_.y_given && kept() < first_rows();
        for (int o = 0; o < p; o++) {
            const Components source = in(from, o), copy = out(to, o);
            double center = y_center()[o], scale = y_scale()[o];
            if (blank) like_so_far(in.moments(from, o), o, center, scale);
            for (int64_t k = 0; k < kinds.count(); k++) {
                copy.weight[k] = source.weight[k];
                copy.mean[k] = center + scale * source.mean[k];
                copy.scale[k] = scale * source.scale[k];
            }
            out.stretch(to, o) = in.stretch(from, o);
        }
    }
    // The units in which a prior has the mean and the spread of the values so far
    void like_so_far(const Moments& prior, int o, double& center, double& scale) const {
        if (kept() == 0) return;
        const ColumnMoments column = column_moments(early_->Y.data() + o, kept(), p);
        scale = next_spread(column, kept()) / std::max(prior.std, TINY);
        center = column.center - scale * prior.mean;
    }
    void update(int64_t, const double*, Workspace&) override {}

    std::unique_ptr<Early> early_;  // null once the scales are final
    NodeNumbers units_;             // centers and scales of x, then of y; the limit, which each row needs, too
    const Rule rule_;
};

}  // namespace onlinegp
