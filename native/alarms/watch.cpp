#include "alarms/watch.hpp"
#include "alarms/predictors.hpp"
#include "alarms/tails.hpp"

namespace onlinegp {
namespace alarms {

constexpr int64_t EARLY = 20;

static double bounded(double value) { return std::min(std::max(value, -LARGEST), LARGEST); }
static void follow(double& mean, double rate, double value) { mean += rate * (value - mean); }

class Watch {
  public:
    Watch(const Arrays& arrays, const Constants& rule, bool scores, bool daily)
        : s(*arrays.numbers, *arrays.counts),
          to_(arrays),
          c(rule),
          scores_(scores),
          daily_(daily),
          statistics_(scores ? int(MOST_STATISTICS) : int(SCORE)),
          near_(arrays.near_P, arrays.near_w, rule.forgetting),
          far_(arrays.far_P, arrays.far_w, rule.forgetting) {
        const int64_t kept = scores ? KEPT_OF_SCORES : KEPT;
        for (int k = 0; k <= statistics_; k++) {
            const double least = k == statistics_ ? 0.05 : k == STUCK || k == MISSING ? 2.0 : 0.0;
            Generation* generations = reinterpret_cast<Generation*>(arrays.sizes + 4 * k);
            Law* law = reinterpret_cast<Law*>(arrays.laws + 5 * k);
            tails_.emplace_back(arrays.values + 2 * kept * k, kept, generations, law, least, c);
        }
        set_lags();
    }

    void row(double y, double v, Out& out) {
        if (std::isnan(y)) return missing(out);
        if (s.known == 0) {
            s.origin = s.last = y;
            restart();
        }
        if (s.unit == 0) s.unit = std::abs(y - s.origin);
        y = s.unit > 0 ? bounded((y - s.origin) / s.unit) : 0.0;
        v = scores_ ? bounded(v) : y;
        measure(y, v, out);
        s.known++;
        remember(v);
    }

    // Restart both predictors on the recent rows
    void restart() {
        set_lags();
        near_.start(c.ridge_near, 1);
        far_.start(c.ridge_far, 0);
        s.season_20 = 0;
        s.ready = far_.lags.empty() ? 0 : std::max(s.rows, s.season) + int64_t(c.burn);
        for (int k = SEASON; k <= SEASON_DOWN; k++) tails_[size_t(k)].forget();
        const double spread = s.score_spread;
        if (spread <= 0) return;
        const int64_t before = s.rows - s.recent;
        for (int64_t t = before + 1; t < s.rows; t++) {
            const Past past{to_.recent, t, t - before, s.score_level, spread};
            const double z = (double(to_.recent[place(t)]) - s.score_level) / spread;
            near_.learn(z - near_.predict(past), c.clip * s.mean_error / spread);
            if (!far_.lags.empty() && past.reach > s.season)
                far_.learn(z - far_.predict(past), c.clip * std::max(s.far_error, s.mean_error) / spread);
        }
    }

    void store() {
        *to_.numbers = s;
        *to_.counts = s;
    }

  private:
    struct Errors {
        double e, f, a, unit, spread, d, dv, g;
        bool seasonal;
    };

    void set_lags() {
        near_.lags = near_lags(s.season);
        far_.lags = far_lags(s.season, daily_);
        far_.spare = s.season;
    }

    Past past(double spread) const { return {to_.recent, s.rows, s.recent, s.score_level, spread}; }

    bool ready(int k) const { return seasonal(k) ? s.ready > 0 && s.rows >= s.ready : double(s.known) >= c.burn; }

    void remember(double v) {
        to_.recent[place(s.rows)] = float(v);
        s.rows++;
        s.recent = std::min(s.recent + 1, RECENT);
    }

    void measure(double y, double v, Out& out) {
        Errors of{};
        of.g = 1.0 / (double(s.known) + 1.0);
        of.d = y - s.level;
        of.dv = v - s.score_level;
        if (s.known == 0) {
            s.level = y;
            s.score_level = v;
            of.d = of.dv = 0;
        }
        // 1. Predict (v - slow level) / spread
        of.spread = std::max(s.score_spread, 1e-9);
        of.seasonal = !far_.lags.empty() && s.recent > s.season;
        const double expected = near_.predict(past(of.spread));
        of.e = of.dv / of.spread - expected;
        if (of.seasonal) of.f = of.dv / of.spread - far_.predict(past(of.spread));
        // 2. Measure
        of.a = std::max(std::abs(of.e) * of.spread - 0.001 * s.score_spread, 0.0);
        of.unit = std::max(s.mean_error, 0.1 * s.long_error);
        const double z = of.unit > 0 ? std::min(of.a / of.unit, MOST_ERROR) : of.a == 0 ? 0.0 : CUT_ERROR;
        double x[MOST_STATISTICS] = {};
        const int64_t ended = statistics(y, z, of, x);
        // 3. to 5. Calibrate, pool, open
        fill(expected, of.spread, out);
        judge(x, out);
        // Learn; a run of rows counts once, when it ends
        if (double(s.known) >= c.burn)
            for (int k = 0; k < statistics_; k++)
                if (ready(k))
                    tails_[size_t(k)].learn(k == STUCK ? double(ended) : k == MISSING ? double(s.gone) : x[k]);
        learn(of);
        s.last = y;
        s.gone = 0;
    }

