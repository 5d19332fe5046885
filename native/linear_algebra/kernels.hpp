// Kernel rows: k(c, x) of one or several points x with tiles of W centers in the layout [tile][d][W].
// A shape evaluates a few pairs of tiles and points at once. Stationary kernels, with or without a variance, have their
// own shapes. Other kernels run as postfix programs. `visit` chooses the shape once per row.
#pragma once
#include "linear_algebra/memory.hpp"
#include "recipe/recipe.hpp"
#include "linear_algebra/simd.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr double LOG2E = 1.4426950408889634, FARTHEST = 1e300;

// A leaf of the kernel, with its values in the type of the filter.
template <class T> struct Leaf {
    Op op;
    bool each;
    const T* rates;        // (d,)
    const T* frequencies;  // (d,), Periodic
    T rate2;               // rate^2 where all rates are equal
    double a, b, c;
};

template <class T> struct Kernel {
    // Relative differences of k that exceed rounding errors (at most 4 d eps |log LEAST|, for d up to WIDEST)
    static constexpr double CLOSE = sizeof(T) == 8 ? 1e-6 : 1e-2, LEAST = sizeof(T) == 8 ? 1e-100 : 1e-4;
    static constexpr int WIDEST = 1000;

    int d = 0, length = 0;
    bool constant_diagonal = true;  // k(x, x) is equal everywhere
    double everywhere = 0;          // its value
    Buffer<Leaf<T>> code;
    Buffer<T> values;

    double inside = INFINITY;  // a center with a larger k is within the recipe's radius

    // From the recipe of a filter
    Kernel(const Recipe& recipe, int d) : Kernel(recipe.kernel, d) {
        if (tells_distance()) inside = at_distance(*this, T(recipe.dictionary.radius)) * (1.0 + CLOSE);
    }
    Kernel(const Program& program, int d) : d(d), length(int(program.code.size())) {
        code.resize(length);
        values.resize(program.values.size());
        for (size_t i = 0; i < program.values.size(); i++) values[i] = T(program.values[i]);
        for (int i = 0; i < length; i++) {
            const Instruction& in = program.code[i];
            const T* start = values.data() + in.start;
            const T rate = in.op <= Op::RationalQuadratic ? start[0] : T(0);
            code[i] = {in.op, in.each, start, start + d, rate * rate, in.a, in.b, in.c};
            if (in.op == Op::Linear || in.op == Op::Polynomial) constant_diagonal = false;
        }
        if (constant_diagonal) everywhere = diagonal_of(*this, static_cast<const T*>(nullptr));
    }
    bool tells_distance() const {
        return stationary_leaf() && !code[0].each && d <= WIDEST;
    }  // whether k decreases with the distance
    bool scaled() const { return length == 2 && code[1].op == Op::Scale; }
    bool stationary_leaf() const { return (length == 1 || scaled()) && code[0].op <= Op::Matern52; }
};

// All pairs of a few tiles and a few points, tile by tile
template <class T, int Tiles, int Points> struct Pairs {
    static constexpr int N = Tiles * Points;
    const T* tiles;
    const T* x;
    int d;
    INLINE const T* tile(int n) const { return tiles + size_t(n / Points) * d * W<T>; }
    INLINE const T* point(int n) const { return x + size_t(n % Points) * d; }
};

// r2 = sum_j (c_j - x_j)^2, or of ((c_j - x_j) rate_j)^2 where each dimension has its own rate
template <bool Each, class T, class Pairs> INLINE void squared_distances(const Leaf<T>& leaf, Pairs pairs, Vec<T>* r2) {
    EACH(n, Pairs::N) r2[n] = Vec<T>{};
#pragma GCC unroll 2
    for (int j = 0; j < pairs.d; j++) {
        EACH(n, Pairs::N) {
            Vec<T> e = load(pairs.tile(n) + j * W<T>) - pairs.point(n)[j];
            if constexpr (Each) e *= leaf.rates[j];
            r2[n] = fma(e, e, r2[n]);
        }
    }
}

