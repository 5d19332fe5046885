// The centers of a kernel expansion as the Python module holds them.
#pragma once
#include <nanobind/stl/pair.h>
#include "arrays.hpp"

namespace onlinegp {

using Point = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

struct CentersOf {
    CentersOf(const Recipe& recipe, int d) : d(d), centers(instructions().make_centers(recipe, d)) {}
    const int d;
    const std::unique_ptr<Centers> centers;

    Centers* operator->() const { return centers.get(); }
    const double* point(const Point& x) const {
        if (int64_t(x.shape(0)) != d) throw nb::value_error("x has another number of features than the centers.");
        return x.data();
    }
    int64_t slot(int64_t j) const {
        if (j < 0 || j >= centers->size()) throw nb::index_error("there is no such center.");
        return j;
    }
};

}  // namespace onlinegp
