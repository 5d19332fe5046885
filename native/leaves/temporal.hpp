// A Gaussian process over time: the Kalman filter of its state space. onlinegp.models.temporal.temporal_gp is the
// definition.
#pragma once
#include <cmath>
#include "leaves/constant_memory.hpp"

namespace onlinegp::ONLINEGP_ISA::temporal {

// onlinegp.models.temporal.state_space.Block
struct Block {
    enum Kind { WALK, MATERN12, MATERN32, MATERN52, TREND };
    Kind kind;
    double variance, rate, decay, drift, slope_drift;
    double period;
    int64_t harmonic;
    bool sine;
    int64_t power, column;
    int64_t first;  // of its states

    int64_t states() const {
        constexpr int64_t counts[] = {1, 1, 2, 3, 2};
        return counts[kind];
    }
};

// x(t + dt) = A x(t) + N(0, Q) of one block, row by row
struct Transition {
    double A[9], Q[9];
};

// C (k, k) = A B or A B'
static void times(int64_t k, const double* A, const double* B, bool transposed, double* C) {
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < k; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++) sum += A[i * k + l] * (transposed ? B[j * k + l] : B[l * k + j]);
            C[i * k + j] = sum;
        }
}

static void matern(const Block& block, double t, Transition& out) {
    const int64_t k = block.states();
    const double a = block.rate, b = a * t, v = block.variance;
    const double fade = std::exp(-(a + block.decay) * t);
    double P[9] = {v}, half[9], moved[9];
    double* A = out.A;
    A[0] = 1;
    if (block.kind == Block::MATERN32) {
        const double polynomial[] = {1 + b, t, -a * a * t, 1 - b};
        const double start[] = {v, 0, 0, v * a * a};
        std::copy_n(polynomial, 4, A);
        std::copy_n(start, 4, P);
    } else if (block.kind == Block::MATERN52) {
        const double kappa = a * a / 3;
        const double polynomial[] = {1 + b + b * b / 2,           t * (1 + b),         t * t / 2,
                                     -(a * a * a) * t * t / 2,    1 + b - b * b,       t * (1 - b / 2),
                                     a * a * a * t * (b / 2 - 1), a * a * t * (b - 3), 1 - 2 * b + b * b / 2};
        const double start[] = {v, 0, -v * kappa, 0, v * kappa, 0, -v * kappa, 0, v * a * a * a * a};
        std::copy_n(polynomial, 9, A);
        std::copy_n(start, 9, P);
    }
    for (int64_t i = 0; i < k * k; i++) A[i] *= fade;
    times(k, A, P, false, half);
    times(k, half, A, true, moved);
    for (int64_t i = 0; i < k * k; i++) out.Q[i] = P[i] - moved[i];
}

static void trend(const Block& block, double dt, Transition& out) {
    constexpr double SMALL = 1e-2;
    const double x = block.rate * dt;
    const double e1 = x ? -std::expm1(-x) / x : 1, e2 = x ? -std::expm1(-2 * x) / (2 * x) : 1;
    double cross = (e1 - e2) / x, level = (1 - 2 * e1 + e2) / (x * x);
    if (x < SMALL) {
        cross = 1. / 2 - x / 2 + 7 * x * x / 24 - x * x * x / 8;
        level = 1. / 3 - x / 4 + 7 * x * x / 60 - x * x * x / 24;
    }
    const double q = block.slope_drift * dt;
    const double A[] = {1, dt * e1, 0, std::exp(-x)};
    const double Q[] = {block.drift * dt + q * dt * dt * level, q * dt * cross, q * dt * cross, q * e2};
    std::copy_n(A, 4, out.A);
    std::copy_n(Q, 4, out.Q);
}

static Transition transition(const Block& block, double dt) {
    Transition out{};
    if (block.kind == Block::WALK) {
        out.A[0] = 1;
        out.Q[0] = block.drift * dt;
    } else if (block.kind == Block::TREND) {
        trend(block, dt, out);
    } else {
        matern(block, dt, out);
    }
    return out;
}

