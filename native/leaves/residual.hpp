// The GP on current residuals: onlinegp.models.local.residual, compiled.
#pragma once
#include "leaves/covariances.hpp"
#include "leaves/linear.hpp"
#include "leaves/local.hpp"

namespace onlinegp::ONLINEGP_ISA {

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

// r -= sum_i delta_i k_i over n slots, in one pass
static void subtract_rows(int64_t n, const std::vector<Covariances::Row>& rows, const double* delta, int64_t step,
                          double* r) {
    for (int64_t slot = 0; slot < n; slot += Store::BLOCK) {
        Vec<double> left[Store::TILES];
        EACH(t, Store::TILES) left[t] = load(r + slot + t * W<double>);
        for (size_t i = 0; i < rows.size(); i++) {
            const Vec<double> minus = splat<double>(-delta[int64_t(i) * step]);
            EACH(t, Store::TILES) left[t] = fma(minus, load(rows[i].k + slot + t * W<double>), left[t]);
        }
        EACH(t, Store::TILES) store(r + slot + t * W<double>, left[t]);
    }
}

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

    // A question and what is said of it, for one thread
    struct Asked {
        explicit Asked(const ResidualModel& model)
            : question(model.prior_, model.kernel_, model.store_, model.d_, model.values()),
              sums(size_t(model.values())),
              global(size_t(model.p_)),
              rest(size_t(model.p_)),
              line(size_t(model.p_)),
              g(size_t(model.d_ + 1)),
              scratch(size_t(model.d_ + 1)) {}

        Question question;
        Buffer<double> k;                 // (room,): the covariances of x and the stored rows
        Buffer<double> sums;              // w'Y (p,), w'r (p,), and w'H (d + 1,) with a linear part
        Buffer<double> global, rest;      // k'alpha (p,), and k'alpha + w'r (p,)
        Buffer<double> line, g, scratch;  // the mean of the linear part (p,), its coefficients (d + 1,), room for them
        double variance = 0, doubt = 0;   // of y without the linear part, and of that
    };

    int values() const { return 2 * p_ + (is_linear_ ? d_ + 1 : 0); }

    // Have in next_ what there is to say of x, if it is not there from the call before
    void see(const double* x, bool answers) {
        const size_t bytes = size_t(d_) * sizeof(double);
        if (next_seen_ && std::memcmp(x, next_x_.data(), bytes) == 0) return;
        next_seen_ = false;
        grow(store_.size() + 1);  // what fails leaves everything as it is
        search(next_, x);
        if (!answers) return;
        answer(next_, x);
        std::memcpy(next_x_.data(), x, bytes);
        next_seen_ = true;
    }
    // The neighbors of x, its covariances with all rows, and k'alpha
    void search(Asked& asked, const double* x) const {
        double* to = asked.k.data();
        covariances_.visit([&](auto op) {
            asked.question.search(x, [&](int64_t slot, const Vec<double>* r2) ALWAYS {
                Vec<double> k[Store::TILES];
                EACH(n, Store::TILES) k[n] = r2[n];
                covariances_.write<Store::TILES, op>(slot, x, double(store_.seen()), k, to);
            });
        });
        for (int64_t o = 0; o < p_; o++) asked.global[size_t(o)] = dot(asked.k.data(), alpha(o), store_.size());
    }
    // Then its means and its variance
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

