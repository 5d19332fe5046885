// Regression on smoothed seasonal lags. onlinegp.models.temporal.smoothed_lags is the definition.
#pragma once
#include <cmath>
#include <cstring>
#include "leaves/constant_memory.hpp"

namespace onlinegp::ONLINEGP_ISA::temporal {

// The past of one output, from which the inputs of a row are computed: recent values in a ring, and means of the phases
struct Past {
    int64_t memory, s1, s2;
    double *recent, *fast, *slow, *second, *smooth;

    static constexpr int64_t SMOOTH = 5;
    static int64_t room(int64_t memory, int64_t s1, int64_t s2) { return memory + 2 * s1 + s2 + SMOOTH; }

    double back(int64_t t, int64_t j) const { return recent[(t - j + memory) % memory]; }

    void inputs(int64_t t, double* x) const {
        const double y1 = back(t, 1);
        x[0] = 1;
        x[1] = y1;
        x[2] = back(t, 2);
        x[3] = back(t, 3);
        if (s1 == 1) {
            std::copy_n(smooth + 2, 3, x + 4);
            return;
        }
        x[4] = back(t, s1);
        x[5] = fast[t % s1];
        x[6] = slow[t % s1];
        x[7] = y1 - slow[(t - 1 + s1) % s1];
        x[8] = smooth[0];
        x[9] = back(t, s1 + 1);
        if (s2 == 1) return;
        x[10] = back(t, s2);
        x[11] = second[t % s2];
        x[12] = y1 - second[(t - 1 + s2) % s2];
        x[13] = smooth[1];
    }
    void push(double y, int64_t t) {
        constexpr double FAST = 0.4, SLOW = 0.1, SECOND = 0.5, DEVIATION = 0.2, LEVEL = 0.3, SLOW_LEVEL = 0.1,
                         CHANGE = 0.1;
        if (s1 > 1) {
            const int64_t i = t % s1;
            const double cycle = double(t / s1) + 1, deviation = y - slow[i];
            smooth[0] += DEVIATION * (deviation - smooth[0]);
            fast[i] += std::max(FAST, 1 / cycle) * (y - fast[i]);
            slow[i] += std::max(SLOW, 1 / cycle) * deviation;
        }
        if (s2 > 1) {
            const int64_t i = t % s2;
            const double cycle = double(t / s2) + 1, deviation = y - second[i];
            smooth[1] += DEVIATION * (deviation - smooth[1]);
            second[i] += std::max(SECOND, 1 / cycle) * deviation;
        }
        smooth[2] += LEVEL * (y - smooth[2]);
        smooth[3] += SLOW_LEVEL * (y - smooth[3]);
        smooth[4] += CHANGE * (y - back(t, 1) - smooth[4]);
        recent[t % memory] = y;
    }
    // A copy of it in given memory
    Past copy_to(double* room) const {
        Past out = *this;
        const auto take = [&](double*& part, int64_t n) {
            std::copy_n(part, n, room);
            part = room;
            room += n;
        };
        take(out.recent, memory);
        take(out.fast, s1);
        take(out.slow, s1);
        take(out.second, s2);
        take(out.smooth, SMOOTH);
        return out;
    }
};

// A = L L' in place, in the lower triangle. Return whether A is positive definite.
static bool factorize(int64_t k, double* A) {
    for (int64_t j = 0; j < k; j++) {
        for (int64_t i = j; i < k; i++) {
            double sum = A[i * k + j];
            for (int64_t l = 0; l < j; l++) sum -= A[i * k + l] * A[j * k + l];
            if (i == j && !(sum > 0)) return false;
            A[i * k + j] = i == j ? std::sqrt(sum) : sum / A[j * k + j];
        }
    }
    return true;
}
// x <- L^-1 x
static void solve_lower(int64_t k, const double* L, double* x) {
    for (int64_t i = 0; i < k; i++) {
        for (int64_t l = 0; l < i; l++) x[i] -= L[i * k + l] * x[l];
        x[i] /= L[i * k + i];
    }
}
// x <- L'^-1 x
static void solve_upper(int64_t k, const double* L, double* x) {
    for (int64_t i = k - 1; i >= 0; i--) {
        for (int64_t l = i + 1; l < k; l++) x[i] -= L[l * k + i] * x[l];
        x[i] /= L[i * k + i];
    }
}
static double dot(int64_t k, const double* a, const double* b) {
    double sum = 0;
    for (int64_t i = 0; i < k; i++) sum += a[i] * b[i];
    return sum;
}

class SmoothedLags final : public Fixed {
  public:
    explicit SmoothedLags(const Plan& plan)
        : SmoothedLags(plan, int64_t(plan.number("s1")), int64_t(plan.number("s2")), int64_t(plan.number("time"))) {}
    int64_t work_per_row() const override { return 4 + p * k_ * k_ * k_ / 32; }

