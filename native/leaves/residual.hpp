// The GP on current residuals: the twin of onlinegp.models.local.residual.
#pragma once
#include "leaves/covariances.hpp"
#include "leaves/linear.hpp"
#include "leaves/local.hpp"

namespace onlinegp::ONLINEGP_ISA {

class ResidualModel final : public OnRows<Residual> {
  public:
    explicit ResidualModel(const Plan& plan)
        : OnRows(plan, Covariances::needs_points),
          refits_(plan.count("refits")),
          learns_power_(plan.number("learn_power") != 0),
          is_linear_(plan.number("linear") != 0),
          forgetting_(plan.number("forgetting")),
          covariances_(prior_, kernel_, store_),
          line_(forgetting_, plan.vector("renewal"), d_, p_),
          next_(*this) {}

    int64_t work_per_row() const override { return store_.size() + solve_work(); }
    void flush() override { settle(); }

    int64_t learn(int64_t n, const double* X, const double* Y, const Steps& steps, Stop& stop) override {
        const bool answers = steps.mean || learns_power_ || is_linear_;
        for (int64_t i = 0; i < n; i++, X += d_, Y += p_) {
            if (stop.asked((2 + refits_) * work_per_row())) return i;
            see(X, answers);
            write(next_, steps, i);
            next_seen_ = false;
            learn_row(X, Y);
            if (steps.size) steps.size[i] = store_.size();
        }
        return n;
    }
    void reserve(int64_t rows) override {
        if (rows > 1) next_seen_ = false;  // more memory does not keep its neighbors
        grow(rows_after(rows));
        next_.question.reserve(std::min(prior_.neighbors, rows_after(rows)));
    }
    void predict_next(const double* x, double* mean, double* variance) override {
        predict_next_both(x, mean, variance, nullptr, nullptr);
    }
    void predict_next_both(const double* x, double* mean, double* variance, double* local_mean,
                           double* local_variance) override {
        see(x, true);
        Steps steps;
        steps.mean = mean;
        steps.variance = variance;
        steps.local_mean = local_mean;
        steps.local_variance = local_variance;
        write(next_, steps, 0);
    }
    void predict(int64_t n, const double* X, double* mean, double* variance, Stop& stop) const override {
        Steps steps;
        steps.mean = mean;
        steps.variance = variance;
        predict_both(n, X, steps, stop);
    }
    void predict_both(int64_t n, const double* X, const Steps& steps, Stop& stop) const override {
        Asked asked(*this);
        asked.k.resize(size_t(room_));
        for (int64_t i = 0; i < n && !stop.asked(work_per_row()); i++) {
            search(asked, X + i * d_);
            answer(asked, X + i * d_);
            write(asked, steps, i);
        }
    }

    void fields(Visitor& visit) override {
        if (visit.looks()) return;
        settle();
        list_rows(visit, [&](int64_t n) {
            next_seen_ = false;
            grow(n ? n : 1);
            std::fill(alpha(0), alpha(p_), 0.0);
        });
        list_of_rows(visit, "alpha", [&](int64_t o) { return alpha(o); });
        list_of_rows(visit, "r", [&](int64_t o) { return r(o); });
        visit.number("power", power_);
        visit.number("evidence", evidence_);
        if (is_linear_) line_.fields(visit, "line.");
    }

  private:
    static constexpr double TINIEST = 1e-290, NOTHING = 1e-16;  // as in Python

    // A number for each stored row and output, (n, p), the oldest first
    template <class Values> void list_of_rows(Visitor& visit, const char* name, const Values& values) {
        std::vector<double> stored;
        stored.reserve(size_t(size() * p_));
        store_.each_slot([&](int64_t slot) {
            for (int64_t o = 0; o < p_; o++) stored.push_back(values(o)[slot]);
        });
        visit.array(name, stored, {size(), p_});
        const double* next = stored.data();
        store_.each_slot([&](int64_t slot) {
            for (int64_t o = 0; o < p_; o++) values(o)[slot] = *next++;
        });
    }

    // A point and its prediction, for one thread
    struct Asked {
        explicit Asked(const ResidualModel& model)
            : question(model.prior_, model.kernel_, model.store_, model.d_, model.values()),
              products(size_t(model.p_) * W<double>),
              sums(size_t(model.values())),
              global(size_t(model.p_)),
              rest(size_t(model.p_)),
              line(size_t(model.p_)),
              g(size_t(model.d_ + 1)),
              scratch(size_t(model.d_ + 1)) {}

        Question question;
        Buffer<double> k;                 // (room,): the covariances of x and the stored rows
        Buffer<double> products;          // (p, W): k'alpha, while it is summed
        Buffer<double> sums;              // w'Y (p,), w'r (p,), and w'H (d + 1,) with a linear part
        Buffer<double> global, rest;      // k'alpha (p,), and k'alpha + w'r (p,)
        Buffer<double> line, g, scratch;  // the mean of the linear part (p,), its coefficients (d + 1,), room for them
        double variance = 0, doubt = 0;   // variances of y without the linear part, and of the linear part
    };

