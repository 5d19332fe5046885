// The Python module.
#include <algorithm>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include "arrays.hpp"
#include "sample.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace onlinegp;

void onlinegp::raise_no_memory(int64_t learned, int64_t rows) {
    PyErr_Format(PyExc_MemoryError,
                 "there is no memory for more: %lld of %lld rows were learned, and the model is as they left it. "
                 "Save it, and go on with a budget, a store or a dictionary that admits fewer.",
                 static_cast<long long>(learned), static_cast<long long>(rows));
    throw nb::python_error();
}

// The shape of an array of a state
template <class E> static std::vector<size_t> shape_of(const E& engine, std::string_view kind, size_t m) {
    if (kind == "points") return {m, size_t(engine.d)};
    if (kind == "outputs") return {m, size_t(engine.p)};
    if (kind == "triangular" || kind == "symmetric") return {m * (m + 1) / 2};
    return {m};
}

// Return the fields that `write` fills in, as a dictionary
template <class E, class Write> static nb::dict save(E& engine, int64_t size, const Write& write) {
    nb::dict out;
    Arrays arrays;
    arrays.each([&](const char* name, const char* kind, auto& field) {
        if constexpr (std::is_pointer_v<std::remove_reference_t<decltype(field)>>) {
            if (!engine.recipe().tracks(name)) return;
            auto array = fresh<std::remove_pointer_t<std::remove_reference_t<decltype(field)>>>(
                shape_of(engine, kind, size_t(size)));
            field = array.data();
            out[name] = array;
        }
    });
    {
        nb::gil_scoped_release release;
        write(arrays);
    }
    arrays.each([&](const char* name, const char*, auto& field) {
        if constexpr (!std::is_pointer_v<std::remove_reference_t<decltype(field)>>) out[name] = field;
    });
    return out;
}

// Pass the fields in a dictionary to `read`
template <class E, class Read> static void load(E& engine, nb::dict in, const Read& read) {
    Arrays arrays;
    const size_t m = nb::cast<size_t>(in["size"]);
    std::vector<nb::object> held;
    arrays.each([&](const char* name, const char* kind, auto& field) {
        using Field = std::remove_reference_t<decltype(field)>;
        if constexpr (!std::is_pointer_v<Field>)
            field = nb::cast<Field>(in[name]);
        else if (engine.recipe().tracks(name)) {
            auto array = nb::cast<nb::ndarray<std::remove_pointer_t<Field>, nb::c_contig, nb::device::cpu>>(in[name]);
            const std::vector<size_t> shape = shape_of(engine, kind, m);
            bool same = array.ndim() == shape.size();
            for (size_t i = 0; same && i < shape.size(); i++) same = array.shape(i) == shape[i];
            if (!same) throw nb::value_error((std::string(name) + " of the state has the wrong shape.").c_str());
            field = array.data();
            held.push_back(in[name]);
        }
    });
    read(arrays);
}

// The names and kinds of the fields of a state
static nb::dict state_fields() {
    nb::dict out;
    Arrays().each([&](const char* name, const char* kind, auto&) { out[name] = kind; });
    return out;
}

// Fleets

using Indices = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static nb::dict save_member(FleetEngine& fleet, int64_t i) {
    const Held held(fleet.lock, Use::Read);
    check_index(fleet, i);
    return save(fleet, fleet.models().size(i), [&](Arrays& arrays) { fleet.models().save(i, arrays); });
}
static void load_member(FleetEngine& fleet, int64_t i, nb::dict in) {
    const Held held(fleet.lock, Use::Change);
    check_index(fleet, i);
    load(fleet, in, [&](const Arrays& arrays) { fleet.models().load(i, arrays); });
}