  private:
    SmoothedLags(const Plan& plan, int64_t s1, int64_t s2, int64_t time_column)
        : SmoothedLags(plan, s1, s2, time_column, plan.features - (time_column >= 0),
                       (s1 == 1 ? 7 : 10) + (s2 > 1 ? 4 : 0), std::max({s1, s2, int64_t(4)}) + 2) {}
    SmoothedLags(const Plan& plan, int64_t s1, int64_t s2, int64_t time_column, int64_t inputs, int64_t own,
                 int64_t memory)
        : Fixed(plan.features, plan.outputs, room(plan.outputs, own + inputs, memory, s1, s2), true),
          s1_(s1),
          s2_(s2),
          time_column_(time_column),
          own_(own),
          k_(own + inputs),
          memory_(memory),
          earliest_(int64_t(plan.number("earliest"))),
          forgetting_(plan.number("forgetting")),
          chooses_(plan.number("chooses") != 0),
          forecasters_(plan.vector("forecasters")),
          recent_(size_t(p * memory)),
          fast_(size_t(p * s1)),
          slow_(size_t(p * s1)),
          second_(size_t(p * s2)),
          smooth_(size_t(p * Past::SMOOTH)),
          G_(size_t(p * k_ * k_)),
          b_(size_t(p * k_)),
          yy_(size_t(p)),
          deviation_(size_t(p)),
          wild_(size_t(p)),
          a0_(size_t(p * k_)),
          tightness_(size_t(p)) {}

    // The scratch: coefficients of each output, a matrix, three vectors, and two pasts
    static int64_t room(int64_t p, int64_t k, int64_t memory, int64_t s1, int64_t s2) {
        return p * k + k * k + 3 * k + 2 * Past::room(memory, s1, s2);
    }
    Past past(int64_t o) const {  // const calls only read it
        const auto row = [&](const std::vector<double>& of, int64_t n) {
            return const_cast<double*>(of.data()) + o * n;
        };
        return {memory_,
                s1_,
                s2_,
                row(recent_, memory_),
                row(fast_, s1_),
                row(slow_, s1_),
                row(second_, s2_),
                row(smooth_, Past::SMOOTH)};
    }
    int64_t steps_to(const double* x) const {
        constexpr double MOST_STEPS = 10000;
        if (time_column_ < 0 || !seen_) return 1;
        return int64_t(std::min(std::max(std::rint(x[time_column_] - last_), 1.), MOST_STEPS));
    }
    static double bounded(double mean) {
        constexpr double FARTHEST = 15;
        return std::min(std::max(mean, -FARTHEST), FARTHEST);
    }
    // The inputs of row t: those of its past, then the columns of x
    void inputs(const Past& past, int64_t t, const double* x, double* out) const {
        past.inputs(t, out);
        int64_t place = own_;
        for (int64_t column = 0; column < d; column++)
            if (column != time_column_) out[place++] = x[column];
    }
    static double shape(int64_t i) { return i ? 1. : 0.1; }

