// Aligned memory. One block holds all that a filter keeps; buffers hold what it needs for a moment.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#include "simd.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr size_t ALIGNMENT = 64;
constexpr size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

inline void* allocate(size_t bytes) {
    void* p = std::aligned_alloc(ALIGNMENT, aligned(bytes + 1));
    if (!p) throw std::bad_alloc();
    std::memset(p, 0, aligned(bytes + 1));
    return p;
}

// Ask for n values that will be needed soon
template <class T> inline void fetch(const T* p, int64_t n) {
    for (int64_t i = 0; i < n; i += int64_t(ALIGNMENT / sizeof(T))) __builtin_prefetch(p + i, 0, 2);
}

// Zeros, aligned, of a length that is only changed by starting again.
template <class T> class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(size_t n) { resize(n); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { std::free(p_); }
    void resize(size_t n) {
        void* p = allocate(n * sizeof(T));
        std::free(p_);
        p_ = static_cast<T*>(p);
    }
    void swap(Buffer& other) {
        T* p = p_;
        p_ = other.p_, other.p_ = p;
    }
    T* data() { return p_; }
    const T* data() const { return p_; }
    T& operator[](size_t i) { return p_[i]; }
    const T& operator[](size_t i) const { return p_[i]; }

  private:
    T* p_ = nullptr;
};

// Hands out pieces of a block one after the other; without a block it only counts.
class Carver {
  public:
    explicit Carver(char* base = nullptr) : base_(base) {}
    template <class T> T* take(size_t n) {
        const size_t at = used_;
        used_ += aligned(n * sizeof(T));
        return base_ ? reinterpret_cast<T*>(base_ + at) : nullptr;
    }
    size_t used() const { return used_; }

  private:
    char* base_;
    size_t used_ = 0;
};

// Blocks of a few sizes, side by side in large slabs; a block that is given back is handed out again. One thread's own.
class Pool {
  public:
    Pool() = default;
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool() {
        for (Slab* slab = slabs_; slab;) {
            Slab* next = slab->next;
            std::free(slab);
            slab = next;
        }
    }
    char* take(size_t bytes) {  // zeros
        bytes = aligned(bytes);
        Size& size = of(bytes);
        if (!size.free) carve(size);
        Block* block = size.free;
        size.free = block->next;
        std::memset(block, 0, bytes);
        return reinterpret_cast<char*>(block);
    }
    void give(char* p, size_t bytes) {
        Block* block = reinterpret_cast<Block*>(p);
        Size& size = of(aligned(bytes));
        block->next = size.free;
        size.free = block;
    }

  private:
    struct Block { Block* next; };
    struct Slab { Slab* next; };
    struct Size { size_t bytes; Block* free; };
    static constexpr int SIZES = 64;  // capacities double, so there are never more
    static constexpr size_t SLAB = size_t(1) << 21;

    Size& of(size_t bytes) {
        for (int i = 0; i < used_; i++)
            if (sizes_[i].bytes == bytes) return sizes_[i];
        if (used_ == SIZES) throw std::bad_alloc();
        sizes_[used_] = {bytes, nullptr};
        return sizes_[used_++];
    }
    void carve(Size& size) {
        const size_t blocks = size.bytes > SLAB / 8 ? 8 : (SLAB - ALIGNMENT) / size.bytes;
        const size_t bytes = (ALIGNMENT + blocks * size.bytes + SLAB - 1) / SLAB * SLAB;
        char* slab = static_cast<char*>(std::aligned_alloc(SLAB, bytes));
        if (!slab) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
        madvise(slab, bytes, MADV_HUGEPAGE);  // a hint: fewer address translations
#endif
        slabs_ = new (slab) Slab{slabs_};
        for (size_t i = blocks; i-- > 0;) give(slab + ALIGNMENT + i * size.bytes, size.bytes);
    }
    Slab* slabs_ = nullptr;
    Size sizes_[SIZES];
    int used_ = 0;
};

}  // namespace onlinegp::ONLINEGP_ISA