    // Learn the row that was asked for. Until it is stored, it is in the first slot without a row.
    void learn_row(const double* x, const double* y) {
        learn_errors(y);
        const int64_t slot = store_.size(), leaves = store_.full() ? store_.oldest() : -1;
        next_.k[size_t(slot)] = diagonal(kernel_, x);
        chosen_.assign(1, {slot, next_.k.data()});
        for (int64_t o = 0; o < p_; o++) {
            r(o)[slot] = y[o] - next_.global[size_t(o)];
            delta_[size_t(o)] = r(o)[slot] - line(x, o);
        }
        choose_worst(leaves);
        const int64_t solved = int64_t(chosen_.size());
        if (leaves >= 0) choose(leaves);
        fill_chosen(1);
        for (size_t i = 1; i < chosen_.size(); i++) chosen_[i].k[slot] = next_.k[size_t(chosen_[i].slot)];
        refit(1, solved);
        if (leaves >= 0) take_out(leaves);
        subtract_chosen();
        put(x, y, slot);
        if (leaves >= 0) refit_around(left_x_.data());
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

    void choose(int64_t slot) { chosen_.push_back({slot, rows_.data() + int64_t(chosen_.size()) * room_}); }
    // The neighbors with the largest residuals, without a row that is about to leave
    void choose_worst(int64_t leaves) {
        const int64_t m = refits_ ? next_.question.neighbors() : 0;
        double least = 0;
        for (int64_t o = 0; o < p_; o++) least += NOTHING * square(delta_[size_t(o)]);
        misfits_.clear();
        for (int64_t i = 0; i < m; i++) {
            const int64_t slot = next_.question[i].slot;
            if (slot == leaves) continue;
            double misfit = 0;
            for (int64_t o = 0; o < p_; o++) misfit += square(r(o)[slot] - line(store_.x(slot), o));
            const double rounded = misfit > least ? double(float(misfit)) : 0.0;  // so that copies are equal
            misfits_.push_back({-rounded, i, slot});                              // and the nearer comes first
        }
        const auto end = misfits_.begin() + std::ptrdiff_t(std::min(misfits_.size(), size_t(refits_)));
        std::partial_sort(misfits_.begin(), end, misfits_.end());
        for (auto one = misfits_.begin(); one < end; one++) choose(one->slot);
    }
    void fill_chosen(size_t first) { covariances_.fill(chosen_.data() + first, int64_t(chosen_.size() - first)); }

    // Solve for the weights of the first few of the chosen rows, with the others as they are. The residuals of those
    // that are stored, from `old` on, are computed from scratch, so that roundings do not add up.
    void refit(int64_t old, int64_t count) {
        for (int64_t i = 0; i < count; i++) {
            const auto& [slot, k] = chosen_[size_t(i)];
            for (int64_t j = 0; j <= i; j++) A_[size_t(i * count + j)] = k[chosen_[size_t(j)].slot];
            A_[size_t(i * count + i)] += prior_.noise;
            for (int64_t o = 0; o < p_ && i >= old; o++) {
                r(o)[slot] = store_.y(slot)[o] - dot(k, alpha(o), store_.size()) - prior_.noise * alpha(o)[slot];
                delta_[size_t(i * p_ + o)] = r(o)[slot] - line(store_.x(slot), o);
            }
        }
        solve_block(count, p_, A_.data(), delta_.data(), scale_.data());
        for (int64_t i = 0; i < count; i++)
            for (int64_t o = 0; o < p_; o++) {
                alpha(o)[chosen_[size_t(i)].slot] += delta_[size_t(i * p_ + o)];
                r(o)[chosen_[size_t(i)].slot] -= prior_.noise * delta_[size_t(i * p_ + o)];
            }
    }
    // The last of the chosen rows loses its weight, and leaves
    void take_out(int64_t slot) {
        std::copy(store_.x(slot), store_.x(slot) + d_, left_x_.data());
        for (int64_t o = 0; o < p_; o++) delta_[(chosen_.size() - 1) * size_t(p_) + size_t(o)] = -alpha(o)[slot];
    }
    void subtract_chosen() {
        for (int64_t o = 0; o < p_; o++) subtract_rows(store_.size() + 1, chosen_, delta_.data() + o, p_, r(o));
    }
    // Store the row that was learned in this slot
    void put(const double* x, const double* y, int64_t slot) {
        const int64_t to = store_.full() ? store_.oldest() : slot;
        store_.push(x, y);
        for (int64_t o = 0; o < p_; o++) {
            const double weight = alpha(o)[slot];
            alpha(o)[slot] = 0;
            alpha(o)[to] = weight;
            r(o)[to] = r(o)[slot];
        }
    }
    // Solve for the weights of the rows nearest to one that left: they take over what it taught
    void refit_around(const double* x) {
        const int64_t count = std::min(refits_ + 1, next_.question.search(x));
        chosen_.clear();
        for (int64_t i = 0; i < count; i++) choose(next_.question[i].slot);
        fill_chosen(0);
        refit(0, count);
        subtract_chosen();
    }

    double* alpha(int64_t o) { return alpha_.data() + o * room_; }
    double* r(int64_t o) { return r_.data() + o * room_; }
    const double* alpha(int64_t o) const { return alpha_.data() + o * room_; }
    const double* r(int64_t o) const { return r_.data() + o * room_; }

    // Room for so many rows and a new one, and for the weights that are solved for
    void grow(int64_t rows) {
        if (rows <= store_.room() || (room_ && store_.full())) return;
        const int64_t room = store_.room_for(rows) + Store::BLOCK;
        const int64_t most = 2 + std::min({refits_, prior_.neighbors, room});  // chosen rows
        Buffer<double> alpha(size_t(p_ * room)), r(size_t(p_ * room)), k{size_t(room)}, chosen(size_t(most * room));
        for (int64_t o = 0; o < p_ && room_; o++) {
            std::copy(this->alpha(o), this->alpha(o) + room_, alpha.data() + o * room);
            std::copy(this->r(o), this->r(o) + room_, r.data() + o * room);
        }
        A_.resize(size_t(most * most));
        delta_.resize(size_t(most * p_));
        scale_.resize(size_t(most));
        chosen_.reserve(size_t(most));
        misfits_.reserve(size_t(std::min(prior_.neighbors, room)));
        covariances_.reserve(most);
        if (is_linear_) line_.begin();
        store_.reserve(rows);  // what fails leaves everything as it is
        alpha_.swap(alpha);
        r_.swap(r);
        next_.k.swap(k);
        next_seen_ = false;  // what it told was in the old one
        rows_.swap(chosen);
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
    bool next_seen_ = false;  // whether next_ tells of next_x_, with the rows as they are
    Buffer<double> next_x_{size_t(d_)}, left_x_{size_t(d_)}, error_{size_t(p_)};
    std::vector<Near> misfits_;             // of the neighbors, in the place of ranks
    std::vector<Covariances::Row> chosen_;  // whose weights change; their covariances are in rows_ (chosen, room)
    Buffer<double> rows_, A_, delta_, scale_;
};

}  // namespace onlinegp::ONLINEGP_ISA