static std::vector<Block> blocks_of(const Plan& plan) {
    const size_t count = plan.vector("kind").size();
    const auto value = [&](const char* name, size_t i) { return plan.vector(name)[i]; };
    std::vector<Block> blocks;
    int64_t first = 0;
    for (size_t i = 0; i < count; i++) {
        blocks.push_back({Block::Kind(int(value("kind", i))), value("variance", i), value("rate", i), value("decay", i),
                          value("drift", i), value("slope_drift", i), value("period", i), int64_t(value("harmonic", i)),
                          value("sine", i) != 0, int64_t(value("power", i)), int64_t(value("column", i)), first});
        first += blocks.back().states();
    }
    return blocks;
}

class Temporal final : public Fixed {
  public:
    explicit Temporal(const Plan& plan) : Temporal(plan, blocks_of(plan)) {}
    int64_t work_per_row() const override { return 1 + p * states_ * states_ / 16; }

  private:
    static int64_t count(const std::vector<Block>& blocks) { return blocks.back().first + blocks.back().states(); }

    Temporal(const Plan& plan, std::vector<Block> blocks)
        : Fixed(plan.features, plan.outputs, room(plan.outputs, count(blocks), int64_t(blocks.size())), true),
          blocks_(std::move(blocks)),
          states_(count(blocks_)),
          time_column_(int64_t(plan.number("time"))),
          noise_(plan.number("noise")),
          robust_(plan.number("robust")),
          m_(size_t(p * states_)),
          P_(size_t(p * states_ * states_)) {}

    // The scratch: whether transitions are known and for which dt, they, h, and for each output m, g and P
    static constexpr int64_t HEAD = 2, TRANSITION = int64_t(sizeof(Transition) / sizeof(double));
    static int64_t room(int64_t p, int64_t states, int64_t blocks) {
        return HEAD + blocks * TRANSITION + blocks + p * (2 * states + states * states);
    }
    struct Room {
        double* transitions;
        double* h;
        double* outputs;
    };
    Room room_in(double* scratch) const {
        double* transitions = scratch + HEAD;
        double* h = transitions + int64_t(blocks_.size()) * TRANSITION;
        return {transitions, h, h + blocks_.size()};
    }
    int64_t stride() const { return 2 * states_ + states_ * states_; }

    double time_of(const double* x) const { return time_column_ < 0 ? double(seen_) : x[time_column_]; }

    void look(const double* x, double* mean, double* variance, double* scratch) const override {
        const Room room = room_in(scratch);
        const double t = time_of(x), dt = std::max(0., t - last_);
        if (scratch[0] == 0 || scratch[1] != dt) {
            for (size_t b = 0; b < blocks_.size(); b++)
                reinterpret_cast<Transition*>(room.transitions)[b] = transition(blocks_[b], dt);
            scratch[0] = 1;
            scratch[1] = dt;
        }
        observe(t, x, room.h);
        for (int64_t o = 0; o < p; o++) {
            double *m = room.outputs + o * stride(), *g = m + states_, *P = g + states_;
            std::copy_n(m_.data() + o * states_, states_, m);
            std::copy_n(P_.data() + o * states_ * states_, states_ * states_, P);
            if (dt > 0) move(reinterpret_cast<const Transition*>(room.transitions), m, P);
            predict_output(room.h, m, g, P, mean[o], variance[o]);
        }
    }

    // h(t) of all blocks. Harmonics of one season follow each other: each is the product of the one before and the
    // first.
    void observe(double t, const double* x, double* h) const {
        constexpr double TWO_PI = 6.283185307179586476925286766559;
        double period = 0, cos1 = 1, sin1 = 0, cosine = 1, sine = 0;
        int64_t harmonic = 0;
        for (size_t b = 0; b < blocks_.size(); b++) {
            const Block& block = blocks_[b];
            double value = 1;
            for (int64_t i = 0; i < block.power; i++) value *= t;
            if (block.period > 0) {
                if (block.period != period || block.harmonic < harmonic) {
                    period = block.period;
                    const double angle = TWO_PI * (std::fmod(t, period) / period);
                    cos1 = std::cos(angle);
                    sin1 = std::sin(angle);
                    harmonic = 0;
                    cosine = 1;
                    sine = 0;
                }
                while (harmonic < block.harmonic) {
                    const double next = cosine * cos1 - sine * sin1;
                    sine = sine * cos1 + cosine * sin1;
                    cosine = next;
                    harmonic++;
                }
                value *= block.sine ? sine : cosine;
            }
            h[b] = block.column < 0 ? value : value * x[block.column];
        }
    }

