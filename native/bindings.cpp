// The Python module.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <cstdlib>
#include "engine.hpp"
#include "sample.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace onlinegp;

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<nb::numpy, double>;
using Integers = nb::ndarray<nb::numpy, int64_t>;

template <class T> static nb::ndarray<nb::numpy, T> fresh(const std::vector<size_t>& shape) {
    size_t n = 1;
    for (size_t k : shape) n *= k;
    T* data = new T[n ? n : 1]();
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), owner);
}

static const InstructionSet& instructions() {
    static const InstructionSet* set = choose(std::getenv("ONLINEGP_ISA"));
    if (!set) throw std::runtime_error("ONLINEGP_ISA names no instruction set of this build; unset it.");
    return *set;
}

// Works on a model alone, without the interpreter's lock
struct Alone {
    nb::gil_scoped_release release;
    std::lock_guard<std::mutex> guard;
    template <class E> explicit Alone(E& engine) : guard(engine.lock) {}
};

template <class E> static void check_width(const E& engine, const Matrix& X) {
    if (int64_t(X.shape(1)) != engine.d) throw nb::value_error("X has another number of columns than the model.");
}
template <class E> static void check_rows(const E& engine, const Matrix& X, const Matrix& Y) {
    check_width(engine, X);
    if (X.shape(0) != Y.shape(0) || int64_t(Y.shape(1)) != engine.p)
        throw nb::value_error("Y must have a row for each of X, and a column for each output.");
}

// Plain numbers are learned at once; anything unusual is left to Python, which knows what to say of it
static bool learn_one(Engine& engine, nb::handle x, nb::handle y) {
    const Sample sample(x.ptr(), engine.d), target(y.ptr(), engine.p, engine.p == 1);
    if (!sample.data() || !target.data()) return false;
    std::unique_lock<std::mutex> guard(engine.lock, std::try_to_lock);
    if (!guard) return false;
    engine.model().learn(1, sample.data(), target.data(), {});
    return true;
}

static nb::object predict_one(Engine& engine, nb::handle x) {
    if (engine.p != 1) return nb::none();
    const Sample sample(x.ptr(), engine.d);
    if (!sample.data()) return nb::none();
    std::unique_lock<std::mutex> guard(engine.lock, std::try_to_lock);
    if (!guard) return nb::none();
    double mean, variance;
    engine.model().predict_next(sample.data(), &mean, &variance);
    return nb::make_tuple(mean, variance);
}

static void learn(Engine& engine, Matrix X, Matrix Y) {
    check_rows(engine, X, Y);
    Alone alone(engine);
    engine.model().learn(int64_t(X.shape(0)), X.data(), Y.data(), {});
}

static nb::object run(Engine& engine, Matrix X, Matrix Y, bool decisions) {
    check_rows(engine, X, Y);
    const size_t n = X.shape(0), wanted = decisions ? n : 0;
    Doubles mean = fresh<double>({n, size_t(engine.p)}), variance = fresh<double>({n});
    Integers size = fresh<int64_t>({n}), slot = fresh<int64_t>({wanted}), admitted = fresh<int64_t>({wanted}),
             left = fresh<int64_t>({wanted});
    Steps steps{mean.data(), variance.data(), size.data(), nullptr, nullptr, nullptr};
    if (decisions) steps.slot = slot.data(), steps.admitted = admitted.data(), steps.left = left.data();
    {
        Alone alone(engine);
        engine.model().learn(int64_t(n), X.data(), Y.data(), steps);
    }
    if (decisions) return nb::make_tuple(mean, variance, size, slot, admitted, left);
    return nb::make_tuple(mean, variance, size);
}

static nb::object predict(Engine& engine, Matrix X, int threads) {
    check_width(engine, X);
    const size_t n = X.shape(0);
    Doubles mean = fresh<double>({n, size_t(engine.p)}), variance = fresh<double>({n});
    {
        Alone alone(engine);
        engine.predict(int64_t(n), X.data(), mean.data(), variance.data(), threads < 1 ? 1 : threads);
    }
    return nb::make_tuple(mean, variance);
}

static Doubles rows(Engine& engine, Matrix X) {
    check_width(engine, X);
    Doubles K = fresh<double>({X.shape(0), size_t(engine.model().size())});
    Alone alone(engine);
    engine.model().rows(int64_t(X.shape(0)), X.data(), K.data());
    return K;
}

