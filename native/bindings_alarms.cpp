// The part of the Python module for the detector. It changes arrays of Python in place.
#include "alarms/watch.hpp"
#include "arrays.hpp"

namespace onlinegp {

template <class T> using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

template <class T> static T* data(const Array<T>& array, size_t size, const char* name) {
    if (array.size() != size) throw nb::value_error((std::string(name) + " has the wrong size.").c_str());
    return array.data();
}

static void watch(Array<double> numbers, Array<int64_t> counts, Array<float> recent, Array<float> values,
                  Array<int64_t> sizes, Array<double> laws, Array<double> near_P, Array<double> near_w,
                  Array<double> far_P, Array<double> far_w, Array<float> usual, Array<const double> constants,
                  bool scores, bool daily, bool restart, Array<const double> y, Array<const double> v,
                  Array<double> out) {
    using namespace alarms;
    const size_t lists = size_t(scores ? int(MOST_STATISTICS) : int(SCORE)) + 1;
    const size_t n = y.size();
    alarms::Arrays arrays{
        reinterpret_cast<Numbers*>(data(numbers, sizeof(Numbers) / sizeof(double), "numbers")),
        reinterpret_cast<Counts*>(data(counts, sizeof(Counts) / sizeof(int64_t), "counts")),
        data(recent, size_t(RECENT), "recent"),
        data(values, lists * 2 * size_t(scores ? KEPT_OF_SCORES : KEPT), "values"),
        data(sizes, lists * 4, "sizes"),
        data(laws, lists * 5, "laws"),
        data(near_P, MOST_NEAR * MOST_NEAR, "near_P"),
        data(near_w, MOST_NEAR, "near_w"),
        data(far_P, MOST_FAR * MOST_FAR, "far_P"),
        data(far_w, MOST_FAR, "far_w"),
        data(usual, size_t(EVENTS) * lists, "usual"),
    };
    const Constants& rule =
        *reinterpret_cast<const Constants*>(data(constants, sizeof(Constants) / sizeof(double), "constants"));
    const double* targets = y.data();
    const double* series = data(v, n, "v");
    Out* rows = reinterpret_cast<Out*>(data(out, n * sizeof(Out) / sizeof(double), "out"));
    const nb::gil_scoped_release released;
    watch_rows(arrays, rule, scores, daily, restart, int64_t(n), targets, series, rows);
}

// Arrays are never converted, because changes of a copy would be lost
template <size_t... I> static void define(nb::module_& m, std::index_sequence<I...>) {
    m.def("watch", watch, ((void)I, nb::arg().noconvert())...);
}

void bind_alarms(nb::module_& m) { define(m, std::make_index_sequence<18>()); }

}  // namespace onlinegp