    // m <- A m, P <- A P A' + Q
    void move(const Transition* transitions, double* m, double* P) const {
        for (size_t b = 0; b < blocks_.size(); b++) {
            const Block& block = blocks_[b];
            const Transition& own = transitions[b];
            if (block.kind == Block::WALK) {
                P[block.first * states_ + block.first] += own.Q[0];
                continue;
            }
            if (block.kind == Block::MATERN12) {
                scale(block.first, own.A[0], m, P);
                P[block.first * states_ + block.first] += own.Q[0];
                continue;
            }
            turn(block, own, m, P);
        }
    }
    void scale(int64_t i, double a, double* m, double* P) const {
        m[i] *= a;
        double* row = P + i * states_;
        for (int64_t j = 0; j < states_; j++) row[j] *= a;
        for (int64_t j = 0; j < states_; j++) P[j * states_ + i] *= a;
    }
    void turn(const Block& block, const Transition& own, double* m, double* P) const {
        const int64_t k = block.states(), first = block.first, S = states_;
        double old[3];
        std::copy_n(m + first, k, old);
        for (int64_t i = 0; i < k; i++) m[first + i] = product(k, own.A + i * k, old);
        for (int64_t j = 0; j < S; j++) {  // rows
            for (int64_t i = 0; i < k; i++) old[i] = P[(first + i) * S + j];
            for (int64_t i = 0; i < k; i++) P[(first + i) * S + j] = product(k, own.A + i * k, old);
        }
        for (int64_t j = 0; j < S; j++) {  // columns
            std::copy_n(P + j * S + first, k, old);
            for (int64_t i = 0; i < k; i++) P[j * S + first + i] = product(k, own.A + i * k, old);
        }
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = 0; j < k; j++) P[(first + i) * S + first + j] += own.Q[i * k + j];
    }
    static double product(int64_t k, const double* a, const double* b) {
        double sum = 0;
        for (int64_t i = 0; i < k; i++) sum += a[i] * b[i];
        return sum;
    }

    // g = P h, of which h has one number for each block, and the mean and the variance of y
    void predict_output(const double* h, const double* m, double* __restrict g, const double* P, double& mean,
                        double& variance) const {
        std::fill_n(g, states_, 0.);
        mean = 0;
        for (size_t b = 0; b < blocks_.size(); b++) {
            const double* row = P + blocks_[b].first * states_;
            const double weight = h[b];
            for (int64_t j = 0; j < states_; j++) g[j] += weight * row[j];
            mean += weight * m[blocks_[b].first];
        }
        double v = 0;
        for (size_t b = 0; b < blocks_.size(); b++) v += h[b] * g[blocks_[b].first];
        variance = std::max(v, 0.) + noise_;
    }

    void correct(const double* x, const double* y, const double* mean, const double* variance,
                 double* scratch) override {
        const Room room = room_in(scratch);
        for (int64_t o = 0; o < p; o++) {
            double *m = room.outputs + o * stride(), *u = m + states_;
            const double* P = u + states_;
            const double e = y[o] - mean[o];
            const double s = variance[o] * std::max(1., std::fabs(e) / (std::sqrt(variance[o]) * robust_));
            const double step = e / s, root = std::sqrt(s);
            for (int64_t j = 0; j < states_; j++) m_[size_t(o * states_ + j)] = m[j] + u[j] * step;
            for (int64_t j = 0; j < states_; j++) u[j] /= root;
            double* own = P_.data() + o * states_ * states_;
            for (int64_t i = 0; i < states_; i++, own += states_, P += states_) subtract(own, P, u[i], u);
        }
        last_ = seen_ ? std::max(last_, time_of(x)) : time_of(x);  // time does not go back
    }
    void subtract(double* __restrict out, const double* __restrict row, double factor,
                  const double* __restrict u) const {
        for (int64_t j = 0; j < states_; j++) out[j] = row[j] - factor * u[j];
    }

    void list_fields(Visitor& visit) override {
        visit.integer("seen", seen_);
        visit.number("time", last_);
        visit.array("m", m_, {p, states_});
        visit.array("P", P_, {p, states_, states_});
    }

    const std::vector<Block> blocks_;
    const int64_t states_, time_column_;
    const double noise_, robust_;
    double last_ = 0;  // the time of the last row
    std::vector<double> m_, P_;
};

}  // namespace onlinegp::ONLINEGP_ISA::temporal
