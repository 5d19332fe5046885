// The exact GP on the rows nearest to a question: onlinegp.models.local.learner, compiled.
#pragma once
#include "neighbors.hpp"

namespace onlinegp::ONLINEGP_ISA {

// Room for one question at a time: its neighbors, and the matrix
//
//     [ A  ]         [ L    ]
//     [ k' ]   ->    [ t'   ]      A = K + noise I = L L',  t = L^-1 k,  Z = L^-1 V
//     [ V' ]         [ Z'   ]
//
// by columns, in groups of R rows: [group][column][R]. Elimination of the columns of A turns all rows at once.
class Question {
  public:
    // q values V of each neighbor
    Question(const LocalPrior& prior, const Kernel<double>& kernel, const Store& store, int d, int q)
        : prior_(prior), kernel_(kernel), store_(store), d_(d), q_(q), nearest_(prior.neighbors),
          place_(size_t(store.width())), values_(size_t(q)) {}

    // Find the neighbors of x, and return their number. All blocks of rows are shown to `each`.
    template <class Each> int64_t search(const double* x, const Each& each) {
        store_.place(x, place_.data());
        store_.scan(place_.data(), nearest_, each);
        return m_ = nearest_.sort();
    }
    int64_t search(const double* x) {
        return search(x, [](int64_t, const Vec<double>*) ALWAYS {});
    }
    // Then sums (q,) = w'V, and the variance of y, with w = A^-1 k; `values(slot, v)` writes the values of a row
    template <class Values> void answer(const double* x, const Values& values, double* sums, double* variance) {
        if (m_) {
            gather(x);
            fill(values);
            eliminate();
        }
        double t2 = 0;
        std::fill(sums, sums + q_, 0.0);
        for (int64_t j = 0; j < m_; j++) {
            const double t = at(m_, j);
            t2 += t * t;
            for (int o = 0; o < q_; o++) sums[o] += t * at(m_ + 1 + o, j);
        }
        const double v = diagonal(kernel_, x) - t2;
        *variance = (v < 0 ? 0 : v) + prior_.noise;  // NaN stays
    }
    int64_t neighbors() const { return m_; }
    const Near& operator[](int64_t i) const { return nearest_[i]; }
    // The numbers of the neighbors of each of n rows
    void number(int64_t n, const double* X, int64_t* rows) {
        for (int64_t i = 0; i < n; i++) {
            const int64_t m = search(X + i * d_);
            for (int64_t j = 0; j < m; j++) *rows++ = nearest_[j].born;
        }
    }

    static constexpr double REDUNDANT = 1e-12;  // as in Python

  private:
    static constexpr int R = 2 * W<double>, PANEL = 4;

    double* group(int64_t g, int64_t j) { return matrix_.data() + (g * columns_ + j) * R; }
    double& at(int64_t i, int64_t j) { return group(i / R, j)[i % R]; }

    // The inputs in tiles, that of the question behind those of the neighbors; the outputs
    void gather(const double* x) {
        columns_ = (m_ + PANEL - 1) / PANEL * PANEL;
        groups_ = (m_ + PANEL + q_ + R - 1) / R;
        if (columns_ > room_) {
            room_ = 2 * columns_;
            const int64_t rows = ((room_ + PANEL + q_ + R - 1) / R) * R;
            matrix_.resize(size_t(rows * room_));
            points_.resize(size_t(rows * d_));
            rows_.resize(size_t(rows * d_));
            times_.resize(size_t(rows));
            own_.resize(size_t(rows));
            k_.resize(size_t(rows));
        }
        for (int64_t i = 0; i < m_; i++) {
            const double* neighbor = store_.x(nearest_[i].slot);
            set_center(points_.data(), d_, i, neighbor);
            std::copy(neighbor, neighbor + d_, rows_.data() + i * d_);
            times_[size_t(i)] = double(nearest_[i].born);
        }
        set_center(points_.data(), d_, m_, x);
        std::copy(x, x + d_, rows_.data() + m_ * d_);
        times_[size_t(m_)] = double(store_.seen());
    }

