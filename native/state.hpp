// What a filter carries from one sample to the next: onlinegp.recipes.state.State, in one block of memory.
#pragma once
#include "api.hpp"
#include "symmetric.hpp"
#include "tiles.hpp"

namespace onlinegp::ONLINEGP_ISA {

template <class T> struct State {
    static constexpr int PAD = W<T> > 4 ? W<T> : 4;

    const Recipe& recipe;
    int d, p;
    int64_t size = 0, capacity = 0, seen = 0;
    double scale = 1, bound = 0, residual = 0, power = 1, evidence = 1;
    T *tiles = nullptr, *alpha = nullptr, *kcc = nullptr, *rowsum = nullptr;  // alpha: (p, capacity)
    int64_t* born = nullptr;
    T* probe = nullptr;  // the row `probed` of K, which the next sample checks (gram.hpp)
    int64_t probed = -1;
    Symmetric<T> A, Q, P;
    Symmetric<T> K;  // apart, and only once it is needed (gram.hpp)
    Pool* pool = nullptr;  // where memory comes from; null: the heap

    State(const Recipe& recipe, int d, int p) : recipe(recipe), d(d), p(p) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { release(block), release(gram); }

    // While this filter is at work, bring into the cache what `next` will need: its matrices tile by tile, on the way
    // through those of this one, and the rest at once. Null: nothing.
    void fetch_meanwhile(const State* next) {
        const bool alike = next && next->capacity == capacity;
        A.next = alike ? next->A.s : nullptr, Q.next = alike ? next->Q.s : nullptr;
        if (!alike) return;
        fetch(next->tiles, next->size * d), fetch(next->alpha, next->size);
        if (probe) fetch(next->probe, next->size);
    }

    T* weights(int o) { return alpha + o * capacity; }
    const T* weights(int o) const { return alpha + o * capacity; }

    // Make room for this many rows by doubling; from half of the budget on, for all of it and the sample to come, so
    // that a fleet which grows together leaves little behind
    void reserve(int64_t rows) {
        if (rows <= capacity) return;
        int64_t wanted = 2 * capacity > rows ? 2 * capacity : rows;
        if (recipe.budget && 2 * wanted > recipe.budget) wanted = rows > recipe.budget + 1 ? rows : recipe.budget + 1;
        if (wanted < 16) wanted = recipe.budget && recipe.budget < 15 ? recipe.budget + 1 : 16;
        wanted = (wanted + PAD - 1) / PAD * PAD;

        Carver count;
        State(recipe, d, p).carve(count, wanted);
        const Block fresh = take(count.used());  // where there is none, nothing has changed
        const Layout old{tiles, alpha, kcc, rowsum, probe, born, A, Q, P};
        const int64_t before = capacity;
        Carver carver(fresh.p);
        carve(carver, wanted);
        if (before) move(old, before, wanted);
        release(block), release_gram();
        block = fresh, capacity = wanted;
    }
    void reserve_gram() {
        gram = take(Symmetric<T>::entries(int(capacity)) * sizeof(T));
        K.s = reinterpret_cast<T*>(gram.p);
    }
    void release_gram() {
        release(gram);
        K.s = nullptr;
    }

    // Make x the last center, with weight zero
    void push(const T* x, double kxx) {
        reserve(size + 1);
        put(size, x, kxx);
        for (int o = 0; o < p; o++) weights(o)[size] = 0;
        size++;
    }
    void put(int64_t slot, const T* x, double kxx) {
        set_center(tiles, d, slot, x);
        kcc[slot] = T(kxx), born[slot] = seen;
    }

    // Let the last center take the slot j of one that has left; only for beliefs that track no matrix
    void move_last_to(int64_t j, T* x) {
        const int64_t last = size - 1;
        get_center(tiles, d, last, x);
        set_center(tiles, d, j, x);
        kcc[j] = kcc[last], born[j] = born[last];
        if (rowsum) rowsum[j] = rowsum[last], rowsum[last] = 0;
        for (int o = 0; o < p; o++) weights(o)[j] = weights(o)[last], weights(o)[last] = 0;
        size = last;
    }

    // Exchange with the outside: rows and columns in full, no padding

    void load_from(const Arrays& in) {
        reserve(in.size > 0 ? in.size : 1);
        release_gram();
        Buffer<T> x(d);
        for (int64_t i = 0; i < in.size; i++) {
            for (int j = 0; j < d; j++) x[j] = T(in.centers[i * d + j]);
            set_center(tiles, d, i, x.data());
            for (int o = 0; o < p; o++) weights(o)[i] = T(in.alpha[i * p + o]);
            kcc[i] = T(in.kcc[i]), born[i] = in.born[i];
            if (rowsum) rowsum[i] = T(in.rowsum[i]);
        }
        size = in.size, seen = in.seen, scale = in.scale, bound = in.bound;
        residual = in.residual, power = in.power, evidence = in.evidence;
        const double* sources[] = {in.A, in.Q, in.P};
        Symmetric<T>* matrices[] = {&A, &Q, &P};
        for (int i = 0; i < 3; i++)
            if (matrices[i]->s) load_matrix(*matrices[i], sources[i]);
    }
    void save_weights(double* to_centers, double* to_alpha) const {
        Buffer<T> x(d);
        for (int64_t i = 0; i < size; i++) {
            get_center(tiles, d, i, x.data());
            for (int j = 0; j < d; j++) to_centers[i * d + j] = double(x[j]);
            for (int o = 0; o < p; o++) to_alpha[i * p + o] = double(weights(o)[i]);
        }
    }
    void save_to(Arrays& out) const {  // all but K
        save_weights(out.centers, out.alpha);
        for (int64_t i = 0; i < size; i++) {
            out.kcc[i] = double(kcc[i]), out.born[i] = born[i];
            if (rowsum) out.rowsum[i] = double(rowsum[i]);
        }
        out.size = size, out.seen = seen, out.scale = scale, out.bound = bound;
        out.residual = residual, out.power = power, out.evidence = evidence;
        double* targets[] = {out.A, out.Q, out.P};
        const Symmetric<T>* matrices[] = {&A, &Q, &P};
        for (int i = 0; i < 3; i++)
            if (matrices[i]->s) save_matrix(*matrices[i], targets[i]);
    }

  private:
    struct Layout {
        T *tiles, *alpha, *kcc, *rowsum, *probe;
        int64_t* born;
        Symmetric<T> A, Q, P;
    };
    struct Block {
        char* p = nullptr;
        size_t bytes = 0;
    };
    Block block, gram;

    Block take(size_t bytes) { return {pool ? pool->take(bytes) : static_cast<char*>(allocate(bytes)), bytes}; }
    void release(Block& old) {
        if (old.p && pool) pool->give(old.p, old.bytes);
        else std::free(old.p);
        old = {};
    }
    void carve(Carver& from, int64_t rows) {
        tiles = from.take<T>(rows * d), alpha = from.take<T>(rows * p), kcc = from.take<T>(rows);
        born = from.take<int64_t>(rows);
        rowsum = recipe.sums_rows() ? from.take<T>(rows) : nullptr;
        probe = recipe.has('K') ? from.take<T>(rows) : nullptr;
        if (recipe.has('A')) A.carve(from, int(rows), recipe.has('Q'));
        if (recipe.has('Q')) Q.carve(from, int(rows));
        if (recipe.has('P')) P.carve(from, int(rows));
    }
    void move(const Layout& old, int64_t rows, int64_t wanted) {
        std::memcpy(tiles, old.tiles, rows * d * sizeof(T));
        std::memcpy(kcc, old.kcc, rows * sizeof(T));
        std::memcpy(born, old.born, rows * sizeof(int64_t));
        if (rowsum) std::memcpy(rowsum, old.rowsum, rows * sizeof(T));
        if (probe) std::memcpy(probe, old.probe, rows * sizeof(T));
        for (int o = 0; o < p; o++) std::memcpy(alpha + o * wanted, old.alpha + o * rows, rows * sizeof(T));
        if (A.s) A.copy(old.A, int(rows));
        if (Q.s) Q.copy(old.Q, int(rows));
        if (P.s) P.copy(old.P, int(rows));
    }
    void load_matrix(Symmetric<T>& S, const double* full) {
        Buffer<T> row(capacity);
        for (int64_t i = 0; i < size; i++) {
            for (int64_t j = 0; j < size; j++) row[j] = T(full[i > j ? i * size + j : j * size + i]);
            S.set_row(int(i), int(size), row.data());
        }
    }
    void save_matrix(const Symmetric<T>& S, double* full) const {
        Buffer<T> row(capacity);
        for (int64_t i = 0; i < size; i++) {
            S.get_row(int(i), int(size), row.data());
            for (int64_t j = 0; j < size; j++) full[i * size + j] = double(row[j]);
        }
    }
};

}  // namespace onlinegp::ONLINEGP_ISA