    // A row whose weights change by delta. k: its covariances with all rows, if known. slot: -1 if the row was removed.
    struct Change {
        int64_t slot;
        Covariances::Point point;
        const double* k;
    };

    int values() const { return 2 * p_ + (is_linear_ ? d_ + 1 : 0); }

    // Compute the prediction for x in next_, unless the last call has done this
    void see(const double* x, bool answers) {
        const size_t bytes = size_t(d_) * sizeof(double);
        if (next_seen_ && std::memcmp(x, next_x_.data(), bytes) == 0) return;
        next_seen_ = false;
        grow(store_.size() + 1);  // a failure changes nothing
        search_and_settle(x);
        if (!answers) return;
        answer(next_, x);
        std::memcpy(next_x_.data(), x, bytes);
        next_seen_ = true;
    }
    // The neighbors of x, its covariances with all rows, and k'alpha. `before` is called before each block of rows.
    template <class Before> void search(Asked& asked, const double* x, const Before& before) const {
        std::fill(asked.products.data(), asked.products.data() + p_ * W<double>, 0.0);
        covariances_.visit([&](auto op) {
            asked.question.search(x, [&](int64_t slot, const Vec<double>* r2) ALWAYS {
                before(op, slot);
                Vec<double> k[Store::TILES];
                EACH(n, Store::TILES) k[n] = r2[n];
                covariances_.from_distances<Store::TILES, op>(slot, x, double(store_.seen()), k);
                EACH(n, Store::TILES) store(asked.k.data() + slot + n * W<double>, k[n]);
                add_products(slot, k, asked.products.data());
            });
        });
        for (int64_t o = 0; o < p_; o++)
            asked.global[size_t(o)] = sum<double>(load(asked.products.data() + o * W<double>));
    }
    void search(Asked& asked, const double* x) const {
        search(asked, x, [](auto, int64_t) ALWAYS {});
    }
    // products (p, W) += k'alpha of a block of rows
    INLINE void add_products(int64_t slot, const Vec<double>* k, double* products) const {
        for (int64_t o = 0; o < p_; o++, products += W<double>) {
            Vec<double> sum = load(products);
            EACH(n, Store::TILES) sum = fma(k[n], load(alpha(o) + slot + n * W<double>), sum);
            store(products, sum);
        }
    }
    // Then the means and the variance
    void answer(Asked& asked, const double* x) const {
        const auto values = [&](int64_t slot, double* v) ALWAYS {
            for (int64_t o = 0; o < p_; o++) {
                v[o] = store_.y(slot)[o];
                v[p_ + o] = r(o)[slot];
            }
            if (!is_linear_) return;
            std::copy(store_.x(slot), store_.x(slot) + d_, v + 2 * p_);
            v[2 * p_ + d_] = 1;
        };
        asked.question.answer(x, values, asked.sums.data(), &asked.variance);
        for (int64_t o = 0; o < p_; o++) asked.rest[size_t(o)] = asked.global[size_t(o)] + asked.sums[size_t(p_ + o)];
        if (!is_linear_) return;
        for (int64_t j = 0; j <= d_; j++) asked.g[size_t(j)] = (j < d_ ? x[j] : 1.0) - asked.sums[size_t(2 * p_ + j)];
        std::copy(asked.g.data(), asked.g.data() + d_ + 1, asked.scratch.data());
        line_.predict(asked.scratch.data(), asked.line.data(), &asked.doubt);
    }
    void write(const Asked& asked, const Steps& steps, int64_t i) const {
        const double variance = asked.variance + asked.doubt;
        for (int64_t o = 0; o < p_; o++) {
            if (steps.mean) steps.mean[i * p_ + o] = asked.rest[size_t(o)] + asked.line[size_t(o)];
            if (steps.local_mean) steps.local_mean[i * p_ + o] = asked.sums[size_t(o)] + asked.line[size_t(o)];
        }
        if (steps.variance) steps.variance[i] = power_ * variance;
        if (steps.local_variance) steps.local_variance[i] = variance;
    }

