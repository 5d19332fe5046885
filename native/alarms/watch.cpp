#include "alarms/watch.hpp"

namespace onlinegp {
namespace alarms {

static double up(double value) { return std::max(value, 0.0); }
static double down(double value) { return std::max(-value, 0.0); }
static double bounded(double value) { return std::min(std::max(value, -LARGEST), LARGEST); }
static void follow(double& mean, double rate, double value) { mean += rate * (value - mean); }

Watch::Watch(const Arrays& arrays, const Constants& rule, bool scores, bool daily)
    : s(*arrays.numbers, *arrays.counts),
      to_(arrays),
      c(rule),
      scores_(scores),
      daily_(daily),
      statistics_(scores ? int(MOST_STATISTICS) : int(SCORE)),
      recent_(arrays.recent),
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

void Watch::set_lags() {
    near_.lags = near_lags(s.season);
    far_.lags = far_lags(s.season, daily_);
    far_.spare = s.season;
}

bool Watch::ready(int k) const {
    if (seasonal(k)) return s.ready > 0 && s.rows >= s.ready;
    return double(s.known) >= c.burn;
}

void Watch::row(double y, double v, Out& out) {
    if (std::isnan(y)) {
        missing(out);
        return;
    }
    if (s.known == 0) {
        s.origin = s.last = y;
        restart();
    }
    y = in_units(y);
    v = scores_ ? bounded(v) : y;
    measure(y, v, out);
    s.rows++;
    s.known++;
    s.recent = std::min(s.recent + 1, RECENT);
}

double Watch::in_units(double y) {
    if (s.unit == 0) s.unit = std::abs(y - s.origin);
    return s.unit > 0 ? bounded((y - s.origin) / s.unit) : 0.0;
}

double Watch::from_units(double value) const { return s.origin + (s.unit > 0 ? s.unit : 1.0) * value; }

void Watch::restart() {
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
        const Past past{recent_, t, t - before, s.score_level, spread};
        const double z = (double(recent_[place(t)]) - s.score_level) / spread;
        near_.learn(z - near_.predict(past), c.clip * s.mean_error / spread);
        if (!far_.lags.empty() && past.reach > s.season)
            far_.learn(z - far_.predict(past), c.clip * std::max(s.far_error, s.mean_error) / spread);
    }
}

void Watch::measure(double y, double v, Out& out) {
    Errors of{};
    of.g = 1.0 / (double(s.known) + 1.0);
    of.d = y - s.level;
    of.dv = v - s.score_level;
    if (s.known == 0) {
        s.level = y;
        s.score_level = v;
        of.d = of.dv = 0;
    }
    // 1. Predict, in spreads from the slow level
    of.spread = std::max(s.score_spread, 1e-9);
    of.seasonal = !far_.lags.empty() && s.recent > s.season;
    const double expected = near_.predict(past(of.spread));
    of.e = of.dv / of.spread - expected;
    if (of.seasonal) of.f = of.dv / of.spread - far_.predict(past(of.spread));
    // 2. Measure
    of.a = std::max(std::abs(of.e) * of.spread - 0.001 * s.score_spread, 0.0);
    of.unit = std::max(s.mean_error, 0.1 * s.long_error);
    const double z = of.unit > 0 ? std::min(of.a / of.unit, MOST_ERROR) : of.a == 0 ? 0.0 : CUT_ERROR;
    double x[MOST_STATISTICS];
    double to_learn[MOST_STATISTICS];
    statistics(y, z, of, x, to_learn);
    // 3. to 5. Calibrate, pool, open
    fill(expected, of.spread, out);
    judge(x, out);
    // Learn
    if (double(s.known) >= c.burn)
        for (int k = 0; k < statistics_; k++)
            if (ready(k)) tails_[size_t(k)].learn(to_learn[k]);
    learn(of);
    recent_[place(s.rows)] = float(v);
    s.last = y;
    s.gone = 0;
}

void Watch::statistics(double y, double z, const Errors& of, double* x, double* to_learn) {
    const double g = of.g;
    const double f = of.f * of.spread;
    follow(s.level_20, std::max(0.05, g), of.d);
    follow(s.level_100, std::max(0.01, g), of.d);
    follow(s.score_20, std::max(0.05, g), of.dv);
    follow(s.score_100, std::max(0.01, g), of.dv);
    follow(s.season_20, std::max(0.05, g), f);
    const double cut = std::min(z, CUT_ERROR);
    follow(s.error_5, std::max(0.2, g), cut);
    follow(s.error_20, std::max(0.05, g), cut);
    follow(s.error_100, std::max(0.01, g), cut);
    const bool changed = y != s.last || s.known == 0;
    const int64_t ended = changed ? s.same : 0;
    s.same = changed ? 0 : s.same + 1;
    const double all[MOST_STATISTICS] = {std::abs(of.d),
                                         up(s.level_20),
                                         down(s.level_20),
                                         up(s.level_100),
                                         down(s.level_100),
                                         std::abs(f),
                                         up(s.season_20),
                                         down(s.season_20),
                                         z,
                                         s.error_5,
                                         s.error_20,
                                         s.error_100,
                                         double(s.same),
                                         0.0,
                                         std::abs(of.dv),
                                         up(s.score_20),
                                         down(s.score_20),
                                         up(s.score_100),
                                         down(s.score_100)};
    std::copy(all, all + statistics_, x);
    std::copy(all, all + statistics_, to_learn);
    to_learn[STUCK] = double(ended);  // a run counts once, when it ends
    to_learn[MISSING] = double(s.gone);
}

void Watch::fill(double expected, double spread, Out& out) const {
    const double predicted = s.score_level + spread * expected;
    const double width = WIDTH * s.mean_error;
    out.expected = scores_ ? predicted : from_units(predicted);
    out.low = scores_ ? predicted - width : from_units(predicted - width);
    out.high = scores_ ? predicted + width : from_units(predicted + width);
    out.level = from_units(s.level);
    out.level_low = from_units(s.level - LEVEL_WIDTH * s.spread);
    out.level_high = from_units(s.level + LEVEL_WIDTH * s.spread);
    if (s.known == 0)  // nothing is known before the first value
        out.expected = out.low = out.high = out.level = out.level_low = out.level_high = 0;
}

void Watch::judge(const double* x, Out& out) {
    double evidence[MOST_STATISTICS] = {};
    double four[4] = {};
    int leading = 0;
    const bool helps = s.far_error < c.helps * s.score_spread;
    for (int k = 0; k < statistics_; k++) {
        if (!ready(k) || (seasonal(k) && !helps)) continue;
        if (k == STUCK && s.unit == 0) continue;  // what never changed is not stuck
        const double found = tails_[size_t(k)].evidence(x[k], c.nearly);
        evidence[k] = found;
        if (FAMILY[k] < 0) continue;
        out.families[FAMILY[k]] = std::max(out.families[FAMILY[k]], found);
        if (found <= four[3]) continue;
        if (found > four[0]) leading = k;
        int at = 3;
        while (at > 0 && four[at - 1] < found) {
            four[at] = four[at - 1];
            at--;
        }
        four[at] = found;
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

// x is null if there is no value
void Watch::finish(double best, int leading, double odd, const double* x, Out& out) {
    if (double(s.known) < c.silent) {
        best = 0;
    } else {
        out.tail = tails_.back().evidence(best, 1);
        if (x) tails_.back().learn(best);
    }
    out.evidence = best;
    out.statistic = leading;
    const bool own = leading == STUCK || leading == MISSING;
    const bool back = s.open && s.own && !own && odd == 0;  // from stuck or missing to what is usual
    out.score = open(best, own);
    if (back) out.score = 0;
    out.event = double(event(best, out.score, own, x));
}

double Watch::open(double best, bool own) {
    double score = 0;
    const auto top = [&](double& peak, int64_t& held, bool mine) {
        const bool free = peak <= 1 || (own && peak < c.threshold);  // a run of rows grows slowly, and opens one event
        if (mine && best > peak + (free ? 0.0 : c.margin)) {
            score = peak = best;
        } else if (s.open) {
            held = std::min(held + 1, int64_t(c.hold));
        } else if (held > 0) {
            held = std::min(held, int64_t(c.hold)) - 1;  // files of 0.2 have counts of another kind
        } else {
            peak *= c.fade;
        }
    };
    top(s.peak, s.held, !own);
    top(s.stuck_peak, s.stuck_held, own);
    return score;
}

// What has passed was a fault rather than a habit
void Watch::thin(const double* x) {
    const float* usual = to_.usual + ((s.events - 1) % EVENTS) * int64_t(tails_.size());
    for (int k = 0; k < statistics_; k++)
        if (FAMILY[k] >= 0 && x[k] <= double(usual[k])) tails_[size_t(k)].thin(usual[k]);
}

int64_t Watch::event(double best, double score, bool own, const double* x) {
    if (s.open) {
        s.calm = best >= c.low ? 0 : s.calm + 1;
        s.open = double(s.calm) < c.quiet;
        if (!s.open && x) thin(x);
        if (!s.open || own || !s.own) return s.open ? s.events : 0;
    }
    if (score >= c.threshold) {
        float* usual = to_.usual + (s.events % EVENTS) * int64_t(tails_.size());
        for (const Tail& tail : tails_) *usual++ = tail.largest();
        s.events++;
        s.open = 1;
        s.calm = 0;
        s.own = own;
    }
    return s.open ? s.events : 0;
}

void Watch::learn(Errors of) {
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

void Watch::missing(Out& out) {
    if (s.known == 0) return;
    s.gone++;
    const double spread = std::max(s.score_spread, 1e-9);
    const double expected = near_.predict(past(spread));
    fill(expected, spread, out);
    const double evidence = double(s.known) < c.silent ? 0.0 : tails_[MISSING].evidence(double(s.gone), c.nearly);
    finish(std::max(evidence - c.stuck_offset, 0.0), MISSING, 0, nullptr, out);
    out.run = double(s.gone);
    recent_[place(s.rows)] = float(bounded(s.score_level + spread * expected));
    s.rows++;
    s.recent = std::min(s.recent + 1, RECENT);
}

void watch_rows(const Arrays& arrays, const Constants& rule, bool scores, bool daily, bool restart, int64_t n,
                const double* y, const double* v, Out* out) {
    Watch watch(arrays, rule, scores, daily);
    if (restart) watch.restart();
    for (int64_t i = 0; i < n; i++) watch.row(y[i], v[i], out[i]);
    watch.store();
}

}  // namespace alarms
}  // namespace onlinegp
