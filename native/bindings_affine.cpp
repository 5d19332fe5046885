// The Python module: affine projections and Gaussians in L2 space, on arrays of Python's own.
#include "centers_of.hpp"

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

// Learn the rows of X and Y. There is room for as many centers more, and for the window. Returns the new count of errors.
static double affine_run(const AffineRule& rule, CentersOf& f, CentersOf& points, CentersOf* chosen, nb::dict arrays,
                         int64_t count, double errors, double fade, Matrix X, Matrix Y, Table mean, Table std, Places size) {
    const Rows rows{X, Y, mean, std, size};
    rows.check(), check_width(f, X), check_width(points, X);
    const Named named{arrays};
    const int64_t n = int64_t(X.shape(0)), p = int64_t(Y.shape(1)), capacity = named.width("numbers"), room = named.width("K");
    const int64_t grown = f->size() + n, slots = room * rule.selected;
    const bool coherent = rule.kind == AffineRule::KAP || rule.kind == AffineRule::PHYPASS;
    need(rule.window >= 1 && count >= 0 && room >= (count + n < rule.window ? count + n : rule.window) &&
             points->size() == (count < rule.window ? count : rule.window), "the window has another size than its arrays.");
    need(capacity >= (rule.budget && rule.budget < grown ? rule.budget : grown), "there is no room for more centers.");
    need(coherent || f->size() == (rule.budget && rule.budget < count ? rule.budget : count), "there is a center for each row.");
    AffineArrays a{*f.centers, *points.centers, nullptr, f.d, p, capacity, room, count,
                   named.get("numbers", (p + coherent) * capacity), named.get("K", room * room), named.get("Y", room * p),
                   named.get("F", room * p), nullptr, nullptr, nullptr, named.get("squares", 3 * p), nullptr, nullptr, nullptr,
                   nullptr, errors, fade};
    if (coherent) a.H = named.get("H", room * capacity);
    if (rule.kind == AffineRule::KAP) a.G = named.get("G", room * room);
    if (rule.kind == AffineRule::KAPSM) a.norms = named.get("norms", p);
    if (rule.kind == AffineRule::PHYPASS) {
        need(chosen && chosen->d == f.d && rule.selected >= 1 && (*chosen)->size() == slots, "chosen");
        a.chosen = chosen->centers.get(), a.places = named.places("places", slots), a.along = named.get("a", slots);
        a.length = named.get("d", room), a.KC = named.get("C", slots * slots);
        for (int64_t i = 0; i < slots; i++) need(-1 <= a.places[i] && a.places[i] < f->size(), "places");
    }
    return instructions().affine_run(rule, a, n, X.data(), Y.data(), mean.data(), std.data(), size.data());
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
    m.def("affine_run", affine_run, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("gaussians_run", gaussians_run, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
}

}  // namespace onlinegp
