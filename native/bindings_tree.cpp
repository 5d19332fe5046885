// The part of the Python module for trees of learners, which are created from plans.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include "make.hpp"
#include "predicted_rows.hpp"
#include "sample.hpp"

using namespace nanobind::literals;

namespace onlinegp {

using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

static SharedLeaf shared_leaf(nb::handle core) {
    if (core.is_none()) return {};
    TreeEngine& tree = nb::cast<TreeEngine&>(core);
    if (!tree.leaf()) throw nb::value_error("only a leaf can be in two trees.");
    return {&tree.leaf()->learner(), &tree.lock()};
}

Plan plan_of(nb::handle from) {
    Plan plan;
    plan.kind = nb::cast<std::string>(from.attr("kind"));
    plan.features = nb::cast<int>(from.attr("learner").attr("features"));
    plan.outputs = nb::cast<int>(from.attr("learner").attr("outputs"));
    for (auto [name, values] : nb::cast<nb::dict>(from.attr("constants"))) {
        const Numbers numbers = nb::cast<Numbers>(values);
        plan.constants[nb::cast<std::string>(name)] = Vector(numbers.data(), numbers.data() + numbers.size());
    }
    for (auto [name, one] : nb::cast<nb::dict>(from.attr("inside")))
        plan.inside.emplace_back(nb::cast<std::string>(name), plan_of(one));
    for (nb::handle program : nb::cast<nb::list>(from.attr("programs"))) plan.kernels.push_back(program_of(program));
    if (nb::handle recipe = from.attr("recipe"); !recipe.is_none())
        plan.recipe = std::make_shared<const Recipe>(recipe_of(recipe));
    plan.shared = shared_leaf(from.attr("core"));
    return plan;
}

// Locks a tree and its leaves for a long call
class HeldTree {
  public:
    HeldTree(TreeEngine& tree, Use use) {
        for (Lock* lock : tree.locks()) held_.push_back(std::make_unique<Held>(*lock, use));
    }

  private:
    std::vector<std::unique_ptr<Held>> held_;
};

// Locks them for a short call, if all locks are free
class QuickTree {
  public:
    explicit QuickTree(TreeEngine& tree) : locks_(tree.locks()) {
        while (held_ < locks_.size() && locks_[held_]->try_lock()) held_++;
    }
    QuickTree(const QuickTree&) = delete;
    QuickTree& operator=(const QuickTree&) = delete;
    ~QuickTree() {
        while (held_ > 0) locks_[--held_]->unlock();
    }
    bool free() const { return held_ == locks_.size(); }

