// The least mean squares algorithms that are not recipes: the twin of FBKLMS, MKNLMS, QKLMSFB, KLMSCSL1, KLMSCSAL1 and
// MXKLMS in onlinegp.models.lms, which have the equations and sources.
#pragma once
#include <algorithm>
#include <memory>
#include <vector>
#include "leaves/error_scale.hpp"
#include "leaves/expansions.hpp"

namespace onlinegp::ONLINEGP_ISA {

// The algorithm and its parameters
struct StepRule {
    StepRule(const Plan& plan, StepKind kind)
        : kind(kind),
          step(plan.number("step")),
          coherence(plan.number("coherence", 1)),
          epsilon(plan.number("epsilon", 0)),
          penalty(plan.number("penalty", 0)),
          radius(plan.number("radius", 0)),
          forgetting(plan.number("forgetting", 1)),
          mixing_step(plan.number("mixing_step", 0)),
          budget(plan.count("budget", INT64_MAX)) {}
    const StepKind kind;
    const double step, coherence, epsilon, penalty, radius, forgetting, mixing_step;
    const int64_t budget;

    std::vector<std::string> numbers() const {  // additional numbers of each center, for each kernel
        if (kind == StepKind::Mixed) return {};
        if (kind == StepKind::Significant) return {"influence", "density"};
        return {"kcc"};  // k(c, c)
    }
};

class StepFilter final : public Learner {
  public:
    StepFilter(const Plan& plan, StepKind kind)
        : rule_(plan, kind),
          d_(plan.features),
          p_(plan.outputs),
          q_(int(plan.kernels.size())),
          is_several_(plan.number("several", 0) != 0),
          f_(d_, q_ * (p_ + int(rule_.numbers().size()))),
          v_(size_t(q_ * p_)),
          x_(size_t(d_)),
          mean_(size_t(p_)),
          variance_(size_t(p_)),
          now_(q_, p_),
          errors_(p_) {
        for (const Program& kernel : plan.kernels) kernels_.emplace_back(new Kernel<double>(kernel, d_));
    }

    int64_t size() const override { return f_.size; }
    int64_t seen() const override { return seen_; }
    int64_t work_per_row() const override { return q_ * (f_.size + 1); }
    int variances() const override { return follows_errors() ? p_ : 1; }
    void flush() override {}
    void reserve(int64_t rows) override {
        const int64_t left = std::max<int64_t>(rule_.budget - f_.size, 0);
        f_.reserve(f_.size +
                   (left < rows ? left + 1 : rows));  // one center more than the budget, before a center is removed
        now_.reserve(f_.room, q_);
        if (f_.room <= spare_room_) return;
        spare_.resize(size_t(f_.room));
        spare_room_ = f_.room;
    }

    int64_t learn(int64_t n, const double* X, const double* Y, const Steps& steps, Stop& stop) override {
        for (int64_t i = 0; i < n; i++) {
            if (stop.asked(2 * work_per_row())) return i;
            reserve(1);
            const double *x = X + i * d_, *y = Y + i * p_;
            look(x, now_, mean_.data(), steps.variance ? steps.variance + i * variances() : variance_.data());
            if (steps.mean) std::copy(mean_.data(), mean_.data() + p_, steps.mean + i * p_);
            for (int o = 0; o < p_; o++) now_.e[o] = y[o] - mean_[o];
            if (follows_errors()) errors_.add(y, mean_.data(), seen_ == 0);
            correct(x, y);
            if (seen_ < INT64_MAX) seen_++;
            if (steps.size) steps.size[i] = f_.size;
        }
        return n;
    }
    void predict_next(const double* x, double* mean, double* variance) override { look(x, now_, mean, variance); }
    void predict(int64_t n, const double* X, double* mean, double* variance, Stop& stop) const override {
        Seen seen(q_, p_);
        for (int64_t i = 0; i < n && !stop.asked(work_per_row()); i++)
            look(X + i * d_, seen, mean + i * p_, variance + i * variances());
    }

    void fields(Visitor& visit) override {
        if (visit.looks()) return;
        visit.integer("seen", seen_);
        for (int q = 0; q < q_; q++) list_expansion(q, visit);
        if (follows_errors()) errors_.fields(visit, "errors.");
        if (mixed()) visit.array("gates.v", v_, {q_, p_});
    }

