// Members mixed by their past predictions: the twin of MixtureLearner in onlinegp.models.combined.mixture.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>
#include "wrappers/error_tracking.hpp"
#include "tree.hpp"

namespace onlinegp {

// The gate: the certainty of members compared with their usual certainty
struct GateRule {
    double power, keep, largest;  // exponent of the gate; factor per row of the usual log std; limit of log std
    double better, surer;  // by this factor of the weight and difference in log std, a member is better and surer
};

// The effect of the record of a member: see `lasting` in onlinegp.models.combined.mixture
struct RecordRule {
    double rows, most;  // its weight in rows; its limit in nats
};

// Detects changes of a stream, and stores the last rows: the twin of ChangeDetector in
// onlinegp.models.combined.change_detector. The Python learners react to a change.
class ChangeDetector {
  public:
    struct Rule {
        double clip, alarm, worse;  // nats
        double keep, limit;         // of the usual density: factor per row, and limit
        double rest;                // rows
        int64_t log;                // number of stored rows
        double least;               // lower limit of log densities
        Vector pauses;              // rows after a start
        std::vector<size_t> fresh;
        size_t window;
    };
    ChangeDetector(Rule rule, int d, int p)
        : rule_(std::move(rule)),
          d_(d),
          p_(p),
          state_(8),
          log_x_(size_t(rule_.log * d)),
          log_y_(size_t(rule_.log * p)) {}

    void fields(Visitor& visit) {
        visit.array("change state", state_);
        visit.array("change log_x", log_x_);
        visit.array("change log_y", log_y_);
    }
    // The number of rows until a change may be detected or a pause is due; zero if one is due now
    int64_t until_due() const {
        const double evidence = std::max(state_[0], state_[2]), age = state_[6];
        if (evidence > rule_.alarm) return 0;
        double rows =
            std::max(rule_.rest - age, 0.0) + std::max(1.0, std::floor((rule_.alarm - evidence) / rule_.clip));
        for (const double pause : rule_.pauses)
            if (pause > age) rows = std::min(rows, pause - age);
        return int64_t(rows);
    }
    bool pauses() const { return std::find(rule_.pauses.begin(), rule_.pauses.end(), state_[6]) != rule_.pauses.end(); }

    // Add a row with the log densities of all members
    void follow(const double* x, const double* y, const Vector& densities) {
        double &better = state_[0], &since = state_[1], &worse = state_[2], &others = state_[3];
        double &total = state_[4], &weight = state_[5], &age = state_[6], &seen = state_[7];
        const int64_t at = int64_t(seen) % rule_.log;
        std::copy(x, x + d_, log_x_.begin() + at * d_);
        std::copy(y, y + p_, log_y_.begin() + at * p_);
        double best = rule_.least;
        for (const size_t one : rule_.fresh) best = std::max(best, bounded(densities[one]));
        if (age >= rule_.rest) {
            better = std::max(0.0, better + clipped(bounded(densities[rule_.window]) - best));
            worse = std::max(0.0, worse + clipped(total / weight - best - rule_.worse));
            since = better > 0 ? since + 1 : 0.0;
            others = worse > 0 ? others + 1 : 0.0;
        }
        if (worse == 0) {
            total = rule_.keep * total + std::min(std::max(best, -rule_.limit), rule_.limit);
            weight = rule_.keep * weight + 1;
        }
        age += 1;
        seen += 1;
    }

  private:
    double clipped(double gain) const { return std::min(std::max(gain, -rule_.clip), rule_.clip); }
    double bounded(double density) const {
        return density > rule_.least ? std::min(density, -rule_.least) : rule_.least;
    }

    const Rule rule_;
    const int d_, p_;
    Vector state_, log_x_, log_y_;  // see the Python twin
};

class Mixture final : public Node {
  public:
    Mixture(int d, std::vector<Owned> all, std::vector<std::string> names, const FadingWeightsRule& rule,
            const GateRule& gate, const RecordRule& lasting, int threads, std::unique_ptr<ChangeDetector> detector)
        : Node(d, all[0]->p, degrees_of(all)),
          members_(std::move(all)),
          names_(std::move(names)),
          rule_(rule),
          gate_(gate),
          lasting_(lasting),
          threads_(threads),
          detector_(std::move(detector)),
          log_weights_(members_.size()),
          total_(members_.size()),
          count_(members_.size()),
          record_(members_.size()),
          densities_(members_.size()) {
        for (const Owned& one : members_) (one->shares_rows() ? later_ : first_).push_back(one.get());
    }
    // sum and weight of the usual log std of each member
    void fields(Visitor& visit) override {
        visit.array("log_weights", log_weights_);
        visit.array("total", total_);
        visit.array("count", count_);
        if (lasting_.rows > 0) visit.array("record", record_);
        if (detector_) detector_->fields(visit);
        for (size_t j = 0; j < members_.size(); j++) visit.node(names_[j], *members_[j]);
    }

