// Regression on smoothed seasonal lags. onlinegp.models.temporal.smoothed_lags is the definition.
#pragma once
#include <cmath>
#include "leaves/constant_memory.hpp"

namespace onlinegp::ONLINEGP_ISA::temporal {

// The past of one output, from which the inputs of a row are computed: recent values in a ring, means of the phases,
// and smoothed values, one after the other
struct Past {
    static constexpr int64_t SMOOTH = 5;
    int64_t memory, s1, s2;
    double* values;

    int64_t size() const { return memory + 2 * s1 + s2 + SMOOTH; }
    double* fast() const { return values + memory; }
    double* slow() const { return fast() + s1; }
    double* second() const { return slow() + s1; }
    double* smooth() const { return second() + s2; }
    double back(int64_t t, int64_t j) const { return values[(t - j + memory) % memory]; }

    void inputs(int64_t t, double* x) const {
        const double y1 = back(t, 1);
        x[0] = 1;
        x[1] = y1;
        x[2] = back(t, 2);
        x[3] = back(t, 3);
        if (s1 == 1) {
            std::copy_n(smooth() + 2, 3, x + 4);
            return;
        }
        x[4] = back(t, s1);
        x[5] = fast()[t % s1];
        x[6] = slow()[t % s1];
        x[7] = y1 - slow()[(t - 1 + s1) % s1];
        x[8] = smooth()[0];
        x[9] = back(t, s1 + 1);
        if (s2 == 1) return;
        x[10] = back(t, s2);
        x[11] = second()[t % s2];
        x[12] = y1 - second()[(t - 1 + s2) % s2];
        x[13] = smooth()[1];
    }
    void push(double y, int64_t t) {
        constexpr double FAST = 0.4, SLOW = 0.1, SECOND = 0.5, DEVIATION = 0.2, LEVEL = 0.3, SLOW_LEVEL = 0.1,
                         CHANGE = 0.1;
        double* level = smooth();
        if (s1 > 1) {
            double &quick = fast()[t % s1], &mean = slow()[t % s1];
            const double cycle = double(t / s1) + 1, deviation = y - mean;
            level[0] += DEVIATION * (deviation - level[0]);
            quick += std::max(FAST, 1 / cycle) * (y - quick);
            mean += std::max(SLOW, 1 / cycle) * deviation;
        }
        if (s2 > 1) {
            double& mean = second()[t % s2];
            const double cycle = double(t / s2) + 1, deviation = y - mean;
            level[1] += DEVIATION * (deviation - level[1]);
            mean += std::max(SECOND, 1 / cycle) * deviation;
        }
        level[2] += LEVEL * (y - level[2]);
        level[3] += SLOW_LEVEL * (y - level[3]);
        level[4] += CHANGE * (y - back(t, 1) - level[4]);
        values[t % memory] = y;
    }
    Past copy_to(double* room) const {
        std::copy_n(values, size(), room);
        return {memory, s1, s2, room};
    }
};

// Rows of matrices are padded to a multiple of PAD numbers, so that loops over them have few, whole steps
constexpr int64_t PAD = 8;
static int64_t padded(int64_t k) { return (k + PAD - 1) / PAD * PAD; }

// A = U'U in place, A (k, padded(k)), in the upper triangle; the lower triangle is undefined afterwards. Return whether
// A is positive definite.
static bool factorize(int64_t k, double* A) {
    const int64_t stride = padded(k);
    for (int64_t l = 0; l < k; l++) {
        double* __restrict own = A + l * stride;
        if (!(own[l] > 0)) return false;
        const double root = std::sqrt(own[l]);
        for (int64_t first = l / PAD * PAD; first < stride; first += PAD)
            for (int64_t j = first; j < first + PAD; j++) own[j] /= root;
        for (int64_t i = l + 1; i < k; i++) {
            double* __restrict row = A + i * stride;
            for (int64_t first = i / PAD * PAD; first < stride; first += PAD)
                for (int64_t j = first; j < first + PAD; j++) row[j] -= own[i] * own[j];
        }
    }
    return true;
}
// x <- U'^-1 x
static void solve_transposed(int64_t k, const double* U, double* x) {
    for (int64_t i = 0; i < k; i++) {
        for (int64_t l = 0; l < i; l++) x[i] -= U[l * padded(k) + i] * x[l];
        x[i] /= U[i * padded(k) + i];
    }
}
// x <- U^-1 x
static void solve(int64_t k, const double* U, double* x) {
    for (int64_t i = k - 1; i >= 0; i--) {
        for (int64_t l = i + 1; l < k; l++) x[i] -= U[i * padded(k) + l] * x[l];
        x[i] /= U[i * padded(k) + i];
    }
}
// A (k, padded(k)) = G and a diagonal
template <class Diagonal>
static void copy_with_diagonal(int64_t k, const double* G, const Diagonal& diagonal, double* A) {
    for (int64_t i = 0; i < k; i++, G += k, A += padded(k)) {
        std::copy_n(G, k, A);
        A[i] += diagonal(i);
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
        : Fixed(plan.features, plan.outputs, room(plan.outputs, whole(plan, "k"), empty_past(plan).size()), true),
          time_column_(whole(plan, "time")),
          k_(whole(plan, "k")),
          earliest_(whole(plan, "earliest")),
          forgetting_(plan.number("forgetting")),
          forecasters_(plan.vector("forecasters")),
          empty_(empty_past(plan)),
          past_(size_t(p * empty_.size())),
          G_(size_t(p * k_ * k_)),
          b_(size_t(p * k_)),
          yy_(size_t(p)),
          deviation_(size_t(p)),
          wild_(size_t(p)),
          a0_(size_t(p * k_)),
          tightness_(size_t(p)) {}
    int64_t work_per_row() const override { return 4 + p * k_ * k_ * k_ / 32; }

  private:
    static int64_t whole(const Plan& plan, const char* name) { return int64_t(plan.number(name)); }
    static Past empty_past(const Plan& plan) {
        return {whole(plan, "memory"), whole(plan, "s1"), whole(plan, "s2"), nullptr};
    }
    Past past(int64_t o) const {  // const calls only read it
        Past own = empty_;
        own.values = const_cast<double*>(past_.data()) + o * own.size();
        return own;
    }

    // The scratch: coefficients and residual variances of all outputs, a matrix, three vectors, and two pasts
    struct Room {
        double *a, *s2, *A, *b0, *change, *row, *base, *shocked;
    };
    static int64_t room(int64_t p, int64_t k, int64_t past) { return p * (k + 1) + k * padded(k) + 3 * k + 2 * past; }
    Room room_in(double* scratch) const {
        double *A = scratch + p * (k_ + 1), *b0 = A + k_ * padded(k_), *base = b0 + 3 * k_;
        return {scratch, scratch + p * k_, A, b0, b0 + k_, b0 + 2 * k_, base, base + empty_.size()};
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
    // The inputs of row t: first from its past, then the columns of x
    void inputs(const Past& past, int64_t t, const double* x, double* out) const {
        past.inputs(t, out);
        out += k_ - (d - (time_column_ >= 0));
        for (int64_t column = 0; column < d; column++)
            if (column != time_column_) *out++ = x[column];
    }
    static double shape(int64_t i) { return i ? 1. : 0.1; }

    // The coefficients of each output, and the variance of its residuals
    void prepare(double* scratch) const override {
        const Room room = room_in(scratch);
        for (int64_t o = 0; o < p; o++) {
            const double *G = G_.data() + o * k_ * k_, *b = b_.data() + o * k_, *a0 = a0_.data() + o * k_;
            double trace = 0;
            for (int64_t i = 0; i < k_; i++) trace += G[i * k_ + i];
            const double jitter = 1e-7 * trace / double(k_) + 1e-9;
            const double tightness = tightness_[size_t(o)];
            copy_with_diagonal(k_, G, [&](int64_t i) { return tightness * shape(i) + jitter; }, room.A);
            const double yy0 = without_forecaster(G, b, yy_[size_t(o)], a0, room.b0);
            std::copy_n(room.b0, k_, room.change);
            if (factorize(k_, room.A)) {
                solve_transposed(k_, room.A, room.change);
                solve(k_, room.A, room.change);
            } else {
                std::fill_n(room.change, k_, 0.);
            }
            const double q = std::max(yy0 - dot(k_, room.b0, room.change), 1e-12 * rows_);
            for (int64_t i = 0; i < k_; i++) room.a[o * k_ + i] = a0[i] + room.change[i];
            room.s2[o] = q / std::max(rows_ - double(k_) / 2, 1.) + 1 / (1 + double(seen_) * double(seen_));
        }
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
        const Room room = room_in(scratch);
        for (int64_t o = 0; o < p; o++) {
            mean[o] = ahead(o, room.a + o * k_, x, room, variance[o]);
            variance[o] *= room.s2[o];
        }
    }
    // The prediction for x several steps ahead, and its variance in units of the variance one step ahead
    double ahead(int64_t o, const double* a, const double* x, const Room& room, double& psi2) const {
        const int64_t steps = steps_to(x);
        psi2 = 1;
        if (steps == 1) {
            inputs(past(o), position_, x, room.row);
            return bounded(dot(k_, a, room.row));
        }
        Past base = past(o).copy_to(room.base), shocked = past(o).copy_to(room.shocked);
        double mean = 0;
        psi2 = 0;
        for (int64_t i = 0; i < steps; i++) {
            const int64_t t = position_ + i;
            inputs(base, t, x, room.row);
            mean = bounded(dot(k_, a, room.row));
            inputs(shocked, t, x, room.row);
            double other = dot(k_, a, room.row) + (i == 0 ? 1. : 0.);
            other = std::min(std::max(other, mean - 3), mean + 3);
            psi2 += (other - mean) * (other - mean);
            base.push(mean, t);
            shocked.push(other, t);
        }
        return mean;
    }

    void correct(const double* x, const double* y, const double* mean, const double*, double* scratch) override {
        const Room room = room_in(scratch);
        const int64_t steps = steps_to(x), before = position_;
        position_ += steps - 1;
        const bool learns = position_ >= earliest_;
        for (int64_t o = 0; o < p; o++) {
            Past own = past(o);
            for (int64_t t = before; t < position_; t++) {  // missing rows are replaced by their predictions
                inputs(own, t, x, room.row);
                own.push(bounded(dot(k_, room.a + o * k_, room.row)), t);
            }
            double value = y[o];
            if (learns) {
                inputs(own, position_, x, room.row);
                value = believed(o, value, y[o] - mean[o]);
                add(o, room.row, value);
            }
            own.push(value, position_);
        }
        rows_ = forgetting_ * rows_ + (learns ? 1 : 0);
        position_++;
        if (time_column_ >= 0)
            last_ = seen_ ? std::max(last_, x[time_column_]) : x[time_column_];  // time never decreases
        const int64_t count = position_ - earliest_;
        if (learns && (count % 128 == 0 || (count >= 8 && (count & (count - 1)) == 0)))
            for (int64_t o = 0; o < p; o++) choose(o, room);
    }
    void add(int64_t o, const double* row, double value) {
        double *G = G_.data() + o * k_ * k_, *b = b_.data() + o * k_;
        for (int64_t i = 0; i < k_; i++) {
            b[i] = forgetting_ * b[i] + row[i] * value;
            for (int64_t j = 0; j < k_; j++) G[i * k_ + j] = forgetting_ * G[i * k_ + j] + row[i] * row[j];
        }
        yy_[size_t(o)] = forgetting_ * yy_[size_t(o)] + value * value;
    }
    // The value of a row, clipped if its error e makes it an outlier. Update the robust deviation of the errors.
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
    // Choose the forecaster and the prior precision with the largest evidence
    void choose(int64_t o, const Room& room) {
        constexpr double TIGHTNESS[] = {10, 100, 1000};
        double *A = room.A, *b0 = room.b0, *z = room.change;
        const double *G = G_.data() + o * k_ * k_, *b = b_.data() + o * k_;
        const double* chosen = nullptr;
        double best = -INFINITY, tightness = 1;
        for (const double* a0 = forecasters_.data(); a0 < forecasters_.data() + forecasters_.size(); a0 += k_) {
            const double yy0 = std::max(without_forecaster(G, b, yy_[size_t(o)], a0, b0), 0.);
            for (const double one : TIGHTNESS) {
                const double own = one * std::min(1., std::max(yy0 / rows_, 1e-9));
                copy_with_diagonal(k_, G, [&](int64_t i) { return own * shape(i); }, A);
                if (!factorize(k_, A)) continue;
                std::copy_n(b0, k_, z);
                solve_transposed(k_, A, z);
                const double q = std::max(yy0 - dot(k_, z, z), 1e-12 * rows_);
                double gap = 0;
                for (int64_t i = 0; i < k_; i++)
                    gap += std::log(A[i * padded(k_) + i]) - 0.5 * std::log(own * shape(i));
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
        visit.array("past", past_, {p, empty_.size()});
        visit.array("G", G_, {p, k_, k_});
        visit.array("b", b_, {p, k_});
        visit.array("yy", yy_, {p});
        visit.number("rows", rows_);
        visit.array("deviation", deviation_, {p});
        visit.array("wild", wild_, {p});
        visit.array("a0", a0_, {p, k_});
        visit.array("tightness", tightness_, {p});
    }

    const int64_t time_column_, k_, earliest_;
    const double forgetting_;
    const std::vector<double> forecasters_;
    const Past empty_;
    int64_t position_ = 0;
    double last_ = 0, rows_ = 0;
    std::vector<double> past_, G_, b_, yy_, deviation_, wild_, a0_, tightness_;
};

}  // namespace onlinegp::ONLINEGP_ISA::temporal
