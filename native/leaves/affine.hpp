// Affine projections over the last rows of a stream: the twin of onlinegp.models.affine.
#pragma once
#include <cmath>
#include <vector>
#include "learner.hpp"
#include "leaves/centers.hpp"
#include "leaves/error_scale.hpp"

namespace onlinegp::ONLINEGP_ISA {

static inline double dot_of(const double* a, const double* b, int64_t n) {
    double s[8] = {};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++) s[j] += a[i + j] * b[i + j];
    for (; i < n; i++) s[0] += a[i] * b[i];
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}
static inline void add_to(double* __restrict y, double a, const double* __restrict x, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

// The part of e that exceeds a width
static inline double beyond(double e, double width) {
    const double rest = std::fabs(e) - width;
    return rest > 0 ? std::copysign(rest, e) : rest > -INFINITY ? 0.0 : e;  // NaN stays
}
// L (n, n), the lower triangle of a kernel matrix, becomes its Cholesky factor, and x <- matrix^-1 x. A point that is a
// linear combination of earlier points, such as a duplicate, is left out: its pivot becomes infinite, so that its
// column of L and its x are 0.
static void solve_small(int64_t n, double* L, double* x) {
    constexpr double DEPENDENT = 1e-12;  // such points have a smaller pivot, relative to the diagonal
    for (int64_t i = 0; i < n; i++) {
        double* row = L + i * n;
        for (int64_t j = 0; j < i; j++) row[j] = (row[j] - dot_of(row, L + j * n, j)) / L[j * n + j];
        const double left = row[i] - dot_of(row, row, i);
        row[i] = left <= DEPENDENT * row[i] ? INFINITY : std::sqrt(left);
        x[i] = (x[i] - dot_of(row, x, i)) / row[i];
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        x[i] /= L[i * n + i];
        for (int64_t j = 0; j < i; j++) x[j] -= x[i] * L[i * n + j];
    }
}
// The indices of the `count` largest of n values, the largest first. Ties go to the first.
template <class Value>
static void choose_most(int64_t n, int64_t count, std::vector<int64_t>& which, std::vector<double>& values,
                        const Value& value) {
    which.clear();
    values.clear();
    for (int64_t i = 0; i < n; i++) {
        const double v = value(i);
        if (int64_t(which.size()) == count && !(v > values.back())) continue;
        size_t at = which.size();
        while (at > 0 && v > values[at - 1]) at--;
        which.insert(which.begin() + int64_t(at), i);
        values.insert(values.begin() + int64_t(at), v);
        if (int64_t(which.size()) > count) {
            which.pop_back();
            values.pop_back();
        }
    }
}

// The algorithm and its parameters
struct AffineRule {
    enum Kind { KAP, LKAPA, NLKAPA, KAPSM, PHYPASS } kind;
    enum Loss { Squared, Absolute, Huber } loss;
    int64_t window, budget, selected;  // a budget of 0 means none
    double step, keep, epsilon, coherence, bend, radius, width;
};

// The arrays of such a model: numbers (p + 1, capacity) are the weights, and k(c, c) for KAP and PHYPASS; K, G (room,
// room); Y, F (room, p); H (room, capacity); norms (p,). PHYPASS: places and along (room, s), length (room,), KC (room
// s, room s)
struct AffineArrays {
    Centers &f, &points, &chosen;
    int64_t d, p, capacity, room, count;
    double *numbers, *K, *Y, *F, *H, *G, *norms;
    int64_t* places;
    double *along, *length, *KC;
    ErrorScale& errors;
};

// Process the rows of a block one by one: look, then correct
class AffineRun {
  public:
    AffineRun(const AffineRule& rule, const AffineArrays& arrays)
        : rule_(rule), a_(arrays), p_(arrays.p), n_(arrays.count < rule.window ? arrays.count : rule.window) {
        const size_t room = size_t(a_.room);
        k_.resize(size_t(a_.capacity));
        row_.resize(room);
        mean_.resize(size_t(p_));
        scale_.resize(size_t(p_));
        A_.resize(room * room), E_.resize(room * size_t(p_)), Z_.resize(room * size_t(p_)),
            KZ_.resize(room * size_t(p_));
    }

    // mean and variance (n, p), size (n,)
    void run(int64_t rows, const double* X, const double* Y, double* mean, double* variance, int64_t* size) {
        for (int64_t i = 0; i < rows; i++, X += a_.d, Y += p_, mean += p_, variance += p_) {
            const int64_t m = a_.f.size();
            const bool is_first = a_.count == 0;
            a_.f.row(X, p_, a_.capacity, a_.numbers, k_.data(), mean_.data());
            for (int64_t o = 0; o < p_; o++) mean[o] = m ? mean_[size_t(o)] : 0;
            a_.errors.variances(variance);
            push(X, Y, mean);
            if (rule_.kind == AffineRule::KAP)
                project(X, m);
            else if (rule_.kind == AffineRule::PHYPASS)
                project_along(X, m);
            else
                correct(X, m);
            a_.errors.add(Y, mean, is_first);
            size[i] = a_.f.size();
        }
    }

  private:
    static constexpr double LONGEST = 1e4;  // as in onlinegp.models.affine.phypass

    double& K(int64_t i, int64_t j) { return a_.K[i * a_.room + j]; }
    double& F(int64_t j, int64_t o) { return a_.F[j * p_ + o]; }
    double* weights(int64_t o) { return a_.numbers + o * a_.capacity; }

    void push(const double* x, const double* y, const double* mean) {
        r_ = a_.count % rule_.window;
        if (n_ < rule_.window) {
            a_.points.append(x);
            n_++;
        } else
            a_.points.replace(r_, x);
        a_.count++;
        a_.points.rows(1, x, row_.data());
        for (int64_t j = 0; j < n_; j++) K(r_, j) = K(j, r_) = row_[size_t(j)];
        for (int64_t o = 0; o < p_; o++) {
            a_.Y[r_ * p_ + o] = y[o];
            F(r_, o) = mean[o];
        }
    }
    // Z = (A + epsilon I)^-1 (step (Y - F)); A (n, n) has a row stride of `room`. The Cholesky factor L is in A_.
    void solve(const double* A) {
        for (int64_t i = 0; i < n_; i++) {
            double* L = A_.data() + i * n_;
            for (int64_t j = 0; j <= i; j++) {
                const double* other = A_.data() + j * n_;
                const double s = A[i * a_.room + j] - dot_of(L, other, j);
                if (j < i)
                    L[j] = s / other[j];
                else
                    L[i] = std::sqrt(s + rule_.epsilon);
            }
        }
        for (int64_t o = 0; o < p_; o++) {
            for (int64_t i = 0; i < n_; i++)
                E_[size_t(i)] = (E_of(i, o) - dot_of(A_.data() + i * n_, E_.data(), i)) / A_[size_t(i * n_ + i)];
            for (int64_t i = n_ - 1; i >= 0; i--) {
                const double z = E_[size_t(i)] / A_[size_t(i * n_ + i)];
                Z_[size_t(i * p_ + o)] = z;
                for (int64_t j = 0; j < i; j++) E_[size_t(j)] -= z * A_[size_t(i * n_ + j)];
            }
        }
    }
    double E_of(int64_t i, int64_t o) { return rule_.step * (a_.Y[i * p_ + o] - F(i, o)); }
    // KZ = A Z; A has a row stride of `room`
    void multiply(const double* A) {
        for (int64_t i = 0; i < n_; i++)
            for (int64_t o = 0; o < p_; o++) {
                double s = 0;
                for (int64_t j = 0; j < n_; j++) s += A[i * a_.room + j] * Z_[size_t(j * p_ + o)];
                KZ_[size_t(i * p_ + o)] = s;
            }
    }

    // Add the kernel row of the newest row. If this row becomes a center, H gets a new column.
    bool admitted(const double* x, int64_t m) {
        double *H = a_.H + r_ * a_.capacity, *kcc = a_.numbers + p_ * a_.capacity;
        const double kxx = a_.f.diagonal(x);
        double most = 0;
        for (int64_t i = 0; i < m; i++) {
            H[i] = k_[size_t(i)];
            const double c = H[i] * H[i] / kcc[i];
            most = c > most ? c : most;
        }
        if (!(kxx > 0 && std::sqrt(most / kxx) <= rule_.coherence)) return false;
        admit(x, m);
        kcc[m] = kxx;
        for (int64_t j = 0; j < n_; j++) a_.H[j * a_.capacity + m] = row_[size_t(j)];
        return true;
    }
    // KAP: alpha <- alpha + H' Z, Z = (epsilon I + H H')^-1 step (Y - F)
    void project(const double* x, int64_t m) {
        const bool grown = admitted(x, m);
        const double* H = a_.H + r_ * a_.capacity;
        for (int64_t j = 0; j < n_; j++)
            a_.G[r_ * a_.room + j] = a_.G[j * a_.room + r_] = dot_of(a_.H + j * a_.capacity, H, m);
        if (grown) {
            m++;
            for (int64_t i = 0; i < n_; i++)
                for (int64_t j = 0; j < n_; j++) a_.G[i * a_.room + j] += row_[size_t(i)] * row_[size_t(j)];
        }
        solve(a_.G);
        multiply(a_.G);
        for (int64_t o = 0; o < p_; o++)
            for (int64_t j = 0; j < n_; j++) {
                add_to(weights(o), Z_[size_t(j * p_ + o)], a_.H + j * a_.capacity, m);
                F(j, o) += KZ_[size_t(j * p_ + o)];
            }
    }

    // PHYPASS: project all rows onto their chosen centers at once
    void project_along(const double* x, int64_t m) {
        const bool grown = admitted(x, m);
        if (grown) m++;
        if (!m) return;
        choose(r_, m);
        for (int64_t i = 0; grown && i < n_; i++) {
            const int64_t worst = a_.places[(i + 1) * rule_.selected - 1];
            if (i != r_ && (worst < 0 || coherence2(i, m - 1) > coherence2(i, worst))) choose(i, m);
        }
        for (int64_t o = 0; o < p_; o++) project_output(o);
    }
    double coherence2(int64_t i, int64_t c) const {
        const double h = a_.H[i * a_.capacity + c];
        return h * h / a_.numbers[p_ * a_.capacity + c];
    }
    // The most coherent centers of row i, their kernel matrix, and the projection onto them
    void choose(int64_t i, int64_t m) {
        const int64_t s = rule_.selected, all = a_.room * s, first = i * s;
        choose_most(m, s, which_, shares_, [&](int64_t c) { return coherence2(i, c); });
        const int64_t few = int64_t(which_.size());
        old_.resize(size_t(a_.d));
        E_.resize(size_t(all > int64_t(E_.size()) ? all : int64_t(E_.size())));
        for (int64_t j = 0; j < s; j++) {
            a_.places[first + j] = j < few ? which_[size_t(j)] : -1;
            a_.along[first + j] = 0;
        }
        for (int64_t j = 0; j < few; j++) {
            a_.f.get(which_[size_t(j)], old_.data());
            a_.chosen.replace(first + j, old_.data());
        }
        for (int64_t j = 0; j < few; j++) {
            a_.f.get(which_[size_t(j)], old_.data());
            a_.chosen.rows(1, old_.data(), E_.data());
            for (int64_t c = 0; c < all; c++) a_.KC[(first + j) * all + c] = a_.KC[c * all + first + j] = E_[size_t(c)];
        }
        A_.resize(size_t(few * few) > A_.size() ? size_t(few * few) : A_.size());
        for (int64_t j = 0; j < few; j++) {
            for (int64_t c = 0; c <= j; c++) A_[size_t(j * few + c)] = a_.KC[(first + j) * all + first + c];
            a_.along[first + j] = a_.H[i * a_.capacity + which_[size_t(j)]];
        }
        solve_small(few, A_.data(), a_.along + first);
        a_.length[i] = 0;
        for (int64_t j = 0; j < few; j++)
            a_.length[i] += a_.H[i * a_.capacity + which_[size_t(j)]] * a_.along[first + j];
    }
    void project_output(int64_t o) {
        const int64_t s = rule_.selected, all = a_.room * s, used = n_ * s;
        V_.assign(size_t(used), 0.0);
        double squares = 0, length = 0;
        for (int64_t i = 0; i < n_; i++) {
            const double b = a_.length[i] > 0 ? beyond(a_.Y[i * p_ + o] - F(i, o), rule_.width) / a_.length[i] : 0.0;
            squares += b * b * a_.length[i];
            for (int64_t j = 0; j < s; j++) V_[size_t(i * s + j)] = b * a_.along[i * s + j];
        }
        for (int64_t c = 0; c < used; c++) length += V_[size_t(c)] * dot_of(a_.KC + c * all, V_.data(), used);
        double step = length > 0 ? rule_.step * squares / length : length <= 0 ? 0.0 : length;  // NaN stays
        if (step > rule_.step * LONGEST) step = rule_.step * LONGEST;
        for (int64_t c = 0; c < used; c++) {
            if (a_.places[c] < 0) continue;
            weights(o)[a_.places[c]] += step * V_[size_t(c)];
            for (int64_t j = 0; j < n_; j++) F(j, o) += a_.H[j * a_.capacity + a_.places[c]] * (step * V_[size_t(c)]);
        }
    }
    void admit(const double* x, int64_t m) {
        a_.f.append(x);
        for (int64_t o = 0; o < p_; o++) weights(o)[m] = 0;
    }

    // The other algorithms: correct the weights of the rows in the window, and remove the oldest center
    void correct(const double* x, int64_t m) {
        if (rule_.kind == AffineRule::NLKAPA)
            solve(a_.K);
        else
            for (int64_t j = 0; j < n_; j++)
                for (int64_t o = 0; o < p_; o++) Z_[size_t(j * p_ + o)] = correction(j, a_.Y[j * p_ + o] - F(j, o));
        const bool full = rule_.budget && m == rule_.budget;
        const int64_t oldest = rule_.budget ? (a_.count - 1) % rule_.budget : 0;
        std::vector<double>& w = scale_;  // the weight of the removed center
        if (full) {
            old_.resize(size_t(a_.d));
            a_.f.get(oldest, old_.data());
            a_.f.replace(oldest, x);
            for (int64_t o = 0; o < p_; o++) {
                w[size_t(o)] = rule_.keep * weights(o)[oldest];
                weights(o)[oldest] = 0;
            }
        } else {
            admit(x, m++);
        }
        multiply(a_.K);
        for (int64_t o = 0; o < p_; o++) correct_output(o, m, full ? &w[size_t(o)] : nullptr);
        if (full) removed(m, w);
    }
    double correction(int64_t j, double e) {
        if (rule_.kind == AffineRule::LKAPA) return rule_.step * e;
        const double kxx = K(j, j);
        double distance = 0.5 * e;  // l / |l'|
        if (rule_.loss == AffineRule::Absolute) distance = e;
        if (rule_.loss == AffineRule::Huber && std::fabs(e) > rule_.bend)
            distance = e - std::copysign(0.5 * rule_.bend, e);
        return kxx > 0 ? rule_.step / double(n_) * distance / kxx : 0.0;
    }
    void correct_output(int64_t o, int64_t m, double* w) {
        double* a = weights(o);
        if (rule_.keep != 1.0) {
            for (int64_t i = 0; i < m; i++) a[i] *= rule_.keep;
            for (int64_t j = 0; j < n_; j++) F(j, o) *= rule_.keep;
        }
        double square = 0;
        for (int64_t j = 0; j < n_; j++) {
            const double z = Z_[size_t(j * p_ + o)], kz = KZ_[size_t(j * p_ + o)];
            const int64_t row = a_.count - 1 - (a_.count - 1 - j) % rule_.window;
            a[rule_.budget ? row % rule_.budget : row] += z;
            square += z * (2.0 * F(j, o) + kz);
            F(j, o) += kz;
        }
        if (rule_.kind != AffineRule::KAPSM) return;
        double& norm2 = a_.norms[o];
        norm2 = norm2 + square < 0 ? 0 : norm2 + square;
        if (!(norm2 > rule_.radius * rule_.radius)) return;
        const double scale = rule_.radius / std::sqrt(norm2);
        norm2 *= scale * scale;
        for (int64_t i = 0; i < m; i++) a[i] *= scale;
        for (int64_t j = 0; j < n_; j++) F(j, o) *= scale;
        if (w) *w *= scale;
    }
    // Update after a center with weights w was removed
    void removed(int64_t m, const std::vector<double>& w) {
        a_.points.rows(1, old_.data(), row_.data());
        for (int64_t j = 0; j < n_; j++)
            for (int64_t o = 0; o < p_; o++) F(j, o) -= row_[size_t(j)] * w[size_t(o)];
        if (rule_.kind != AffineRule::KAPSM) return;
        a_.f.row(old_.data(), p_, a_.capacity, a_.numbers, k_.data(), mean_.data());
        const double kcc = a_.f.diagonal(old_.data());
        for (int64_t o = 0; o < p_; o++) a_.norms[o] -= w[size_t(o)] * (2.0 * mean_[size_t(o)] + w[size_t(o)] * kcc);
        if (a_.count % rule_.budget == 0) renew(m);  // limits rounding errors
        for (int64_t o = 0; o < p_; o++) a_.norms[o] = a_.norms[o] < 0 ? 0 : a_.norms[o];
    }
    void renew(int64_t m) {
        for (int64_t o = 0; o < p_; o++) a_.norms[o] = 0;
        for (int64_t i = 0; i < m; i++) {
            a_.f.get(i, old_.data());
            a_.f.row(old_.data(), p_, a_.capacity, a_.numbers, k_.data(), mean_.data());
            for (int64_t o = 0; o < p_; o++) a_.norms[o] += weights(o)[i] * mean_[size_t(o)];
        }
    }

    const AffineRule rule_;
    AffineArrays a_;
    const int64_t p_;
    int64_t n_, r_ = 0;  // rows in the window, the slot of the newest
    std::vector<double> k_, row_, mean_, scale_, old_, A_, E_, Z_, KZ_, V_, shares_;
    std::vector<int64_t> which_;
};

}  // namespace onlinegp::ONLINEGP_ISA
