// Vectors of one instruction set, and the functions on them that kernels need.
//
// Each instruction set compiles these headers once, in a namespace of its own, with its own vector width. Nothing here
// relies on fast-math. The order of all operations is explicit, so that one sample at a time and a block of samples
// give the same bits.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#ifndef ONLINEGP_ISA
#define ONLINEGP_ISA generic
#define ONLINEGP_BYTES 16
#endif
#define INLINE inline __attribute__((always_inline))
#define ALWAYS __attribute__((always_inline))  // for lambdas
#define PRAGMA(x) _Pragma(#x)
#define EACH(i, N) PRAGMA(GCC unroll 16) for (int i = 0; i < N; i++)  // N is a constant, and the loop is unrolled

namespace onlinegp::ONLINEGP_ISA {

// Vectors of B bytes: T, masks and counts, and integers that may overflow
template <class T, int B> struct Lanes;
template <int B> struct Lanes<double, B> {
    typedef double Vec __attribute__((vector_size(B), may_alias));
    typedef int64_t Int __attribute__((vector_size(B), may_alias));
    typedef uint64_t Bits __attribute__((vector_size(B), may_alias));
};
template <int B> struct Lanes<float, B> {
    typedef float Vec __attribute__((vector_size(B), may_alias));
    typedef int32_t Int __attribute__((vector_size(B), may_alias));
    typedef uint32_t Bits __attribute__((vector_size(B), may_alias));
};
template <class T, int B = ONLINEGP_BYTES> using Vec = typename Lanes<T, B>::Vec;
template <class T, int B = ONLINEGP_BYTES> using Int = typename Lanes<T, B>::Int;
template <class T, int B = ONLINEGP_BYTES> using Bits = typename Lanes<T, B>::Bits;
template <class T, int B = ONLINEGP_BYTES> constexpr int W = B / sizeof(T);

template <class T, int B = ONLINEGP_BYTES> INLINE Vec<T, B> load(const T* p) {
    return *reinterpret_cast<const Vec<T, B>*>(p);
}
template <class T, int B = ONLINEGP_BYTES> INLINE void store(T* p, Vec<T, B> x) {
    *reinterpret_cast<Vec<T, B>*>(p) = x;
}
template <class T, int B = ONLINEGP_BYTES> INLINE Vec<T, B> splat(T x) { return x - Vec<T, B>{}; }
template <class V, class T> INLINE V load_anywhere(const T* p) {  // aligned or not
    V x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
}
template <class V, class T> INLINE void store_anywhere(T* p, V x) { __builtin_memcpy(p, &x, sizeof x); }

// a b + c, rounded once if the machine supports it

template <class V> INLINE V fma(V a, V b, V c) {
#if defined(__AVX512F__)
    if constexpr (sizeof(V) == 64 && sizeof(a[0]) == 8)
        return (V)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
    else if constexpr (sizeof(V) == 64)
        return (V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#endif
#if defined(__FMA__)
    if constexpr (sizeof(V) == 32 && sizeof(a[0]) == 8)
        return (V)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
    else if constexpr (sizeof(V) == 32)
        return (V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__aarch64__)
    for (size_t i = 0; i < sizeof(V) / sizeof(a[0]); i++) c[i] = std::fma(a[i], b[i], c[i]);
    return c;
#endif
    return a * b + c;
}

template <class T> INLINE T fma1(T a, T b, T c) {
#if defined(__FMA__) || defined(__aarch64__)
    return std::fma(a, b, c);
#else
    return a * b + c;
#endif
}

template <class T> INLINE double square(T a) { return double(a) * double(a); }

template <class V> INLINE V root(V a) {
#if ONLINEGP_BYTES == 64 && defined(__AVX512F__)
    if constexpr (sizeof(a[0]) == 8)
        return (V)_mm512_sqrt_pd((__m512d)a);
    else
        return (V)_mm512_sqrt_ps((__m512)a);
#elif ONLINEGP_BYTES == 32 && defined(__AVX__)
    if constexpr (sizeof(a[0]) == 8)
        return (V)_mm256_sqrt_pd((__m256d)a);
    else
        return (V)_mm256_sqrt_ps((__m256)a);
#elif ONLINEGP_BYTES == 16 && defined(__SSE2__)
    if constexpr (sizeof(a[0]) == 8)
        return (V)_mm_sqrt_pd((__m128d)a);
    else
        return (V)_mm_sqrt_ps((__m128)a);
#else
    V r;
    for (size_t i = 0; i < sizeof(V) / sizeof(a[0]); i++) r[i] = std::sqrt(a[i]);
    return r;
#endif
}

// a < b ? a : b and a > b ? a : b, one instruction each

template <class V> INLINE V smaller(V a, V b) {
#if ONLINEGP_BYTES == 64 && defined(__AVX512F__)
    if constexpr (sizeof(a[0]) == 8) return (V)_mm512_min_pd((__m512d)a, (__m512d)b);
#elif ONLINEGP_BYTES == 32 && defined(__AVX__)
    if constexpr (sizeof(a[0]) == 8) return (V)_mm256_min_pd((__m256d)a, (__m256d)b);
#endif
    return a < b ? a : b;
}
template <class V> INLINE V larger(V a, V b) {
#if ONLINEGP_BYTES == 64 && defined(__AVX512F__)
    if constexpr (sizeof(a[0]) == 8) return (V)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif ONLINEGP_BYTES == 32 && defined(__AVX__)
    if constexpr (sizeof(a[0]) == 8) return (V)_mm256_max_pd((__m256d)a, (__m256d)b);
#endif
    return a > b ? a : b;
}

// Sums over lanes: halves are added until one lane is left, in the same order in all code paths.

#if defined(__AVX__)
template <class V> INLINE __m256d halved(V x) {
#if defined(__AVX512F__)
    if constexpr (sizeof(V) == 64)
        return _mm256_add_pd(_mm512_castpd512_pd256((__m512d)x), _mm512_extractf64x4_pd((__m512d)x, 1));
    else
#endif
        return (__m256d)x;
}
#endif

template <class T, int B = ONLINEGP_BYTES> INLINE T sum(Vec<T, B> x) {
#if defined(__AVX__)
    if constexpr (sizeof(T) == 8) {
        const __m256d h = halved(x);
        const __m128d q = _mm_add_pd(_mm256_castpd256_pd128(h), _mm256_extractf128_pd(h, 1));
        return _mm_cvtsd_f64(_mm_add_sd(q, _mm_unpackhi_pd(q, q)));
    }
#endif
    T lane[W<T, B>];
    __builtin_memcpy(lane, &x, sizeof x);
    for (int half = W<T, B> / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

// out[0..3] += the sums of four vectors
template <class T, int B = ONLINEGP_BYTES>
INLINE void add_sums(T* out, Vec<T, B> a, Vec<T, B> b, Vec<T, B> c, Vec<T, B> d) {
#if defined(__AVX__)
    if constexpr (sizeof(T) == 8) {
        const __m256d ab = _mm256_hadd_pd(halved(a), halved(b)), cd = _mm256_hadd_pd(halved(c), halved(d));
        const __m256d s = _mm256_add_pd(_mm256_permute2f128_pd(ab, cd, 0x21), _mm256_blend_pd(ab, cd, 0xC));
        _mm256_storeu_pd(out, _mm256_add_pd(_mm256_loadu_pd(out), s));
        return;
    }
#endif
    out[0] += sum<T, B>(a);
    out[1] += sum<T, B>(b);
    out[2] += sum<T, B>(c);
    out[3] += sum<T, B>(d);
}

// One bit per lane: whether it is at most the limit
INLINE unsigned lanes_at_most(Vec<double> a, double limit) {
#if ONLINEGP_BYTES == 64 && defined(__AVX512F__)
    return _mm512_cmp_pd_mask((__m512d)a, _mm512_set1_pd(limit), _CMP_LE_OQ);
#elif ONLINEGP_BYTES == 32 && defined(__AVX__)
    return unsigned(_mm256_movemask_pd(_mm256_cmp_pd((__m256d)a, _mm256_set1_pd(limit), _CMP_LE_OQ)));
#else
    unsigned bits = 0;
    for (int i = 0; i < W<double>; i++) bits |= unsigned(a[i] <= limit) << i;
    return bits;
#endif
}

template <class T> INLINE T largest_lane(Vec<T> x) {
    T result = x[0];
    for (int i = 1; i < W<T>; i++) result = x[i] > result ? x[i] : result;
    return result;
}
#if ONLINEGP_BYTES == 32 && defined(__AVX__)
template <> INLINE double largest_lane<double>(Vec<double> x) {
    const __m128d h = _mm_max_pd(_mm256_castpd256_pd128((__m256d)x), _mm256_extractf128_pd((__m256d)x, 1));
    return _mm_cvtsd_f64(_mm_max_sd(h, _mm_unpackhi_pd(h, h)));
}
#endif

// Transpose W rows: lane l of row k becomes lane k of row l, in stages that exchange blocks of 1, 2, 4, ... lanes
#if defined(__clang__)
#define PICK(a, b, ...) __builtin_shufflevector(a, b, (__VA_ARGS__)...)
#else
#define PICK(a, b, ...) __builtin_shuffle(a, b, Int<T, B>{(__VA_ARGS__)...})
#endif
template <class T, int B, int Step, int... I>
INLINE void exchange(Vec<T, B>& a, Vec<T, B>& b, std::integer_sequence<int, I...>) {
    constexpr int N = W<T, B>;
    const Vec<T, B> low = PICK(a, b, I & Step ? N + I - Step : I), high = PICK(a, b, I & Step ? N + I : I + Step);
    a = low;
    b = high;
}
template <class T, int B = ONLINEGP_BYTES, int Step = 1, int N = W<T, B>> INLINE void transpose(Vec<T, B> (&rows)[N]) {
    EACH(k, N)
        if (!(k & Step)) exchange<T, B, Step>(rows[k], rows[k | Step], std::make_integer_sequence<int, N>{});
    if constexpr (2 * Step < N) transpose<T, B, 2 * Step>(rows);
}

template <class T, int B = ONLINEGP_BYTES> INLINE Int<T, B> lanes() {  // 0, 1, 2, ...
    Int<T, B> lane;
    for (int i = 0; i < W<T, B>; i++) lane[i] = i;
    return lane;
}
// A mask of the lanes below `count`: all bits are set in these lanes, and none in others.
template <class T, int B = ONLINEGP_BYTES> INLINE Int<T, B> first_lanes(int count) {
    return lanes<T, B>() < (Int<T, B>{} + count);
}
template <class T, int B = ONLINEGP_BYTES> INLINE Vec<T, B> keep(Vec<T, B> x, Int<T, B> mask) {
    return (Vec<T, B>)((Int<T, B>)x & mask);
}
template <class T> INLINE Vec<T> magnitude(Vec<T> x) {  // without the sign
    return keep<T>(x, (Int<T>)(~Bits<T>{} >> 1));
}

// 2^-x for x >= 0, within 2 ulp; zero if the result is not a normal number, and for NaN. N vectors at the same time.
//
// x = n - r with n whole, |r| <= 1/2, by adding 1.5 * 2^52, whose last bits then hold n; 2^r is a polynomial that
// interpolates it at Chebyshev nodes (relative error 2e-17), with separate even and odd powers; n is the exponent.

template <int N> INLINE void exp2_minus(Vec<double>* x) {
    typedef Vec<double> V;
    static constexpr double c[] = {1.0,
                                   0x1.62e42fefa39efp-1,
                                   0x1.ebfbdff82c598p-3,
                                   0x1.c6b08d704a0c2p-5,
                                   0x1.3b2ab6fba1ddap-7,
                                   0x1.5d87fe78a5276p-10,
                                   0x1.430913096fd9fp-13,
                                   0x1.ffcbfc670dcd4p-17,
                                   0x1.62bfd47773353p-20,
                                   0x1.b524fae627834p-24,
                                   0x1.e6063f7217bc6p-28,
                                   0x1.e9d3fe3952179p-32};
    const V magic = V{} + 0x1.8p52;
    V t[N], r[N], r2[N], even[N], odd[N];
    EACH(n, N) t[n] = magic - x[n];
    EACH(n, N) r[n] = (magic - t[n]) - x[n];
    EACH(n, N) r2[n] = r[n] * r[n];
    EACH(n, N) {
        even[n] = V{} + c[10];
        odd[n] = V{} + c[11];
    }
    EACH(i, 5) {
        EACH(n, N) even[n] = fma(even[n], r2[n], V{} + c[8 - 2 * i]);
        EACH(n, N) odd[n] = fma(odd[n], r2[n], V{} + c[9 - 2 * i]);
    }
    EACH(n, N) {
        const V value = (V)((Bits<double>)fma(odd[n], r[n], even[n]) + ((Bits<double>)t[n] << 52));
        x[n] = keep<double>(value, x[n] < V{} + 1021.0);
    }
}

template <int N> INLINE void exp2_minus(Vec<float>* x) {
    typedef Vec<float> V;
    const V magic = V{} + 0x1.8p23f;
    EACH(n, N) {
        const V t = magic - x[n], r = (magic - t) - x[n];
        V p = fma(r, V{} + 1.54531629451e-4f, V{} + 1.33908633647e-3f);
        p = fma(p, r, V{} + 9.61808255728e-3f);
        p = fma(p, r, V{} + 5.55035711422e-2f);
        p = fma(p, r, V{} + 0.240226507606f);
        p = fma(p, r, V{} + 0.693147188026f);
        p = fma(p, r, V{} + 1.0f);
        const V value = (V)((Bits<float>)p + ((Bits<float>)t << 23));
        x[n] = keep<float>(value, x[n] < V{} + 125.0f);
    }
}

// sin(pi x), within 4e-16 for double: the Taylor series after subtracting the nearest whole number n, whose last bit
// is the sign. By adding 1.5 * 2^52 the last bits hold n. Zero beyond 2^51 (for float 2^22).
template <class T> INLINE Vec<T> sin_pi(Vec<T> x) {
    typedef Vec<T> V;
    static constexpr double c[] = {3.141592653589793,       -5.16771278004997,       2.5501640398773455,
                                   -0.5992645293207921,     0.08214588661112823,     -0.0073704309457143504,
                                   0.00046630280576761255,  -2.1915353447830217e-05, 7.952054001475513e-07,
                                   -2.2948428997269873e-08, 5.392664662608129e-10};
    const T largest = sizeof(T) == 8 ? T(0x1p51) : T(0x1p22);
    const V magic = V{} + (sizeof(T) == 8 ? T(0x1.8p52) : T(0x1.8p23));
    const V t = x + magic, r = keep<T>(x - (t - magic), magnitude<T>(x) < V{} + largest), u = r * r;
    V p = V{} + T(c[10]);
    for (int i = 9; i >= 0; i--) p = fma(p, u, V{} + T(c[i]));
    return (V)((Bits<T>)(p * r) ^ (Bits<T>)t << (8 * sizeof(T) - 1));
}

// The same functions for vectors of at most four lanes, for triangles. Wider vectors waste more work at the diagonal,
// and cross a cache line whenever a row moves up by one.
namespace narrow {
template <class T> constexpr int B = ONLINEGP_BYTES < 4 * int(sizeof(T)) ? ONLINEGP_BYTES : 4 * int(sizeof(T));
template <class T> using Vec = ONLINEGP_ISA::Vec<T, B<T>>;
template <class T> using Int = ONLINEGP_ISA::Int<T, B<T>>;
template <class T> constexpr int W = ONLINEGP_ISA::W<T, B<T>>;
template <class T> INLINE Vec<T> load(const T* p) { return ONLINEGP_ISA::load<T, B<T>>(p); }
template <class T> INLINE void store(T* p, Vec<T> x) { ONLINEGP_ISA::store<T, B<T>>(p, x); }
template <class T> INLINE Vec<T> splat(T x) { return ONLINEGP_ISA::splat<T, B<T>>(x); }
template <class T> INLINE Int<T> first_lanes(int count) { return ONLINEGP_ISA::first_lanes<T, B<T>>(count); }
template <class T> INLINE Vec<T> keep(Vec<T> x, Int<T> mask) { return ONLINEGP_ISA::keep<T, B<T>>(x, mask); }
template <class T, int N = W<T>> INLINE void transpose(Vec<T> (&rows)[N]) { ONLINEGP_ISA::transpose<T, B<T>>(rows); }
template <class T> INLINE void add_sums(T* out, Vec<T> a, Vec<T> b, Vec<T> c, Vec<T> d) {
    ONLINEGP_ISA::add_sums<T, B<T>>(out, a, b, c, d);
}
}  // namespace narrow

}  // namespace onlinegp::ONLINEGP_ISA
