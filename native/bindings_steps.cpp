// The Python module: the least mean squares algorithms that are no recipe.
#include "arrays.hpp"

using namespace nanobind::literals;

namespace onlinegp {

static size_t rows_of(const StepEngine& engine) {
    return engine.rule().kernels.size() * size_t(engine.p) + size_t(engine.rule().numbers());
}

using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static size_t errors_of(const StepEngine& engine) { return 3 * size_t(engine.p) + 1; }

static nb::tuple save(StepEngine& engine) {
    const Held held(engine.lock, Use::Read);
    const size_t m = size_t(engine.learner().size());
    Doubles centers = fresh<double>({m, size_t(engine.d)}), values = fresh<double>({rows_of(engine), m}),
            gates = fresh<double>({engine.rule().kernels.size(), size_t(engine.p)}), errors = fresh<double>({errors_of(engine)});
    engine.model().save(centers.data(), values.data(), gates.data(), errors.data());
    return nb::make_tuple(centers, values, gates, errors);
}

static void load(StepEngine& engine, Matrix centers, Matrix values, Matrix gates, Numbers errors, int64_t seen) {
    check_width(engine, centers);
    const size_t m = centers.shape(0);
    if (values.shape(0) != rows_of(engine) || values.shape(1) != m || gates.shape(0) != engine.rule().kernels.size() ||
        gates.shape(1) != size_t(engine.p) || errors.size() != errors_of(engine))
        throw nb::value_error("values, gates or errors has the wrong shape.");
    const Held held(engine.lock, Use::Change);
    engine.model().load(int64_t(m), seen, centers.data(), values.data(), gates.data(), errors.data());
}

void bind_steps(nb::module_& m) {
    nb::enum_<StepKind>(m, "StepKind")
        .value("Normalized", StepKind::Normalized).value("Penalized", StepKind::Penalized)
        .value("AdaptivelyPenalized", StepKind::AdaptivelyPenalized)
        .value("Significant", StepKind::Significant).value("Mixed", StepKind::Mixed);
    nb::class_<StepRule>(m, "StepRule")
        .def(nb::init<>())
        .def_rw("kind", &StepRule::kind).def_rw("step", &StepRule::step).def_rw("coherence", &StepRule::coherence)
        .def_rw("epsilon", &StepRule::epsilon).def_rw("penalty", &StepRule::penalty).def_rw("radius", &StepRule::radius)
        .def_rw("forgetting", &StepRule::forgetting).def_rw("mixing_step", &StepRule::mixing_step)
        .def_rw("budget", &StepRule::budget)
        .def("add", [](StepRule& rule, const Recipe& kernel) { rule.kernels.push_back(kernel); });
    nb::class_<StepEngine, LearnerEngine>(m, "StepFilter")
        .def("__init__", [](StepEngine* self, const StepRule& rule, int d, int p) {
            new (self) StepEngine(instructions(), rule, d, p);
        }, "rule"_a, "features"_a, "outputs"_a)
        .def("save", save).def("load", load);
}

}  // namespace onlinegp
