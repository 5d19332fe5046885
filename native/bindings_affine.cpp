// The Python module: affine projections, on arrays of Python's own.
#include "centers_of.hpp"

using namespace nanobind::literals;

namespace onlinegp {

using Table = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Whole = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static void need(bool fits, const char* what) {
    if (!fits) throw nb::value_error(what);
}

// Learn the rows of X and Y; mean and std (n, p), size (n,). There is room for as many centers more, and for the window.
static double affine_run(const AffineRule& rule, CentersOf& f, CentersOf& points, Table numbers, Table K, Table Yw, Table F,
                         Table H, Table G, Vector norms, Vector squares, double errors, double fade, int64_t count, Matrix X,
                         Matrix Y, Table mean, Table std, Whole size) {
    const int64_t n = int64_t(X.shape(0)), p = int64_t(Y.shape(1)), room = int64_t(K.shape(0));
    const int64_t capacity = int64_t(numbers.shape(1));
    const bool kap = rule.kind == AffineRule::KAP;
    check_width(f, X), check_width(points, X);
    need(rule.window >= 1 && count >= 0 && room >= (count + n < rule.window ? count + n : rule.window) &&
             points->size() == (count < rule.window ? count : rule.window) && int64_t(K.shape(1)) == room,
         "the window has another size than its arrays.");
    need(int64_t(Yw.shape(0)) == room && int64_t(F.shape(0)) == room && int64_t(Yw.shape(1)) == p && int64_t(F.shape(1)) == p &&
             int64_t(norms.shape(0)) == p && int64_t(squares.shape(0)) == p,
         "Y, F, norms or squares has the wrong shape.");
    const int64_t grown = f->size() + n;
    need(int64_t(numbers.shape(0)) == p + kap && capacity >= (rule.budget && rule.budget < grown ? rule.budget : grown),
         "there is no room for more centers.");
    need(kap || f->size() == (rule.budget && rule.budget < count ? rule.budget : count), "there is a center for each row.");
    need(!kap || (int64_t(H.shape(0)) == room && int64_t(H.shape(1)) == capacity && int64_t(G.shape(0)) == room &&
                  int64_t(G.shape(1)) == room),
         "H or G has the wrong shape.");
    need(Y.shape(0) == X.shape(0) && mean.size() == Y.size() && std.size() == Y.size() && size.shape(0) == X.shape(0),
         "Y, mean, std and size must have a row for each of X.");
    const AffineArrays arrays{*f.centers, *points.centers, f.d, p, capacity, room, count, numbers.data(), K.data(), Yw.data(),
                              F.data(), H.data(), G.data(), norms.data(), squares.data(), errors, fade};
    return instructions().affine_run(rule, arrays, n, X.data(), Y.data(), mean.data(), std.data(), size.data());
}

void bind_affine(nb::module_& m) {
    nb::class_<AffineRule>(m, "AffineRule")
        .def("__init__", [](AffineRule* self, int64_t kind, int64_t loss, int64_t window, int64_t budget, double step, double keep,
                            double epsilon, double coherence, double bend, double radius) {
            new (self) AffineRule{AffineRule::Kind(kind), AffineRule::Loss(loss), window, budget, step, keep, epsilon,
                                  coherence, bend, radius};
        }, nb::kw_only(), "kind"_a, "loss"_a = 0, "window"_a, "budget"_a = 0, "step"_a, "keep"_a = 1.0, "epsilon"_a = 0.0,
           "coherence"_a = 1.0, "bend"_a = 1.0, "radius"_a = 0.0);
    m.def("affine_run", affine_run, nb::arg("rule"), nb::arg("f"), nb::arg("points"), nb::arg("numbers").noconvert(),
          nb::arg("K").noconvert(), nb::arg("Yw").noconvert(), nb::arg("F").noconvert(), nb::arg("H").noconvert(),
          nb::arg("G").noconvert(), nb::arg("norms").noconvert(), nb::arg("squares").noconvert(), nb::arg("errors"),
          nb::arg("fade"), nb::arg("count"), nb::arg("X"), nb::arg("Y"), nb::arg("mean").noconvert(),
          nb::arg("std").noconvert(), nb::arg("size").noconvert());
}

}  // namespace onlinegp