// The shape of a state's array of this kind
template <class E> static std::vector<size_t> shape_of(const E& engine, std::string_view kind, size_t m) {
    if (kind == "points") return {m, size_t(engine.d)};
    if (kind == "outputs") return {m, size_t(engine.p)};
    if (kind == "triangular" || kind == "symmetric") return {m, m};
    return {m};
}

// What `write` fills in, as a dictionary
template <class E, class Write> static nb::dict save(E& engine, int64_t size, const Write& write) {
    nb::dict out;
    Arrays arrays;
    arrays.each([&](const char* name, const char* kind, auto& field) {
        if constexpr (std::is_pointer_v<std::remove_reference_t<decltype(field)>>) {
            if (!engine.recipe().tracks(name)) return;
            auto array = fresh<std::remove_pointer_t<std::remove_reference_t<decltype(field)>>>(shape_of(engine, kind, size_t(size)));
            field = array.data(), out[name] = array;
        }
    });
    write(arrays);
    arrays.each([&](const char* name, const char*, auto& field) {
        if constexpr (!std::is_pointer_v<std::remove_reference_t<decltype(field)>>) out[name] = field;
    });
    return out;
}

// Give `read` what a dictionary holds
template <class E, class Read> static void load(E& engine, nb::dict in, const Read& read) {
    Arrays arrays;
    const size_t m = nb::cast<size_t>(in["size"]);
    std::vector<nb::object> held;
    arrays.each([&](const char* name, const char* kind, auto& field) {
        using Field = std::remove_reference_t<decltype(field)>;
        if constexpr (!std::is_pointer_v<Field>) field = nb::cast<Field>(in[name]);
        else if (engine.recipe().tracks(name)) {
            auto array = nb::cast<nb::ndarray<std::remove_pointer_t<Field>, nb::c_contig, nb::device::cpu>>(in[name]);
            const std::vector<size_t> shape = shape_of(engine, kind, m);
            bool same = array.ndim() == shape.size();
            for (size_t i = 0; same && i < shape.size(); i++) same = array.shape(i) == shape[i];
            if (!same) throw nb::value_error((std::string(name) + " of the state has the wrong shape.").c_str());
            field = array.data(), held.push_back(in[name]);
        }
    });
    read(arrays);
}

// The names and kinds of a state's fields
static nb::dict state_fields() {
    nb::dict out;
    Arrays().each([&](const char* name, const char* kind, auto&) { out[name] = kind; });
    return out;
}

// The centers and their weights alone
static nb::tuple weights(Engine& engine) {
    std::lock_guard<std::mutex> guard(engine.lock);
    const size_t m = size_t(engine.model().size());
    Doubles centers = fresh<double>({m, size_t(engine.d)}), alpha = fresh<double>({m, size_t(engine.p)});
    engine.model().weights(centers.data(), alpha.data());
    return nb::make_tuple(centers, alpha);
}
static nb::dict save_one(Engine& engine) {
    std::lock_guard<std::mutex> guard(engine.lock);
    return save(engine, engine.model().size(), [&](Arrays& arrays) { engine.model().save(arrays); });
}
static void load_one(Engine& engine, nb::dict in) {
    std::lock_guard<std::mutex> guard(engine.lock);
    load(engine, in, [&](const Arrays& arrays) { engine.model().load(arrays); });
}

// Fleets

using Indices = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static void check_index(FleetEngine& fleet, int64_t i) {
    if (i < 0 || i >= fleet.models().count()) throw nb::index_error("no such model in the fleet.");
}
static nb::dict save_member(FleetEngine& fleet, int64_t i) {
    std::lock_guard<std::mutex> guard(fleet.lock);
    check_index(fleet, i);
    return save(fleet, fleet.models().size(i), [&](Arrays& arrays) { fleet.models().save(i, arrays); });
}
static void load_member(FleetEngine& fleet, int64_t i, nb::dict in) {
    std::lock_guard<std::mutex> guard(fleet.lock);
    check_index(fleet, i);
    load(fleet, in, [&](const Arrays& arrays) { fleet.models().load(i, arrays); });
}