    // Fill x. Return the number of rows for which the last value was stuck, if it changes now.
    int64_t statistics(double y, double z, const Errors& of, double* x) {
        const double g = of.g;
        const double f = of.f * of.spread;
        const double cut = std::min(z, CUT_ERROR);
        const auto both = [&](int k, double& mean, double rate, double value) {
            follow(mean, std::max(rate, g), value);
            x[k] = std::max(mean, 0.0);
            x[k + 1] = std::max(-mean, 0.0);
        };
        const auto mean = [&](int k, double& mean, double rate) {
            follow(mean, std::max(rate, g), cut);
            x[k] = mean;
        };
        const bool changed = y != s.last || s.known == 0;
        const int64_t ended = changed ? s.same : 0;
        s.same = changed ? 0 : s.same + 1;
        x[VALUE] = std::abs(of.d);
        both(UP_20, s.level_20, 0.05, of.d);
        both(UP_100, s.level_100, 0.01, of.d);
        x[SEASON] = std::abs(f);
        both(SEASON_UP, s.season_20, 0.05, f);
        x[ERROR] = z;
        mean(ERROR_5, s.error_5, 0.2);
        mean(ERROR_20, s.error_20, 0.05);
        mean(ERROR_100, s.error_100, 0.01);
        x[STUCK] = double(s.same);
        x[SCORE] = std::abs(of.dv);
        both(SCORE_UP_20, s.score_20, 0.05, of.dv);
        both(SCORE_UP_100, s.score_100, 0.01, of.dv);
        return ended;
    }

    // The predictions for the row
    void fill(double expected, double spread, Out& out) const {
        if (s.known == 0) return;
        const double predicted = s.score_level + spread * expected;
        const double width = WIDTH * s.mean_error;
        const auto shown = [&](double value) { return scores_ ? value : from_units(value); };
        out.expected = shown(predicted);
        out.low = shown(predicted - width);
        out.high = shown(predicted + width);
        out.level = from_units(s.level);
        out.level_low = from_units(s.level - LEVEL_WIDTH * s.spread);
        out.level_high = from_units(s.level + LEVEL_WIDTH * s.spread);
    }

    double from_units(double value) const { return s.origin + (s.unit > 0 ? s.unit : 1.0) * value; }

    void judge(const double* x, Out& out) {
        double evidence[MOST_STATISTICS] = {};
        double four[5] = {};  // the four largest, and room for one more
        int leading = 0;
        const bool helps = s.far_error < c.helps * s.score_spread;
        for (int k = 0; k < statistics_; k++) {
            if (!ready(k) || (seasonal(k) && !helps)) continue;
            if (k == STUCK && s.unit == 0) continue;  // a value that has never changed is not stuck
            evidence[k] = tails_[size_t(k)].evidence(x[k], c.nearly);
            if (FAMILY[k] < 0) continue;
            if (evidence[k] > four[0]) leading = k;
            four[4] = evidence[k];
            for (int at = 4; at > 0 && four[at - 1] < four[at]; at--) std::swap(four[at - 1], four[at]);
            out.families[FAMILY[k]] = std::max(out.families[FAMILY[k]], evidence[k]);
        }
        double best = 0;
        if (four[0] > 0) {
            const double age = double(std::max<int64_t>(s.known, 1)) / c.young;
            const double young = std::log10(1.0 + 1.0 / (age * age * age));
            const double offset = c.offset - (sudden(leading) ? 0.0 : c.lasting);
            const double total = four[0] + four[1] + four[2] + four[3];
            best = std::max(offset - young + (1.0 - c.pooled) * four[0] + c.pooled * total / 4.0, 0.0);
        }
        for (const int k : {int(STUCK), int(MISSING)})
            if (evidence[k] - c.stuck_offset > best) {
                best = evidence[k] - c.stuck_offset;
                leading = k;
            }
        finish(best, leading, evidence[VALUE], x, out);
        out.run = double(s.same);
    }

