// What this machine can do, on one core: vector operations a second, and bytes a second through memory of some size.
// Built by limits.py with -O3 -march=native.
#include <chrono>
#include <cstdint>

#if defined(__AVX512F__)
constexpr int BYTES = 64;
#elif defined(__AVX__)
constexpr int BYTES = 32;
#else
constexpr int BYTES = 16;
#endif
typedef double Vec __attribute__((vector_size(BYTES)));
constexpr int W = BYTES / 8;

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

#if defined(__aarch64__)
#define HOLD "+w"
#else
#define HOLD "+x"
#endif
#define STEP(c, value) \
    c = value;         \
    asm volatile("" : HOLD(c));
#define FMA(c) STEP(c, c * a + b)
#define EITHER(c) STEP(c, Mixed ? c + b : c * a + b)

// Vector operations a second: twelve independent chains, kept in registers, hide the latency. Fused multiply-adds alone,
// or seven of them to five additions, as in a kernel row: some machines have pipes of their own for additions.
template <bool Mixed> static double rate(int64_t rounds) {
    Vec a = Vec{} + 0.999999, b = Vec{} + 1e-6;
    Vec c0 = a, c1 = a, c2 = a, c3 = a, c4 = a, c5 = a, c6 = a, c7 = a, c8 = a, c9 = a, c10 = a, c11 = a;
    double start = now();
    for (int64_t r = 0; r < rounds; r++) {
        FMA(c0) EITHER(c1) FMA(c2) EITHER(c3) FMA(c4) EITHER(c5)
        FMA(c6) EITHER(c7) FMA(c8) EITHER(c9) FMA(c10) FMA(c11)
    }
    return 12.0 * rounds / (now() - start);
}

extern "C" {

int lanes() { return W; }

double fma_rate(int64_t rounds) { return rate<false>(rounds); }
double mixed_rate(int64_t rounds) { return rate<true>(rounds); }

// Bytes a second, read and written back: a symmetric matrix under a rank-one update moves no more than this.
double update_bandwidth(double* x, int64_t n, int64_t passes) {
    Vec* p = reinterpret_cast<Vec*>(x);
    int64_t vectors = n / W / 8 * 8;
    Vec a = Vec{} + 0.999999;
    double start = now();
    for (int64_t r = 0; r < passes; r++) {
        for (int64_t i = 0; i < vectors; i += 8)
            for (int j = 0; j < 8; j++) p[i + j] = p[i + j] * a;
        asm volatile("" ::: "memory");
    }
    return 16.0 * vectors * W * passes / (now() - start);
}
}