// The numbers of keys: of small whole ones in a table, of the others in a dictionary; None if one of them has none
static nb::object numbers(nb::dict index, Indices table, nb::handle keys) {
    nb::object listed = nb::steal(PySequence_Fast(keys.ptr(), "keys must be a sequence, such as a list."));
    if (!listed.is_valid()) throw nb::python_error();
    const size_t n = size_t(PySequence_Fast_GET_SIZE(listed.ptr()));
    Integers who = fresh<int64_t>({n});
    for (size_t i = 0; i < n; i++) {
        PyObject* key = PySequence_Fast_GET_ITEM(listed.ptr(), Py_ssize_t(i));
        int64_t number = -1;
        if (PyLong_CheckExact(key)) {
            int overflow;
            const int64_t small = PyLong_AsLongLongAndOverflow(key, &overflow);
            if (0 <= small && small < int64_t(table.shape(0))) number = table.data()[small];
        }
        if (number < 0) {
            PyObject* known = PyDict_GetItemWithError(index.ptr(), key);
            if (!known && PyErr_Occurred()) throw nb::python_error();
            if (!known) return nb::none();
            number = PyLong_AsLongLong(known);
        }
        who.data()[i] = number;
    }
    return nb::cast(who);
}

static void check_events(FleetEngine& fleet, const Indices& who, const Matrix& X) {
    check_width(fleet, X);
    if (who.shape(0) != X.shape(0)) throw nb::value_error("there must be one model for each row of X.");
    for (size_t i = 0; i < who.shape(0); i++) check_index(fleet, who.data()[i]);
}
static void learn_events(FleetEngine& fleet, Indices who, Matrix X, Matrix Y, int threads) {
    check_events(fleet, who, X), check_rows(fleet, X, Y);
    Alone alone(fleet);
    fleet.work(int64_t(X.shape(0)), who.data(), X.data(), Y.data(), nullptr, nullptr, threads < 1 ? 1 : threads);
}
static nb::object predict_each(FleetEngine& fleet, const Indices& who, const Matrix& X, const double* Y, int threads) {
    Doubles mean = fresh<double>({X.shape(0), size_t(fleet.p)}), variance = fresh<double>({X.shape(0)});
    {
        Alone alone(fleet);
        fleet.work(int64_t(X.shape(0)), who.data(), X.data(), Y, mean.data(), variance.data(), threads < 1 ? 1 : threads);
    }
    return nb::make_tuple(mean, variance);
}
static nb::object run_events(FleetEngine& fleet, Indices who, Matrix X, Matrix Y, int threads) {
    check_events(fleet, who, X), check_rows(fleet, X, Y);
    return predict_each(fleet, who, X, Y.data(), threads);
}
static nb::object predict_events(FleetEngine& fleet, Indices who, Matrix X, int threads) {
    check_events(fleet, who, X);
    return predict_each(fleet, who, X, nullptr, threads);
}

static Doubles exp2_minus(nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu> x) {
    Doubles y = fresh<double>({x.shape(0)});
    instructions().exp2_minus(int64_t(x.shape(0)), x.data(), y.data());
    return y;
}

template <class E> static void enumerate(nb::module_& m, const char* name, std::initializer_list<std::pair<const char*, E>> values) {
    nb::enum_<E> e(m, name);
    for (auto& [word, value] : values) e.value(word, value);
}

