// The part of the Python module that works along rows on arrays of Python's own, in place.
#include <array>
#include <vector>
#include "arrays.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace onlinegp;

using In = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using Counter = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static void need(bool fits, const char* what) {
    if (!fits) throw nb::value_error(what);
}

// Rows of equal width: n and p
template <class A, class B> static std::pair<int64_t, int64_t> rows_of(const A& in, const B& out) {
    need(in.ndim() == 2 && out.ndim() == 2 && in.shape(0) == out.shape(0) && in.shape(1) == out.shape(1),
         "rows must have two dimensions, and as many as are returned.");
    return {int64_t(in.shape(0)), int64_t(in.shape(1))};
}

static void fading_scales(In Z2, double degrees, double keep, double far, double tiny, Out sum, Out count, Out out) {
    const auto [n, p] = rows_of(Z2, out);
    need(int64_t(sum.size()) == p && int64_t(count.size()) == p, "sum and count must have an entry for each output.");
    instructions().fading_scales(n, p, Z2.data(), degrees, keep, far, tiny, sum.data(), count.data(), out.data());
}

static void fading_weights(In densities, double fade, double cut, double least, Out log_weights, Out out) {
    const auto [n, m] = rows_of(densities, out);
    need(int64_t(log_weights.size()) == m, "there must be a weight for each member.");
    instructions().fading_weights(n, m, densities.data(), fade, cut, least, log_weights.data(), out.data());
}

static void tracked_quantiles(In R, In steps, double outside, double widest, Out log_scale, Out out) {
    const auto [n, p] = rows_of(R, out);
    need(int64_t(log_scale.size()) == p && int64_t(steps.size()) == n, "a scale for each output, a step for each row.");
    instructions().tracked_quantiles(n, p, R.data(), steps.data(), outside, widest, log_scale.data(), out.data());
}

// Run a loop over rows without the interpreter, until Ctrl-C
template <class Loop> static void rows_until_interrupted(const Loop& loop) {
    Signals signals;
    {
        nb::gil_scoped_release release;
        StopIf interrupted([&] { return signals.came(); });
        loop(interrupted);
    }
    signals.raise();
}

static Linear linear(int64_t d, Out& R, Out& z, double precision, double keep, const In& renewal, Out& work, Counter& seen) {
    need(R.ndim() == 2 && z.ndim() == 2 && R.shape(0) == R.shape(1) && z.shape(0) == R.shape(0), "R or z has the wrong shape.");
    const int64_t m = int64_t(R.shape(0)), p = int64_t(z.shape(1));
    need(m == d || m == d + 1, "X has another number of columns than the model.");
    need(int64_t(renewal.size()) == m && int64_t(work.size()) == m + 2 * p + 1 && seen.size() == 1,
         "renewal, work or seen has the wrong size.");
    return {d, m, p, precision, keep, renewal.data(), R.data(), z.data(), work.data(), seen.data()};
}

static void linear_run(In X, In Y, Out R, Out z, double precision, double keep, In renewal, Out work, Counter seen, Out mean,
                       Out v) {
    need(X.ndim() == 2 && Y.ndim() == 2 && X.shape(0) == Y.shape(0), "Y must have a row for each of X.");
    const Linear model = linear(int64_t(X.shape(1)), R, z, precision, keep, renewal, work, seen);
    need(int64_t(Y.shape(1)) == model.p && mean.size() == Y.size() && v.size() == X.shape(0), "Y, mean or v has the wrong shape.");
    rows_until_interrupted([&](Stop& stop) {
        instructions().linear_run(model, int64_t(X.shape(0)), X.data(), Y.data(), mean.data(), v.data(), stop);
    });
}

static void linear_predict(In X, Out R, Out z, In renewal, Out work, Counter seen, Out mean, Out v) {
    need(X.ndim() == 2, "X must have two dimensions.");
    const Linear model = linear(int64_t(X.shape(1)), R, z, 1, 1, renewal, work, seen);
    need(int64_t(mean.size()) == int64_t(X.shape(0)) * model.p && v.size() == X.shape(0), "mean or v has the wrong shape.");
    rows_until_interrupted([&](Stop& stop) {
        instructions().linear_predict(model, int64_t(X.shape(0)), X.data(), mean.data(), v.data(), stop);
    });
}