    template <class Values> void fill(const Values& values) {
        visit(kernel_, [&](auto shape) {
            for (int64_t g = 0; g * R < m_; g++) {
                const int64_t end = std::min((g + 1) * R, m_);
                for (int64_t j = 0; j < end; j += PANEL) covariances<PANEL>(shape, g, j, group(g, j));
                covariances<1>(shape, g, m_, k_.data() + g * R);
            }
            return 0;
        });
        for (int64_t g = (m_ + R - 1) / R; g < groups_; g++)  // whose rows are not all used
            std::fill(group(g, 0), group(g, columns_), 0.0);
        for (int64_t j = 0; j < m_; j++) {
            values(nearest_[j].slot, values_.data());
            own_[size_t(j)] = at(j, j) = diagonal(kernel_, rows_.data() + j * d_) + prior_.noise;
            at(m_, j) = k_[size_t(j)];
            for (int o = 0; o < q_; o++) at(m_ + 1 + o, j) = values_[size_t(o)];
        }
        for (int64_t j = m_; j < columns_; j++) {  // to fill the last panel: nothing
            own_[size_t(j)] = INFINITY;
            for (int64_t g = j / R; g < groups_; g++) std::fill(group(g, j), group(g, j) + R, 0.0);
        }
    }
    // k(x_i, x_j) a^|t_i - t_j| of the rows of group g and so many columns from j on, to [column][R]
    template <int Columns, class Shape> INLINE void covariances(const Shape& shape, int64_t g, int64_t j, double* to) const {
        constexpr int N = 2 * Columns;
        Vec<double> k[N];
        shape.template evaluate<2, Columns>(points_.data() + g * R * d_, rows_.data() + j * d_, k);
        if (prior_.fade > 0) {
            const double rate = 0.5 * prior_.fade * LOG2E;
            Vec<double> f[N];
            EACH(n, N) {
                const Vec<double> times = load(times_.data() + g * R + n / Columns * W<double>);
                f[n] = magnitude<double>(times - times_[size_t(j + n % Columns)]) * rate;
            }
            EACH(n, Columns) exp2_minus<2>(f + 2 * n);
            EACH(n, N) k[n] *= f[n];
        }
        EACH(n, N) store(to + n % Columns * R + n / Columns * W<double>, k[n]);
    }

    // Four columns at a time: what those before them take off, then among themselves
    void eliminate() {
        for (int64_t j = 0; j < columns_; j += PANEL) {
            Panel panel;
            for (int64_t g = j / R; g < groups_; g++) {
                Vec<double> c[2][PANEL];
                subtract(g, j, c);
                if (g == j / R) factor(j, c, panel);
                finish(panel, c);
                EACH(n, PANEL) EACH(h, 2) store(group(g, j + n) + h * W<double>, c[h][n]);
            }
        }
    }
    struct Panel {
        double scale[PANEL], L[PANEL][PANEL];  // one over the root of each pivot; ones on the diagonal
    };
    // c = A_gj - sum_{i < j} L_gi L_ji'
    INLINE void subtract(int64_t g, int64_t j, Vec<double> (*c)[PANEL]) {
        EACH(n, PANEL) EACH(h, 2) c[h][n] = load(group(g, j + n) + h * W<double>);
        const double *l = group(g, 0), *a = group(j / R, 0) + j % R;
        for (int64_t i = 0; i < j; i++, l += R, a += R) {
            const Vec<double> l0 = -load(l), l1 = -load(l + W<double>);
            EACH(n, PANEL) {
                const Vec<double> s = splat<double>(a[n]);
                c[0][n] = fma(l0, s, c[0][n]);
                c[1][n] = fma(l1, s, c[1][n]);
            }
        }
    }
    // The block on the diagonal = L diag(pivots) L', so that a pivot waits for one division; the roots come after them. A pivot
    // that is nothing takes its row out.
    INLINE void factor(int64_t j, const Vec<double> (*c)[PANEL], Panel& panel) const {
        double D[PANEL][PANEL];
        EACH(n, PANEL) EACH(r, PANEL) {
            const int row = int(j % R) + r;
            D[r][n] = c[row / W<double>][n][row % W<double>];
        }
        double pivots[PANEL];
        EACH(n, PANEL) {
            pivots[n] = D[n][n] > REDUNDANT * own_[size_t(j + n)] ? D[n][n] : INFINITY;
            const double inverse = 1.0 / pivots[n];
            for (int r = n + 1; r < PANEL; r++) {
                panel.L[r][n] = D[r][n] * inverse;
                for (int i = n + 1; i <= r; i++) D[r][i] -= panel.L[r][n] * D[i][n];
            }
        }
        EACH(n, PANEL) panel.scale[n] = 1.0 / std::sqrt(pivots[n]);
    }
    // The four columns of L, from what is left of A
    static INLINE void finish(const Panel& panel, Vec<double> (*c)[PANEL]) {
        EACH(n, PANEL)
            for (int r = n + 1; r < PANEL; r++) EACH(h, 2) c[h][r] = fma(-c[h][n], splat<double>(panel.L[r][n]), c[h][r]);
        EACH(n, PANEL) EACH(h, 2) c[h][n] *= panel.scale[n];
    }

