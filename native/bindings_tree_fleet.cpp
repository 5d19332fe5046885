// The part of the Python module for fleets of trees.
#include "make.hpp"
#include "predicted_rows.hpp"

using namespace nanobind::literals;

namespace onlinegp {

using Row = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Trees by number, with the objects that keep them alive, and the number of rows that each had learned before
struct Trees {
    Trees(int d, int p) : fleet(d, p) {}
    TreeFleet fleet;
    struct Place {
        nb::object tree, plan;
        int64_t before = 0;
    };
    std::vector<Place> places;
    // The plan of new trees, with their own leaves, and the contents before the first row
    Plan plan;
    Snapshot fresh;
};

static bool put_tree(Trees& trees, int64_t i, nb::object tree, nb::object plan, int64_t before) {
    const Held held(trees.fleet.lock, Use::Change);
    if (i < 0) throw nb::index_error("no such model in the fleet.");
    if (i >= trees.fleet.count()) {
        trees.places.resize(size_t(i + 1));
        trees.fleet.grow(i + 1);
    }
    const bool there = trees.fleet.put(i, tree.is_none() ? nullptr : &nb::cast<TreeEngine&>(tree));
    Trees::Place gone =
        std::exchange(trees.places[size_t(i)], there ? Trees::Place{tree, plan, before} : Trees::Place{});
    return there;
}

static void set_new(Trees& trees, nb::handle plan, Row fresh) {
    const Held held(trees.fleet.lock, Use::Change);
    trees.plan = plan_of(plan);
    trees.fresh = Snapshot(Vector(fresh.data(), fresh.data() + fresh.size()));
}

static bool start_tree(Trees& trees, int64_t i) {
    auto tree = std::make_unique<TreeEngine>(make(trees.plan));
    trees.fresh.load(tree->root());
    return put_tree(trees, i, nb::cast(tree.release(), nb::rv_policy::take_ownership), nb::none(), 0);
}

static nb::object tree_of(Trees& trees, int64_t i) {
    const bool there = 0 <= i && i < int64_t(trees.places.size()) && trees.places[size_t(i)].tree.is_valid();
    return there ? trees.places[size_t(i)].tree : nb::none();
}

static void check_events(Trees& trees, const Indices& who, const Matrix& X) {
    check_width(trees.fleet, X);
    if (who.shape(0) != X.shape(0)) throw nb::value_error("there must be one model for each row of X.");
    for (size_t i = 0; i < who.shape(0); i++)
        if (who.data()[i] < 0 || who.data()[i] >= trees.fleet.count() || !trees.fleet[who.data()[i]])
            throw nb::index_error("no such tree in the fleet.");
}

// The number of rows that each of these trees has learned; -1 for trees that do not exist
static Integers seen(Trees& trees, Indices who) {
    Integers out = fresh<int64_t>({who.shape(0)});
    for (size_t i = 0; i < who.shape(0); i++) {
        const int64_t member = who.data()[i];
        TreeEngine* tree = 0 <= member && member < trees.fleet.count() ? trees.fleet[member] : nullptr;
        out.data()[i] = tree ? trees.places[size_t(member)].before + tree->rows() : -1;
    }
    return out;
}

// After a signal or a lack of memory, each event is learned by its whole tree or not at all: see `learned_events`
static void work(Trees& trees, const Indices& who, const Matrix& X, const double* Y, const Output& out, int threads) {
    Signals signals;
    bool memory = true;
    {
        nb::gil_scoped_release release;
        try {
            trees.fleet.work(int64_t(X.shape(0)), who.data(), X.data(), Y, out, threads < 1 ? 1 : threads,
                             [&] { return signals.came(); });
        } catch (const std::bad_alloc&) {
            memory = false;
            trees.fleet.spare();  // frees memory for the exception
        }
    }
    signals.raise();
    if (memory) return;
    PyErr_SetString(PyExc_MemoryError, "there is no memory for more. Use a budget, or fewer models.");
    throw nb::python_error();
}

static void learn_events(Trees& trees, Indices who, Matrix X, Matrix Y, int threads) {
    const Held held(trees.fleet.lock, Use::Change);
    check_events(trees, who, X);
    check_rows(trees.fleet, X, Y);
    if (who.shape(0)) work(trees, who, X, Y.data(), {}, threads);
}

static nb::tuple run_events(Trees& trees, Indices who, Matrix X, Matrix Y, int threads) {
    const Held held(trees.fleet.lock, Use::Change);
    check_events(trees, who, X);
    check_rows(trees.fleet, X, Y);
    if (!trees.fleet.like()) throw nb::index_error("there are no trees.");
    PredictedRows rows(*trees.fleet.like(), X.shape(0), true);
    if (who.shape(0)) work(trees, who, X, Y.data(), rows.output(), threads);
    return nb::make_tuple(rows.weights, rows.means, rows.scales, rows.stretch, rows.sizes);
}

static nb::tuple predict_events(Trees& trees, Indices who, Matrix X, int threads) {
    const Held held(trees.fleet.lock, Use::Change);
    check_events(trees, who, X);
    if (!trees.fleet.like()) throw nb::index_error("there are no trees.");
    PredictedRows rows(*trees.fleet.like(), X.shape(0), false);
    if (who.shape(0)) work(trees, who, X, nullptr, rows.output(), threads);
    return nb::make_tuple(rows.weights, rows.means, rows.scales, rows.stretch);
}

void bind_tree_fleet(nb::module_& m) {
    nb::class_<Trees>(m, "Trees")
        .def(nb::init<int, int>(), "features"_a, "outputs"_a)
        .def("set_new", set_new, "plan"_a, "fresh"_a)
        .def("start", start_tree, "member"_a)
        .def("tree", tree_of, "member"_a)
        .def("put", put_tree, "member"_a, "tree"_a.none(), "plan"_a.none(), "before"_a)
        .def("seen", seen, "which"_a)
        .def("learn", learn_events, "which"_a, "X"_a, "Y"_a, "threads"_a)
        .def("run", run_events, "which"_a, "X"_a, "Y"_a, "threads"_a)
        .def("predict", predict_events, "which"_a, "X"_a, "threads"_a)
        .def("forget", [](Trees& trees) { forget_events(trees.fleet); })
        .def("learned", [](Trees& trees, size_t n) { return learned_events(trees.fleet, n); }, "events"_a);
}

}  // namespace onlinegp
