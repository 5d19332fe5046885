// Memory for the many small nodes of trees: slabs of large pages, and lists of free memory.
#include <array>
#include <cstdlib>
#include <mutex>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#include "tree.hpp"

namespace onlinegp {

namespace {

class NodeMemory {
  public:
    void* take(size_t bytes) {
        const size_t units = units_of(bytes);
        if (units >= free_.size()) return ::operator new(bytes);
        const std::lock_guard<std::mutex> guard(mutex_);
        if (Free* first = free_[units]) {
            free_[units] = first->next;
            return first;
        }
        if (left_ < units * UNIT) open();
        char* taken = at_;
        at_ += units * UNIT;
        left_ -= units * UNIT;
        return taken;
    }
    void give(void* node, size_t bytes) {
        const size_t units = units_of(bytes);
        if (units >= free_.size()) return ::operator delete(node);
        const std::lock_guard<std::mutex> guard(mutex_);
        free_[units] = new (node) Free{free_[units]};
    }

  private:
    struct Free {
        Free* next;
    };
    static constexpr size_t UNIT = 64, SLAB = size_t(1) << 21;
    static size_t units_of(size_t bytes) { return (bytes + UNIT - 1) / UNIT; }

    // The rest of the previous slab is too small for a node
    void open() {
        char* slab = static_cast<char*>(std::aligned_alloc(SLAB, SLAB));
        if (!slab) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
        madvise(slab, SLAB, MADV_HUGEPAGE);  // a hint: fewer address translations
#endif
        at_ = slab;
        left_ = SLAB;
    }

    std::mutex mutex_;
    std::array<Free*, 32> free_{};  // by units
    char* at_ = nullptr;
    size_t left_ = 0;
};

// Never destroyed: nodes may outlive everything else
NodeMemory& node_memory() {
    static NodeMemory& memory = *new NodeMemory;
    return memory;
}

}  // namespace

void* Node::operator new(size_t bytes) { return node_memory().take(bytes); }
void Node::operator delete(void* node, size_t bytes) { node_memory().give(node, bytes); }

}  // namespace onlinegp