// The kernel at N squared distances, in place. `unit` is 1 / length_scale^2 for unscaled distances, else 1.
template <int N, Op op, class T> INLINE void of(const Leaf<T>& leaf, T unit, Vec<T>* k) {
    typedef Vec<T> V;
    const V farthest = V{} + (sizeof(T) == 8 ? T(FARTHEST) : T(1e37));  // infinity times 2^-infinity would be NaN
    V s[N];
    if constexpr (op == Op::RBF) {  // exp(-r2 / 2)
        EACH(n, N) k[n] *= unit * T(0.5 * LOG2E);
    } else if constexpr (op == Op::Matern12) {  // exp(-s),  s = r
        EACH(n, N) k[n] = root(k[n] * unit) * T(LOG2E);
    } else if constexpr (op == Op::Matern32) {  // (1 + s) exp(-s),  s = sqrt(3) r
        EACH(n, N) {
            s[n] = root(smaller(k[n] * unit, farthest) * T(3));
            k[n] = s[n] * T(LOG2E);
        }
    } else if constexpr (op == Op::Matern52) {  // (1 + s + s^2 / 3) exp(-s),  s = sqrt(5) r
        EACH(n, N) {
            s[n] = root(smaller(k[n] * unit, farthest) * T(5));
            k[n] = s[n] * T(LOG2E);
        }
    } else {  // (1 + s)^-alpha,  s = r2 / (2 alpha)
        EACH(n, N) {
            k[n] = smaller(k[n] * unit, farthest) * T(0.5 / leaf.a);
            for (int i = 0; i < W<T>; i++) k[n][i] = std::log1p(k[n][i]);
            k[n] *= T(leaf.a * LOG2E);
        }
    }
    constexpr int PAIR = N % 2 ? 1 : 2;  // as many as fit into the registers
    EACH(n, N / PAIR) exp2_minus<PAIR>(k + n * PAIR);
    if constexpr (op == Op::Matern32)
        EACH(n, N) k[n] *= s[n] + T(1);
    if constexpr (op == Op::Matern52)
        EACH(n, N) k[n] *= fma(s[n] * s[n], V{} + T(1.0 / 3.0), s[n]) + T(1);
}

template <class T, Op op, bool Each> struct Stationary {
    const Kernel<T>& kernel;
    template <int Tiles, int Points> INLINE void evaluate(const T* tiles, const T* x, Vec<T>* k) const {
        const Leaf<T>& leaf = kernel.code[0];
        squared_distances<Each>(leaf, Pairs<T, Tiles, Points>{tiles, x, kernel.d}, k);
        of<Tiles * Points, op>(leaf, Each ? T(1) : leaf.rate2, k);
        if (kernel.scaled())
            EACH(n, Tiles * Points) k[n] *= T(kernel.code[1].a);
    }
};

// Leaves that are not stationary

template <class T, class Pairs> INLINE void periodic(const Leaf<T>& leaf, Pairs pairs, Vec<T>* k) {
    // exp(-2 sum_j (sin(pi (c_j - x_j) / period_j) / length_scale_j)^2)
    for (int n = 0; n < Pairs::N; n++) {
        Vec<T> r2{};
        for (int j = 0; j < pairs.d; j++) {
            const Vec<T> turns = (load(pairs.tile(n) + j * W<T>) - pairs.point(n)[j]) * leaf.frequencies[j];
            const Vec<T> s = sin_pi<T>(turns) * leaf.rates[j];
            r2 = fma(s, s, r2);
        }
        k[n] = r2 * T(2 * LOG2E);
        exp2_minus<1>(k + n);
    }
}

template <class T, class Pairs> INLINE void linear(const Leaf<T>& leaf, Pairs pairs, Vec<T>* k) {
    // sum_j variance_j c_j x_j
    for (int n = 0; n < Pairs::N; n++) {
        k[n] = Vec<T>{};
        for (int j = 0; j < pairs.d; j++)
            k[n] = fma(load(pairs.tile(n) + j * W<T>), splat<T>(leaf.rates[j] * pairs.point(n)[j]), k[n]);
    }
}

template <class V> INLINE V power(V base, int degree) {
    V result = base - base + 1;
    for (; degree > 0; degree /= 2, base *= base)
        if (degree % 2) result *= base;
    return result;
}

template <class T, class Pairs> INLINE void polynomial(const Leaf<T>& leaf, Pairs pairs, Vec<T>* k) {
    // (scale c.x + offset)^degree
    for (int n = 0; n < Pairs::N; n++) {
        Vec<T> dot{};
        for (int j = 0; j < pairs.d; j++) dot = fma(load(pairs.tile(n) + j * W<T>), splat<T>(pairs.point(n)[j]), dot);
        k[n] = power(dot * T(leaf.a) + T(leaf.b), int(leaf.c));
    }
}

template <Op op, class T, class Pairs> INLINE void stationary(const Leaf<T>& leaf, Pairs pairs, Vec<T>* k) {
    if (leaf.each)
        squared_distances<true>(leaf, pairs, k);
    else
        squared_distances<false>(leaf, pairs, k);
    of<Pairs::N, op>(leaf, leaf.each ? T(1) : leaf.rate2, k);
}

