// The Python module: the exact GP on the nearest rows, and the GP on current residuals.
#include <nanobind/stl/vector.h>
#include "arrays.hpp"

using namespace nanobind::literals;

namespace onlinegp {

// The numbers of the neighbors of each row of X, the nearest first
template <class E> static Integers nearest(E& engine, Matrix X) {
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

// Beside the rows: alpha, r (n, p), power, evidence, R (d + 1, d + 1) and z (d + 1, p)
static nb::tuple save_residual(ResidualEngine& engine) {
    const Held held(engine.lock, Use::Read);
    const size_t n = size_t(engine.learner().size()), d = size_t(engine.d), p = size_t(engine.p);
    Doubles X = fresh<double>({n, d}), Y = fresh<double>({n, p}), alpha = fresh<double>({n, p}), r = fresh<double>({n, p});
    Doubles R = fresh<double>({d + 1, d + 1}), z = fresh<double>({d + 1, p});
    engine.model().save(X.data(), Y.data());
    ResidualArrays arrays{alpha.data(), r.data(), R.data(), z.data()};
    engine.model().save_weights(arrays);
    return nb::make_tuple(X, Y, engine.learner().seen(), alpha, r, arrays.power, arrays.evidence, R, z);
}

using Writable = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

static void load_residual(ResidualEngine& engine, Matrix X, Matrix Y, int64_t seen, Writable alpha, Writable r, double power,
                          double evidence, Writable R, Writable z) {
    check_rows(engine, X, Y);
    const auto has_shape = [](const Writable& array, size_t rows, size_t columns) {
        return array.shape(0) == rows && array.shape(1) == columns;
    };
    const size_t m = size_t(engine.d) + 1, p = size_t(engine.p);
    if (!has_shape(alpha, X.shape(0), p) || !has_shape(r, X.shape(0), p) || !has_shape(R, m, m) || !has_shape(z, m, p))
        throw nb::value_error("alpha and r must have the shape of Y; R (d + 1, d + 1) and z (d + 1, outputs).");
    const Held held(engine.lock, Use::Change);
    engine.model().load(int64_t(X.shape(0)), seen, X.data(), Y.data());
    engine.model().load_weights({alpha.data(), r.data(), R.data(), z.data(), power, evidence});
}

// Room for both means and both variances
struct Both {
    Both(const ResidualEngine& engine, size_t n)
        : mean(fresh<double>({n, size_t(engine.p)})), variance(fresh<double>({n})),
          local_mean(fresh<double>({n, size_t(engine.p)})), local_variance(fresh<double>({n})) {
        steps.mean = mean.data(), steps.variance = variance.data();
        steps.local_mean = local_mean.data(), steps.local_variance = local_variance.data();
    }
    Doubles mean, variance, local_mean, local_variance;
    Steps steps;
};

static nb::tuple run_both(ResidualEngine& engine, Matrix X, Matrix Y) {
    check_rows(engine, X, Y);
    Both both(engine, X.shape(0));
    Integers size = fresh<int64_t>({X.shape(0)});
    both.steps.size = size.data();
    learn_rows(engine, X, Y, both.steps);
    return nb::make_tuple(both.mean, both.variance, both.local_mean, both.local_variance, size);
}

// Of one row, (1, d), that may be learned next
static nb::tuple predict_next_both(ResidualEngine& engine, Matrix x) {
    check_width(engine, x);
    if (x.shape(0) != 1) throw nb::value_error("x must be one row.");
    Both both(engine, 1);
    const Held held(engine.lock, Use::Change);
    engine.model().predict_next_both(x.data(), both.mean.data(), both.variance.data(), both.local_mean.data(),
                                     both.local_variance.data());
    return nb::make_tuple(both.mean, both.variance, both.local_mean, both.local_variance);
}

static nb::tuple predict_both(ResidualEngine& engine, Matrix X, int threads) {
    check_width(engine, X);
    Both both(engine, X.shape(0));
    const Held held(engine.lock, Use::Read);
    Signals signals;
    {
        nb::gil_scoped_release release;
        const auto interrupted = [&] { return signals.came(); };
        engine.in_parts(int64_t(X.shape(0)), threads < 1 ? 1 : threads, interrupted, [&](int64_t begin, int64_t end, Stop& stop) {
            Steps part;
            part.mean = both.mean.data() + begin * engine.p;
            part.variance = both.variance.data() + begin;
            part.local_mean = both.local_mean.data() + begin * engine.p;
            part.local_variance = both.local_variance.data() + begin;
            engine.model().predict_both(end - begin, X.data() + begin * engine.d, part, stop);
        });
    }
    signals.raise();
    return nb::make_tuple(both.mean, both.variance, both.local_mean, both.local_variance);
}

void bind_local(nb::module_& m) {
    nb::class_<LocalPrior>(m, "LocalPrior")
        .def(nb::init<>())
        .def_rw("recipe", &LocalPrior::recipe).def_rw("noise", &LocalPrior::noise).def_rw("fade", &LocalPrior::fade)
        .def_rw("neighbors", &LocalPrior::neighbors).def_rw("store", &LocalPrior::store)
        .def_rw("rates", &LocalPrior::rates).def_rw("frequencies", &LocalPrior::frequencies)
        .def_rw("radii", &LocalPrior::radii).def_rw("refits", &LocalPrior::refits)
        .def_rw("learn_power", &LocalPrior::learn_power).def_rw("linear", &LocalPrior::linear)
        .def_rw("forgetting", &LocalPrior::forgetting).def_rw("renewal", &LocalPrior::renewal);
    nb::class_<LocalEngine, LearnerEngine>(m, "Local")
        .def("__init__", [](LocalEngine* self, const LocalPrior& prior, int d, int p) {
            new (self) LocalEngine(instructions(), prior, d, p);
        }, "prior"_a, "features"_a, "outputs"_a)
        .def("nearest", nearest<LocalEngine>).def("save", save).def("load", load);
    nb::class_<ResidualEngine, LearnerEngine>(m, "Residual")
        .def("__init__", [](ResidualEngine* self, const LocalPrior& prior, int d, int p) {
            new (self) ResidualEngine(instructions(), prior, d, p);
        }, "prior"_a, "features"_a, "outputs"_a)
        .def("nearest", nearest<ResidualEngine>).def("save", save_residual).def("load", load_residual)
        .def("run_both", run_both).def("predict_both", predict_both).def("predict_next_both", predict_next_both);
}

}  // namespace onlinegp