static void bind_recipe(nb::module_& m) {
    enumerate<Belief>(m, "Belief", {{"Prior", Belief::Prior}, {"Beta", Belief::Beta}, {"Isotropic", Belief::Isotropic},
        {"Posterior", Belief::Posterior}, {"Exact", Belief::Exact}, {"LeastSquares", Belief::LeastSquares}});
    enumerate<Dictionary>(m, "Dictionary", {{"Growing", Dictionary::Growing}, {"Quantized", Dictionary::Quantized},
        {"Coherence", Dictionary::Coherence}, {"ALD", Dictionary::ALD}, {"Novelty", Dictionary::Novelty},
        {"Surprise", Dictionary::Surprise}});
    enumerate<Forgetting>(m, "Forgetting", {{"Keep", Forgetting::Keep}, {"Leak", Forgetting::Leak},
        {"BackToPrior", Forgetting::BackToPrior}, {"UncertaintyInjection", Forgetting::UncertaintyInjection}});
    enumerate<Pruning>(m, "Pruning", {{"None", Pruning::None}, {"Oldest", Pruning::Oldest},
        {"LeastWeight", Pruning::LeastWeight}, {"LeastError", Pruning::LeastError}});
    enumerate<Op>(m, "Op", {{"RBF", Op::RBF}, {"Matern12", Op::Matern12}, {"Matern32", Op::Matern32},
        {"Matern52", Op::Matern52}, {"RationalQuadratic", Op::RationalQuadratic}, {"Periodic", Op::Periodic},
        {"Linear", Op::Linear}, {"Polynomial", Op::Polynomial}, {"Constant", Op::Constant}, {"Add", Op::Add},
        {"Multiply", Op::Multiply}, {"Scale", Op::Scale}});
    nb::class_<BeliefPart>(m, "BeliefPart")
        .def_rw("kind", &BeliefPart::kind).def_rw("step", &BeliefPart::step).def_rw("beta", &BeliefPart::beta)
        .def_rw("automatic", &BeliefPart::automatic).def_rw("noise", &BeliefPart::noise)
        .def_rw("epsilon", &BeliefPart::epsilon).def_rw("jitter", &BeliefPart::jitter);
    nb::class_<DictionaryPart>(m, "DictionaryPart")
        .def_rw("kind", &DictionaryPart::kind).def_rw("radius", &DictionaryPart::radius)
        .def_rw("threshold", &DictionaryPart::threshold).def_rw("error", &DictionaryPart::error)
        .def_rw("redundant", &DictionaryPart::redundant).def_rw("abnormal", &DictionaryPart::abnormal);
    nb::class_<ForgettingPart>(m, "ForgettingPart")
        .def_rw("kind", &ForgettingPart::kind).def_rw("rate", &ForgettingPart::rate)
        .def_rw("factor", &ForgettingPart::factor);
    nb::class_<PruningPart>(m, "PruningPart")
        .def_rw("kind", &PruningPart::kind).def_rw("budget", &PruningPart::budget);
    nb::class_<Recipe>(m, "Recipe")
        .def(nb::init<>())
        .def_rw("belief", &Recipe::belief).def_rw("dictionary", &Recipe::dictionary)
        .def_rw("forgetting", &Recipe::forgetting).def_rw("pruning", &Recipe::pruning)
        .def_rw("learn_power", &Recipe::learn_power)
        .def("add", [](Recipe& recipe, Op op, const std::vector<double>& values, bool each, double a, double b, double c) {
            Program& program = recipe.kernel;
            program.code.push_back({op, each, int64_t(program.values.size()), a, b, c});
            program.values.insert(program.values.end(), values.begin(), values.end());
        }, "op"_a, "values"_a = std::vector<double>{}, "each"_a = false, "a"_a = 0.0, "b"_a = 0.0, "c"_a = 0.0);
}

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);  // models that live until the interpreter ends are no leak
    bind_recipe(m);
    nb::class_<Engine>(m, "Engine")
        .def("__init__", [](Engine* self, const Recipe& recipe, int d, int p, bool single) {
            new (self) Engine(instructions(), recipe, d, p, single);
        }, "recipe"_a, "features"_a, "outputs"_a, "single"_a)
        .def_prop_ro("size", [](Engine& engine) { return engine.model().size(); })
        .def_prop_ro("seen", [](Engine& engine) { return engine.model().seen(); })
        .def("learn", learn).def("run", run, "X"_a, "Y"_a, "decisions"_a = false)
        .def("predict", predict, "X"_a, "threads"_a).def("rows", rows)
        .def("learn_one", learn_one, nb::arg().none(), nb::arg().none()).def("predict_one", predict_one, nb::arg().none())
        .def("weights", weights).def("save", save_one).def("load", load_one);
    nb::class_<FleetEngine>(m, "Fleet")
        .def("__init__", [](FleetEngine* self, const Recipe& recipe, int d, int p, bool single) {
            new (self) FleetEngine(instructions(), recipe, d, p, single);
        }, "recipe"_a, "features"_a, "outputs"_a, "single"_a)
        .def("__len__", [](FleetEngine& fleet) { return fleet.models().count(); })
        .def("grow", [](FleetEngine& fleet, int64_t count) {
            std::lock_guard<std::mutex> guard(fleet.lock);
            fleet.models().grow(count);
        })
        .def("learn", learn_events).def("run", run_events).def("predict", predict_events)
        .def("save", save_member).def("load", load_member);
    m.def("exp2_minus", exp2_minus).def("numbers", numbers);
    m.attr("instruction_set") = instructions().name;
    m.attr("compiler") = ONLINEGP_COMPILER;
    m.attr("DEEPEST") = DEEPEST;
    m.attr("STATE") = state_fields();
}
