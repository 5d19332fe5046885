// A Gaussian process over time as a state space. onlinegp.models.temporal.state_space is the definition.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace onlinegp::ONLINEGP_ISA::temporal {

// onlinegp.models.temporal.state_space.Block
struct Block {
    enum Kind { WALK, MATERN12, MATERN32, MATERN52, TREND };
    Kind kind;
    double variance, rate, decay, drift, slope, slope_drift;
    double period;
    int64_t harmonic;
    bool sine;
    int64_t power, column;
    int64_t first;  // index of its first state

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

// The covariance of a block at time 0, (k, k). For a Matern process it is the covariance at all times.
static void start(const Block& block, double* P) {
    const int64_t k = block.states();
    const double v = block.variance, a = block.rate;
    std::fill_n(P, k * k, 0.);
    P[0] = v;
    if (block.kind == Block::TREND) P[3] = block.slope;
    if (block.kind == Block::MATERN32) P[3] = v * a * a;
    if (block.kind == Block::MATERN52) {
        P[2] = P[6] = -v * (a * a / 3);
        P[4] = v * (a * a / 3);
        P[8] = v * a * a * a * a;
    }
}

static void matern(const Block& block, double t, Transition& out) {
    const int64_t k = block.states();
    const double a = block.rate, b = a * t;
    const double fade = std::exp(-(a + block.decay) * t);
    double P[9], half[9], moved[9];
    double* A = out.A;
    A[0] = 1;
    if (block.kind == Block::MATERN32) {
        const double polynomial[] = {1 + b, t, -a * a * t, 1 - b};
        std::copy_n(polynomial, 4, A);
    } else if (block.kind == Block::MATERN52) {
        const double polynomial[] = {1 + b + b * b / 2,           t * (1 + b),         t * t / 2,
                                     -(a * a * a) * t * t / 2,    1 + b - b * b,       t * (1 - b / 2),
                                     a * a * a * t * (b / 2 - 1), a * a * t * (b - 3), 1 - 2 * b + b * b / 2};
        std::copy_n(polynomial, 9, A);
    }
    for (int64_t i = 0; i < k * k; i++) A[i] *= fade;
    start(block, P);
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

constexpr int64_t FIELDS = 12;  // number of fields of a block in Python

// From a table (blocks, FIELDS) in the order of the fields in Python
static std::vector<Block> blocks_of(const double* table, int64_t count) {
    std::vector<Block> blocks;
    int64_t first = 0;
    for (const double* f = table; f < table + count * FIELDS; f += FIELDS) {
        blocks.push_back({Block::Kind(int(f[0])), f[1], f[2], f[3], f[4], f[5], f[6], f[7], int64_t(f[8]), f[9] != 0,
                          int64_t(f[10]), int64_t(f[11]), first});
        first += blocks.back().states();
    }
    return blocks;
}

// h(t) of all blocks. The harmonics of a season follow each other: each is the product of the previous and the first.
static void observe(const std::vector<Block>& blocks, double t, const double* x, double* h) {
    constexpr double TWO_PI = 6.283185307179586476925286766559;
    double period = 0, cos1 = 1, sin1 = 0, cosine = 1, sine = 0;
    int64_t harmonic = 0;
    for (size_t b = 0; b < blocks.size(); b++) {
        const Block& block = blocks[b];
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

static double product(int64_t k, const double* a, const double* b) {
    double sum = 0;
    for (int64_t i = 0; i < k; i++) sum += a[i] * b[i];
    return sum;
}
// m <- A m
static void turn(const Block& block, const Transition& own, double* m) {
    const int64_t k = block.states();
    double old[3];
    std::copy_n(m + block.first, k, old);
    for (int64_t i = 0; i < k; i++) m[block.first + i] = product(k, own.A + i * k, old);
}

// P (S, S) <- A P A' + Q of a block of k states. P is symmetric, so the rows of A P are the columns of P A'.
template <int64_t k> static void turn(const Block& block, const Transition& own, double* P, int64_t S) {
    double* rows = P + block.first * S;
    for (int64_t j = 0; j < S; j++) {
        double old[k];
        for (int64_t i = 0; i < k; i++) old[i] = rows[i * S + j];
        for (int64_t i = 0; i < k; i++) rows[i * S + j] = product(k, own.A + i * k, old);
    }
    double corner[k * k];
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < k; j++)
            corner[i * k + j] = product(k, own.A + j * k, rows + i * S + block.first) + own.Q[i * k + j];
    for (int64_t i = 0; i < k; i++) {
        std::copy_n(corner + i * k, k, rows + i * S + block.first);
        for (int64_t j = 0; j < block.first; j++) P[j * S + block.first + i] = rows[i * S + j];
        for (int64_t j = block.first + k; j < S; j++) P[j * S + block.first + i] = rows[i * S + j];
    }
}

// m <- A m, P (S, S) <- A P A' + Q
static void move(const std::vector<Block>& blocks, const Transition* transitions, double* m, double* P, int64_t S) {
    for (size_t b = 0; b < blocks.size(); b++) {
        const Block& block = blocks[b];
        const Transition& own = transitions[b];
        if (block.kind == Block::WALK) {
            P[block.first * S + block.first] += own.Q[0];
            continue;
        }
        turn(block, own, m);
        if (block.states() == 1) turn<1>(block, own, P, S);
        if (block.states() == 2) turn<2>(block, own, P, S);
        if (block.states() == 3) turn<3>(block, own, P, S);
    }
}

}  // namespace onlinegp::ONLINEGP_ISA::temporal