    // Learn the row that was predicted
    void learn_row(const double* x, const double* y) {
        learn_errors(y);
        const bool full = store_.full();
        const int64_t slot = full ? store_.oldest() : store_.size();
        changes_.assign(1, {slot, {nullptr, x, double(store_.seen())}, next_.k.data()});
        for (int64_t o = 0; o < p_; o++) delta_[size_t(o)] = y[o] - next_.global[size_t(o)] - line(x, o);
        change_worst(full ? slot : -1);
        solve();
        if (full) take_out(slot);
        store_.push(x, y);
        next_.k[size_t(slot)] = diagonal(kernel_, x);
        for (int64_t o = 0; o < p_; o++) alpha(o)[slot] = 0;
        change_weights();
        if (full) refit_around(left_x_.data());
    }
    // The power of the variance, and the linear part
    void learn_errors(const double* y) {
        const double std = std::sqrt(next_.variance);
        double squares = 0;
        for (int64_t o = 0; o < p_; o++) {
            const double error = y[o] - next_.rest[size_t(o)];
            squares += square(error - next_.line[size_t(o)]);
            error_[size_t(o)] = error / std;
        }
        if (learns_power_) {
            evidence_ = forgetting_ * evidence_ + 1.0;
            const double power = power_ + (squares / double(p_) / (next_.variance + next_.doubt) - power_) / evidence_;
            power_ = power < TINIEST ? TINIEST : power;
        }
        if (!is_linear_) return;
        for (int64_t j = 0; j <= d_; j++) next_.scratch[size_t(j)] = next_.g[size_t(j)] / std;
        line_.learn(next_.scratch.data(), error_.data());
    }
    double line(const double* x, int64_t o) const { return is_linear_ ? line_.value(x, o) : 0.0; }

    // Add a row whose weights change. Its delta is its residual until the equations are solved.
    void change(int64_t slot) {
        const size_t i = changes_.size(), w = size_t(store_.width()), d = size_t(d_);
        double *place = places_.data() + i * w, *x = points_.data() + i * d;
        get_center(store_.places(), int(w), slot, place);
        std::copy(store_.x(slot), store_.x(slot) + d_, x);
        changes_.push_back({slot, {place, x, store_.born(slot)}, nullptr});
        for (int64_t o = 0; o < p_; o++) delta_[i * size_t(p_) + size_t(o)] = r(o)[slot] - line(x, o);
    }
    // Change the neighbors with the largest residuals, except a row that will be removed
    void change_worst(int64_t leaves) {
        const int64_t m = refits_ ? next_.question.neighbors() : 0;
        double least = 0;
        for (int64_t o = 0; o < p_; o++) least += NOTHING * square(delta_[size_t(o)]);
        misfits_.clear();
        for (int64_t i = 0; i < m; i++) {
            const int64_t slot = next_.question[i].slot;
            if (slot == leaves) continue;
            double misfit = 0;
            for (int64_t o = 0; o < p_; o++) misfit += square(r(o)[slot] - line(store_.x(slot), o));
            const double rounded =
                misfit > least ? double(float(misfit)) : 0.0;  // so that duplicates have equal residuals
            misfits_.push_back({-rounded, i, slot});           // and the nearer row comes first
        }
        const auto end = misfits_.begin() + std::ptrdiff_t(std::min(misfits_.size(), size_t(refits_)));
        std::partial_sort(misfits_.begin(), end, misfits_.end());
        for (auto one = misfits_.begin(); one < end; one++) change(one->slot);
    }
    // delta = (K + noise I)^-1 r for the rows that change
    void solve() {
        const int64_t count = int64_t(changes_.size());
        for (int64_t i = 0; i < count; i++) {
            const Change& row = changes_[size_t(i)];
            for (int64_t j = 0; j < i; j++) {
                const Change& other = changes_[size_t(j)];
                A_[size_t(i * count + j)] = other.k ? other.k[row.slot] : covariances_.with_row(row.point, other.slot);
            }
            A_[size_t(i * count + i)] = diagonal(kernel_, row.point.x) + prior_.noise;
        }
        solve_block(count, p_, A_.data(), delta_.data(), scale_.data());
    }
    void change_weights() {
        for (size_t i = 0; i < changes_.size(); i++)
            for (int64_t o = 0; o < p_ && changes_[i].slot >= 0; o++)
                alpha(o)[changes_[i].slot] += delta_[i * size_t(p_) + size_t(o)];
    }
    // Remove the row in this slot and its weight
    void take_out(int64_t slot) {
        change(slot);
        changes_.back().slot = -1;
        std::copy(store_.x(slot), store_.x(slot) + d_, left_x_.data());
        for (int64_t o = 0; o < p_; o++) delta_[(changes_.size() - 1) * size_t(p_) + size_t(o)] = -alpha(o)[slot];
    }
    // Solve for the weights of the rows nearest to a removed row, so that they take over its contribution
    void refit_around(const double* x) {
        begin_pass();
        covariances_.visit([&](auto op) {
            next_.question.search(x, [&](int64_t slot, const Vec<double>*) ALWAYS { pass(op, slot); });
        });
        end_pass();
        const int64_t count = std::min(refits_ + 1, next_.question.neighbors());
        for (int64_t i = 0; i < count; i++) change(next_.question[i].slot);
        solve();
        change_weights();
    }

