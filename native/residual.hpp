// The GP on current residuals: onlinegp.models.local.residual, compiled.
#pragma once
#include "linear.hpp"
#include "local.hpp"

namespace onlinegp::ONLINEGP_ISA {

// The covariances k(x, z) a^|t - u| of points x of times t with all stored rows z of times u, a block of rows at a time
class Covariances {
  public:
    Covariances(const LocalPrior& prior, const Kernel<double>& kernel, const Store& store)
        : kernel_(kernel), store_(store), rate_(0.5 * prior.fade * LOG2E) {}

    struct Point {
        const double *place, *x;
        double time;
        double* k;  // (room,), zero where there are no rows
    };
    // Places have the length scales in them, so that a stationary kernel follows from squared distances alone
    static bool needs_points(const Kernel<double>& kernel) { return !kernel.stationary_leaf(); }

    // Call body(write), where write(block, r2, point) turns the squared distances of a block to a point into covariances
    template <class Body> INLINE void with_writer(const Body& body) const {
        if (!kernel_.stationary_leaf())
            return body([&](int64_t block, Vec<double>* k, const Point& point) ALWAYS {
                const double* tiles = store_.points() + block * Store::BLOCK * kernel_.d;
                Composed<double>{kernel_}.template evaluate<Store::TILES, 1>(tiles, point.x, k);
                write(block, k, point);
            });
        switch (kernel_.code[0].op) {
            case Op::RBF: return with_stationary<Op::RBF>(body);
            case Op::Matern12: return with_stationary<Op::Matern12>(body);
            case Op::Matern32: return with_stationary<Op::Matern32>(body);
            default: return with_stationary<Op::Matern52>(body);
        }
    }
    // The covariances of several points, in one pass over the rows
    void fill(const Point* points, int64_t count) const {
        const int64_t blocks = (store_.size() + Store::BLOCK - 1) / Store::BLOCK;
        const int w = store_.width();
        with_writer([&](const auto& write) {
            for (int64_t block = 0; block < blocks; block++)
                for (int64_t i = 0; i < count; i++) {
                    Vec<double> k[Store::TILES];
                    const Pairs<double, Store::TILES, 1> pairs{store_.places() + block * Store::BLOCK * w, points[i].place, w};
                    squared_distances<false>(kernel_.code[0], pairs, k);
                    write(block, k, points[i]);
                }
        });
    }

  private:
    template <Op op, class Body> INLINE void with_stationary(const Body& body) const {
        body([&](int64_t block, Vec<double>* k, const Point& point) ALWAYS {
            of<Store::TILES, op>(kernel_.code[0], 1.0, k);
            if (kernel_.scaled()) EACH(n, Store::TILES) k[n] *= kernel_.code[1].a;
            write(block, k, point);
        });
    }
    INLINE void write(int64_t block, Vec<double>* k, const Point& point) const {
        const int64_t first = block * Store::BLOCK, rows = store_.size() - first;
        if (rate_ > 0) fade(store_.births() + first, point.time, k);
        if (rows < Store::BLOCK)
            EACH(n, Store::TILES) k[n] = keep<double>(k[n], first_lanes<double>(int(rows - n * W<double>)));
        EACH(n, Store::TILES) store(point.k + first + n * W<double>, k[n]);
    }
    INLINE void fade(const double* births, double time, Vec<double>* k) const {
        Vec<double> f[Store::TILES];
        EACH(n, Store::TILES) f[n] = magnitude<double>(load(births + n * W<double>) - time) * rate_;
        EACH(n, Store::TILES / 2) exp2_minus<2>(f + 2 * n);
        EACH(n, Store::TILES) k[n] *= f[n];
    }

    const Kernel<double>& kernel_;
    const Store& store_;
    const double rate_;
};

// The linear part, h'b with h = [x, 1]: onlinegp.models.linear.information, with rows of variance one
class Line {
  public:
    Line(const LocalPrior& prior, int d, int p)
        : prior_(prior), m_(d + 1), p_(p), R_(size_t(m_ * m_)), z_(size_t(m_ * p)), b_(size_t(m_ * p)), row_(size_t(m_)),
          target_(size_t(p)) {
        for (int64_t i = 0; i < m_; i++) R_[size_t(i * m_ + i)] = 1;
    }
    int64_t weights() const { return m_; }
    double* R() { return R_.data(); }
    double* z() { return z_.data(); }
    const double* R() const { return R_.data(); }
    const double* z() const { return z_.data(); }