  private:
    double* alpha(int q, int o) { return f_.row(q * p_ + o); }
    const double* alpha(int q, int o) const { return f_.row(q * p_ + o); }
    double* number(int i) { return f_.row(q_ * p_ + i); }
    bool mixed() const { return rule_.kind == StepKind::Mixed; }
    bool follows_errors() const { return rule_.kind == StepKind::Penalized || adaptive(); }
    bool adaptive() const { return rule_.kind == StepKind::AdaptivelyPenalized; }

    // The centers, the weights (m, p) and the other numbers of the expansion in kernel q. Centers are shared.
    void list_expansion(int q, Visitor& visit) {
        const std::string prefix = is_several_ ? "f" + std::to_string(q) + "." : "f.";
        const int64_t m = visit.loads() ? FREE : f_.size;
        std::vector<double> centers(size_t(f_.size * d_)), weights(size_t(f_.size * p_)), numbers;
        for (int64_t i = 0; i < f_.size; i++) {
            get_center(f_.tiles.data(), d_, i, centers.data() + i * d_);
            for (int o = 0; o < p_; o++) weights[size_t(i * p_ + o)] = alpha(q, o)[i];
        }
        const int64_t stored = visit.array(prefix + "centers", centers, {m, d_});
        if (visit.loads() && q == 0) {
            f_.clear();
            f_.reserve(stored + 1);
            for (int64_t i = 0; i < stored; i++) f_.append(centers.data() + i * d_);
        }
        visit.array(prefix + "weights", weights, {m, p_});
        for (int64_t i = 0; visit.loads() && i < f_.size; i++)
            for (int o = 0; o < p_; o++) alpha(q, o)[i] = weights[size_t(i * p_ + o)];
        int which = is_several_ ? q : 0;
        for (const std::string& name : rule_.numbers()) {
            double* own = number(which++);
            numbers.assign(own, own + f_.size);
            visit.array(prefix + name, numbers, {m});
            std::copy(numbers.begin(), numbers.end(), own);
        }
    }

    // The mean (p,) of y and its variances
    void look(const double* x, Seen& seen, double* mean, double* variance) const {
        seen.reserve(f_.room, q_);
        seen.k2 = 0;
        double kxx = 0, kxx2 = 0, largest = 0;
        for (int q = 0; q < q_; q++) {
            double *k = seen.k.data() + q * f_.room, *part = seen.parts.data() + q * p_;
            for (int o = 0; o < p_; o++)
                part[o] = !f_.size ? 0
                          : o      ? dot(k, alpha(q, o), f_.size)
                                   : row(*kernels_[size_t(q)], f_.tiles.data(), f_.size, x, alpha(q, 0), k);
            if (rule_.kind == StepKind::Normalized && f_.size) seen.k2 += dot(k, k, f_.size);
            const double own = seen.kxx[q] = diagonal(*kernels_[size_t(q)], x);
            kxx += own;
            kxx2 += own * own;
            largest = max(largest, own);
        }
        if (mixed()) {
            shares(seen.psi.data());
            for (int o = 0; o < p_; o++) {
                mean[o] = 0;
                for (int q = 0; q < q_; q++) mean[o] += seen.psi[q * p_ + o] * seen.parts[q * p_ + o];
            }
        } else {
            for (int o = 0; o < p_; o++) {
                mean[o] = 0;
                for (int q = 0; q < q_; q++) mean[o] += seen.parts[q * p_ + o];
            }
        }
        switch (rule_.kind) {
            case StepKind::Normalized:
                *variance = max((rule_.epsilon + seen.k2 + kxx2) / rule_.step, kxx + seen.k2);
                return;
            case StepKind::Penalized:
            case StepKind::AdaptivelyPenalized: errors_.variances(variance); return;
            default: *variance = max(1.0 / rule_.step, largest);
        }
    }
    void correct(const double* x, const double* y) {
        switch (rule_.kind) {
            case StepKind::Normalized: return normalized(x);
            case StepKind::Penalized:
            case StepKind::AdaptivelyPenalized: return penalized(x, y);
            case StepKind::Significant: return significant(x);
            case StepKind::Mixed: return mix_in(x, y);
        }
    }