    // The coefficients of an output, and the variance of its residuals
    double solve(int64_t o, double* a, double* A, double* b0, double* change) const {
        const double *G = G_.data() + o * k_ * k_, *b = b_.data() + o * k_, *a0 = a0_.data() + o * k_;
        double trace = 0;
        for (int64_t i = 0; i < k_; i++) trace += G[i * k_ + i];
        const double jitter = 1e-7 * trace / double(k_) + 1e-9;
        std::copy_n(G, k_ * k_, A);
        for (int64_t i = 0; i < k_; i++) A[i * k_ + i] += tightness_[size_t(o)] * shape(i) + jitter;
        const double yy0 = without_forecaster(G, b, yy_[size_t(o)], a0, b0);
        std::copy_n(b0, k_, change);
        if (factorize(k_, A)) {
            solve_lower(k_, A, change);
            solve_upper(k_, A, change);
        } else {
            std::fill_n(change, k_, 0.);
        }
        const double q = std::max(yy0 - dot(k_, b0, change), 1e-12 * rows_);
        for (int64_t i = 0; i < k_; i++) a[i] = a0[i] + change[i];
        return q / std::max(rows_ - double(k_) / 2, 1.) + 1 / (1 + double(seen_) * double(seen_));
    }
    // b0 = b - G a0. Return the residual sum of squares of a0.
    double without_forecaster(const double* G, const double* b, double yy, const double* a0, double* b0) const {
        double square = yy - 2 * dot(k_, a0, b);
        for (int64_t i = 0; i < k_; i++) {
            const double Ga = dot(k_, G + i * k_, a0);
            b0[i] = b[i] - Ga;
            square += a0[i] * Ga;
        }
        return square;
    }

    void look(const double* x, double* mean, double* variance, double* scratch) const override {
        double *a = scratch, *A = a + p * k_, *b0 = A + k_ * k_, *change = b0 + k_, *row = change + k_,
               *pasts = row + k_;
        const int64_t steps = steps_to(x);
        for (int64_t o = 0; o < p; o++) {
            const double s2 = solve(o, a + o * k_, A, b0, change);
            double psi2 = 1;
            mean[o] = ahead(o, a + o * k_, x, steps, row, pasts, psi2);
            variance[o] = psi2 * s2;
        }
    }
    // The prediction `steps` rows ahead, and the ratio of its variance to that of one step
    double ahead(int64_t o, const double* a, const double* x, int64_t steps, double* row, double* pasts,
                 double& psi2) const {
        const Past now = past(o);
        if (steps == 1) {
            inputs(now, position_, x, row);
            psi2 = 1;
            return bounded(dot(k_, a, row));
        }
        Past base = now.copy_to(pasts), shocked = now.copy_to(pasts + Past::room(memory_, s1_, s2_));
        double mean = 0;
        psi2 = 0;
        for (int64_t i = 0; i < steps; i++) {
            const int64_t t = position_ + i;
            inputs(base, t, x, row);
            mean = bounded(dot(k_, a, row));
            inputs(shocked, t, x, row);
            double other = dot(k_, a, row) + (i == 0 ? 1. : 0.);
            other = std::min(std::max(other, mean - 3), mean + 3);
            psi2 += (other - mean) * (other - mean);
            base.push(mean, t);
            shocked.push(other, t);
        }
        return mean;
    }

