// Aligned memory. One block holds the state of a filter; buffers hold its scratch data.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#include "linear_algebra/simd.hpp"

namespace onlinegp::ONLINEGP_ISA {

constexpr size_t ALIGNMENT = 64;
constexpr size_t aligned(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

inline void* allocate(size_t bytes) {
    void* p = std::aligned_alloc(ALIGNMENT, aligned(bytes + 1));
    if (!p) throw std::bad_alloc();
    std::memset(p, 0, aligned(bytes + 1));
    return p;
}

// Prefetch n values that will be needed soon
template <class T> inline void fetch(const T* p, int64_t n) {
    for (int64_t i = 0; i < n; i += int64_t(ALIGNMENT / sizeof(T))) __builtin_prefetch(p + i, 0, 2);
}

// Aligned zeros. Changing the length discards the contents.
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
        p_ = other.p_;
        other.p_ = p;
    }
    T* data() { return p_; }
    const T* data() const { return p_; }
    T& operator[](size_t i) { return p_[i]; }
    const T& operator[](size_t i) const { return p_[i]; }

  private:
    T* p_ = nullptr;
};

// Returns consecutive pieces of a block. Without a block it only counts the bytes.
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

// Allocates blocks of all sizes from large slabs, and reuses freed blocks. For one thread.
// Sizes are rounded up to sixteen steps per doubling. So at most a sixteenth of the memory is wasted, the number of
// lists of free blocks is fixed, and freeing cannot fail.
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
        const Kind kind = kind_of(bytes);
        Block* block = free_[kind.index];
        if (block)
            free_[kind.index] = block->next;
        else
            block = carve(kind.bytes);
        std::memset(static_cast<void*>(block), 0, aligned(bytes));
        return reinterpret_cast<char*>(block);
    }
    void give(char* p, size_t bytes) noexcept { put(p, kind_of(bytes).index); }

  private:
    struct Block {
        Block* next;
    };
    struct Slab {
        Slab* next;
    };
    struct Kind {
        int index;
        size_t bytes;
    };
    static constexpr int STEPS = 16, KINDS = 1024;  // more kinds than 64-bit sizes have
    static constexpr size_t SLAB = size_t(1) << 21;

    // With n + 1 units, n = 1xxxx yyy... in binary: kinds differ in the position of the first one and in the xxxx
    static Kind kind_of(size_t bytes) noexcept {
        const size_t n = bytes ? (bytes - 1) / ALIGNMENT : 0;
        int shift = 0;
        while (n >> shift >= 2 * STEPS) shift++;
        return {shift * STEPS + int(n >> shift), ((n >> shift) + 1) << shift << 6};
    }
    static_assert(ALIGNMENT == 1 << 6);

    void put(char* p, int kind) noexcept { free_[kind] = new (p) Block{free_[kind]}; }

    Block* carve(size_t bytes) {
        if (size_t(end_ - at_) < bytes) open(bytes);
        char* p = at_;
        at_ += bytes;
        return reinterpret_cast<Block*>(p);
    }
    // A new slab has a quarter of the memory so far, so that there are few slabs; if memory is short, as much as needed
    void open(size_t bytes) {
        const size_t least = slabs(bytes), most = slabs(total_ / 4);
        size_t room = least < most ? most : least;
        char* slab = static_cast<char*>(std::aligned_alloc(SLAB, room));
        if (!slab) slab = static_cast<char*>(std::aligned_alloc(ALIGNMENT, room = ALIGNMENT + bytes));
        if (!slab) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
        if (room % SLAB == 0) madvise(slab, room, MADV_HUGEPAGE);  // a hint: fewer address translations
#endif
        const size_t rest = size_t(end_ - at_);  // of the previous slab: it becomes a block of the next smaller kind
        if (rest) put(at_, kind_of(rest + 1).index - 1);
        slabs_ = new (slab) Slab{slabs_};
        at_ = slab + ALIGNMENT;
        end_ = slab + room;
        total_ += room;
    }
    static size_t slabs(size_t bytes) { return (ALIGNMENT + bytes + SLAB - 1) / SLAB * SLAB; }

    Slab* slabs_ = nullptr;
    Block* free_[KINDS] = {};
    char *at_ = nullptr, *end_ = nullptr;  // the unused rest of the newest slab
    size_t total_ = 0;
};

}  // namespace onlinegp::ONLINEGP_ISA