    // The largest |k(x, c)| / sqrt(k(x, x) k(c, c)) of kernel q over the centers
    double coherence(int q) {
        const double *k = now_.k.data() + q * f_.room, *kcc = number(q), kxx = now_.kxx[q];
        if (!f_.size || kxx <= 0) return 0;
        if (kernels_[size_t(q)]->constant_diagonal) return std::sqrt(square(largest(k, f_.size)) / kcc[0] / kxx);
        double most = 0;
        for (int64_t i = 0; i < f_.size; i++) most = max(most, kcc[i] > 0 ? k[i] * k[i] / kcc[i] : k[i] * k[i]);
        return std::sqrt(most / kxx);
    }
    static double square(double a) { return a * a; }

    void normalized(const double* x) {
        bool is_new = true;
        double own = 0;
        for (int q = 0; q < q_; q++) {
            is_new = is_new && coherence(q) <= rule_.coherence;
            own += square(now_.kxx[q]);
        }
        const double share = rule_.step / (rule_.epsilon + now_.k2 + (is_new ? own : 0.0));
        const int64_t last = f_.size;
        for (int q = 0; q < q_; q++)
            for (int o = 0; o < p_; o++) axpy(share * now_.e[o], now_.k.data() + q * f_.room, alpha(q, o), last);
        if (!is_new) return;
        f_.append(x);
        for (int q = 0; q < q_; q++) {
            number(q)[last] = now_.kxx[q];
            for (int o = 0; o < p_; o++) alpha(q, o)[last] = now_.kxx[q] * (share * now_.e[o]);
        }
        if (f_.size > rule_.budget) f_.remove(least(nullptr));
    }

    // The center with the smallest |weights|^2 times the square of the factor of the center. Ties go to the first, the
    // oldest.
    int64_t least(const double* factor) {
        double smallest = INFINITY, most = 0;
        for (int64_t i = 0; i < f_.size; i++) {
            double w2 = 0;
            for (int o = 0; o < q_ * p_; o++) w2 += square(f_.row(o)[i]);
            spare_[i] = factor ? w2 * square(factor[i]) : w2;
            smallest = spare_[i] < smallest ? spare_[i] : smallest;
            most = max(most, spare_[i]);
        }
        const double limit = tie_limit(smallest, most);
        int64_t j = 0;
        while (j < f_.size - 1 && spare_[j] > limit) j++;
        return j;
    }

    // alpha <- alpha + step e k, |alpha| <- max(|alpha| - threshold, 0)
    void penalized(const double* x, const double* y) {
        const double kxx = now_.kxx[0];
        int64_t last = f_.size;
        double* k = now_.k.data();
        bool is_new = false;
        if (last == 0) {  // the first center, which may start from y / k(x, x)
            f_.append(x);
            number(0)[0] = kxx;
            k[0] = kxx;
            last = 1;
            for (int o = 0; o < p_ && adaptive() && kxx > 0; o++) {
                alpha(0, o)[0] = y[o] / kxx;
                now_.e[o] -= kxx * alpha(0, o)[0];
            }
        } else if (coherence(0) <= rule_.coherence) {
            f_.append(x);
            number(0)[last] = kxx;
            is_new = true;
        }
        for (int o = 0; o < p_; o++) {
            double* a = alpha(0, o);
            const double c = rule_.step * now_.e[o];
            for (int64_t i = 0; i < last; i++) {
                const double threshold = adaptive() ? rule_.penalty / (std::fabs(a[i]) + rule_.epsilon) : rule_.penalty;
                a[i] = shrunk(a[i] + k[i] * c, threshold);
            }
            if (is_new) a[last] = shrunk(rule_.step * kxx * now_.e[o], rule_.penalty);
        }
        for (int64_t j = f_.size - 1; j >= 0; j--) {
            bool zero = true;
            for (int o = 0; o < p_; o++) zero = zero && alpha(0, o)[j] == 0;
            if (zero) f_.remove(j);
        }
    }
    static double shrunk(double a, double threshold) {
        const double size = std::fabs(a) - threshold;
        return size > 0 ? std::copysign(size, a) : size <= 0 ? 0.0 : size;  // NaN stays
    }

