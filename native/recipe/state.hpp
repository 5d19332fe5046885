// The state of a filter between samples: onlinegp.recipes.state.State, in one block of memory.
#pragma once
#include "learner.hpp"
#include "linear_algebra/tiles.hpp"
#include "linear_algebra/triangle.hpp"

namespace onlinegp::ONLINEGP_ISA {

template <class T> struct State {
    static constexpr int PAD = W<T> > 4 ? W<T> : 4;

    const Recipe& recipe;
    int d, p;
    int64_t size = 0, capacity = 0, seen = 0;
    double scale = 1, bound = 0, power = 1, evidence = 1;
    T *tiles = nullptr, *alpha = nullptr, *kcc = nullptr, *dQ = nullptr, *rowsum = nullptr;  // alpha: (p, capacity)
    T* gone = nullptr;  // (m,), the row of L of the last removed center, if dQ is tracked: its contribution to dQ is
                        // still to be subtracted
    bool owed = false;
    int64_t* born = nullptr;
    Factor<T> L;
    Symmetric<T> S;
    Pool* pool = nullptr;  // allocator; null means the heap

    State(const Recipe& recipe, int d, int p) : recipe(recipe), d(d), p(p) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { release(block); }

    // While this filter works, prefetch what `next` will need: its matrices tile by tile, together with those of this
    // filter, and everything else immediately. Null for no prefetch.
    void fetch_meanwhile(const State* next) {
        const bool alike = next && next->capacity == capacity;
        L.next = alike ? next->L.s : nullptr;
        S.next = alike ? next->S.s : nullptr;
        if (!alike) return;
        fetch(next->block.p, next->vectors);
        if (L.s) fetch(next->L.side, next->size);
        if (S.s) fetch(next->S.side, next->size);
    }

    T* weights(int o) { return alpha + o * capacity; }
    const T* weights(int o) const { return alpha + o * capacity; }

    bool full() const { return recipe.pruning.budget && size == recipe.pruning.budget; }
    int64_t oldest() const {
        int64_t first = 0, least = born[0];
        for (int64_t i = 1; i < size; i++) {
            const bool older = born[i] < least;
            first = older ? i : first;
            least = older ? born[i] : least;
        }
        return first;
    }

    // Grow to this number of rows by doubling. From half of the budget on, grow to the budget plus one sample, so that
    // a fleet whose models grow at the same time wastes little memory.
    void reserve(int64_t rows) {
        if (rows <= capacity) return;
        int64_t wanted = 2 * capacity > rows ? 2 * capacity : rows;
        if (recipe.pruning.budget && 2 * wanted > recipe.pruning.budget)
            wanted = rows > recipe.pruning.budget + 1 ? rows : recipe.pruning.budget + 1;
        if (wanted < 16) wanted = recipe.pruning.budget && recipe.pruning.budget < 15 ? recipe.pruning.budget + 1 : 16;
        wanted = (wanted + PAD - 1) / PAD * PAD;

        Carver count;
        State(recipe, d, p).carve(count, wanted);
        const Block fresh = take(count.used());  // if this fails, nothing has changed
        const Layout old{tiles, alpha, kcc, dQ, rowsum, born, L, S};
        const int64_t before = capacity;
        Carver carver(fresh.p);
        carve(carver, wanted);
        if (before) move(old, before, wanted);
        release(block);
        block = fresh;
        capacity = wanted;
    }
    // Make x the last center, with weight zero
    void push(const T* x, double kxx) {
        reserve(size + 1);
        set_center(tiles, d, size, x);
        kcc[size] = T(kxx);
        born[size] = seen;
        for (int o = 0; o < p; o++) weights(o)[size] = 0;
        size++;
    }

    // Move the last center to slot j of a removed center, and return j. Only for beliefs that keep no matrix.
    int64_t move_last_to(int64_t j, T* x) {
        const int64_t last = size - 1;
        get_center(tiles, d, last, x);
        set_center(tiles, d, j, x);
        kcc[j] = kcc[last];
        born[j] = born[last];
        if (rowsum) {
            rowsum[j] = rowsum[last];
            rowsum[last] = 0;
        }
        for (int o = 0; o < p; o++) {
            weights(o)[j] = weights(o)[last];
            weights(o)[last] = 0;
        }
        size = last;
        return j;
    }

    // Move the centers after the removed center j up by one. Weights and matrices are rotated instead.
    void close_gap(int64_t j) {
        const int64_t last = size - 1, rest = last - j;
        remove_center(tiles, d, j, size);
        std::memmove(kcc + j, kcc + j + 1, rest * sizeof(T)),
            std::memmove(born + j, born + j + 1, rest * sizeof(int64_t));
        kcc[last] = 0;
        if (dQ) {
            std::memmove(dQ + j, dQ + j + 1, rest * sizeof(T));
            dQ[last] = 0;
        }
        size = last;
    }

    // Copy to and from plain arrays: full rows, and the lower triangles of matrices row by row, no padding. Nothing may
    // be pending. Arrays that are null are skipped, and are zero here.

    void load(const Arrays& in) {
        reserve(in.size > 0 ? in.size : 1);
        std::memset(block.p, 0, block.bytes);
        S.pending = owed = false;
        Buffer<T> x(d);
        for (int64_t i = 0; i < in.size; i++) {
            for (int j = 0; j < d; j++) x[j] = T(in.centers[i * d + j]);
            set_center(tiles, d, i, x.data());
            for (int o = 0; o < p; o++) weights(o)[i] = T(in.alpha[i * p + o]);
            born[i] = in.born[i];
        }
        size = in.size;
        seen = in.seen;
        scale = in.scale;
        bound = in.bound;
        power = in.power;
        evidence = in.evidence;
        load_vector(kcc, in.kcc);
        load_vector(dQ, in.dQ);
        load_vector(rowsum, in.rowsum);
        if (in.L) load_matrix(L, in.L);
        if (in.S) load_matrix(S, in.S);
        for (int64_t i = 0; in.L && i < size; i++) L.side[i] = 1 / L.at(i, i);
    }
    void save(Arrays& out) const {
        Buffer<T> x(d);
        for (int64_t i = 0; i < size; i++) {
            get_center(tiles, d, i, x.data());
            for (int j = 0; j < d; j++) out.centers[i * d + j] = double(x[j]);
            for (int o = 0; o < p; o++) out.alpha[i * p + o] = double(weights(o)[i]);
            out.born[i] = born[i];
        }
        out.size = size, out.seen = seen, out.scale = scale, out.bound = bound, out.power = power,
        out.evidence = evidence;
        save_vector(kcc, out.kcc);
        save_vector(dQ, out.dQ);
        save_vector(rowsum, out.rowsum);
        if (out.L) save_matrix(L, out.L);
        if (out.S) save_matrix(S, out.S);
    }

  private:
    struct Layout {
        T *tiles, *alpha, *kcc, *dQ, *rowsum;
        int64_t* born;
        Factor<T> L;
        Symmetric<T> S;
    };
    struct Block {
        char* p = nullptr;
        size_t bytes = 0;
    };
    Block block;
    size_t vectors = 0;  // bytes of the block before the matrices

    Block take(size_t bytes) { return {pool ? pool->take(bytes) : static_cast<char*>(allocate(bytes)), bytes}; }
    void release(Block& old) {
        if (old.p && pool)
            pool->give(old.p, old.bytes);
        else
            std::free(old.p);
        old = {};
    }
    void carve(Carver& from, int64_t rows) {
        tiles = from.take<T>(rows * d);
        alpha = from.take<T>(rows * p);
        kcc = from.take<T>(rows);
        born = from.take<int64_t>(rows);
        dQ = recipe.tracks("dQ") ? from.take<T>(rows) : nullptr,
        gone = recipe.tracks("dQ") ? from.take<T>(rows) : nullptr;
        rowsum = recipe.tracks("rowsum") ? from.take<T>(rows) : nullptr;
        vectors = from.used();
        if (recipe.tracks("L")) L.carve(from, rows);
        if (recipe.tracks("S")) S.carve(from, rows);
    }
    void move(const Layout& old, int64_t rows, int64_t wanted) {
        std::memcpy(tiles, old.tiles, rows * d * sizeof(T));
        std::memcpy(kcc, old.kcc, rows * sizeof(T));
        std::memcpy(born, old.born, rows * sizeof(int64_t));
        if (dQ) std::memcpy(dQ, old.dQ, rows * sizeof(T));
        if (rowsum) std::memcpy(rowsum, old.rowsum, rows * sizeof(T));
        for (int o = 0; o < p; o++) std::memcpy(alpha + o * wanted, old.alpha + o * rows, rows * sizeof(T));
        if (L.s) L.copy(old.L);
        if (S.s) S.copy(old.S);
    }
    void load_vector(T* to, const double* from) {
        for (int64_t i = 0; from && i < size; i++) to[i] = T(from[i]);
    }
    void save_vector(const T* from, double* to) const {
        for (int64_t i = 0; to && i < size; i++) to[i] = double(from[i]);
    }
    template <class Matrix> void load_matrix(Matrix& to, const double* lower) {
        for (int64_t i = 0; i < size; i++)
            for (int64_t j = 0; j <= i; j++) to.at(i, j) = T(*lower++);
    }
    template <class Matrix> void save_matrix(const Matrix& from, double* lower) const {
        for (int64_t i = 0; i < size; i++)
            for (int64_t j = 0; j <= i; j++) *lower++ = double(from.at(i, j));
    }
};

}  // namespace onlinegp::ONLINEGP_ISA
