// Shared code of the Python module: NumPy arrays, checks, and the engines that work on arrays.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <vector>
#include "engine.hpp"
#include "signals.hpp"

namespace onlinegp {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<nb::numpy, double>;
using Integers = nb::ndarray<nb::numpy, int64_t>;

template <class T> nb::ndarray<nb::numpy, T> fresh(const std::vector<size_t>& shape) {
    size_t n = 1;
    for (size_t k : shape) n *= k;
    T* data = new T[n ? n : 1]();
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), owner);
}

template <class E> void check_width(const E& engine, const Matrix& X) {
    if (int64_t(X.shape(1)) != engine.d) throw nb::value_error("X has another number of columns than the model.");
}
template <class E> void check_rows(const E& engine, const Matrix& X, const Matrix& Y) {
    check_width(engine, X);
    if (X.shape(0) != Y.shape(0) || int64_t(Y.shape(1)) != engine.p)
        throw nb::value_error("Y must have a row for each of X, and a column for each output.");
}

// Which of n events the last call of a fleet learned, since `forget_events`
template <class F> nb::ndarray<nb::numpy, bool> learned_events(const F& fleet, size_t n) {
    auto rows = fresh<bool>({n});
    fleet.learned(rows.data(), int64_t(n));
    return rows;
}
// Not in a signal handler, because the call that it interrupts needs them
template <class F> void forget_events(F& fleet) {
    const Held held(fleet.lock, Use::Change);
    fleet.forget();
}

inline void check_index(FleetEngine& fleet, int64_t i) {
    if (i < 0 || i >= fleet.models().count()) throw nb::index_error("no such model in the fleet.");
}

Program program_of(nb::handle instructions);  // from onlinegp.engine.program
Plan plan_of(nb::handle plan);                // from onlinegp.engine.plan; in bindings_tree.cpp
Recipe recipe_of(nb::handle parts);           // from onlinegp.engine.recipe; in bindings.cpp
[[noreturn]] void raise_no_memory(int64_t learned,
                                  int64_t rows);  // number of learned rows, number of rows; in bindings.cpp

void bind_alarms(nb::module_& m);                    // in bindings_alarms.cpp
void bind_states(nb::class_<FleetEngine>& members);  // in bindings_states.cpp
void bind_rows(nb::module_& m);                      // in bindings_rows.cpp
void bind_tree(nb::module_& m);                      // in bindings_tree.cpp
void bind_tree_fleet(nb::module_& m);                // in bindings_tree_fleet.cpp

}  // namespace onlinegp