// Any kernel: a stack of operands, N vectors each
template <class T> struct Composed {
    const Kernel<T>& kernel;
    template <int Tiles, int Points> void evaluate(const T* tiles, const T* x, Vec<T>* k) const {
        constexpr int N = Tiles * Points;
        Vec<T> stack[DEEPEST][N];
        const Pairs<T, Tiles, Points> pairs{tiles, x, kernel.d};
        int top = -1;
        for (int i = 0; i < kernel.length; i++) {
            const Leaf<T>& leaf = kernel.code[i];
            if (leaf.op < Op::Add)
                push(leaf, pairs, stack[++top]);
            else if (leaf.op == Op::Scale)
                for (int n = 0; n < N; n++) stack[top][n] *= T(leaf.a);
            else {
                top--;
                for (int n = 0; n < N; n++)
                    stack[top][n] =
                        leaf.op == Op::Add ? stack[top][n] + stack[top + 1][n] : stack[top][n] * stack[top + 1][n];
            }
        }
        for (int n = 0; n < N; n++) k[n] = stack[0][n];
    }
    template <class Pairs> static void push(const Leaf<T>& leaf, Pairs pairs, Vec<T>* k) {
        switch (leaf.op) {
            case Op::RBF: return stationary<Op::RBF>(leaf, pairs, k);
            case Op::Matern12: return stationary<Op::Matern12>(leaf, pairs, k);
            case Op::Matern32: return stationary<Op::Matern32>(leaf, pairs, k);
            case Op::Matern52: return stationary<Op::Matern52>(leaf, pairs, k);
            case Op::RationalQuadratic: return stationary<Op::RationalQuadratic>(leaf, pairs, k);
            case Op::Periodic: return periodic(leaf, pairs, k);
            case Op::Linear: return linear(leaf, pairs, k);
            case Op::Polynomial: return polynomial(leaf, pairs, k);
            default:
                for (int n = 0; n < Pairs::N; n++) k[n] = Vec<T>{} + T(leaf.a);
        }
    }
};

template <class T, Op op, class Body> INLINE auto visit_leaf(const Kernel<T>& kernel, const Body& body) {
    return kernel.code[0].each ? body(Stationary<T, op, true>{kernel}) : body(Stationary<T, op, false>{kernel});
}

// Call body with the shape of the kernel: once per row or block, never once per pair of points.
template <class T, class Body> INLINE auto visit(const Kernel<T>& kernel, const Body& body) {
    if (kernel.stationary_leaf()) {
        switch (kernel.code[0].op) {
            case Op::RBF: return visit_leaf<T, Op::RBF>(kernel, body);
            case Op::Matern12: return visit_leaf<T, Op::Matern12>(kernel, body);
            case Op::Matern32: return visit_leaf<T, Op::Matern32>(kernel, body);
            default: return visit_leaf<T, Op::Matern52>(kernel, body);
        }
    }
    return body(Composed<T>{kernel});
}

// k of two points with this distance, for a kernel that depends only on the distance
template <class T> double at_distance(const Kernel<T>& kernel, T r) {
    Buffer<T> tile(size_t(kernel.d) * W<T>), x(kernel.d);
    x[0] = r;
    return visit(kernel, [&](auto shape) {
        Vec<T> k[1];
        shape.template evaluate<1, 1>(tile.data(), x.data(), k);
        return double(k[0][0]);
    });
}

// k(x, x), from the program
template <class T> double diagonal_of(const Kernel<T>& kernel, const T* x) {
    double stack[DEEPEST];
    int top = -1;
    for (int i = 0; i < kernel.length; i++) {
        const Leaf<T>& leaf = kernel.code[i];
        double dot = 0;
        if (leaf.op == Op::Linear || leaf.op == Op::Polynomial)
            for (int j = 0; j < kernel.d; j++)
                dot += double(x[j]) * double(x[j]) * (leaf.op == Op::Linear ? double(leaf.rates[j]) : 1.0);
        switch (leaf.op) {
            case Op::Linear: stack[++top] = dot; break;
            case Op::Polynomial: stack[++top] = power(leaf.a * dot + leaf.b, int(leaf.c)); break;
            case Op::Constant: stack[++top] = leaf.a; break;
            case Op::Scale: stack[top] *= leaf.a; break;
            case Op::Add:
                top--;
                stack[top] += stack[top + 1];
                break;
            case Op::Multiply:
                top--;
                stack[top] *= stack[top + 1];
                break;
            default: stack[++top] = 1.0;
        }
    }
    return stack[0];
}
template <class T> INLINE double diagonal(const Kernel<T>& kernel, const T* x) {
    return kernel.constant_diagonal ? kernel.everywhere : diagonal_of(kernel, x);
}

}  // namespace onlinegp::ONLINEGP_ISA
