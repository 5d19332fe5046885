// The part of the Python module with loops over rows, which change arrays of Python in place.
#include <nanobind/stl/vector.h>
#include "arrays.hpp"
#include "mixtures.hpp"
#include "wrappers/error_tracking.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace onlinegp;

using In = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<double, nb::c_contig, nb::device::cpu>;

static void need(bool fits, const char* what) {
    if (!fits) throw nb::value_error(what);
}

// Rows of equal width: n and p
template <class A, class B> static std::pair<int64_t, int64_t> rows_of(const A& in, const B& out) {
    need(in.ndim() == 2 && out.ndim() == 2 && in.shape(0) == out.shape(0) && in.shape(1) == out.shape(1),
         "rows must have two dimensions, and as many as are returned.");
    return {int64_t(in.shape(0)), int64_t(in.shape(1))};
}

static void fading_scales(In Z2, double degrees, double keep, double far, double tiny, Out total, Out count, Out out) {
    const auto [n, p] = rows_of(Z2, out);
    need(int64_t(total.size()) == p && int64_t(count.size()) == p,
         "total and count must have an entry for each output.");
    const FadingScaleRule rule{degrees, keep, far, tiny};
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < p; j++) {
            out.data()[i * p + j] = total.data()[j] / count.data()[j];
            update_scale(rule, Z2.data()[i * p + j], total.data()[j], count.data()[j]);
        }
}

static void fading_weights(In densities, double fade, double cut, double least, Out log_weights, Out out) {
    const auto [n, m] = rows_of(densities, out);
    need(int64_t(log_weights.size()) == m, "there must be a weight for each member.");
    for (int64_t i = 0; i < n; i++) {
        shares(m, log_weights.data(), out.data() + i * m);
        update_weights({fade, cut, least}, m, densities.data() + i * m, log_weights.data());
    }
}

static void tracked_stretch(In missed, In constants, Out log_scale, Out rows, Out more, Out fewer, Out out) {
    const auto [n, p] = rows_of(missed, out);
    for (const Out* one : {&log_scale, &rows, &more, &fewer})
        need(int64_t(one->size()) == p, "the state must have an entry for each output.");
    need(constants.size() == 13, "there must be thirteen constants.");
    const double* c = constants.data();
    const StretchRule rule{c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12]};
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < p; j++) {
            out.data()[i * p + j] = std::exp(log_scale.data()[j]);
            update_stretch(rule, missed.data()[i * p + j] != 0, log_scale.data()[j], rows.data()[j], more.data()[j],
                           fewer.data()[j]);
        }
}

// Mixtures of K components: weights, means and scales (..., K). All other dimensions count as rows.

static Mixtures mixtures(const In& weights, const In& means, const In& scales, const Vector& degrees) {
    const size_t K = degrees.size(), values = weights.size();
    need(K > 0 && means.size() == values && scales.size() == values && values % K == 0,
         "components must have one shape.");
    return {int64_t(values / K), weights.data(), means.data(), scales.data()};
}

static void mixture_moments(In weights, In means, In scales, const Vector& degrees, Out mean, Out std) {
    const Mixtures of = mixtures(weights, means, scales, degrees);
    need(int64_t(mean.size()) == of.n && int64_t(std.size()) == of.n, "there must be a mean and a std for each row.");
    moments(kinds_of(degrees), of, mean.data(), std.data());
}

static void mixture_log_density(In weights, In means, In scales, const Vector& degrees, In y, Out out) {
    const Mixtures of = mixtures(weights, means, scales, degrees);
    need(int64_t(y.size()) == of.n && int64_t(out.size()) == of.n, "there must be a y for each row.");
    log_density(kinds_of(degrees), of, y.data(), out.data());
}

static void mixture_quantile(In weights, In means, In scales, const Vector& degrees, double p, In quantiles, Out out) {
    const Mixtures of = mixtures(weights, means, scales, degrees);
    need(quantiles.size() == degrees.size() && int64_t(out.size()) == of.n,
         "there must be a quantile for each component.");
    quantile(kinds_of(degrees), of, p, quantiles.data(), out.data());
}

// Arrays are never converted, because changes of a copy would be lost
template <size_t... I, class F>
static void define(nb::module_& m, const char* name, F* function, std::index_sequence<I...>) {
    m.def(name, function, ((void)I, nb::arg().noconvert())...);
}
template <class... A> static void define(nb::module_& m, const char* name, void (*function)(A...)) {
    define(m, name, function, std::make_index_sequence<sizeof...(A)>());
}

void onlinegp::bind_rows(nb::module_& m) {
    define(m, "fading_scales", fading_scales);
    define(m, "fading_weights", fading_weights);
    define(m, "tracked_stretch", tracked_stretch);
    define(m, "mixture_moments", mixture_moments);
    define(m, "mixture_log_density", mixture_log_density);
    define(m, "mixture_quantile", mixture_quantile);
}
