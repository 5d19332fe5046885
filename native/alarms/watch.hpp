// How unusual each row of a stream is, on arrays that Python owns. Twin of models/alarms/readable.py, which is the
// definition.
#pragma once
#include "alarms/rules.hpp"

namespace onlinegp {
namespace alarms {

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

// Process rows (n,) of y and v, with NaN for missing values, and fill `out` (n,). `restart` first restarts the
// predictors on the recent rows.
void watch_rows(const Arrays& arrays, const Constants& rule, bool scores, bool daily, bool restart, int64_t n,
                const double* y, const double* v, Out* out);

}  // namespace alarms
}  // namespace onlinegp