    // The residuals are updated, r -= K delta, in the next pass over the rows, usually the search for the neighbors of
    // the next row. The residuals of the changed rows are computed from scratch in the same pass, so that rounding
    // errors do not add up.
    void search_and_settle(const double* x) {
        begin_pass();
        search(next_, x, [&](auto op, int64_t slot) ALWAYS { pass(op, slot); });
        end_pass();
    }
    void settle() {
        if (changes_.empty()) return;
        begin_pass();
        covariances_.visit([&](auto op) {
            for (int64_t i = 0; i < store_.blocks(); i++) pass(op, store_.block(i));
        });
        end_pass();
    }
    void begin_pass() {
        std::fill(products_.data(), products_.data() + int64_t(changes_.size()) * p_ * W<double>, 0.0);
    }
    template <class Operation> INLINE void pass(Operation, int64_t slot) {
        for (size_t i = 0; i < changes_.size(); i++) {
            Vec<double> k[Store::TILES];
            if (changes_[i].k)
                EACH(n, Store::TILES) k[n] = load(changes_[i].k + slot + n * W<double>);
            else
                covariances_.evaluate<Store::TILES, Operation::value>(slot, changes_[i].point, k);
            for (int64_t o = 0; o < p_; o++) {
                const Vec<double> minus = splat<double>(-delta_[i * size_t(p_) + size_t(o)]);
                double* left = r(o) + slot;
                EACH(n, Store::TILES) store(left + n * W<double>, fma(minus, k[n], load(left + n * W<double>)));
            }
            add_products(slot, k, products_.data() + i * size_t(p_) * W<double>);
        }
    }
    void end_pass() {
        for (size_t i = 0; i < changes_.size(); i++) {
            const int64_t slot = changes_[i].slot;
            for (int64_t o = 0; o < p_ && slot >= 0; o++) {
                const double product = sum<double>(load(products_.data() + (i * size_t(p_) + size_t(o)) * W<double>));
                r(o)[slot] = store_.y(slot)[o] - product - prior_.noise * alpha(o)[slot];
            }
        }
        changes_.clear();
    }

    double* alpha(int64_t o) { return alpha_.data() + o * room_; }
    double* r(int64_t o) { return r_.data() + o * room_; }
    const double* alpha(int64_t o) const { return alpha_.data() + o * room_; }
    const double* r(int64_t o) const { return r_.data() + o * room_; }

    // Allocate memory for this number of rows, and for the weights that change
    void grow(int64_t rows) {
        if (rows <= store_.room() || (room_ && store_.full())) return;
        settle();  // pending updates are in vectors that are replaced
        const int64_t room = store_.room_for(rows);
        const int64_t most = 2 + std::min({refits_, prior_.neighbors, room});  // number of rows that change
        Buffer<double> alpha(size_t(p_ * room)), r(size_t(p_ * room)), k { size_t(room) };
        for (int64_t o = 0; o < p_ && room_; o++) {
            std::copy(this->alpha(o), this->alpha(o) + room_, alpha.data() + o * room);
            std::copy(this->r(o), this->r(o) + room_, r.data() + o * room);
        }
        A_.resize(size_t(most * most));
        delta_.resize(size_t(most * p_));
        scale_.resize(size_t(most));
        places_.resize(size_t(most * store_.width()));
        points_.resize(size_t(most * d_));
        products_.resize(size_t(most * p_) * W<double>);
        changes_.reserve(size_t(most));
        misfits_.reserve(size_t(std::min(prior_.neighbors, room)));
        if (is_linear_) line_.begin();
        store_.reserve(rows);  // a failure changes nothing
        alpha_.swap(alpha);
        r_.swap(r);
        next_.k.swap(k);
        next_seen_ = false;  // the prediction was in the old memory
        room_ = room;
    }

    const int64_t refits_;
    const bool learns_power_, is_linear_;
    const double forgetting_;
    Covariances covariances_;
    Line line_;
    double power_ = 1, evidence_ = 1;
    int64_t room_ = 0;
    Buffer<double> alpha_, r_;  // (p, room)
    Asked next_;
    bool next_seen_ = false;  // whether next_ is the prediction for next_x_ with the current rows
    Buffer<double> next_x_{size_t(d_)}, left_x_{size_t(d_)}, error_{size_t(p_)};
    std::vector<Near> misfits_;       // residuals of the neighbors, in place of ranks
    std::vector<Change> changes_;     // changes whose effect on the residuals is pending
    Buffer<double> delta_;            // (changes, p)
    Buffer<double> places_, points_;  // (changes, width), (changes, d)
    Buffer<double> products_;         // (changes, p, W): k'alpha, while it is summed
    Buffer<double> A_, scale_;
};

}  // namespace onlinegp::ONLINEGP_ISA
