// A Gaussian process over time: the Kalman filter of its state space. onlinegp.models.temporal.temporal_gp is the
// definition.
#pragma once
#include "leaves/constant_memory.hpp"
#include "leaves/state_space.hpp"

namespace onlinegp::ONLINEGP_ISA::temporal {

class Temporal final : public Fixed {
  public:
    explicit Temporal(const Plan& plan)
        : Temporal(plan, blocks_of(plan.vector("blocks").data(), int64_t(plan.vector("blocks").size()) / FIELDS)) {}
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

    // The scratch: whether transitions are known, their dt, the transitions, h, and m, g and P for each output
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
        observe(blocks_, t, x, room.h);
        for (int64_t o = 0; o < p; o++) {
            double *m = room.outputs + o * stride(), *g = m + states_, *P = g + states_;
            std::copy_n(m_.data() + o * states_, states_, m);
            std::copy_n(P_.data() + o * states_ * states_, states_ * states_, P);
            if (dt > 0) move(blocks_, reinterpret_cast<const Transition*>(room.transitions), m, P, states_);
            predict_output(room.h, m, g, P, mean[o], variance[o]);
        }
    }

    // g = P h, where h has one number per block, and the mean and the variance of y
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
        last_ = seen_ ? std::max(last_, time_of(x)) : time_of(x);  // time never decreases
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