    // The mean (p,) and the variance of g'b; g is used up
    void predict(double* g, double* mean, double* variance) const { predict_row(m_, p_, R(), z(), g, mean, variance); }

    // Learn that g'b was this much (p,), with this variance
    void learn(const double* g, const double* target, double variance, int64_t seen) {
        if (prior_.forgetting < 1) forget(seen);
        const double precision = 1.0 / std::sqrt(variance);
        for (int64_t i = 0; i < m_; i++) row_[size_t(i)] = g[i] * precision;
        for (int64_t o = 0; o < p_; o++) target_[size_t(o)] = target[o] * precision;
        add_row(m_, p_, 0, R(), z(), row_.data(), target_.data());
    }
    // b = R^-1 z, for `value`
    void solve() {
        for (int64_t i = m_ - 1; i >= 0; i--)
            for (int64_t o = 0; o < p_; o++) {
                double sum = z_[size_t(i * p_ + o)];
                for (int64_t j = i + 1; j < m_; j++) sum -= R_[size_t(i * m_ + j)] * b_[size_t(j * p_ + o)];
                b_[size_t(i * p_ + o)] = sum / R_[size_t(i * m_ + i)];
            }
    }
    double value(const double* x, int64_t o) const {
        double sum = b_[size_t((m_ - 1) * p_ + o)];
        for (int64_t j = 0; j < m_ - 1; j++) sum += x[j] * b_[size_t(j * p_ + o)];
        return sum;
    }

  private:
    void forget(int64_t seen) {
        const double keep = std::sqrt(prior_.forgetting);
        const int64_t which = seen % m_;
        for (int64_t j = 0; j < m_ * m_; j++) R_[size_t(j)] *= keep;
        for (int64_t j = 0; j < m_ * p_; j++) z_[size_t(j)] *= keep;
        std::fill(row_.data(), row_.data() + m_, 0.0);
        std::fill(target_.data(), target_.data() + p_, 0.0);
        row_[size_t(which)] = prior_.renewal[size_t(seen < m_ ? which : m_ - 1)];
        add_row(m_, p_, which, R(), z(), row_.data(), target_.data());
    }

    const LocalPrior& prior_;
    const int64_t m_, p_;
    Buffer<double> R_, z_, b_, row_, target_;
};

// delta = A^-1 E for A (m, m) and E (m, p), both used up; a row that those before it make redundant gets zero
static void solve_block(int64_t m, int64_t p, double* A, double* E, double* scale) {
    for (int64_t j = 0; j < m; j++) scale[j] = A[j * m + j];
    for (int64_t j = 0; j < m; j++) {
        const double pivot = A[j * m + j];
        scale[j] = pivot > Question::REDUNDANT * scale[j] ? 1.0 / std::sqrt(pivot) : 0.0;
        for (int64_t o = 0; o < p; o++) E[j * p + o] *= scale[j];
        for (int64_t i = j + 1; i < m; i++) {
            const double l = A[i * m + j] *= scale[j];
            for (int64_t c = j + 1; c <= i; c++) A[i * m + c] -= l * A[c * m + j];
            for (int64_t o = 0; o < p; o++) E[i * p + o] -= l * E[j * p + o];
        }
    }
    for (int64_t j = m - 1; j >= 0; j--)
        for (int64_t o = 0; o < p; o++) {
            double sum = E[j * p + o];
            for (int64_t i = j + 1; i < m; i++) sum -= A[i * m + j] * E[i * p + o];
            E[j * p + o] = sum * scale[j];
        }
}

// from -= factor row, of n rows
static void subtract(int64_t n, double factor, const double* row, double* from) {
    const Vec<double> minus = splat<double>(-factor);
    for (int64_t i = 0; i < n; i += W<double>) store(from + i, fma(minus, load(row + i), load(from + i)));
}

class ResidualModel final : public Residual {
  public:
    ResidualModel(const LocalPrior& prior, int d, int p)
        : prior_(prior), d_(d), p_(p), kernel_(prior.recipe, d), store_(prior, d, p, Covariances::needs_points(kernel_)),
          covariances_(prior, kernel_, store_), line_(prior, d, p), next_(*this) {}

