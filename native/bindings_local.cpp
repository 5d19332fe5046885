// The Python module: the exact GP on the nearest rows.
#include <nanobind/stl/vector.h>
#include "arrays.hpp"

using namespace nanobind::literals;

namespace onlinegp {

// The numbers of the neighbors of each row of X, the nearest first
static Integers nearest(LocalEngine& engine, Matrix X) {
    check_width(engine, X);
    const Held held(engine.lock, Use::Read);
    const int64_t n = engine.learner().size(), m = engine.neighbors() < n ? engine.neighbors() : n;
    Integers rows = fresh<int64_t>({X.shape(0), size_t(m)});
    nb::gil_scoped_release release;
    engine.model().nearest(int64_t(X.shape(0)), X.data(), rows.data());
    return rows;
}

static nb::tuple save(LocalEngine& engine) {
    const Held held(engine.lock, Use::Read);
    const size_t n = size_t(engine.learner().size());
    Doubles X = fresh<double>({n, size_t(engine.d)}), Y = fresh<double>({n, size_t(engine.p)});
    engine.model().save(X.data(), Y.data());
    return nb::make_tuple(X, Y, engine.learner().seen());
}

static void load(LocalEngine& engine, Matrix X, Matrix Y, int64_t seen) {
    check_rows(engine, X, Y);
    const Held held(engine.lock, Use::Change);
    engine.model().load(int64_t(X.shape(0)), seen, X.data(), Y.data());
}

void bind_local(nb::module_& m) {
    nb::class_<LocalPrior>(m, "LocalPrior")
        .def(nb::init<>())
        .def_rw("recipe", &LocalPrior::recipe).def_rw("noise", &LocalPrior::noise).def_rw("fade", &LocalPrior::fade)
        .def_rw("neighbors", &LocalPrior::neighbors).def_rw("store", &LocalPrior::store)
        .def_rw("rates", &LocalPrior::rates).def_rw("frequencies", &LocalPrior::frequencies)
        .def_rw("radii", &LocalPrior::radii);
    nb::class_<LocalEngine, LearnerEngine>(m, "Local")
        .def("__init__", [](LocalEngine* self, const LocalPrior& prior, int d, int p) {
            new (self) LocalEngine(instructions(), prior, d, p);
        }, "prior"_a, "features"_a, "outputs"_a)
        .def("nearest", nearest).def("save", save).def("load", load);
}

}  // namespace onlinegp