  private:
    const std::vector<Lock*>& locks_;
    size_t held_ = 0;
};

enum class Outcome { OK, CHECK, DUE, UNSUPPORTED };  // onlinegp.learner.Outcome

static int learn_one(TreeEngine& tree, nb::handle x, nb::handle y) {
    const Sample sample(x.ptr(), tree.d), target(y.ptr(), tree.p, tree.p == 1);
    if (tree.resting || !sample.data() || !target.data() || !tree.at_once()) return int(Outcome::UNSUPPORTED);
    const QuickTree quick(tree);
    if (!quick.free()) return int(Outcome::UNSUPPORTED);
    if (tree.due()) return int(Outcome::DUE);
    return int(tree.learn_one(sample.data(), target.data()) ? Outcome::OK : Outcome::CHECK);
}

static nb::object predict_one(TreeEngine& tree, nb::handle x) {
    const Sample sample(x.ptr(), tree.d);
    if (tree.p != 1 || !sample.data() || !tree.at_once()) return nb::none();
    const QuickTree quick(tree);
    if (!quick.free() || tree.due()) return nb::none();
    const Moments moments = tree.predict_one(sample.data());
    return nb::make_tuple(moments.mean, moments.std);
}

// The same with the ends of the interval. `quantiles`: (2, K), of components with scale one, at both ends.
static nb::object interval_one(TreeEngine& tree, nb::handle x, double level, Numbers quantiles) {
    const Sample sample(x.ptr(), tree.d);
    const int64_t K = tree.root().kinds.count();
    if (tree.p != 1 || !sample.data() || !tree.at_once() || int64_t(quantiles.size()) != 2 * K) return nb::none();
    const QuickTree quick(tree);
    if (!quick.free() || tree.due()) return nb::none();
    const Moments moments = tree.predict_one(sample.data());
    const double low = tree.quantile_one(sample.data(), 0.5 * (1 - level), quantiles.data());
    const double high = tree.quantile_one(sample.data(), 0.5 * (1 + level), quantiles.data() + K);
    return nb::make_tuple(moments.mean, moments.std, low, std::max(low, high));  // rounding may exchange them
}

// Work without the lock of the interpreter, until a signal arrives
template <class Work> static void released(TreeEngine& tree, Use use, int64_t rows, const Work& work) {
    const HeldTree held(tree, use);
    const int64_t before = tree.rows();
    Signals signals;
    bool memory = true;
    {
        nb::gil_scoped_release release;
        try {
            work([&] { return signals.came(); });
        } catch (const std::bad_alloc&) {
            memory = false;
        }
    }
    signals.raise();
    if (!memory) raise_no_memory(tree.rows() - before, rows);
}

// The same for a ResidualGP, with the predictions of a LocalGP on its rows
struct BothPredicted : PredictedRows {
    BothPredicted(TreeEngine& tree, size_t n, bool with_sizes)
        : PredictedRows(tree.root(), n, with_sizes),
          local_means(fresh<double>({n, size_t(tree.p)})),
          local_scales(fresh<double>({n, size_t(tree.p)})) {
        if (!tree.leaf() || !dynamic_cast<Residual*>(&tree.leaf()->learner()))
            throw nb::type_error("the model is not a ResidualGP.");
    }
    Output output() {
        Output out = PredictedRows::output();
        out.local_means = local_means.data();
        out.local_scales = local_scales.data();
        return out;
    }
    Doubles local_means, local_scales;
};

static void learn(TreeEngine& tree, Matrix X, Matrix Y) {
    check_rows(tree, X, Y);
    released(tree, Use::Change, int64_t(X.shape(0)),
             [&](const Stopped& stopped) { tree.learn(int64_t(X.shape(0)), X.data(), Y.data(), stopped); });
}

static nb::tuple run(TreeEngine& tree, Matrix X, Matrix Y) {
    check_rows(tree, X, Y);
    PredictedRows rows(tree.root(), X.shape(0), true);
    const Output out = rows.output();
    released(tree, Use::Change, int64_t(X.shape(0)),
             [&](const Stopped& stopped) { tree.run(int64_t(X.shape(0)), X.data(), Y.data(), out, stopped); });
    return nb::make_tuple(rows.weights, rows.means, rows.scales, rows.stretch, rows.sizes);
}

// Predict a single row like `predict_one` if the locks are free, and return whether they were
static bool one_at_once(TreeEngine& tree, const Matrix& X, const Output& out) {
    if (X.shape(0) != 1 || !tree.at_once()) return false;
    const QuickTree quick(tree);
    if (!quick.free()) return false;
    tree.predict_one(X.data(), out);
    return true;
}

static nb::tuple predict(TreeEngine& tree, Matrix X, int threads) {
    check_width(tree, X);
    PredictedRows rows(tree.root(), X.shape(0), false);
    const Output out = rows.output();
    if (!one_at_once(tree, X, out))
        released(tree, Use::Read, int64_t(X.shape(0)), [&](const Stopped& stopped) {
            tree.predict(int64_t(X.shape(0)), X.data(), out, threads < 1 ? 1 : threads, stopped);
        });
    return nb::make_tuple(rows.weights, rows.means, rows.scales, rows.stretch);
}

static nb::tuple run_both(TreeEngine& tree, Matrix X, Matrix Y) {
    check_rows(tree, X, Y);
    BothPredicted rows(tree, X.shape(0), true);
    const Output out = rows.output();
    released(tree, Use::Change, int64_t(X.shape(0)),
             [&](const Stopped& stopped) { tree.run(int64_t(X.shape(0)), X.data(), Y.data(), out, stopped); });
    return nb::make_tuple(rows.means, rows.scales, rows.local_means, rows.local_scales, rows.sizes);
}

static nb::tuple predict_both(TreeEngine& tree, Matrix X, int threads) {
    check_width(tree, X);
    BothPredicted rows(tree, X.shape(0), false);
    const Output out = rows.output();
    released(tree, Use::Read, int64_t(X.shape(0)), [&](const Stopped& stopped) {
        tree.predict(int64_t(X.shape(0)), X.data(), out, threads < 1 ? 1 : threads, stopped);
    });
    return nb::make_tuple(rows.means, rows.scales, rows.local_means, rows.local_scales);
}

// For tests of recipes: the decisions of a filter for each row, in addition to means, variances and sizes
static nb::tuple run_decisions(TreeEngine& tree, Matrix X, Matrix Y) {
    check_rows(tree, X, Y);
    const size_t n = X.shape(0);
    Doubles mean = fresh<double>({n, size_t(tree.p)}), variance = fresh<double>({n});
    Integers size = fresh<int64_t>({n}), slot = fresh<int64_t>({n}), admitted = fresh<int64_t>({n}),
             left = fresh<int64_t>({n});
    if (!tree.leaf() || tree.leaf()->learner().variances() != 1) throw nb::type_error("it is no filter.");
    const HeldTree held(tree, Use::Change);
    Steps steps;
    steps.mean = mean.data();
    steps.variance = variance.data();
    steps.size = size.data();
    steps.slot = slot.data();
    steps.admitted = admitted.data();
    steps.left = left.data();
    Stop never;
    tree.leaf()->learner().learn(int64_t(n), X.data(), Y.data(), steps, never);
    return nb::make_tuple(mean, variance, size, slot, admitted, left);
}

// For tests of kernels: the kernel rows of a filter, (n, size)
static Doubles kernel_rows(TreeEngine& tree, Matrix X) {
    check_width(tree, X);
    const auto* model = tree.leaf() ? dynamic_cast<const Model*>(&tree.leaf()->learner()) : nullptr;
    if (!model) throw nb::type_error("it is no filter.");
    const HeldTree held(tree, Use::Read);
    Doubles K = fresh<double>({X.shape(0), size_t(model->size())});
    model->rows(int64_t(X.shape(0)), X.data(), K.data());
    return K;
}

// The numbers of the stored rows nearest to each row of X, the nearest first. For a leaf that stores rows.
static Integers nearest(TreeEngine& tree, Matrix X) {
    check_width(tree, X);
    const auto* local = tree.leaf() ? dynamic_cast<const Local*>(&tree.leaf()->learner()) : nullptr;
    if (!local) throw nb::type_error("the model stores no rows.");
    const HeldTree held(tree, Use::Read);
    Integers rows = fresh<int64_t>({X.shape(0), size_t(std::min(local->neighbors(), local->size()))});
    nb::gil_scoped_release release;
    local->nearest(int64_t(X.shape(0)), X.data(), rows.data());
    return rows;
}

// Visits the fields by their paths, such as "model.total": copies them to a dictionary, or fills them from one
class Paths : public Visitor {
  public:
    Paths(Purpose purpose, nb::dict contents) : Visitor(purpose), contents_(contents) {}
    void integer(const std::string& name, int64_t& value) override { exchange(name, value); }
    void number(const std::string& name, double& value) override { exchange(name, value); }
    int64_t array(const std::string& name, Vector& values, const Shape& shape) override {
        return exchange(name, values, shape);
    }
    int64_t integers(const std::string& name, std::vector<int64_t>& values, const Shape& shape) override {
        return exchange(name, values, shape);
    }
    void node(const std::string& name, Node& inside) override {
        const std::string outer = path_;
        if (!name.empty()) path_ += name + ".";
        inside.fields(*this);
        path_ = outer;
    }