    void significant(const double* x) {
        double* k = now_.k.data();
        if (f_.size) {
            const Best<double> near = nearest(f_.tiles.data(), d_, f_.size, x);
            if (near.value <= square(rule_.radius)) return quantize(near.slot);
            if (f_.size == rule_.budget) {
                const int64_t j = least(number(1));
                for (int o = 0; o < p_; o++)
                    now_.e[o] += k[j] * alpha(0, o)[j];  // the error of the prediction without center j
                between(j);
                double* density = number(1);
                const double influence = number(0)[j];
                for (int64_t i = 0; i < f_.size; i++)
                    density[i] = max(density[i] - influence * std::fabs(spare_[i]), 0.0);
                f_.remove(j);
                std::copy(k + j + 1, k + f_.size + 1, k + j);
            }
        }
        fade(k);
        double density = now_.kxx[0];
        for (int64_t i = 0; i < f_.size; i++) density += number(0)[i] * std::fabs(k[i]);
        const int64_t last = f_.size;
        f_.append(x);
        number(0)[last] = 1;
        number(1)[last] = density;
        for (int o = 0; o < p_; o++) alpha(0, o)[last] = rule_.step * now_.e[o];
    }
    void quantize(int64_t j) {
        for (int o = 0; o < p_; o++) alpha(0, o)[j] += rule_.step * now_.e[o];
        between(j);
        fade(spare_.data());
        number(0)[j] += 1;
    }
    // The kernel row of center j
    void between(int64_t j) {
        get_center(f_.tiles.data(), d_, j, x_.data());
        row(*kernels_[0], f_.tiles.data(), f_.size, x_.data(), alpha(0, 0), spare_.data());
    }
    // Fade influences and densities, then add the kernel row k to the densities
    void fade(const double* k) {
        double *influence = number(0), *density = number(1);
        for (int64_t i = 0; i < f_.size; i++) {
            influence[i] *= rule_.forgetting;
            density[i] = density[i] * rule_.forgetting + std::fabs(k[i]);
        }
    }

    // psi = exp(v) / sum exp(v), for each output
    void shares(double* psi) const {
        for (int o = 0; o < p_; o++) {
            double most = -INFINITY, whole = 0;
            for (int q = 0; q < q_; q++) most = max(most, v_[q * p_ + o]);
            for (int q = 0; q < q_; q++) whole += psi[q * p_ + o] = std::exp(v_[q * p_ + o] - most);
            for (int q = 0; q < q_; q++) psi[q * p_ + o] /= whole;
        }
    }
    void mix_in(const double* x, const double* y) {
        constexpr double LOWEST = -700;
        double* psi = now_.psi.data();  // their values when x was predicted
        for (int o = 0; o < p_; o++) {
            double mean = 0, most = -INFINITY;
            for (int q = 0; q < q_; q++) mean += psi[q * p_ + o] * now_.parts[q * p_ + o];
            for (int q = 0; q < q_; q++) {
                const int i = q * p_ + o;
                v_[i] -= rule_.mixing_step * (-2.0 * (y[o] - mean) * psi[i] * (now_.parts[i] - mean));
                most = max(most, v_[i]);
            }
            for (int q = 0; q < q_; q++) v_[q * p_ + o] = max(v_[q * p_ + o] - most, LOWEST);
        }
        shares(psi);
        const int64_t last = f_.size;
        f_.append(x);
        for (int q = 0; q < q_; q++)
            for (int o = 0; o < p_; o++) alpha(q, o)[last] = rule_.step * psi[q * p_ + o] * now_.e[o];
    }

    const StepRule rule_;
    const int d_, p_, q_;
    const bool is_several_;  // if so, fields are named f0, f1, ...
    std::vector<std::unique_ptr<const Kernel<double>>> kernels_;
    Expansions f_;
    std::vector<double> v_;                       // the gates, (q, p)
    Buffer<double> x_, mean_, variance_, spare_;  // scratch for a center, a prediction and a kernel row
    int64_t spare_room_ = 0, seen_ = 0;
    Seen now_;
    ErrorScale errors_;
};

}  // namespace onlinegp::ONLINEGP_ISA