// Return the number of each key, or None if a key is unknown. Small whole keys are in a table, all others in a
// dictionary.
static nb::object numbers(nb::dict index, Indices table, nb::handle keys) {
    nb::object listed = nb::steal(PySequence_Fast(keys.ptr(), "keys must be a sequence, such as a list."));
    if (!listed.is_valid()) throw nb::python_error();
    const size_t n = size_t(PySequence_Fast_GET_SIZE(listed.ptr()));
    Integers who = fresh<int64_t>({n});
    for (size_t i = 0; i < n; i++) {  // comparing a key may run any Python code, even code that changes the list
        if (i >= size_t(PySequence_Fast_GET_SIZE(listed.ptr()))) throw nb::value_error("keys became fewer meanwhile.");
        nb::object held = nb::borrow(PySequence_Fast_GET_ITEM(listed.ptr(), Py_ssize_t(i)));
        PyObject* key = held.ptr();
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

// Predict if there is room for predictions, and learn if Y is given. If a signal or a lack of memory ends the call
// early, each event is either learned completely or not at all: see `learned_events`.
static void work(FleetEngine& fleet, const Indices& who, const Matrix& X, const double* Y, const Steps& steps,
                 int threads) {
    const size_t n = X.shape(0);
    const Held held(fleet.lock, Use::Change);
    Signals signals;
    bool memory = true;
    {
        nb::gil_scoped_release release;
        try {
            fleet.work(int64_t(n), who.data(), X.data(), Y, steps, threads < 1 ? 1 : threads,
                       [&] { return signals.came(); });
        } catch (const std::bad_alloc&) {
            memory = false;
            fleet.spare();  // frees memory for the exception
        }
    }
    if (!memory)
        PyErr_SetString(PyExc_MemoryError, "there is no memory for more centers. Use a budget, or fewer models.");
    if (!memory || signals.raised()) throw nb::python_error();
}
static void learn_events(FleetEngine& fleet, Indices who, Matrix X, Matrix Y, int threads) {
    check_events(fleet, who, X);
    check_rows(fleet, X, Y);
    work(fleet, who, X, Y.data(), {}, threads);
}
static nb::object run_events(FleetEngine& fleet, Indices who, Matrix X, Matrix Y, int threads) {
    check_events(fleet, who, X);
    check_rows(fleet, X, Y);
    const size_t n = X.shape(0);
    Doubles mean = fresh<double>({n, size_t(fleet.p)}), variance = fresh<double>({n});
    Integers size = fresh<int64_t>({n});
    work(fleet, who, X, Y.data(), {mean.data(), variance.data(), size.data(), nullptr, nullptr, nullptr}, threads);
    return nb::make_tuple(mean, variance, size);
}
static nb::object predict_events(FleetEngine& fleet, Indices who, Matrix X, int threads) {
    check_events(fleet, who, X);
    Doubles mean = fresh<double>({X.shape(0), size_t(fleet.p)}), variance = fresh<double>({X.shape(0)});
    work(fleet, who, X, nullptr, {mean.data(), variance.data(), nullptr, nullptr, nullptr, nullptr}, threads);
    return nb::make_tuple(mean, variance);
}

using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
static Doubles each(const Numbers& x, void (*function)(int64_t n, const double* x, double* y)) {
    Doubles y = fresh<double>({x.shape(0)});
    function(int64_t(x.shape(0)), x.data(), y.data());
    return y;
}

// Recipes, from the data of onlinegp.engine.recipe

constexpr const char *BELIEFS[] = {"Prior", "Beta", "Isotropic", "Posterior", "StateSpace", "Exact", "LeastSquares"},
                     *DICTIONARIES[] = {"Growing", "Quantized", "Coherence", "ALD", "Novelty", "Surprise"},
                     *FORGETTINGS[] = {"Keep", "Leak", "BackToPrior", "UncertaintyInjection"},
                     *PRUNINGS[] = {"None", "Oldest", "LeastWeight", "LeastError"};  // in the order of recipe.hpp

template <class E, size_t N> static E kind_of(const std::string& name, const char* const (&names)[N]) {
    const auto found = std::find(std::begin(names), std::end(names), name);
    if (found == std::end(names)) throw nb::value_error(("there is no compiled " + name).c_str());
    return E(found - std::begin(names));
}

template <class Part> using Fields = std::map<std::string, double Part::*>;

// Read a part from its name and its numbers, if the recipe has it. Numbers without a field are passed to `other`.
template <class E, class Part, size_t N, class Other>
static void read_part(const nb::dict& recipe, const char* axis, const char* const (&kinds)[N],
                      const Fields<Part>& fields, Part& part, const Other& other) {
    if (!recipe.contains(axis)) return;
    const auto [name, numbers] = nb::cast<std::pair<std::string, std::map<std::string, double>>>(recipe[axis]);
    part.kind = kind_of<E>(name, kinds);
    for (const auto& [field, value] : numbers) {
        const auto found = fields.find(field);
        if (found == fields.end())
            other(value);
        else
            part.*found->second = value;
    }
}

Program onlinegp::program_of(nb::handle instructions) {
    Program program;
    for (nb::handle one : instructions) {
        const auto [op, values, each, a, b, c] =
            nb::cast<std::tuple<std::string, std::vector<double>, bool, double, double, double>>(one);
        program.code.push_back({kind_of<Op>(op, OP_NAMES), each, int64_t(program.values.size()), a, b, c});
        program.values.insert(program.values.end(), values.begin(), values.end());
    }
    return program;
}

Recipe onlinegp::recipe_of(nb::handle from) {
    using B = BeliefPart;
    using D = DictionaryPart;
    using F = ForgettingPart;
    static const Fields<B> beliefs = {{"step", &B::step},     {"beta", &B::beta},
                                      {"noise", &B::noise},   {"epsilon", &B::epsilon},
                                      {"jitter", &B::jitter}, {"transition", &B::transition},
                                      {"drift", &B::drift},   {"forgetting", &B::forgetting}};
    static const Fields<D> dictionaries = {{"radius", &D::radius},
                                           {"threshold", &D::threshold},
                                           {"error", &D::error},
                                           {"redundant", &D::redundant},
                                           {"abnormal", &D::abnormal}};
    static const Fields<F> forgettings = {{"rate", &F::rate}, {"factor", &F::factor}};
    constexpr double LARGEST_COUNT = 9007199254740992.0;  // 2^53: a double represents all smaller whole numbers
    const nb::dict parts = nb::cast<nb::dict>(from);
    const auto none = [](double) { throw nb::value_error("a part of the recipe has another number than its own."); };
    Recipe recipe;
    read_part<Belief>(parts, "belief", BELIEFS, beliefs, recipe.belief,
                      [&](double value) { recipe.belief.automatic = value != 0; });
    read_part<Dictionary>(parts, "dictionary", DICTIONARIES, dictionaries, recipe.dictionary, none);
    read_part<Forgetting>(parts, "forgetting", FORGETTINGS, forgettings, recipe.forgetting, none);
    read_part<Pruning>(parts, "pruning", PRUNINGS, {}, recipe.pruning,
                       [&](double value) { recipe.pruning.budget = int64_t(std::min(value, LARGEST_COUNT)); });
    recipe.learn_power = nb::cast<bool>(parts["learn_power"]);
    recipe.kernel = program_of(parts["kernel"]);
    return recipe;
}

// The likelihood of a Gaussian process over time, sigma^2, and the gradient for four parameters of each block
static nb::tuple temporal_likelihood(const Matrix& table, const Matrix& X, const Numbers& z, int64_t first,
                                     double robust) {
    if (X.shape(0) != z.size()) throw nb::value_error("z must have a number for each row of X.");
    constexpr size_t FIELDS = 12, PARAMETERS = 4;  // of a block
    if (!table.shape(0) || table.shape(1) != FIELDS) throw nb::value_error("the table of blocks has the wrong shape.");
    const TimedRows rows{int64_t(X.shape(0)), int64_t(X.shape(1)), X.data(), z.data(), first, robust};
    Doubles gradient = fresh<double>({table.shape(0), PARAMETERS});
    double sigma2 = 0, value = 0;
    {
        const nb::gil_scoped_release released;
        value =
            instructions().temporal_likelihood(rows, int64_t(table.shape(0)), table.data(), &sigma2, gradient.data());
    }
    return nb::make_tuple(value, sigma2, gradient);
}

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);  // because models may live until the interpreter ends
    watch_processes();
    const nb::module_ numpy = nb::module_::import_("numpy");
    numpy_array = reinterpret_cast<PyTypeObject*>(nb::object(numpy.attr("ndarray")).release().ptr());  // kept for good
    numpy_float = reinterpret_cast<PyTypeObject*>(nb::object(numpy.attr("float64")).release().ptr());
    nb::class_<FleetEngine> members(m, "Members");
    members
        .def(
            "__init__",
            [](FleetEngine* self, nb::handle recipe, int d, int p, bool single) {
                new (self) FleetEngine(instructions(), recipe_of(recipe), d, p, single);
            },
            "recipe"_a, "features"_a, "outputs"_a, "single"_a)
        .def("__len__", [](FleetEngine& fleet) { return fleet.models().count(); })
        .def("grow",
             [](FleetEngine& fleet, int64_t count) {
                 const Held held(fleet.lock, Use::Change);
                 fleet.models().grow(count);
             })
        .def("learn", learn_events)
        .def("run", run_events)
        .def("predict", predict_events)
        .def("forget", forget_events<FleetEngine>)
        .def("learned", learned_events<FleetEngine>, "events"_a)
        .def("save", save_member)
        .def("load", load_member);
    bind_states(members);
    m.def("exp2_minus", [](Numbers x) { return each(x, instructions().exp2_minus); });
    m.def("sin_pi", [](Numbers x) { return each(x, instructions().sin_pi); }).def("numbers", numbers);
    m.def("temporal_likelihood", temporal_likelihood);
    bind_rows(m);
    bind_alarms(m);
    bind_tree(m);
    bind_tree_fleet(m);
    m.attr("instruction_set") = instructions().name;
    m.attr("compiler") = ONLINEGP_COMPILER;
    m.attr("DEEPEST") = DEEPEST;
    m.attr("STATE") = state_fields();
}