  private:
    template <class T> void exchange(const std::string& name, T& value) {
        if (saves()) contents_[(path_ + name).c_str()] = value;
        if (loads()) value = nb::cast<T>(contents_[(path_ + name).c_str()]);
    }
    template <class T> int64_t exchange(const std::string& name, std::vector<T>& values, const Shape& shape) {
        const std::string path = path_ + name;
        if (saves()) {
            auto copy = fresh<T>(shape.empty() ? std::vector<size_t>{values.size()}
                                               : std::vector<size_t>(shape.begin(), shape.end()));
            std::copy(values.begin(), values.end(), copy.data());
            contents_[path.c_str()] = copy;
            return int64_t(copy.shape(0));
        }
        const auto array = nb::cast<nb::ndarray<const T, nb::c_contig, nb::device::cpu>>(contents_[path.c_str()]);
        if (std::find(shape.begin(), shape.end(), FREE) != shape.end()) values.resize(array.size());
        if (array.size() != values.size()) throw nb::value_error((path + " has the wrong size.").c_str());
        std::copy(array.data(), array.data() + array.size(), values.begin());
        return int64_t(array.shape(0));
    }
    nb::dict contents_;
    std::string path_;
};

// Return copies of the fields, and the number of rows learned since the creation of the tree
static nb::tuple dump(TreeEngine& tree) {
    const HeldTree held(tree, Use::Read);
    nb::dict out;
    Paths paths(Visitor::Purpose::Save, out);
    tree.fields(paths);
    return nb::make_tuple(out, tree.rows());
}

// Continue from fields. With `expected`, only if no row was learned since then. Return whether fields were loaded.
static bool load(TreeEngine& tree, nb::dict in, int64_t expected) {
    const HeldTree held(tree, Use::Change);
    if (expected >= 0 && tree.rows() != expected) return false;
    Paths paths(Visitor::Purpose::Load, in);
    tree.fields(paths);
    return true;
}

static Doubles snapshot(TreeEngine& tree) {
    const HeldTree held(tree, Use::Read);
    const Snapshot contents(tree.root());
    Doubles out = fresh<double>({contents.numbers().size()});
    std::copy(contents.numbers().begin(), contents.numbers().end(), out.data());
    return out;
}

void bind_tree(nb::module_& m) {
    nb::class_<TreeEngine>(m, "Tree")
        .def(
            "__init__", [](TreeEngine* self, nb::handle plan) { new (self) TreeEngine(make(plan_of(plan))); }, "plan"_a)
        .def_prop_ro("rows", &TreeEngine::rows)
        .def_prop_ro("due", &TreeEngine::due)
        .def_rw("resting", &TreeEngine::resting)
        .def_prop_ro("degrees", [](TreeEngine& tree) { return tree.root().kinds.degrees; })
        .def_prop_ro("size", [](TreeEngine& tree) { return tree.root().size(); })
        .def_prop_ro("seen", [](TreeEngine& tree) { return tree.leaf() ? tree.leaf()->learner().seen() : tree.rows(); })
        .def("learn_one", learn_one, "x"_a.none(), "y"_a.none())
        .def("predict_one", predict_one, "x"_a.none())
        .def("interval_one", interval_one, "x"_a.none(), "level"_a, "quantiles"_a)
        .def("learn", learn, "X"_a, "Y"_a)
        .def("run", run, "X"_a, "Y"_a)
        .def("predict", predict, "X"_a, "threads"_a)
        .def("run_both", run_both, "X"_a, "Y"_a)
        .def("predict_both", predict_both, "X"_a, "threads"_a)
        .def("nearest", nearest, "X"_a)
        .def("run_decisions", run_decisions, "X"_a, "Y"_a)
        .def("kernel_rows", kernel_rows, "X"_a)
        .def("dump", dump)
        .def("snapshot", snapshot)
        .def("load", load, "contents"_a, "expected"_a = -1);
}

}  // namespace onlinegp
