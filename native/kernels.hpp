// Kernel rows: k(c, x) for tiles of W centres, laid out [tile][d][W], against one point or several.
//
// A shape evaluates a few tile-point pairs together. The stationary kernels have shapes of their own; whatever else a
// kernel is made of runs as a postfix program. The shape is chosen once a row, by `visit`.
#pragma once
#include "memory.hpp"
#include "recipe.hpp"
#include "simd.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr double LOG2E = 1.4426950408889634, FARTHEST = 1e300;

// One leaf with its values in the type of the filter.
template <class T> struct Leaf {
    Op op;
    bool each;
    const T* rates;        // (d,)
    const T* frequencies;  // (d,), Periodic
    T rate2;               // rate^2 where all rates are equal
    double a, b, c;
};

template <class T> struct Kernel {
    int d = 0, length = 0;
    bool constant_diagonal = true;  // k(x, x) is the same everywhere
    Buffer<Leaf<T>> code;
    Buffer<T> values;

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
    }
    bool isotropic() const { return stationary_leaf() && !code[0].each; }  // falls with the Euclidean distance
    bool stationary_leaf() const { return length == 1 && code[0].op <= Op::Matern52; }
};

// N tiles against one point (Points = false), or one tile against N points (Points = true)
template <class T, bool Points> struct Pairs {
    const T* tiles;
    const T* x;
    int d;
    INLINE const T* tile(int n) const { return Points ? tiles : tiles + size_t(n) * d * W<T>; }
    INLINE const T* point(int n) const { return Points ? x + size_t(n) * d : x; }
};

// r2 = sum_j ((c_j - x_j) rate_j)^2
template <int N, bool Each, class T, bool Points>
INLINE void squared_distances(const Leaf<T>& leaf, Pairs<T, Points> pairs, Vec<T>* r2) {
    for (int n = 0; n < N; n++) r2[n] = Vec<T>{};
#pragma GCC unroll 2
    for (int j = 0; j < pairs.d; j++) {
#pragma GCC unroll 8
        for (int n = 0; n < N; n++) {
            Vec<T> e = load(pairs.tile(n) + j * W<T>) - pairs.point(n)[j];
            if constexpr (Each) e *= leaf.rates[j];
            r2[n] = fma(e, e, r2[n]);
        }
    }
    const T farthest = sizeof(T) == 8 ? T(FARTHEST) : T(1e37);
    for (int n = 0; n < N; n++) {
        if constexpr (!Each) r2[n] *= leaf.rate2;
        r2[n] = smaller(r2[n], Vec<T>{} + farthest);
    }
}

template <Op op, class T> INLINE Vec<T> of(const Leaf<T>& leaf, Vec<T> r2) {
    typedef Vec<T> V;
    if constexpr (op == Op::RBF) {  // exp(-r2 / 2)
        return exp2_minus(r2 * T(0.5 * LOG2E));
    } else if constexpr (op == Op::Matern12) {  // exp(-r)
        return exp2_minus(root(r2) * T(LOG2E));
    } else if constexpr (op == Op::Matern32) {  // (1 + s) exp(-s),  s = sqrt(3) r
        const V s = root(r2 * T(3));
        return (s + T(1)) * exp2_minus(s * T(LOG2E));
    } else if constexpr (op == Op::Matern52) {  // (1 + s + s^2 / 3) exp(-s),  s = sqrt(5) r
        const V s = root(r2 * T(5));
        return (fma(s * s, V{} + T(1.0 / 3.0), s) + T(1)) * exp2_minus(s * T(LOG2E));
    } else {  // (1 + s)^-alpha,  s = r2 / (2 alpha)
        V t = r2 * T(0.5 / leaf.a);
        for (int i = 0; i < W<T>; i++) t[i] = std::log1p(t[i]);
        return exp2_minus(t * T(leaf.a * LOG2E));
    }
}

template <class T, Op op, bool Each> struct Stationary {
    const Kernel<T>& kernel;
    template <int N, bool Points> INLINE void evaluate(const T* tiles, const T* x, Vec<T>* k) const {
        squared_distances<N, Each>(kernel.code[0], Pairs<T, Points>{tiles, x, kernel.d}, k);
#pragma GCC unroll 8
        for (int n = 0; n < N; n++) k[n] = of<op>(kernel.code[0], k[n]);
    }
};

// Leaves that are not stationary

