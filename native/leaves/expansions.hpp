// The state of the least mean squares algorithms in lms_variants.hpp, and their intermediate results for one input.
#pragma once
#include <vector>
#include "recipe/prediction.hpp"

namespace onlinegp::ONLINEGP_ISA {

// Centers, weights for each kernel and output, and additional numbers per center: rows of one matrix
class Expansions {
  public:
    Expansions(int d, int rows) : d(d), rows(rows) {}
    const int d, rows;
    int64_t size = 0, room = 0;
    Buffer<double> tiles;

    double* row(int i) { return values_.data() + i * room; }
    const double* row(int i) const { return values_.data() + i * room; }

    void reserve(int64_t m) {
        if (m <= room) return;
        const int64_t wanted = tile_count<double>(std::max<int64_t>({m, 2 * room, 16})) * W<double>;
        Buffer<double> tiles_then(size_t(wanted * d)), values(size_t(wanted * rows));
        if (room) std::copy(tiles.data(), tiles.data() + room * d, tiles_then.data());
        for (int i = 0; i < rows && room; i++) std::copy(row(i), row(i) + size, values.data() + i * wanted);
        tiles.swap(tiles_then);
        values_.swap(values);
        room = wanted;
    }
    void append(const double* x) {  // there is spare capacity, and its values are zero
        set_center(tiles.data(), d, size++, x);
    }
    void remove(int64_t j) {
        remove_center(tiles.data(), d, j, size--);
        for (int i = 0; i < rows; i++) {
            double* v = row(i);
            std::copy(v + j + 1, v + size + 1, v + j);
            v[size] = 0;
        }
    }
    void clear() {
        size = room = 0;
        Buffer<double>(1).swap(tiles), Buffer<double>(1).swap(values_);
    }

  private:
    Buffer<double> values_;
};

// Intermediate results for one input
struct Seen {
    Seen(int q, int p) : parts(size_t(q * p)), psi(size_t(q * p)), kxx(size_t(q)), e(size_t(p)) {}
    Buffer<double> k;           // (q, room)
    Buffer<double> parts, psi;  // (q, p): the mean of each kernel's expansion, and the shares in a mixture
    Buffer<double> kxx, e;      // (q,), (p,)
    double k2 = 0;
    int64_t room = 0;
    void reserve(int64_t wanted, int q) {
        if (wanted > room) {
            k.resize(size_t(wanted * q));
            room = wanted;
        }
    }
};

enum class StepKind { Normalized, Penalized, AdaptivelyPenalized, Significant, Mixed };

}  // namespace onlinegp::ONLINEGP_ISA