    int64_t size() const override { return store_.size(); }
    int64_t seen() const override { return store_.seen(); }
    int64_t work_per_row() const override {
        const int64_t n = store_.size(), m = prior_.neighbors < n ? prior_.neighbors : n;
        return n + m * m * (m + 50) / 200 + 1;
    }

    int64_t learn(int64_t n, const double* X, const double* Y, const Steps& steps, Stop& stop) override {
        const bool answers = steps.mean || prior_.learn_power || prior_.linear;
        for (int64_t i = 0; i < n; i++, X += d_, Y += p_) {
            if (stop.asked((2 + prior_.refits) * work_per_row())) return i;
            see(X, answers);
            write(next_, steps, i);
            next_seen_ = false;
            learn_row(X, Y);
            if (steps.size) steps.size[i] = store_.size();
        }
        return n;
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
    void flush() override {}
    void predict(int64_t n, const double* X, double* mean, double* variance, Stop& stop) const override {
        Steps steps;
        steps.mean = mean;
        steps.variance = variance;
        predict_both(n, X, steps, stop);
    }
    void predict_both(int64_t n, const double* X, const Steps& steps, Stop& stop) const override {
        Asked asked(*this);
        asked.reserve(room_);
        for (int64_t i = 0; i < n && !stop.asked(work_per_row()); i++) {
            search(asked, X + i * d_);
            answer(asked, X + i * d_);
            write(asked, steps, i);
        }
    }
    void nearest(int64_t n, const double* X, int64_t* rows) const override {
        Question question(prior_, kernel_, store_, d_, values());
        question.number(n, X, rows);
    }

    void save(double* X, double* Y) const override { store_.save(X, Y); }
    void load(int64_t n, int64_t seen, const double* X, const double* Y) override {
        next_seen_ = false;
        reserve(n ? n : 1);
        store_.restore(n, seen, X, Y);
    }
    void save_weights(ResidualArrays& out) const override {
        double *alpha = out.alpha, *r = out.r;
        store_.each_slot([&](int64_t slot) {
            for (int64_t o = 0; o < p_; o++) {
                *alpha++ = alpha_[size_t(o * room_ + slot)];
                *r++ = r_[size_t(o * room_ + slot)];
            }
        });
        std::copy(line_.R(), line_.R() + line_.weights() * line_.weights(), out.R);
        std::copy(line_.z(), line_.z() + line_.weights() * p_, out.z);
        out.power = power_;
        out.evidence = evidence_;
    }
    void load_weights(const ResidualArrays& in) override {
        const double *alpha = in.alpha, *r = in.r;
        std::fill(alpha_.data(), alpha_.data() + p_ * room_, 0.0);
        store_.each_slot([&](int64_t slot) {
            for (int64_t o = 0; o < p_; o++) {
                alpha_[size_t(o * room_ + slot)] = *alpha++;
                r_[size_t(o * room_ + slot)] = *r++;
            }
        });
        std::copy(in.R, in.R + line_.weights() * line_.weights(), line_.R());
        std::copy(in.z, in.z + line_.weights() * p_, line_.z());
        power_ = in.power;
        evidence_ = in.evidence;
    }

  private:
    static constexpr double TINIEST = 1e-290, NOTHING = 1e-16;  // as in Python

    // A question and what is said of it, for one thread
    struct Asked {
        explicit Asked(const ResidualModel& model)
            : question(model.prior_, model.kernel_, model.store_, model.d_, model.values()), place(size_t(model.store_.width())),
              sums(size_t(model.values())), global(size_t(model.p_)), rest(size_t(model.p_)), line(size_t(model.p_)),
              g(size_t(model.d_ + 1)), used(size_t(model.d_ + 1)) {}
        void reserve(int64_t rows) {
            if (rows <= room) return;
            k.resize(size_t(rows));
            room = rows;
        }

        Question question;
        Buffer<double> place, k;  // k (room,): the covariances of x and the stored rows
        int64_t room = 0;
        Buffer<double> sums;          // w'Y (p,), w'r (p,), and w'H (d + 1,) with a linear part
        Buffer<double> global, rest;  // k'alpha (p,), and k'alpha + w'r (p,)
        Buffer<double> line, g, used;  // the mean of the linear part (p,), its coefficients (d + 1,), room for them
        double variance = 0, doubt = 0;  // of y without the linear part, and of that
    };

    // Have in next_ what there is to say of x, if it is not there from the call before
    void see(const double* x, bool answers) {
        const size_t bytes = size_t(d_) * sizeof(double);
        if (next_seen_ && std::memcmp(x, next_x_.data(), bytes) == 0) return;
        next_seen_ = false;
        reserve(store_.size() + 1);  // what fails leaves everything as it is
        search(next_, x);
        if (!answers) return;
        answer(next_, x);
        std::memcpy(next_x_.data(), x, bytes);
        next_seen_ = true;
    }
    int values() const { return 2 * p_ + (prior_.linear ? d_ + 1 : 0); }

    // The neighbors of x, its covariances with all rows, and k'alpha
    void search(Asked& asked, const double* x) const {
        const Covariances::Point point{nullptr, x, double(store_.seen()), asked.k.data()};
        covariances_.with_writer([&](const auto& write) {
            asked.question.search(x, [&](int64_t block, const Vec<double>* r2) ALWAYS {
                Vec<double> k[Store::TILES];
                EACH(n, Store::TILES) k[n] = r2[n];
                write(block, k, point);
            });
        });
        for (int64_t o = 0; o < p_; o++) asked.global[size_t(o)] = dot(point.k, alpha(o), store_.size());
    }
    // Then its means and its variance
    void answer(Asked& asked, const double* x) const {
        const auto values = [&](int64_t slot, double* v) ALWAYS {
            v = std::copy(store_.y(slot), store_.y(slot) + p_, v);
            for (int64_t o = 0; o < p_; o++) *v++ = r(o)[slot];
            if (!prior_.linear) return;
            v = std::copy(store_.x(slot), store_.x(slot) + d_, v);
            *v = 1;
        };
        asked.question.answer(x, values, asked.sums.data(), &asked.variance);
        for (int64_t o = 0; o < p_; o++) asked.rest[size_t(o)] = asked.global[size_t(o)] + asked.sums[size_t(p_ + o)];
        if (!prior_.linear) return;
        for (int64_t j = 0; j <= d_; j++) asked.g[size_t(j)] = (j < d_ ? x[j] : 1.0) - asked.sums[size_t(2 * p_ + j)];
        std::copy(asked.g.data(), asked.g.data() + d_ + 1, asked.used.data());
        line_.predict(asked.used.data(), asked.line.data(), &asked.doubt);
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

    // Learn the row that was asked for
    void learn_row(const double* x, const double* y) {
        double squares = 0;
        for (int64_t o = 0; o < p_; o++) {
            error_[size_t(o)] = y[o] - next_.rest[size_t(o)];
            squares += square(error_[size_t(o)] - next_.line[size_t(o)]);
        }
        if (prior_.learn_power) {
            evidence_ = prior_.forgetting * evidence_ + 1.0;
            const double power = power_ + (squares / double(p_) / (next_.variance + next_.doubt) - power_) / evidence_;
            power_ = power < TINIEST ? TINIEST : power;
        }
        if (prior_.linear) {
            line_.learn(next_.g.data(), error_.data(), next_.variance, store_.seen());
            line_.solve();
        }
        const int64_t leaves = store_.full() ? store_.oldest() : -1;
        for (int64_t o = 0; o < p_; o++) {
            new_r_[size_t(o)] = y[o] - next_.global[size_t(o)];
            delta_[size_t(o)] = new_r_[size_t(o)] - line(x, o);
        }
        choose_refits(leaves);
        fill_rows(leaves);
        refit(x);
        if (leaves >= 0) remove(leaves);
        const int64_t slot = leaves >= 0 ? leaves : store_.size();
        store_.push(x, y);
        for (int64_t o = 0; o < p_; o++) {
            alpha(o)[slot] = delta_[size_t(o)];
            r(o)[slot] = new_r_[size_t(o)];
        }
        if (leaves >= 0) refit_around(left_x_.data());
    }
    // The neighbors with the largest residuals, without a row that is about to leave
    void choose_refits(int64_t leaves) {
        const int64_t m = prior_.refits ? next_.question.neighbors() : 0;
        double least = 0;
        for (int64_t o = 0; o < p_; o++) least += NOTHING * square(delta_[size_t(o)]);
        refits_.clear();
        for (int64_t i = 0; i < m; i++) {
            const int64_t slot = next_.question[i].slot;
            if (slot == leaves) continue;
            double misfit = 0;
            for (int64_t o = 0; o < p_; o++) misfit += square(r(o)[slot] - line(store_.x(slot), o));
            const double rounded = misfit > least ? double(float(misfit)) : 0.0;  // so that copies are equal
            refits_.push_back({-rounded, -i, slot});                             // and the nearer comes first
        }
        const size_t count = std::min(refits_.size(), size_t(prior_.refits));
        std::partial_sort(refits_.begin(), refits_.begin() + std::ptrdiff_t(count), refits_.end());
        refits_.resize(count);
    }
    double line(const double* x, int64_t o) const { return prior_.linear ? line_.value(x, o) : 0.0; }

    // The covariances of the rows to refit, and of one that leaves, with all stored rows
    void fill_rows(int64_t leaves) {
        points_.clear();
        for (const Near& one : refits_) add_point(one.slot);
        if (leaves >= 0) add_point(leaves);
        covariances_.fill(points_.data(), int64_t(points_.size()));
    }
    void add_point(int64_t slot) {
        const int64_t i = int64_t(points_.size());
        double* place = places_.data() + i * store_.width();
        store_.place(store_.x(slot), place);
        points_.push_back({place, store_.x(slot), store_.born(slot), rows_.data() + i * room_});
    }
    // Solve for the weights of the new row, whose covariances are in next_.k, and of the chosen ones
    void refit(const double* x) {
        const int64_t n = store_.size(), m = int64_t(refits_.size()) + 1;
        const double *k = next_.k.data(), noise = prior_.noise, kxx = diagonal(kernel_, x);
        A_[0] = kxx + noise;
        for (int64_t i = 1; i < m; i++) {
            const int64_t slot = refits_[size_t(i - 1)].slot;
            const double* row = points_[size_t(i - 1)].k;
            A_[size_t(i * m)] = k[slot];
            for (int64_t j = 1; j <= i; j++) A_[size_t(i * m + j)] = row[refits_[size_t(j - 1)].slot];
            A_[size_t(i * m + i)] += noise;
            refresh(slot, row, delta_.data() + i * p_);
        }
        solve_block(m, p_, A_.data(), delta_.data(), scale_.data());
        for (int64_t o = 0; o < p_; o++) {
            new_r_[size_t(o)] -= (kxx + noise) * delta_[size_t(o)];
            subtract(n, delta_[size_t(o)], k, r(o));
            for (int64_t i = 1; i < m; i++) {
                const int64_t slot = refits_[size_t(i - 1)].slot;
                const double delta = delta_[size_t(i * p_ + o)];
                new_r_[size_t(o)] -= delta * k[slot];
                change(n, o, slot, points_[size_t(i - 1)].k, delta);
            }
        }
    }
    // Take out what a row taught, whose covariances are the last: r += K[:, i] alpha_i
    void remove(int64_t slot) {
        std::copy(store_.x(slot), store_.x(slot) + d_, left_x_.data());
        for (int64_t o = 0; o < p_; o++) {
            const double weight = alpha(o)[slot];
            subtract(store_.size(), -weight, points_.back().k, r(o));
            new_r_[size_t(o)] += weight * next_.k[size_t(slot)];
        }
    }

    // Solve for the weights of the rows nearest to one that left: they take over what it taught
    void refit_around(const double* x) {
        const int64_t n = store_.size(), m = std::min(prior_.refits + 1, next_.question.search(x));
        refits_.clear();
        for (int64_t i = 0; i < m; i++) refits_.push_back(next_.question[i]);
        fill_rows(-1);
        for (int64_t i = 0; i < m; i++) {
            for (int64_t j = 0; j <= i; j++) A_[size_t(i * m + j)] = points_[size_t(i)].k[refits_[size_t(j)].slot];
            A_[size_t(i * m + i)] += prior_.noise;
            refresh(refits_[size_t(i)].slot, points_[size_t(i)].k, delta_.data() + i * p_);
        }
        solve_block(m, p_, A_.data(), delta_.data(), scale_.data());
        for (int64_t o = 0; o < p_; o++)
            for (int64_t i = 0; i < m; i++) change(n, o, refits_[size_t(i)].slot, points_[size_t(i)].k, delta_[size_t(i * p_ + o)]);
    }
    // The residual of a row from scratch, so that roundings do not add up; error (p,) is what the linear part leaves of it
    void refresh(int64_t slot, const double* row, double* error) {
        for (int64_t o = 0; o < p_; o++) {
            r(o)[slot] = store_.y(slot)[o] - dot(row, alpha(o), store_.size()) - prior_.noise * alpha(o)[slot];
            error[o] = r(o)[slot] - line(store_.x(slot), o);
        }
    }
    // Change the weight of a row, and the residuals with it
    void change(int64_t n, int64_t o, int64_t slot, const double* row, double delta) {
        subtract(n, delta, row, r(o));
        r(o)[slot] -= prior_.noise * delta;
        alpha(o)[slot] += delta;
    }

    double* alpha(int64_t o) { return alpha_.data() + o * room_; }
    double* r(int64_t o) { return r_.data() + o * room_; }
    const double* alpha(int64_t o) const { return alpha_.data() + o * room_; }
    const double* r(int64_t o) const { return r_.data() + o * room_; }

    // Room for so many rows, and for the block of weights that is solved for
    void reserve(int64_t rows) {
        if (rows > room_ && !(room_ && store_.full())) {
            const int64_t room = store_.room_for(rows);
            Buffer<double> alpha(size_t(p_ * room)), r(size_t(p_ * room));
            for (int64_t o = 0; o < p_ && room_; o++) {
                std::copy(alpha_.data() + o * room_, alpha_.data() + (o + 1) * room_, alpha.data() + o * room);
                std::copy(r_.data() + o * room_, r_.data() + (o + 1) * room_, r.data() + o * room);
            }
            store_.reserve(rows);
            alpha_.swap(alpha), r_.swap(r);
            room_ = room;
        }
        next_.reserve(room_);
        const int64_t most = 1 + std::min({prior_.refits, prior_.neighbors, room_});
        if (most > block_ || room_ > row_) {
            rows_.resize(size_t(most * room_)), places_.resize(size_t(most * store_.width()));
            A_.resize(size_t(most * most)), delta_.resize(size_t(most * p_)), scale_.resize(size_t(most));
            points_.reserve(size_t(most));
            refits_.reserve(size_t(std::min(prior_.neighbors, room_)));
            block_ = most, row_ = room_;
        }
    }

    const LocalPrior& prior_;
    const int d_, p_;
    const Kernel<double> kernel_;
    Store store_;
    const Covariances covariances_;
    Line line_;
    double power_ = 1, evidence_ = 1;
    int64_t room_ = 0, block_ = 0, row_ = 0;
    Buffer<double> alpha_, r_;  // (p, room)
    Asked next_;
    bool next_seen_ = false;  // whether next_ tells of next_x_, with the rows as they are
    Buffer<double> next_x_{size_t(d_)};
    Buffer<double> error_{size_t(p_)}, new_r_{size_t(p_)}, left_x_{size_t(d_)};
    std::vector<Near> refits_;                // the rows to refit
    std::vector<Covariances::Point> points_;  // these, and the row that leaves; their covariances are in rows_
    Buffer<double> rows_, places_, A_, delta_, scale_;
};

}  // namespace onlinegp::ONLINEGP_ISA