    // x is null if the value is missing
    void finish(double best, int leading, double odd, const double* x, Out& out) {
        if (double(s.known) < c.silent) {
            best = 0;
        } else {
            out.tail = tails_.back().evidence(best, 1);
            if (x) tails_.back().learn(best);
        }
        out.evidence = best;
        out.statistic = leading;
        const bool own = leading == STUCK || leading == MISSING;
        const bool back = s.open && s.own && !own && odd == 0;  // a usual value after stuck or missing values
        out.score = top(s.peak, s.held, !own, best, false) + top(s.stuck_peak, s.stuck_held, own, best, true);
        if (back) out.score = 0;
        follow_event(best, out.score, own, x);
        out.event = s.open ? double(s.events) : 0.0;
    }

    // Return the score: the evidence if it exceeds the peak of this kind, else 0
    double top(double& peak, int64_t& held, bool mine, double best, bool own) {
        const bool free =
            peak <= 1 || (own && peak < c.threshold);  // so that a run whose evidence grows slowly can open an event
        if (mine && best > peak + (free ? 0.0 : c.margin)) return peak = best;
        if (s.open) {
            held = std::min(held + 1, int64_t(c.hold));
        } else if (held > 0) {
            held = std::min(held, int64_t(c.hold)) - 1;  // a file may contain a larger count
        } else {
            peak *= c.fade;
        }
        return 0;
    }

    float* usual(int64_t event) const { return to_.usual + (event - 1) % EVENTS * int64_t(tails_.size()); }

    void follow_event(double best, double score, bool own, const double* x) {
        if (s.open) {
            s.calm = best >= c.low ? 0 : s.calm + 1;
            s.open = double(s.calm) < c.quiet;
            if (!s.open && x) thin(x);
            if (!s.open || own || !s.own) return;
        }
        if (score < c.threshold) return;
        s.events++;
        std::transform(tails_.begin(), tails_.end(), usual(s.events), [](const Tail& tail) { return tail.largest(); });
        s.open = 1;
        s.calm = 0;
        s.own = own;
    }

    // The event was a fault: keep only a few of its values
    void thin(const double* x) {
        const float* largest = usual(s.events);
        for (int k = 0; k < statistics_; k++)
            if (FAMILY[k] >= 0 && x[k] <= double(largest[k])) tails_[size_t(k)].thin(largest[k]);
    }

    void learn(const Errors& of) {
        const double limit = c.clip * of.unit;
        const bool early = s.known <= EARLY || limit <= 0;
        if (s.known > 3) near_.learn(of.e, early ? 3.0 : limit / of.spread);
        if (of.seasonal) far_.learn(of.f, s.far_error > 0 ? c.clip * s.far_error / of.spread : 3.0);
        double far = of.seasonal ? std::abs(of.f) * of.spread : std::abs(of.dv);
        if (!(early || s.far_error <= 0)) far = std::min(far, c.clip * s.far_error);
        follow(s.far_error, std::max(0.005, of.g), far);
        const double a = early ? of.a : std::min(of.a, 1.25 * limit);
        follow(s.mean_error, std::max(c.error_rate, of.g), a);
        follow(s.long_error, std::max(c.long_rate, of.g), a);
        const double slow = std::max(c.slow, of.g);
        follow(s.spread, slow, std::abs(of.d));
        s.level += slow * of.d;
        follow(s.score_spread, slow, std::abs(of.dv));
        s.score_level += slow * of.dv;
    }

    void missing(Out& out) {
        if (s.known == 0) return;
        s.gone++;
        const double spread = std::max(s.score_spread, 1e-9);
        const double expected = near_.predict(past(spread));
        fill(expected, spread, out);
        const double evidence = double(s.known) < c.silent ? 0.0 : tails_[MISSING].evidence(double(s.gone), c.nearly);
        finish(std::max(evidence - c.stuck_offset, 0.0), MISSING, 0, nullptr, out);
        out.run = double(s.gone);
        remember(bounded(s.score_level + spread * expected));
    }

    struct State : Numbers, Counts {
        State(const Numbers& numbers, const Counts& counts) : Numbers(numbers), Counts(counts) {}
    } s;
    const Arrays& to_;
    const Constants& c;
    const bool scores_, daily_;
    const int statistics_;
    std::vector<Tail> tails_;
    Predictor<MOST_NEAR> near_;
    Predictor<MOST_FAR> far_;
};

void watch_rows(const Arrays& arrays, const Constants& rule, bool scores, bool daily, bool restart, int64_t n,
                const double* y, const double* v, Out* out) {
    Watch watch(arrays, rule, scores, daily);
    if (restart) watch.restart();
    for (int64_t i = 0; i < n; i++) watch.row(y[i], v[i], out[i]);
    watch.store();
}

}  // namespace alarms
}  // namespace onlinegp