template <int N, class T, bool Points> INLINE void periodic(const Leaf<T>& leaf, Pairs<T, Points> pairs, Vec<T>* k) {
    // exp(-2 sum_j (sin(pi (c_j - x_j) / period_j) / length_scale_j)^2)
    for (int n = 0; n < N; n++) {
        Vec<T> r2{};
        for (int j = 0; j < pairs.d; j++) {
            const Vec<T> turns = (load(pairs.tile(n) + j * W<T>) - pairs.point(n)[j]) * leaf.frequencies[j];
            const Vec<T> s = sin_pi<T>(turns) * leaf.rates[j];
            r2 = fma(s, s, r2);
        }
        k[n] = exp2_minus(r2 * T(2 * LOG2E));
    }
}

template <int N, class T, bool Points> INLINE void linear(const Leaf<T>& leaf, Pairs<T, Points> pairs, Vec<T>* k) {
    // sum_j variance_j c_j x_j
    for (int n = 0; n < N; n++) {
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

template <int N, class T, bool Points> INLINE void polynomial(const Leaf<T>& leaf, Pairs<T, Points> pairs, Vec<T>* k) {
    // (scale c.x + offset)^degree
    for (int n = 0; n < N; n++) {
        Vec<T> dot{};
        for (int j = 0; j < pairs.d; j++)
            dot = fma(load(pairs.tile(n) + j * W<T>), splat<T>(pairs.point(n)[j]), dot);
        k[n] = power(dot * T(leaf.a) + T(leaf.b), int(leaf.c));
    }
}

template <int N, Op op, class T, bool Points> INLINE void stationary(const Leaf<T>& leaf, Pairs<T, Points> pairs, Vec<T>* k) {
    if (leaf.each) squared_distances<N, true>(leaf, pairs, k);
    else squared_distances<N, false>(leaf, pairs, k);
    for (int n = 0; n < N; n++) k[n] = of<op>(leaf, k[n]);
}

// Any kernel at all: a stack of operands, N vectors each
template <class T> struct Composed {
    const Kernel<T>& kernel;
    template <int N, bool Points> void evaluate(const T* tiles, const T* x, Vec<T>* k) const {
        Vec<T> stack[DEEPEST][N];
        const Pairs<T, Points> pairs{tiles, x, kernel.d};
        int top = -1;
        for (int i = 0; i < kernel.length; i++) {
            const Leaf<T>& leaf = kernel.code[i];
            if (leaf.op < Op::Add) push<N>(leaf, pairs, stack[++top]);
            else if (leaf.op == Op::Scale)
                for (int n = 0; n < N; n++) stack[top][n] *= T(leaf.a);
            else {
                top--;
                for (int n = 0; n < N; n++)
                    stack[top][n] = leaf.op == Op::Add ? stack[top][n] + stack[top + 1][n] : stack[top][n] * stack[top + 1][n];
            }
        }
        for (int n = 0; n < N; n++) k[n] = stack[0][n];
    }
    template <int N, bool Points> static void push(const Leaf<T>& leaf, Pairs<T, Points> pairs, Vec<T>* k) {
        switch (leaf.op) {
            case Op::RBF: return stationary<N, Op::RBF>(leaf, pairs, k);
            case Op::Matern12: return stationary<N, Op::Matern12>(leaf, pairs, k);
            case Op::Matern32: return stationary<N, Op::Matern32>(leaf, pairs, k);
            case Op::Matern52: return stationary<N, Op::Matern52>(leaf, pairs, k);
            case Op::RationalQuadratic: return stationary<N, Op::RationalQuadratic>(leaf, pairs, k);
            case Op::Periodic: return periodic<N>(leaf, pairs, k);
            case Op::Linear: return linear<N>(leaf, pairs, k);
            case Op::Polynomial: return polynomial<N>(leaf, pairs, k);
            default:
                for (int n = 0; n < N; n++) k[n] = Vec<T>{} + T(leaf.a);
        }
    }
};

template <class T, Op op, class Body> INLINE auto visit_leaf(const Kernel<T>& kernel, const Body& body) {
    return kernel.code[0].each ? body(Stationary<T, op, true>{kernel}) : body(Stationary<T, op, false>{kernel});
}

// Call body with the shape of the kernel: once a row or block, never once a pair of points.
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

// k(x, x)
template <class T> double diagonal(const Kernel<T>& kernel, const T* x) {
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
            case Op::Add: top--, stack[top] += stack[top + 1]; break;
            case Op::Multiply: top--, stack[top] *= stack[top + 1]; break;
            default: stack[++top] = 1.0;
        }
    }
    return stack[0];
}

}  // namespace onlinegp::ONLINEGP_ISA
