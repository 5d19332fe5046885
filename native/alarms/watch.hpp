// How unusual each row of a stream is, on arrays that Python owns. Twin of models/alarms/readable.py, which is the
// definition.
#pragma once
#include "alarms/predictors.hpp"
#include "alarms/tails.hpp"

namespace onlinegp {
namespace alarms {

constexpr int64_t EARLY = 20;

struct Arrays {
    Numbers* numbers;
    Counts* counts;
    float* recent;   // (RECENT,)
    float* values;   // (lists, 2, KEPT or KEPT_OF_SCORES)
    int64_t* sizes;  // (lists, 2, 2)
    double* laws;    // (lists, 5)
    double *near_P, *near_w, *far_P, *far_w;
    float* usual;  // (EVENTS, lists)
};

class Watch {
  public:
    Watch(const Arrays& arrays, const Constants& rule, bool scores, bool daily);
    void row(double y, double v, Out& out);
    void restart();

  private:
    struct Errors {
        double e, f, a, unit, spread, d, dv, g;
        bool seasonal;
    };

    void set_lags();
    double in_units(double y);
    double from_units(double value) const;
    void measure(double y, double v, Out& out);
    void statistics(double y, double z, const Errors& of, double* x, double* to_learn);
    void judge(const double* x, Out& out);
    void finish(double best, int leading, double odd, const double* x, Out& out);
    double open(double best, bool own);
    int64_t event(double best, double score, bool own, const double* x);
    void thin(const double* x);
    void learn(Errors of);
    void missing(Out& out);
    void fill(double expected, double spread, Out& out) const;
    bool ready(int k) const;
    Past past(double spread) const { return {recent_, s.rows, s.recent, s.score_level, spread}; }

    struct State : Numbers, Counts {
        State(const Numbers& numbers, const Counts& counts) : Numbers(numbers), Counts(counts) {}
    } s;
    Arrays to_;
    const Constants& c;
    const bool scores_, daily_;
    const int statistics_;
    float* recent_;
    std::vector<Tail> tails_;
    Predictor<MOST_NEAR> near_;
    Predictor<MOST_FAR> far_;

  public:
    void store() {
        *to_.numbers = s;
        *to_.counts = s;
    }
};

// Process rows (n,) of y and v, with NaN for missing values, and fill `out` (n,). `restart` starts the predictors from
// scratch before, on the recent rows.
void watch_rows(const Arrays& arrays, const Constants& rule, bool scores, bool daily, bool restart, int64_t n,
                const double* y, const double* v, Out* out);

}  // namespace alarms
}  // namespace onlinegp