    void correct(const double* x, const double* y, const double* mean, const double*, double* scratch) override {
        double *a = scratch, *row = a + p * k_ + k_ * k_ + 2 * k_;
        const int64_t steps = steps_to(x);
        for (int64_t o = 0; o < p; o++) {  // missing rows are replaced by their predictions
            Past own = past(o);
            for (int64_t i = 0; i < steps - 1; i++) {
                inputs(own, position_ + i, x, row);
                own.push(bounded(dot(k_, a + o * k_, row)), position_ + i);
            }
        }
        position_ += steps - 1;
        const bool learns = position_ >= earliest_;
        for (int64_t o = 0; o < p; o++) {
            Past own = past(o);
            double value = y[o];
            if (learns) {
                inputs(own, position_, x, row);
                value = believed(o, value, y[o] - mean[o]);
                add(o, row, value);
            }
            own.push(value, position_);
        }
        rows_ = forgetting_ * rows_ + (learns ? 1 : 0);
        position_++;
        if (time_column_ >= 0)
            last_ = seen_ ? std::max(last_, x[time_column_]) : x[time_column_];  // time never decreases
        const int64_t count = position_ - earliest_;
        if (learns && chooses_ && count >= 8 && (count & (count - 1)) == 0)
            for (int64_t o = 0; o < p; o++) choose(o, scratch + p * k_);
    }
    void add(int64_t o, const double* row, double value) {
        double *G = G_.data() + o * k_ * k_, *b = b_.data() + o * k_;
        for (int64_t i = 0; i < k_; i++) {
            b[i] = forgetting_ * b[i] + row[i] * value;
            for (int64_t j = 0; j < k_; j++) G[i * k_ + j] = forgetting_ * G[i * k_ + j] + row[i] * row[j];
        }
        yy_[size_t(o)] = forgetting_ * yy_[size_t(o)] + value * value;
    }
    // The clipped value of a row with the error e. Also update the size of errors.
    double believed(int64_t o, double y, double e) {
        constexpr double CLIP = 4, BELIEVED = 3;
        const int64_t count = position_ - earliest_ + 1;
        double &deviation = deviation_[size_t(o)], &wild = wild_[size_t(o)];
        const double before = deviation;
        const bool is_wild = count > 21 && std::fabs(e) > CLIP * before;
        wild = is_wild ? wild + 1 : 0;
        const double size = count > 21 ? std::min(std::fabs(e), 4 * before) : std::fabs(e);
        deviation += std::max(0.02, 1 / double(count)) * (1.2533 * size - before);
        if (is_wild && wild < BELIEVED) return y - e + (e > 0 ? CLIP : -CLIP) * before;
        return y;
    }
    // The forecaster and the tightness of the prior with the largest evidence
    void choose(int64_t o, double* scratch) {
        constexpr double TIGHTNESS[] = {10, 100, 1000};
        double *A = scratch, *b0 = A + k_ * k_, *z = b0 + k_;
        const double *G = G_.data() + o * k_ * k_, *b = b_.data() + o * k_;
        const double* chosen = nullptr;
        double best = -INFINITY, tightness = 1;
        for (const double* a0 = forecasters_.data(); a0 < forecasters_.data() + forecasters_.size(); a0 += k_) {
            const double yy0 = std::max(without_forecaster(G, b, yy_[size_t(o)], a0, b0), 0.);
            for (const double one : TIGHTNESS) {
                const double own = one * std::min(1., std::max(yy0 / rows_, 1e-9));
                std::copy_n(G, k_ * k_, A);
                for (int64_t i = 0; i < k_; i++) A[i * k_ + i] += own * shape(i);
                if (!factorize(k_, A)) continue;
                std::copy_n(b0, k_, z);
                solve_lower(k_, A, z);
                const double q = std::max(yy0 - dot(k_, z, z), 1e-12 * rows_);
                double gap = 0;
                for (int64_t i = 0; i < k_; i++) gap += std::log(A[i * k_ + i]) - 0.5 * std::log(own * shape(i));
                const double evidence = -gap - 0.5 * (rows_ + 1) * std::log((q + 1e-4) / (rows_ + 1));
                if (evidence > best) {
                    best = evidence;
                    chosen = a0;
                    tightness = own;
                }
            }
        }
        if (!chosen) return;
        std::copy_n(chosen, k_, a0_.data() + o * k_);
        tightness_[size_t(o)] = tightness;
    }

    void list_fields(Visitor& visit) override {
        visit.integer("seen", seen_);
        visit.integer("position", position_);
        visit.number("time", last_);
        visit.array("recent", recent_, {p, memory_});
        visit.array("fast", fast_, {p, s1_});
        visit.array("slow", slow_, {p, s1_});
        visit.array("second", second_, {p, s2_});
        visit.array("smooth", smooth_, {p, Past::SMOOTH});
        visit.array("G", G_, {p, k_, k_});
        visit.array("b", b_, {p, k_});
        visit.array("yy", yy_, {p});
        visit.number("rows", rows_);
        visit.array("deviation", deviation_, {p});
        visit.array("wild", wild_, {p});
        visit.array("a0", a0_, {p, k_});
        visit.array("tightness", tightness_, {p});
    }

    const int64_t s1_, s2_, time_column_, own_, k_, memory_, earliest_;
    const double forgetting_;
    const bool chooses_;
    const std::vector<double> forecasters_;
    int64_t position_ = 0;
    double last_ = 0, rows_ = 0;
    std::vector<double> recent_, fast_, slow_, second_, smooth_, G_, b_, yy_, deviation_, wild_, a0_, tightness_;
};

}  // namespace onlinegp::ONLINEGP_ISA::temporal