    const LocalPrior& prior_;
    const Kernel<double>& kernel_;
    const Store& store_;
    const int d_, q_;
    Nearest nearest_;
    int64_t m_ = 0, columns_ = 0, groups_ = 0, room_ = 0;
    Buffer<double> place_, values_, matrix_, points_, rows_, times_, own_, k_;
};

class LocalModel final : public Local {
  public:
    LocalModel(const LocalPrior& prior, int d, int p)
        : prior_(prior), d_(d), p_(p), kernel_(prior.recipe, d), store_(prior, d, p), question_(prior, kernel_, store_, d, p) {}

    int64_t size() const override { return store_.size(); }
    int64_t seen() const override { return store_.seen(); }
    int64_t work_per_row() const override {
        const int64_t n = store_.size(), m = prior_.neighbors < n ? prior_.neighbors : n;
        return n / 4 + m * m * (m + 50) / 200 + 1;
    }

    int64_t learn(int64_t n, const double* X, const double* Y, const Steps& steps, Stop& stop) override {
        for (int64_t i = 0; i < n; i++) {
            if (stop.asked(steps.mean ? work_per_row() : 1)) return i;
            if (steps.mean) ask(question_, X + i * d_, steps.mean + i * p_, steps.variance + i);
            store_.push(X + i * d_, Y + i * p_);
            if (steps.size) steps.size[i] = store_.size();
        }
        return n;
    }
    void predict_next(const double* x, double* mean, double* variance) override { ask(question_, x, mean, variance); }
    void flush() override {}
    void predict(int64_t n, const double* X, double* mean, double* variance, Stop& stop) const override {
        Question question(prior_, kernel_, store_, d_, p_);
        for (int64_t i = 0; i < n && !stop.asked(work_per_row()); i++)
            ask(question, X + i * d_, mean + i * p_, variance + i);
    }
    void nearest(int64_t n, const double* X, int64_t* rows) const override {
        Question question(prior_, kernel_, store_, d_, p_);
        question.number(n, X, rows);
    }
    void save(double* X, double* Y) const override { store_.save(X, Y); }
    void load(int64_t n, int64_t seen, const double* X, const double* Y) override { store_.restore(n, seen, X, Y); }

  private:
    void ask(Question& question, const double* x, double* mean, double* variance) const {
        const auto values = [&](int64_t slot, double* y) ALWAYS { std::copy(store_.y(slot), store_.y(slot) + p_, y); };
        question.search(x);
        question.answer(x, values, mean, variance);
    }

    const LocalPrior& prior_;
    const int d_, p_;
    const Kernel<double> kernel_;
    Store store_;
    Question question_;
};

}  // namespace onlinegp::ONLINEGP_ISA
