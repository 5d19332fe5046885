// The exact GP on the rows nearest to a point x: the twin of onlinegp.models.local.learner.
#pragma once
#include "leaves/neighbors.hpp"

namespace onlinegp::ONLINEGP_ISA {

static constexpr double REDUNDANT = 1e-12;  // as in Python

// delta = A^-1 E for A (m, m) and E (m, p), which are overwritten. Redundant rows get zero.
static void solve_block(int64_t m, int64_t p, double* A, double* E, double* scale) {
    for (int64_t j = 0; j < m; j++) scale[j] = A[j * m + j];
    for (int64_t j = 0; j < m; j++) {
        const double pivot = A[j * m + j];
        scale[j] = pivot > REDUNDANT * scale[j] ? 1.0 / std::sqrt(pivot) : 0.0;
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

// Memory for the prediction at a point: its neighbors, and the matrix
//
//     [ A  ]         [ L    ]
//     [ k' ]   ->    [ t'   ]      A = K + noise I = L L',  t = L^-1 k,  Z = L^-1 V
//     [ V' ]         [ Z'   ]
// by columns, in groups of R rows: [group][column][R]. Elimination of the columns of A converts all rows at once.
class Question {
  public:
    // q values V of each neighbor
    Question(const LocalPrior& prior, const Kernel<double>& kernel, const Store& store, int d, int q)
        : prior_(prior),
          kernel_(kernel),
          store_(store),
          d_(d),
          q_(q),
          nearest_(prior.neighbors),
          place_(size_t(store.width())),
          values_(size_t(q)) {}

    // Find the neighbors of x, and return their number. Call `each` for all blocks of rows.
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
        const int64_t end = m_ ? m_ + 1 + q_ : 0;
        for (int64_t i = m_ / W<double> * W<double>; i < end; i += W<double>) {  // vectors that have rows of t' and Z'
            Vec<double> products{};
            for (int64_t j = 0; j < m_; j++) products = fma(load(&at(i, j)), splat<double>(at(m_, j)), products);
            for (int64_t row = std::max(i, m_); row < std::min(i + W<double>, end); row++)
                (row == m_ ? t2 : sums[row - m_ - 1]) = products[row - i];
        }
        const double v = diagonal(kernel_, x) - t2;
        *variance = (v < 0 ? 0 : v) + prior_.noise;  // NaN stays
    }
    // Allocate memory for this number of neighbors
    void reserve(int64_t m) {
        nearest_.reserve(m);
        const int64_t columns = (m + PANEL - 1) / PANEL * PANEL;
        if (columns <= room_) return;
        const int64_t room = 2 * columns, rows = ((room + PANEL + q_ + R - 1) / R) * R;
        matrix_.resize(size_t(rows * room));
        points_.resize(size_t(rows * d_));
        rows_.resize(size_t(rows * d_));
        times_.resize(size_t(rows));
        own_.resize(size_t(rows));
        k_.resize(size_t(rows));
        room_ = room;  // set at the end: if an allocation fails, there is more memory than `room_` says
    }
    int64_t neighbors() const { return m_; }
    const Near& operator[](int64_t i) const { return nearest_[i]; }
    // The numbers of the neighbors of each of n rows
    void number(int64_t n, const double* X, int64_t* rows) {
        for (int64_t i = 0; i < n; i++) {
            const int64_t m = search(X + i * d_);
            for (int64_t j = 0; j < m; j++) *rows++ = store_.seen() - 1 - nearest_[j].age;
        }
    }

  private:
    static constexpr int R = 2 * W<double>, PANEL = 4;

    double* group(int64_t g, int64_t j) { return matrix_.data() + (g * columns_ + j) * R; }
    double& at(int64_t i, int64_t j) { return group(i / R, j)[i % R]; }

    // The inputs in tiles, first of the neighbors, then of the point; the outputs
    void gather(const double* x) {
        columns_ = (m_ + PANEL - 1) / PANEL * PANEL;
        groups_ = (m_ + 1 + q_ + R - 1) / R;
        reserve(m_);
        for (int64_t i = 0; i < m_; i++) fetch(store_.x(nearest_[i].slot), d_);
        for (int64_t i = 0; i <= m_; i++) {
            const double* point = i < m_ ? store_.x(nearest_[i].slot) : x;
            double *row = rows_.data() + i * d_,
                   *tile = points_.data() + i / W<double> * W<double> * d_ + i % W<double>;
            for (int j = 0; j < d_; j++) tile[j * W<double>] = row[j] = point[j];
            times_[size_t(i)] = i < m_ ? -1.0 - double(nearest_[i].age) : 0.0;
        }
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
        for (int64_t g = (m_ + R - 1) / R; g < groups_; g++)  // groups with unused rows
            std::fill(group(g, 0), group(g, columns_), 0.0);
        for (int64_t j = 0; j < m_; j++) {
            values(nearest_[j].slot, values_.data());
            own_[size_t(j)] = at(j, j) = diagonal(kernel_, rows_.data() + j * d_) + prior_.noise;
            at(m_, j) = k_[size_t(j)];
            for (int o = 0; o < q_; o++) at(m_ + 1 + o, j) = values_[size_t(o)];
        }
        for (int64_t j = m_; j < columns_; j++) {  // fill the last panel with zeros
            own_[size_t(j)] = INFINITY;
            for (int64_t g = j / R; g < groups_; g++) std::fill(group(g, j), group(g, j) + R, 0.0);
        }
    }
    // k(x_i, x_j) a^|t_i - t_j| for the rows of group g and several columns from j on, to [column][R]
    template <int Columns, class Shape>
    INLINE void covariances(const Shape& shape, int64_t g, int64_t j, double* to) const {
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

    // Four columns at a time: subtract earlier columns, then eliminate among the four. Half of the first group may be
    // above the diagonal, and half of the last group may be empty.
    void eliminate() {
        const int64_t last = groups_ - 1;
        const bool half_last = m_ + 1 + q_ - last * R <= W<double>;
        for (int64_t j = 0; j < columns_; j += PANEL) {
            Panel panel;
            int64_t g = j / R;
            if (j % R >= W<double>) eliminate<1>(g++, 1, j, panel);
            for (; g < last + !half_last; g++) eliminate<2>(g, 0, j, panel);
            if (g == last) eliminate<1>(last, 0, j, panel);
        }
    }
    struct Panel {
        double scale[PANEL], L[PANEL][PANEL];  // 1 / sqrt(pivot); ones on the diagonal
    };
    // The columns from j on in group g: H of its vectors, from `half` on
    template <int H> INLINE void eliminate(int64_t g, int which, int64_t j, Panel& panel) {
        Vec<double> c[2][PANEL];
        subtract<H>(g, which, j, c);
        if (g == j / R) factor(j, which, c, panel);
        EACH(n, PANEL)
            for (int r = n + 1; r < PANEL; r++)
                EACH(h, H) c[h][r] = fma(-c[h][n], splat<double>(panel.L[r][n]), c[h][r]);
        EACH(n, PANEL)
            EACH(h, H) store(group(g, j + n) + (which + h) * W<double>, c[h][n] * panel.scale[n]);
    }
    // c = A_gj - sum_{i < j} L_gi L_ji', in eight independent sums, so that they do not wait for each other
    template <int H> INLINE void subtract(int64_t g, int which, int64_t j, Vec<double> (*c)[PANEL]) {
        EACH(n, PANEL)
            EACH(h, 2) c[h][n] = Vec<double>{};
        const double *l = group(g, 0) + which * W<double>, *a = group(j / R, 0) + j % R;
        for (int64_t i = 0; i < j * R; i += 2 / H * R) {
            Vec<double> rows[2];
            EACH(h, 2) rows[h] = load(l + i + h * (H == 2 ? W<double> : R));
            EACH(n, PANEL)
                EACH(h, 2) c[h][n] = fma(rows[h], splat<double>(a[i + n + (H == 2 ? 0 : h * R)]), c[h][n]);
        }
        if constexpr (H == 1)
            EACH(n, PANEL) c[0][n] += c[1][n];
        EACH(n, PANEL)
            EACH(h, H) c[h][n] = load(group(g, j + n) + (which + h) * W<double>) - c[h][n];
    }
    // Factor the block on the diagonal as L diag(pivots) L', so that a pivot waits only for one division; the roots are
    // computed afterwards. A row with a negligible pivot is left out.
    INLINE void factor(int64_t j, int which, const Vec<double> (*c)[PANEL], Panel& panel) const {
        double D[PANEL][PANEL];
        EACH(n, PANEL)
            EACH(r, PANEL) {
                const int row = int(j % R) + r - which * W<double>;
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

    const LocalPrior& prior_;
    const Kernel<double>& kernel_;
    const Store& store_;
    const int d_, q_;
    Nearest nearest_;
    int64_t m_ = 0, columns_ = 0, groups_ = 0, room_ = 0;
    Buffer<double> place_, values_, matrix_, points_, rows_, times_, own_, k_;
};

// Base class of the models on the nearest rows: a kernel and rows
template <class Model> class OnRows : public Model {
  public:
    int64_t size() const final { return store_.size(); }
    int64_t seen() const final { return store_.seen(); }
    void flush() override {}
    int64_t neighbors() const final { return prior_.neighbors; }
    void nearest(int64_t n, const double* X, int64_t* rows) const final {
        Question question(prior_, kernel_, store_, d_, 0);
        question.number(n, X, rows);
    }

  protected:
    // If the kernel needs them, rows are also stored in tiles
    OnRows(const Plan& plan, bool (*needs_points)(const Kernel<double>&))
        : prior_(plan),
          d_(plan.features),
          p_(plan.outputs),
          kernel_(plan.kernels.at(0), d_),
          store_(prior_, d_, p_, needs_points(kernel_)) {}
    // The stored rows, the oldest first; `room(n)` is called before there are n
    template <class Room> void list_rows(Visitor& visit, const Room& room) {
        const int64_t n = visit.loads() ? FREE : size();
        int64_t seen = store_.seen();
        std::vector<double> X(size_t(size() * d_)), Y(size_t(size() * p_));
        store_.save(X.data(), Y.data());
        visit.array("X", X, {n, d_});
        const int64_t stored = visit.array("Y", Y, {n, p_});
        visit.integer("seen", seen);
        if (!visit.loads()) return;
        room(stored);
        store_.restore(stored, seen, X.data(), Y.data());
    }
    int64_t rows_after(int64_t more) const { return std::min(prior_.store, store_.size() + more); }
    int64_t solve_work() const {
        const int64_t m = std::min(prior_.neighbors, store_.size());
        return m * m * (m + 50) / 200 + 1;
    }

    const LocalPrior prior_;
    const int d_, p_;
    const Kernel<double> kernel_;
    Store store_;
};

class LocalModel final : public OnRows<Local> {
  public:
    explicit LocalModel(const Plan& plan)
        : OnRows(plan, [](const Kernel<double>&) { return false; }), question_(prior_, kernel_, store_, d_, p_) {}

    int64_t work_per_row() const override { return store_.size() / 4 + solve_work(); }
    bool only_stores() const override { return true; }
    int64_t learn(int64_t n, const double* X, const double* Y, const Steps& steps, Stop& stop) override {
        for (int64_t i = 0; i < n; i++) {
            if (stop.asked(steps.mean ? work_per_row() : 1)) return i;
            if (steps.mean) ask(question_, X + i * d_, steps.mean + i * p_, steps.variance + i);
            store_.push(X + i * d_, Y + i * p_);
            if (steps.size) steps.size[i] = store_.size();
        }
        return n;
    }
    void reserve(int64_t rows) override {
        store_.reserve(rows_after(rows));
        question_.reserve(std::min(prior_.neighbors, rows_after(rows)));
    }
    void predict_next(const double* x, double* mean, double* variance) override { ask(question_, x, mean, variance); }
    void predict(int64_t n, const double* X, double* mean, double* variance, Stop& stop) const override {
        Question question(prior_, kernel_, store_, d_, p_);
        for (int64_t i = 0; i < n && !stop.asked(work_per_row()); i++)
            ask(question, X + i * d_, mean + i * p_, variance + i);
    }
    void fields(Visitor& visit) override {
        if (!visit.looks()) list_rows(visit, [](int64_t) {});
    }

  private:
    void ask(Question& question, const double* x, double* mean, double* variance) const {
        question.search(x);
        question.answer(
            x,
            [&](int64_t slot, double* y) ALWAYS {
                for (int o = 0; o < p_; o++) y[o] = store_.y(slot)[o];
            },
            mean, variance);
    }

    Question question_;
};

}  // namespace onlinegp::ONLINEGP_ISA
