// The Python module: the centers of a kernel expansion. Each call is short, and keeps the interpreter's lock.
#include "centers_of.hpp"

using namespace nanobind::literals;

namespace onlinegp {

using Weights = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static void row(CentersOf& self, Point x, Weights weights, Values k, Values mean) {
    const size_t m = size_t(self->size());
    if (weights.shape(1) < m || k.shape(0) < m || mean.shape(0) != weights.shape(0))
        throw nb::value_error("weights and k must have room for each center, mean for each output.");
    self->row(self.point(x), int64_t(mean.shape(0)), int64_t(weights.shape(1)), weights.data(), k.data(), mean.data());
}

static Doubles rows(CentersOf& self, Matrix X) {
    check_width(self, X);
    Doubles K = fresh<double>({X.shape(0), size_t(self->size())});
    self->rows(int64_t(X.shape(0)), X.data(), K.data());
    return K;
}

static std::pair<int64_t, double> nearest(const CentersOf& self, Point x) {
    self.slot(0);
    return self->nearest(self.point(x));
}

static Doubles get(const CentersOf& self, int64_t j) {
    Doubles x = fresh<double>({size_t(self.d)});
    self->get(self.slot(j), x.data());
    return x;
}

static Doubles save(const CentersOf& self) {
    Doubles C = fresh<double>({size_t(self->size()), size_t(self.d)});
    for (int64_t j = 0; j < self->size(); j++) self->get(j, C.data() + j * self.d);
    return C;
}

void bind_centers(nb::module_& m) {
    nb::class_<CentersOf>(m, "Centers")
        .def(nb::init<const Recipe&, int>(), "recipe"_a, "features"_a)
        .def("__len__", [](const CentersOf& self) { return self->size(); })
        .def("append", [](CentersOf& self, Point x) { self->append(self.point(x)); })
        .def("replace", [](CentersOf& self, int64_t j, Point x) { self->replace(self.slot(j), self.point(x)); })
        .def("remove", [](CentersOf& self, int64_t j) { self->remove(self.slot(j)); })
        .def("diagonal", [](const CentersOf& self, Point x) { return self->diagonal(self.point(x)); })
        .def("row", row, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert())
        .def("rows", rows).def("nearest", nearest).def("get", get).def("save", save);
}

}  // namespace onlinegp
