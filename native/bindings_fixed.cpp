// The Python module: models of fixed memory, and their arrays by name.
#include "arrays.hpp"

using namespace nanobind::literals;

namespace onlinegp {

using Constants = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

static size_t columns_of(const Kept& array) { return size_t(array.columns ? array.columns : 1); }

// Copies of the arrays, and how many rows were learned
static nb::tuple save(FixedEngine& engine) {
    const Held held(engine.lock, Use::Read);
    nb::dict out;
    for (const Kept& array : engine.model().arrays) {
        const size_t rows = size_t(array.rows);
        Doubles copy = array.columns ? fresh<double>({rows, columns_of(array)}) : fresh<double>({rows});
        std::copy(array.values.begin(), array.values.end(), copy.data());
        out[array.name] = copy;
    }
    return nb::make_tuple(out, engine.learner().seen());
}

static bool fits(const Kept& array, const Constants& values) {
    if (values.ndim() != (array.columns ? 2 : 1) || int64_t(values.shape(0)) != array.rows) return false;
    return !array.columns || int64_t(values.shape(1)) == array.columns;
}

// Take over arrays, unless rows were learned since there were `expected`, if that is given; returns whether it did
static bool load(FixedEngine& engine, nb::dict in, int64_t seen, int64_t expected) {
    std::vector<Constants> values;
    for (const Kept& array : engine.model().arrays) {
        values.push_back(nb::cast<Constants>(in[array.name]));
        if (!fits(array, values.back())) throw nb::value_error("an array of the state has the wrong shape.");
    }
    const Held held(engine.lock, Use::Change);
    if (expected >= 0 && engine.learner().seen() != expected) return false;
    for (size_t i = 0; i < values.size(); i++)
        std::copy(values[i].data(), values[i].data() + values[i].size(), engine.model().arrays[i].values.begin());
    engine.model().start_from(seen);
    return true;
}

void bind_fixed(nb::module_& m) {
    nb::enum_<FixedKind>(m, "FixedKind")
        .value("Isotropic", FixedKind::Isotropic).value("Kalman", FixedKind::Kalman)
        .value("Information", FixedKind::Information).value("Cosines", FixedKind::Cosines)
        .value("Features", FixedKind::Features).value("Last", FixedKind::Last);
    nb::class_<FixedRule>(m, "FixedRule")
        .def(nb::init<>())
        .def_rw("kind", &FixedRule::kind).def_rw("intercept", &FixedRule::intercept).def_rw("floor", &FixedRule::floor)
        .def_rw("slope", &FixedRule::slope).def_rw("share", &FixedRule::share).def_rw("keep", &FixedRule::keep)
        .def_rw("drift", &FixedRule::drift).def_rw("noise", &FixedRule::noise)
        .def_rw("forgetting", &FixedRule::forgetting).def_rw("gain", &FixedRule::gain)
        .def_rw("variance", &FixedRule::variance).def_rw("functions", &FixedRule::functions)
        .def("set_table", [](FixedRule& rule, Constants table) { rule.table.assign(table.data(), table.data() + table.size()); });
    nb::class_<FixedEngine, LearnerEngine>(m, "FixedFilter")
        .def("__init__", [](FixedEngine* self, const FixedRule& rule, int d, int p) {
            if (!rule.fits(d, p)) throw nb::value_error("the table of the rule, or the number of outputs, does not fit.");
            new (self) FixedEngine(instructions(), rule, d, p);
        }, "rule"_a, "features"_a, "outputs"_a)
        .def("save", save).def("load", load, "arrays"_a, "seen"_a, "expected"_a = -1);
}

}  // namespace onlinegp
