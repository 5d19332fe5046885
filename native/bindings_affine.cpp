// The Python module: affine projections, and Gaussians in L2 space on arrays of Python's own.
#include "affine_learner.hpp"
#include "arrays.hpp"

using namespace nanobind::literals;

namespace onlinegp {

using Table = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<int64_t, nb::c_contig, nb::device::cpu>;

static void need(bool fits, const char* what) {
    if (!fits) throw nb::value_error(what);
}

// Arrays by name. Each must have as many numbers as it should.
struct Named {
    nb::dict arrays;
    double* get(const char* name, int64_t numbers) const { return find<Table>(name, numbers).data(); }
    int64_t* places(const char* name, int64_t numbers) const { return find<Places>(name, numbers).data(); }
    template <class A> A find(const char* name, int64_t numbers) const {
        A found = nb::cast<A>(arrays[name], false);
        need(int64_t(found.size()) == numbers, name);
        return found;
    }
    int64_t width(const char* name) const {
        const Table found = nb::cast<Table>(arrays[name], false);
        need(found.ndim() == 2, name);
        return int64_t(found.shape(1));
    }
};

// The rows of a block, and what is said of them
struct Rows {
    Matrix X, Y;
    Table mean, std;
    Places size;
    void check() const {
        need(Y.shape(0) == X.shape(0) && mean.size() == Y.size() && std.size() == Y.size() && size.size() == X.shape(0),
             "Y, mean, std and size must have a row for each of X.");
    }
};

class AffineEngine : public LearnerEngine {
  public:
    AffineEngine(const AffineRule& rule, const Recipe& kernel, int d, int p)
        : LearnerEngine(d, p, new AffineLearner(instructions(), rule, kernel, d, p)) {}
    AffineLearner& model() { return static_cast<AffineLearner&>(learner()); }
};

// A copy of the first rows and columns of a matrix with rows `stride` apart
template <class T>
static nb::ndarray<nb::numpy, T> copy_of(const std::vector<T>& from, int64_t rows, int64_t columns, int64_t stride) {
    auto out = fresh<T>({size_t(rows), size_t(columns)});
    for (int64_t i = 0; i < rows; i++) std::copy_n(from.begin() + i * stride, columns, out.data() + i * columns);
    return out;
}
static Doubles points_of(const Centers& centers, int64_t count, int64_t d) {
    Doubles out = fresh<double>({size_t(count), size_t(d)});
    for (int64_t j = 0; j < count; j++) centers.get(j, out.data() + j * d);
    return out;
}

// Copies of all that it keeps, by name, without the room for more
static nb::dict save_affine(AffineEngine& engine) {
    const Held held(engine.lock, Use::Read);
    const AffineLearner& model = engine.model();
    const AffineState& s = model.state;
    const int64_t m = model.size(), n = model.rows_of_window(), p = engine.p, d = engine.d, each = model.rule().selected;
    nb::dict out;
    out["count"] = s.count;
    out["errors"] = s.errors;
    out["squares"] = copy_of(s.squares, 3, p, p);
    out["centers"] = points_of(*s.f, m, d);
    out["numbers"] = copy_of(s.numbers, model.rows_of_numbers(), m, s.capacity);
    out["X"] = points_of(*s.points, n, d);
    out["K"] = copy_of(s.K, n, n, s.room);
    out["Y"] = copy_of(s.Y, n, p, p);
    out["F"] = copy_of(s.F, n, p, p);
    out["norms"] = copy_of(s.norms, 1, p, p);
    if (model.coherent()) out["H"] = copy_of(s.H, n, m, s.capacity);
    if (model.rule().kind == AffineRule::KAP) out["G"] = copy_of(s.G, n, n, s.room);
    if (model.rule().kind != AffineRule::PHYPASS) return out;
    out["places"] = copy_of(s.places, n, each, each);
    out["along"] = copy_of(s.along, n, each, each);
    out["length"] = copy_of(s.length, n, 1, 1);
    out["KC"] = copy_of(s.KC, n * each, n * each, s.room * each);
    out["C"] = points_of(*s.chosen, n * each, d);
    return out;
}

// Fill the first rows and columns of a matrix with rows `stride` apart
template <class T> static void fill(std::vector<T>& to, const T* from, int64_t rows, int64_t columns, int64_t stride) {
    for (int64_t i = 0; i < rows; i++) std::copy_n(from + i * columns, columns, to.begin() + i * stride);
}
static void append_all(Centers& centers, const double* points, int64_t count, int64_t d) {
    for (int64_t j = 0; j < count; j++) centers.append(points + j * d);
}

// Take over what `save` gave; the rows of PHYPASS that have chosen centers may be fewer than those of the window
static void load_affine(AffineEngine& engine, nb::dict arrays) {
    const Named named{arrays};
    AffineLearner& own = engine.model();
    const AffineRule& rule = own.rule();
    const int64_t count = nb::cast<int64_t>(arrays["count"]), p = engine.p, d = engine.d, each = rule.selected;
    need(count >= 0, "count");
    const int64_t m = named.width("numbers"), n = count < rule.window ? count : rule.window;
    need(own.coherent() || m == (rule.budget && rule.budget < count ? rule.budget : count), "there is a center for each row.");
    AffineLearner next(instructions(), rule, own.kernel(), int(d), int(p));
    AffineState& s = next.state;
    s.count = count;
    s.errors = nb::cast<double>(arrays["errors"]);
    next.reserve_centers(m);
    next.reserve_window(n);
    append_all(*s.f, named.get("centers", m * d), m, d);
    append_all(*s.points, named.get("X", n * d), n, d);
    fill(s.squares, named.get("squares", 3 * p), 3, p, p);
    fill(s.norms, named.get("norms", p), 1, p, p);
    fill(s.numbers, named.get("numbers", next.rows_of_numbers() * m), next.rows_of_numbers(), m, s.capacity);
    fill(s.K, named.get("K", n * n), n, n, s.room);
    fill(s.Y, named.get("Y", n * p), n, p, p);
    fill(s.F, named.get("F", n * p), n, p, p);
    if (own.coherent()) fill(s.H, named.get("H", n * m), n, m, s.capacity);
    if (rule.kind == AffineRule::KAP) fill(s.G, named.get("G", n * n), n, n, s.room);
    if (rule.kind == AffineRule::PHYPASS) {
        const int64_t slots = named.width("KC"), rows = slots / each;
        need(rows <= n && slots == rows * each, "KC");
        const int64_t* places = named.places("places", slots);
        for (int64_t i = 0; i < slots; i++) need(-1 <= places[i] && places[i] < m, "places");
        fill(s.places, places, rows, each, each);
        fill(s.along, named.get("along", slots), rows, each, each);
        fill(s.length, named.get("length", rows), rows, 1, 1);
        fill(s.KC, named.get("KC", slots * slots), slots, slots, s.room * each);
        const double* C = named.get("C", slots * d);
        for (int64_t j = 0; j < slots; j++) s.chosen->replace(j, C + j * d);
    }
    const Held held(engine.lock, Use::Change);
    std::swap(own.state, s);
    own.reserve(0);  // the scratch of the new size
}

// Learn the rows of X and Y; errors (1,) is their count. Returns how many Gaussians there are.
static int64_t gaussians_run(const GaussiansRule& rule, nb::dict arrays, int64_t many, double fade, Matrix X, Matrix Y, Table mean,
                             Table std, Places size) {
    const Rows rows{X, Y, mean, std, size};
    rows.check();
    const Named named{arrays};
    const int64_t n = int64_t(X.shape(0)), d = int64_t(X.shape(1)), p = int64_t(Y.shape(1)), capacity = named.width("facts");
    const int64_t facts = named.width("columns"), widths = (facts - 3) / 2;
    need(many >= 0 && capacity >= (many + n < rule.most ? many + n : rule.most) && many <= rule.most && rule.selected >= 1,
         "there is no room for more Gaussians.");
    const GaussiansArrays a{d, p, capacity, widths, many, named.get("C", capacity * d), named.get("weights", capacity * p),
                            named.get("variance", capacity), named.get("facts", facts * capacity),
                            named.get("variances", widths), named.get("columns", widths * facts), named.get("squares", 3 * p),
                            named.get("errors", 1), fade};
    return instructions().gaussians_run(rule, a, n, X.data(), Y.data(), mean.data(), std.data(), size.data());
}

void bind_affine(nb::module_& m) {
    nb::class_<AffineRule>(m, "AffineRule")
        .def("__init__", [](AffineRule* self, int64_t kind, int64_t loss, int64_t window, int64_t budget, int64_t selected,
                            double step, double keep, double epsilon, double coherence, double bend, double radius, double width) {
            new (self) AffineRule{AffineRule::Kind(kind), AffineRule::Loss(loss), window, budget, selected, step, keep, epsilon,
                                  coherence, bend, radius, width};
        }, nb::kw_only(), "kind"_a, "loss"_a = 0, "window"_a, "budget"_a = 0, "selected"_a = 1, "step"_a, "keep"_a = 1.0,
           "epsilon"_a = 0.0, "coherence"_a = 1.0, "bend"_a = 1.0, "radius"_a = 0.0, "width"_a = 0.0);
    nb::class_<GaussiansRule>(m, "GaussiansRule")
        .def("__init__", [](GaussiansRule* self, int64_t most, int64_t selected, double step, double coherence, double epsilon,
                            double novelty, double width, double shrinkage) {
            new (self) GaussiansRule{most, selected, step, coherence, epsilon, novelty, width, shrinkage};
        }, nb::kw_only(), "most"_a, "selected"_a, "step"_a, "coherence"_a, "epsilon"_a, "novelty"_a, "width"_a, "shrinkage"_a);
    nb::class_<AffineEngine, LearnerEngine>(m, "AffineFilter")
        .def("__init__", [](AffineEngine* self, const AffineRule& rule, const Recipe& kernel, int d, int p) {
            need(rule.window >= 1 && rule.selected >= 1 && rule.budget >= 0, "window, selected or budget is too small.");
            new (self) AffineEngine(rule, kernel, d, p);
        }, "rule"_a, "kernel"_a, "features"_a, "outputs"_a)
        .def("save", save_affine).def("load", load_affine);
    m.def("gaussians_run", gaussians_run, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
}

}  // namespace onlinegp