    void predict_next(const double* x, Workspace& w) override {
        for (Node* one : first_) one->predict_next(x, w);
        for (Node* one : later_) one->predict_next(x, w);
        mix(0, w);
    }
    void learn_next(const double* x, const double* y, Workspace& w) override {
        update(0, x, y, w);
        for (Node* one : later_) one->learn_next(x, y, w);
        for (Node* one : first_) one->learn_next(x, y, w);
    }
    void run(int64_t n, const double* X, const double* Y, Workspace& w) override {
        each_first(n, [&](Node& one) { one.run(n, X, Y, w); });
        for (Node* one : later_) one->run(n, X, Y, w);
        predicted(w).resize(n);
        std::vector<int64_t>& sizes = slot(w).sizes;
        sizes.assign(size_t(n), 0);
        for (int64_t i = 0; i < n; i++) {
            for (const Owned& one : members_)
                sizes[size_t(i)] = std::max(sizes[size_t(i)], one->slot(w).sizes[size_t(i)]);
            mix(i, w);
            update(i, X + i * d, Y + i * p, w);
        }
    }
    void predict(int64_t n, const double* X, Workspace& w) const override {
        for (const Node* one : first_) one->predict(n, X, w);
        for (const Node* one : later_) one->predict(n, X, w);
        predicted(w).resize(n);
        for (int64_t i = 0; i < n; i++) mix(i, w);
    }
    void flush(Workspace& w) override {
        for (const Owned& one : members_) one->flush(w);
    }
    void reserve(int64_t rows, Workspace& w) override {
        Node::reserve(rows, w);
        for (const Owned& one : members_) one->reserve(rows, w);
    }
    void enter(Workspace& w, const Node* next) override {
        const Mixture* other = static_cast<const Mixture*>(next);
        for (size_t j = 0; j < members_.size(); j++) members_[j]->enter(w, other ? other->members_[j].get() : nullptr);
    }
    void leave() override {
        for (const Owned& one : members_) one->leave();
    }
    int64_t size() const override {
        int64_t largest = 0;
        for (const Owned& one : members_) largest = std::max(largest, one->size());
        return largest;
    }
    int64_t until_due() const override {
        int64_t rows = !detector_ ? NEVER_DUE : paused_ ? 0 : detector_->until_due();
        for (const Owned& one : members_) rows = std::min(rows, one->until_due());
        return rows;
    }
    int64_t work() const override {
        int64_t sum = 0;
        for (const Owned& one : members_) sum += one->work();
        return sum;
    }

  private:
    static Vector degrees_of(const std::vector<Owned>& all) {
        Vector out;
        for (const Owned& one : all) out = joined(out, one->kinds.degrees);
        return out;
    }

    // Members are independent: run them on several threads if that pays off
    template <class Work> void each_first(int64_t rows, const Work& work_on) {
        constexpr int64_t WORK_PER_THREAD = 200000;  // kernel evaluations
        const int64_t useful = std::min(int64_t(first_.size()), rows * work() / WORK_PER_THREAD + 1);
        std::atomic<size_t> next{0};
        std::exception_ptr failure;
        std::mutex mutex;  // protects the failure
        const auto some = [&] {
            try {
                for (size_t j = next++; j < first_.size(); j = next++) work_on(*first_[j]);
            } catch (...) {
                const std::lock_guard<std::mutex> guard(mutex);
                failure = std::current_exception();
            }
        };
        std::vector<std::thread> others;
        for (int64_t j = 1; j < std::min<int64_t>(useful, threads_); j++) {
            try {
                others.emplace_back(some);
            } catch (const std::exception&) {  // the system has no more threads
                break;
            }
        }
        some();
        for (std::thread& one : others) one.join();
        if (failure) std::rethrow_exception(failure);
    }

    // mean log std of a member over its outputs, clipped
    double log_std(const Node& member, int64_t i, Workspace& w) const {
        double sum = 0;
        for (int o = 0; o < p; o++) sum += std::log(member.predicted(w).moments(i, o).std);
        const double mean = sum / p;
        return std::isnan(mean) ? gate_.largest : std::min(std::max(mean, -gate_.largest), gate_.largest);
    }