// Features, weights and outputs of a linear filter, if all arrays fit
static std::array<int64_t, 3> sizes(const In& X, const In& Y, const Out& w, const Counter& seen, const Out& mean, const Out& s) {
    need(X.ndim() == 2 && Y.ndim() == 2 && X.shape(0) == Y.shape(0), "Y must have a row for each of X.");
    need(w.ndim() == 2 && w.shape(1) == Y.shape(1), "w has the wrong shape.");
    const int64_t d = int64_t(X.shape(1)), m = int64_t(w.shape(0));
    need(m == d || m == d + 1, "X has another number of columns than the model.");
    need(seen.size() == 1 && mean.size() == Y.size() && s.size() == X.shape(0), "seen, mean or s has the wrong size.");
    return {d, m, int64_t(w.shape(1))};
}

static void isotropic_run(In X, In Y, Out w, Out v, double floor, double slope, double share, double keep, double drift,
                          Counter seen, Out mean, Out s) {
    const auto [d, m, p] = sizes(X, Y, w, seen, mean, s);
    need(v.size() == 1, "v must be one number.");
    std::vector<double> work(static_cast<size_t>(m));
    const Isotropic model{d, m, p, floor, slope, share, keep, drift, w.data(), v.data(), work.data(), seen.data()};
    rows_until_interrupted([&](Stop& stop) {
        instructions().isotropic_run(model, int64_t(X.shape(0)), X.data(), Y.data(), mean.data(), s.data(), stop);
    });
}

static void kalman_run(In X, In Y, Out w, Out U, double root_noise, double root_drift, Counter seen, Out mean, Out s) {
    const auto [d, m, p] = sizes(X, Y, w, seen, mean, s);
    need(U.ndim() == 2 && int64_t(U.shape(0)) == m && int64_t(U.shape(1)) == m, "U has the wrong shape.");
    std::vector<double> work(static_cast<size_t>(3 * m));
    const Kalman model{d, m, p, root_noise, root_drift, w.data(), U.data(), work.data(), seen.data()};
    rows_until_interrupted([&](Stop& stop) {
        instructions().kalman_run(model, int64_t(X.shape(0)), X.data(), Y.data(), mean.data(), s.data(), stop);
    });
}

// Least mean squares on cosines, if all arrays fit
static Cosines cosines(const In& X, const In& turns, Out& w, double gain, Out& mean, std::vector<double>& work) {
    need(X.ndim() == 2 && turns.ndim() == 2 && w.ndim() == 2 && turns.shape(0) == X.shape(1) + 1 && w.shape(1) == turns.shape(1),
         "X, turns or w has the wrong shape.");
    const int64_t d = int64_t(X.shape(1)), D = int64_t(w.shape(1)), p = int64_t(w.shape(0));
    need(D % Cosines::LANES == 0 && mean.size() == X.shape(0) * w.shape(0), "w or mean has the wrong size.");
    work.resize(size_t(D));
    return {d, D, p, gain, turns.data(), w.data(), work.data(), nullptr};
}

static void cosines_run(In X, In Y, In turns, Out w, double gain, Counter seen, Out mean) {
    std::vector<double> work;
    Cosines model = cosines(X, turns, w, gain, mean, work);
    need(Y.size() == mean.size() && seen.size() == 1, "Y or seen has the wrong size.");
    model.seen = seen.data();
    rows_until_interrupted([&](Stop& stop) {
        instructions().cosines_run(model, int64_t(X.shape(0)), X.data(), Y.data(), mean.data(), stop);
    });
}

static void cosines_predict(In X, In turns, Out w, Out mean) {
    std::vector<double> work;
    const Cosines model = cosines(X, turns, w, 0, mean, work);
    rows_until_interrupted([&](Stop& stop) {
        instructions().cosines_run(model, int64_t(X.shape(0)), X.data(), nullptr, mean.data(), stop);
    });
}

// Arrays are taken as they are: what is written to a copy would be lost
template <size_t... I, class F> static void define(nb::module_& m, const char* name, F* function, std::index_sequence<I...>) {
    m.def(name, function, ((void)I, nb::arg().noconvert())...);
}
template <class... A> static void define(nb::module_& m, const char* name, void (*function)(A...)) {
    define(m, name, function, std::make_index_sequence<sizeof...(A)>());
}

void onlinegp::bind_rows(nb::module_& m) {
    define(m, "fading_scales", fading_scales);
    define(m, "fading_weights", fading_weights);
    define(m, "tracked_quantiles", tracked_quantiles);
    define(m, "linear_run", linear_run);
    define(m, "linear_predict", linear_predict);
    define(m, "isotropic_run", isotropic_run);
    define(m, "kalman_run", kalman_run);
    define(m, "cosines_run", cosines_run);
    define(m, "cosines_predict", cosines_predict);
}
