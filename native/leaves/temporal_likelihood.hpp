// The likelihood of a series under a Gaussian process over time, and its gradient by backpropagation.
// onlinegp.models.temporal.structure.Structure.likelihood is the definition.
#pragma once
#include "leaves/state_space.hpp"
#include "learner.hpp"
#include "linear_algebra/memory.hpp"

namespace onlinegp::ONLINEGP_ISA::temporal {

// Vectors of S numbers, aligned; S is known when this is compiled
template <int64_t S> struct Wide {
    static constexpr int64_t WIDTH = W<double>, COUNT = S / WIDTH;
    Vec<double> of[COUNT];

    explicit Wide(const double* x) {
        for (int64_t i = 0; i < COUNT; i++) of[i] = load(x + i * WIDTH);
    }
    void add(double a, const Wide& x) {
        for (int64_t i = 0; i < COUNT; i++) of[i] = fma(splat(a), x.of[i], of[i]);
    }
    void put(double* x) const {
        for (int64_t i = 0; i < COUNT; i++) store(x + i * WIDTH, of[i]);
    }
    double dot(const Wide& x) const {
        Vec<double> total{};
        for (int64_t i = 0; i < COUNT; i++) total = fma(of[i], x.of[i], total);
        return sum<double>(total);
    }
};

// Rows are stored in arrays of S numbers, at least the number of states; the rest is zero
template <int64_t S> class Likelihood {
  public:
    static constexpr size_t PARAMETERS = 4;  // parameters of a block: variance, rate, drift, slope drift

    Likelihood(std::vector<Block> blocks, const TimedRows& rows)
        : blocks_(std::move(blocks)),
          states_(blocks_.back().first + blocks_.back().states()),
          rows_(rows),
          transitions_(blocks_.size()),
          back_(blocks_.size()),
          sums_(blocks_.size()) {
        for (const Block& block : blocks_)
            for (int64_t i = 0; block.kind != Block::WALK && i < block.states(); i++)
                moving_.push_back(block.first + i);
    }

    double sigma2() const { return sigma2_; }

    // Sum of the logarithms of the standard deviations of all counted rows, including sigma
    double forward() {
        kept_.resize(size_t(rows_.n * stride()));
        Buffer<double> state(size_t(S + S * S));
        double *m = state.data(), *P = m + S;
        set_start(P);
        std::vector<double> values(blocks_.size());
        double last = 0, logs = 0, total = PRIOR_ROWS;
        for (int64_t i = 0; i < rows_.n; i++) {
            const double t = rows_.X[i * rows_.d];
            const Row row = at(i);
            *row.dt = std::max(0., t - last);
            last = std::max(last, t);
            if (*row.dt > 0) move_on(row, m, P);
            observe(blocks_, t, rows_.X + i * rows_.d, values.data());
            for (size_t b = 0; b < blocks_.size(); b++) row.h[blocks_[b].first] = values[b];
            multiply(P, row.h, row.g);
            const double v = std::max(dot(row.h, row.g), 0.) + 1;
            const double e = rows_.z[i] - dot(row.h, m);
            *row.e = e;
            *row.v = v;
            if (i >= rows_.first) {
                logs += 0.5 * std::log(v);
                total += loss(std::fabs(e) / std::sqrt(v));
            }
            const double s = believed(e, v);
            add(m, e / s, row.g);
            const Wide<S> g(row.g);
            for (int64_t j = 0; j < states_; j++) {
                Wide<S> own(P + j * S);
                own.add(-row.g[j] / s, g);
                own.put(P + j * S);
            }
        }
        const double counted = double(rows_.n - rows_.first) + PRIOR_ROWS;
        sigma2_ = total / counted;
        return logs + 0.5 * counted * std::log(sigma2_);
    }

    // The derivatives for variance, rate, drift and slope drift of each block, (blocks, 4), after `forward`
    void backward(double* gradient) {
        Buffer<double> state(size_t(3 * S + S * S));
        double *m = state.data(), *q = m + S, *g = q + S,
               *P = g + S;  // derivatives for the variables of the same name in `forward`
        std::fill_n(gradient, PARAMETERS * blocks_.size(), 0.);
        for (int64_t i = rows_.n - 1; i >= 0; i--) {
            const Row row = at(i);
            const double e = *row.e, v = *row.v, s = believed(e, v), root = std::sqrt(v);
            multiply(P, row.g, q);
            const double by_mean = dot(m, row.g), by_s = (dot(row.g, q) - by_mean * e) / (s * s);
            double by_e = by_mean / s, by_v = 0;
            if (i >= rows_.first) {
                by_e += 0.5 / sigma2_ * slope(e / root) / root;
                by_v += 0.5 / v - 0.25 / sigma2_ * slope(e / root) * e / (v * root);
            }
            if (s > v) {
                by_e += by_s * (e > 0 ? root : -root) / rows_.robust;
                by_v += by_s * std::fabs(e) / (2 * rows_.robust * root);
            } else {
                by_v += by_s;
            }
            for (int64_t j = 0; j < S; j++) g[j] = (m[j] * e - 2 * q[j]) / s + row.h[j] * by_v;
            add(m, -by_e, row.h);
            const Wide<S> by_g(g), h(row.h);
            for (int64_t j = 0; j < states_; j++) {
                Wide<S> own(P + j * S);
                own.add(0.5 * g[j], h);
                own.add(0.5 * row.h[j], by_g);
                own.put(P + j * S);
            }
            if (*row.dt > 0) move_back(row, m, P, gradient);
        }
        flush(gradient);
        add_start(P, gradient);
    }

  private:
    static constexpr double PRIOR_ROWS = 2;  // weight of the prior of sigma^2
    static constexpr int64_t SQUARE = 9;     // largest number of entries of A or Q
    static constexpr size_t DRIFT = 2;       // index of its derivative

    struct Row {
        double *dt, *e, *v, *h, *g, *m, *AP;  // h and g (S,); m of moving states, and their columns of A P
    };
    int64_t stride() const { return 8 + (2 + int64_t(moving_.size())) * S + moving_room(); }
    int64_t moving_room() const { return (int64_t(moving_.size()) + 7) / 8 * 8; }
    Row at(int64_t i) {
        double* row = kept_.data() + i * stride();
        double *h = row + 8, *g = h + S, *m = g + S;
        return {row, row + 1, row + 2, h, g, m, m + moving_room()};
    }

    static void add(double* y, double a, const double* x) {
        Wide<S> sum(y);
        sum.add(a, Wide<S>(x));
        sum.put(y);
    }
    static double dot(const double* x, const double* y) { return Wide<S>(x).dot(Wide<S>(y)); }
    // out = P x of a symmetric P
    void multiply(const double* P, const double* x, double* out) const {
        Wide<S> even(P), odd(P);
        even.add(x[0] - 1, Wide<S>(P));
        odd.add(-1, Wide<S>(P));
        for (int64_t i = 1; i < states_; i++) (i % 2 ? odd : even).add(x[i], Wide<S>(P + i * S));
        even.add(1, odd);
        even.put(out);
    }
    double loss(double e) const { return e > rows_.robust ? rows_.robust * (2 * e - rows_.robust) : e * e; }
    double slope(double e) const { return 2 * std::min(std::max(e, -rows_.robust), rows_.robust); }
    double believed(double e, double v) const { return v * std::max(1., std::fabs(e) / (std::sqrt(v) * rows_.robust)); }

    // The derivative of the numbers from `fill` for a parameter of a block, multiplied by weights (count,) and added
    template <class Fill>
    static double derivative(Block block, double Block::* of, int64_t count, const double* weights, const Fill& fill) {
        const double value = block.*of, step = 1e-4 * value + 1e-12;
        double above[2 * SQUARE], below[2 * SQUARE], sum = 0;
        block.*of = value + step;
        fill(block, above);
        block.*of = value - step;
        fill(block, below);
        for (int64_t i = 0; i < count; i++) sum += weights[i] * (above[i] - below[i]);
        return sum / (2 * step);
    }
    template <class Fill>
    void add_derivatives(size_t b, int64_t count, const double* weights, const Fill& fill, double* gradient) const {
        constexpr double Block::* NAMES[] = {&Block::variance, &Block::rate, &Block::drift, &Block::slope_drift};
        for (const auto of : NAMES) *gradient++ += derivative(blocks_[b], of, count, weights, fill);
    }

    void set_start(double* P) const {
        double own[SQUARE];
        for (const Block& block : blocks_) {
            const int64_t k = block.states();
            start(block, own);
            for (int64_t i = 0; i < k; i++) std::copy_n(own + i * k, k, P + (block.first + i) * S + block.first);
        }
    }
    void add_start(const double* P, double* gradient) const {
        double own[SQUARE];
        for (size_t b = 0; b < blocks_.size(); b++) {
            take(blocks_[b], P, own);
            add_derivatives(b, blocks_[b].states() * blocks_[b].states(), own, start, gradient + PARAMETERS * b);
        }
    }
    // The corner of P that belongs to a block
    void take(const Block& block, const double* P, double* out) const {
        const int64_t k = block.states();
        for (int64_t i = 0; i < k; i++) std::copy_n(P + (block.first + i) * S + block.first, k, out + i * k);
    }

    // Transitions of a time step, and their transposes
    void use(double dt) {
        if (dt == dt_) return;
        dt_ = dt;
        for (size_t b = 0; b < blocks_.size(); b++) {
            transitions_[b] = transition(blocks_[b], dt);
            back_[b] = {};
            const int64_t k = blocks_[b].states();
            for (int64_t i = 0; i < k * k; i++) back_[b].A[i] = transitions_[b].A[i % k * k + i / k];
        }
    }
    void move_on(const Row& row, double* m, double* P) {
        use(*row.dt);
        double* AP = row.AP;
        for (size_t j = 0; j < moving_.size(); j++, AP += S) {
            row.m[j] = m[moving_[j]];
            std::copy_n(P + moving_[j] * S, S, AP);
            for (size_t b = 0; b < blocks_.size(); b++)
                if (blocks_[b].kind != Block::WALK) turn(blocks_[b], transitions_[b], AP);
        }
        move(blocks_, transitions_.data(), m, P, S);
    }
    void move_back(const Row& row, double* m, double* P, double* gradient) {
        if (*row.dt != dt_) flush(gradient);
        use(*row.dt);
        size_t j = 0;  // the first of the moving states of a block
        for (size_t b = 0; b < blocks_.size(); b++) {
            const Block& block = blocks_[b];
            const int64_t k = block.states();
            Transition& sum = sums_[b];
            if (block.kind == Block::WALK) {
                sum.Q[0] += P[block.first * (S + 1)];
                continue;
            }
            double own[SQUARE];
            take(block, P, own);
            for (int64_t i = 0; i < k * k; i++) sum.Q[i] += own[i];
            for (int64_t i = 0; i < k; i++)
                for (int64_t l = 0; l < k; l++)
                    sum.A[i * k + l] += m[block.first + i] * row.m[j + size_t(l)] +
                                        2 * dot(P + (block.first + i) * S, row.AP + (int64_t(j) + l) * S);
            j += size_t(k);
        }
        move(blocks_, back_.data(), m, P, S);
    }
    // Convert sums over rows with the same time step to derivatives
    void flush(double* gradient) {
        for (size_t b = 0; b < blocks_.size(); b++) {
            if (dt_ > 0 && blocks_[b].kind == Block::WALK) {
                gradient[PARAMETERS * b + DRIFT] += dt_ * sums_[b].Q[0];
            } else if (dt_ > 0) {
                const auto fill = [&](const Block& block, double* out) {
                    const Transition own = transition(block, dt_);
                    std::memcpy(out, &own, sizeof own);
                };
                add_derivatives(b, 2 * SQUARE, sums_[b].A, fill, gradient + PARAMETERS * b);
            }
            sums_[b] = {};
        }
    }

    const std::vector<Block> blocks_;
    const int64_t states_;
    const TimedRows rows_;
    std::vector<int64_t> moving_;  // states of blocks that are not random walks
    std::vector<Transition> transitions_, back_, sums_;
    Buffer<double> kept_;  // stored numbers of each row
    double dt_ = 0, sigma2_ = 1;
};

}  // namespace onlinegp::ONLINEGP_ISA::temporal