    void mix(int64_t i, Workspace& w) const {
        const size_t m = members_.size();
        Vector& weights = slot(w).targets;
        weights.resize(4 * m);
        for (size_t j = 0; j < m; j++) weights[j] = log_weights_[j] + record_[j];
        shares(int64_t(m), weights.data(), weights.data());
        if (gate_.power > 0 && count_[0] > 0) gate(i, weights.data(), weights.data() + m, w);
        for (int o = 0; o < p; o++) {
            Components out = predicted(w)(i, o);
            double stretch = 1;  // exactly 1 if nothing is stretched
            for (size_t j = 0; j < m; j++) {
                stretch += weights[j] * (members_[j]->predicted(w).stretch(i, o) - 1);
                const Components in = members_[j]->predicted(w)(i, o);
                const int64_t K = members_[j]->kinds.count();
                for (int64_t k = 0; k < K; k++) {
                    out.weight[k] = weights[j] * in.weight[k];
                    out.mean[k] = in.mean[k];
                    out.scale[k] = in.scale[k];
                }
                out = {out.weight + K, out.mean + K, out.scale + K};
            }
            predicted(w).stretch(i, o) = stretch;
        }
    }

    // Weights times (usual std / std)^power, normalized. No member gets more than one that is better and surer.
    // `memory` is for 3 m numbers
    void gate(int64_t i, double* weights, double* memory, Workspace& w) const {
        const size_t m = members_.size();
        double *spread = memory, *doubt = memory + m, *gated = memory + 2 * m;
        double* limited = doubt;  // from when the doubt is not needed any more
        double least = INFINITY, sum = 0;
        for (size_t j = 0; j < m; j++) {
            spread[j] = log_std(*members_[j], i, w);
            doubt[j] = gate_.power * (spread[j] - total_[j] / count_[j]);
            least = std::min(least, doubt[j]);
        }
        for (size_t j = 0; j < m; j++) gated[j] = weights[j] * std::exp(std::max(least - doubt[j], -gate_.largest));
        for (size_t j = 0; j < m; j++) {
            limited[j] = gated[j];
            for (size_t k = 0; k < m; k++) {
                const bool better = weights[k] >= gate_.better * weights[j];
                if (better && spread[k] <= spread[j] - gate_.surer) limited[j] = std::min(limited[j], gated[k]);
            }
            sum += limited[j];
        }
        for (size_t j = 0; j < m; j++) weights[j] = limited[j] / sum;
    }

    void update(int64_t i, const double* x, const double* y, Workspace& w) {
        for (size_t j = 0; j < members_.size(); j++) {
            densities_[j] = 0;
            for (int o = 0; o < p; o++) densities_[j] += members_[j]->predicted(w).log_density(i, o, y[o]);
        }
        update_weights(rule_, int64_t(members_.size()), densities_.data(), log_weights_.data());
        if (lasting_.rows > 0) update_records();
        if (detector_) {
            detector_->follow(x, y, densities_);
            paused_ = detector_->pauses();
        }
        if (!(gate_.power > 0)) return;
        for (size_t j = 0; j < members_.size(); j++) {
            total_[j] = gate_.keep * total_[j] + log_std(*members_[j], i, w);
            count_[j] = gate_.keep * count_[j] + 1;
        }
    }

    void update_records() {
        double best = rule_.least;
        for (const double one : densities_) best = std::max(best, bounded(one));
        for (size_t j = 0; j < members_.size(); j++) {
            const double behind = std::max(bounded(densities_[j]) - best, -rule_.cut);
            const double record = gate_.keep * record_[j] + (1.0 - gate_.keep) * lasting_.rows * behind;
            record_[j] = std::max(record, -lasting_.most);
        }
    }
    double bounded(double density) const {
        return density > rule_.least ? std::min(density, -rule_.least) : rule_.least;
    }

    const std::vector<Owned> members_;
    const std::vector<std::string> names_;
    std::vector<Node*> first_, later_;  // members that share the rows of another member run later
    const FadingWeightsRule rule_;
    const GateRule gate_;
    const RecordRule lasting_;
    const int threads_;
    const std::unique_ptr<ChangeDetector> detector_;  // null without a detector
    bool paused_ = false;                             // whether the last learned row paused
    Vector log_weights_, total_, count_, record_, densities_;
};

}  // namespace onlinegp
