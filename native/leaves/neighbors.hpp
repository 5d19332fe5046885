// The stored rows, and the search for the rows nearest to a point: the twin of onlinegp.models.local.
#pragma once
#include <algorithm>
#include "learner.hpp"
#include "linear_algebra/tiles.hpp"

namespace onlinegp::ONLINEGP_ISA {

// onlinegp.models.local.learner.LocalPrior and residual.ResidualPrior, with the parts of the distance
struct LocalPrior {
    explicit LocalPrior(const Plan& plan)
        : noise(plan.number("noise")),
          fade(plan.number("fade")),
          neighbors(plan.count("neighbors")),
          store(plan.count("store", INT64_MAX)),
          rates(plan.vector("rates")),
          frequencies(plan.vector("frequencies")),
          radii(plan.vector("radii")) {}
    const double noise, fade;
    const int64_t neighbors, store;
    const std::vector<double> rates, frequencies, radii;  // (d,) or none; (d,) for each of the periodic parts
};

// A row as a neighbor. The nearest rows have the smallest rank r2 + fade age. Of equal ranks, the newer row is nearer.
struct Near {
    double rank;
    int64_t age, slot;  // the newest row has the age 0
    bool operator<(const Near& other) const { return rank < other.rank || (rank == other.rank && age < other.age); }
};

// Finds the nearest rows, chunk by chunk. Rows with a rank above a limit are ignored. From time to time the farthest
// candidates are dropped, which lowers the limit. Comparisons of ranks are unpredictable, so the code avoids branches
// on them.
class Nearest {
  public:
    static constexpr int TILES = 4, BLOCK = TILES * W<double>;  // number of rows that are compared at once
    static constexpr int64_t CHUNK = 4096 / BLOCK;              // number of blocks in a chunk

    explicit Nearest(int64_t wanted) : most_(wanted), ranks_(size_t(CHUNK * BLOCK)), near_(size_t(CHUNK + 1)) {}
    void clear(int64_t rows,
               int64_t newest) {  // before a search over this number of rows; the newest row is in this slot
        rows_ = rows;
        newest_ = newest;
        wanted_ = most_ < rows ? most_ : rows;
        reserve(wanted_);
        count_ = 0;
        limit_ = wanted_ ? LARGEST : -INFINITY;
    }
    void reserve(int64_t wanted) {  // memory for finding this number of rows
        if (4 * wanted <= room_) return;
        const int64_t room = 2 * 4 * wanted;  // so that a growing store seldom allocates
        rank_.resize(size_t(room + BLOCK + W<double>));
        slot_.resize(size_t(room + BLOCK));
        sorted_.resize(size_t(room + BLOCK));
        least_.resize(size_t(room + W<double>));
        room_ = room;  // set at the end: if an allocation fails, there is more memory than `room_` says
    }
    double* ranks() { return ranks_.data(); }  // ranks of a chunk; infinite without a row
    // Compare the ranks of this number of blocks. Block i begins with the slot first_slot(i).
    template <class FirstSlot> void add(int64_t blocks, const FirstSlot& first_slot) {
        if (limit_ == LARGEST) begin_with(blocks * BLOCK);
        int64_t near = 0;
        for (int64_t i = 0; i < blocks; i++) {
            const double* rank = ranks() + i * BLOCK;
            const Vec<double> least = smaller(smaller(load(rank), load(rank + W<double>)),
                                              smaller(load(rank + 2 * W<double>), load(rank + 3 * W<double>)));
            near_[size_t(near)] = i;
            near += lanes_at_most(least, limit_) != 0;
        }
        for (int64_t n = 0; n < near; n++) add_block(ranks() + near_[size_t(n)] * BLOCK, first_slot(near_[size_t(n)]));
    }
    int64_t sort() {  // returns the number of neighbors
        if (count_ > wanted_) drop_far();
        if (count_) order();
        if (count_ > wanted_) count_ = wanted_;
        return count_;
    }
    const Near& operator[](int64_t i) const { return sorted_[size_t(i)]; }

  private:
    static constexpr double LARGEST = 1.7976931348623157e308;  // no rank of a row is infinite

    void add_block(const double* ranks, int64_t first_slot) {
        EACH(n, TILES) {
            for (unsigned near = lanes_at_most(load(ranks + n * W<double>), limit_); near; near &= near - 1) {
                const int i = n * W<double> + __builtin_ctz(near);
                rank_[size_t(count_)] = ranks[i];
                slot_[size_t(count_)] = first_slot + i;
                count_++;
            }
        }
        if (count_ > 4 * wanted_) shrink();
    }
    // Lower the limit to a value that at least `wanted` of the n ranks do not exceed: divide the ranks into lists, take
    // the smallest rank of each list, and choose the wanted-th smallest of these
    void begin_with(int64_t n) {
        const int64_t lists = (4 * wanted_ + W<double> - 1) / W<double> * W<double>;
        if (n <= lists || !wanted_) return;
        double* least = least_.data();
        for (int64_t j = 0; j < lists; j += W<double>) {
            Vec<double> smallest = load(ranks() + j);
            for (int64_t i = lists + j; i < n; i += lists) smallest = smaller(smallest, load(ranks() + i));
            store(least + j, smallest);
        }
        limit_ = bound(least, lists);
    }
    // A limit that at least `wanted` of n values, and few more, do not exceed. Found by bisection over the bits, which
    // have the same order as values of at least zero.
    double bound(const double* values, int64_t n) const {
        const int64_t enough = wanted_ + wanted_ / 8;
        Vec<double> least = load(values), most = least;
        for (int64_t i = W<double>; i < n; i += W<double>) {
            least = smaller(least, load(values + i));
            most = larger(most, load(values + i));
        }
        int64_t low = bits(-largest_lane<double>(-least)) - 1, high = bits(largest_lane<double>(most));
        while (high - low > 1) {
            const int64_t middle = low + (high - low) / 2, count = at_most(number(middle), values, n);
            if (count < wanted_)
                low = middle;
            else
                high = middle;
            if (count >= wanted_ && count <= enough) break;
        }
        return number(high);
    }
    static int64_t bits(double x) { return load_anywhere<int64_t>(&x); }
    static double number(int64_t x) { return load_anywhere<double>(&x); }
    static int64_t at_most(double limit, const double* values, int64_t n) {
        int64_t count;
        count_at_most<1>(&limit, values, n, &count);
        return count;
    }
    // For each of N limits, the number of values (of n) that do not exceed it
    template <int N>
    static INLINE void count_at_most(const double* limits, const double* values, int64_t n, int64_t* counts) {
        Int<double> found[N] = {};
        for (int64_t i = 0; i < n; i += W<double>)
            EACH(k, N) found[k] -= load(values + i) <= splat<double>(limits[k]);
        EACH(k, N) {
            counts[k] = 0;
            EACH(i, W<double>) counts[k] += found[k][i];
        }
    }
    void end_with_infinity() {  // up to the end of a vector, or of four vectors
        for (int64_t i = count_; i < count_ + (W<double> < 4 ? 4 : W<double>); i++) rank_[size_t(i)] = INFINITY;
    }
    void drop_far() {
        end_with_infinity();
        limit_ = bound(rank_.data(), count_);
        int64_t kept = 0;
        for (int64_t i = 0; i < count_; i++) {
            rank_[size_t(kept)] = rank_[size_t(i)];
            slot_[size_t(kept)] = slot_[size_t(i)];
            kept += rank_[size_t(i)] <= limit_;
        }
        count_ = kept;
    }
    void shrink() {
        drop_far();
        if (count_ <= 2 * wanted_) return;
        for (int64_t i = 0; i < count_; i++) sorted_[size_t(i)] = one(i);
        std::nth_element(sorted_.data(), sorted_.data() + wanted_,
                         sorted_.data() + count_);  // of equal ranks, the newest row
        count_ = wanted_;
        for (int64_t i = 0; i < count_; i++) {
            rank_[size_t(i)] = sorted_[size_t(i)].rank;
            slot_[size_t(i)] = sorted_[size_t(i)].slot;
        }
    }
    // Put each row in its place: the number of rows that are at least as near, minus one. Equal rows would get the same
    // place.
    void order() {
        end_with_infinity();
        int64_t places = 0;
        for (int64_t i = 0; i < count_; i += 4) {
            int64_t as_near[4];
            count_at_most<4>(rank_.data() + i, rank_.data(), count_, as_near);
            for (int64_t k = 0; k < 4 && i + k < count_; k++) {
                sorted_[size_t(as_near[k] - 1)] = one(i + k);
                places += as_near[k] - 1;
            }
        }
        if (places == count_ * (count_ - 1) / 2) return;
        for (int64_t i = 0; i < count_; i++) sorted_[size_t(i)] = one(i);
        std::sort(sorted_.data(), sorted_.data() + count_);
    }
    Near one(int64_t i) const {
        const int64_t slot = slot_[size_t(i)], age = newest_ - slot;
        return {rank_[size_t(i)], age < 0 ? age + rows_ : age, slot};
    }

    const int64_t most_;
    Buffer<double> ranks_;
    Buffer<int64_t> near_;  // the blocks of a chunk with a near row
    Buffer<double> rank_, least_;
    Buffer<int64_t> slot_;
    Buffer<Near> sorted_;
    int64_t rows_ = 0, newest_ = 0, wanted_ = 0, room_ = 0, count_ = 0;
    double limit_ = LARGEST;
};

// The rows in slots: X (slots, d), Y (slots, p), and their places for the distance in tiles [tile][w][W]; if needed, X
// also in tiles. Row t is in slot t. A full store overwrites its oldest row: row t is in slot t mod the number of
// slots.
class Store {
  public:
    static constexpr int TILES = Nearest::TILES, BLOCK = Nearest::BLOCK;

    Store(const LocalPrior& prior, int d, int p, bool with_points = false)
        : prior_(prior),
          d_(d),
          p_(p),
          points_width_(with_points ? d : 0),
          w_(int(prior.rates.size() + 2 * prior.frequencies.size())) {}

    int64_t size() const { return size_; }
    int64_t seen() const { return seen_; }
    int width() const { return w_; }
    const double* x(int64_t slot) const { return X_.data() + slot * d_; }
    const double* y(int64_t slot) const { return Y_.data() + slot * p_; }
    double born(int64_t slot) const { return born_[size_t(slot)]; }
    const double* births() const { return born_.data(); }
    const double* places() const { return tiles_.data(); }
    const double* points() const { return points_.data(); }
    int64_t room() const { return room_; }
    bool full() const { return size_ == prior_.store; }
    int64_t oldest() const { return full() ? (newest_ + 1) % size_ : 0; }  // its slot

    void push(const double* x, const double* y) {
        if (!full()) reserve(size_ + 1);
        put(full() ? oldest() : size_, x, y);
        if (!full()) size_++;
    }
    // Continue as after this number of rows; the last of them are given
    void restore(int64_t n, int64_t seen, const double* X, const double* Y) {
        reserve(n ? n : 1);
        size_ = n;
        newest_ = -1;
        seen_ = seen - n;
        for (int64_t i = 0; i < n; i++) put(seen_ % n, X + i * d_, Y + i * p_);
    }
    void save(double* X, double* Y) const {  // the oldest first
        each_slot([&](int64_t slot) {
            X = std::copy(x(slot), x(slot) + d_, X);
            Y = std::copy(y(slot), y(slot) + p_, Y);
        });
    }
    template <class Body> void each_slot(const Body& body) const {  // the oldest first
        for (int64_t i = 0, slot = oldest(); i < size_; i++, slot = (slot + 1) % size_) body(slot);
    }

    // the place u (w,) of x, see onlinegp.models.local.distance
    void place(const double* x, double* u) const {
        for (size_t j = 0; j < prior_.rates.size(); j++) {
            const double v = x[j] * prior_.rates[j];
            *u++ = v > LONGEST ? LONGEST : v < -LONGEST ? -LONGEST : v;
        }
        for (size_t c = 0; c < prior_.frequencies.size(); c += size_t(d_)) {
            const double *frequency = prior_.frequencies.data() + c, *radius = prior_.radii.data() + c;
            for (int j = 0; j < d_; j++) *u++ = radius[j] * std::cos(frequency[j] * x[j]);
            for (int j = 0; j < d_; j++) *u++ = radius[j] * std::sin(frequency[j] * x[j]);
        }
    }
    // Pass all rows to `nearest` for the place u. The newest rows come first, because they are often the nearest. Also
    // call `each` with the squared distances and the first slot of each block.
    template <class Each> void scan(const double* u, Nearest& nearest, const Each& each) const {
        nearest.clear(size_, newest_);
        if (prior_.fade > 0)
            scan_blocks<true>(u, nearest, each);
        else
            scan_blocks<false>(u, nearest, each);
    }
    // The order of a scan: the number of its blocks of rows, and the first slot of block i
    int64_t blocks() const { return (size_ + BLOCK - 1) / BLOCK; }
    int64_t block(int64_t i) const {
        const int64_t newest = newest_ / BLOCK;
        return (i <= newest ? newest - i : blocks() + newest - i) * BLOCK;
    }
    // Allocate memory for at least this number of rows, twice as much as before. A failure changes nothing.
    void reserve(int64_t rows) {
        if (rows <= room_) return;
        const int64_t room = room_for(rows);
        Buffer<double> X(size_t(room * d_)), Y(size_t(room * p_)), tiles(size_t(room * w_)), born { size_t(room) };
        Buffer<double> points(size_t(room * points_width_));
        if (room_) {
            std::copy(X_.data(), X_.data() + room_ * d_, X.data());
            std::copy(Y_.data(), Y_.data() + room_ * p_, Y.data());
            std::copy(tiles_.data(), tiles_.data() + room_ * w_, tiles.data());
            std::copy(points_.data(), points_.data() + room_ * points_width_, points.data());
            std::copy(born_.data(), born_.data() + room_, born.data());
        }
        X_.swap(X);
        Y_.swap(Y);
        tiles_.swap(tiles);
        points_.swap(points);
        born_.swap(born);
        room_ = room;
    }
    int64_t room_for(int64_t rows) const {  // whole blocks
        int64_t room = rows < 2 * room_ ? 2 * room_ : rows;
        if (room > prior_.store) room = prior_.store;
        return (room + BLOCK - 1) / BLOCK * BLOCK;
    }

  private:
    static constexpr double LONGEST = 1e150;

    void put(int64_t slot, const double* x, const double* y) {
        std::copy(x, x + d_, X_.data() + slot * d_);
        std::copy(y, y + p_, Y_.data() + slot * p_);
        place(x, place_.data());
        set_center(tiles_.data(), w_, slot, place_.data());
        if (points_width_) set_center(points_.data(), d_, slot, x);
        born_[size_t(slot)] = double(seen_);
        newest_ = slot;
        seen_++;
    }
    template <bool Fades, class Each> void scan_blocks(const double* u, Nearest& nearest, const Each& each) const {
        const int64_t blocks = this->blocks();
        for (int64_t begin = 0; begin < blocks; begin += Nearest::CHUNK) {
            const int64_t count = std::min(Nearest::CHUNK, blocks - begin);
            const auto first_slot = [&](int64_t i) { return block(begin + i); };
            for (int64_t i = 0; i < count; i++) ranks<Fades>(first_slot(i), u, nearest.ranks() + i * BLOCK, each);
            nearest.add(count, first_slot);
        }
    }
    // r2 + fade age of the rows of a block; infinite without a row
    template <bool Fades, class Each>
    INLINE void ranks(int64_t slot, const double* u, double* to, const Each& each) const {
        Vec<double> r2[TILES];
        euclidean<TILES>(tiles_.data() + slot * w_, w_, u, r2);
        EACH(n, TILES) {
            Vec<double> rank = r2[n];
            if constexpr (Fades) {
                const Vec<double> born = load(born_.data() + slot + n * W<double>);
                rank += (splat<double>(double(seen_)) - born) * prior_.fade;
            }
            if (size_ - slot < BLOCK) rank = infinite_beyond<double>(rank, size_ - slot - n * W<double>);
            store(to + n * W<double>, rank);
        }
        each(slot, r2);
    }

    const LocalPrior& prior_;
    const int d_, p_, points_width_, w_;
    int64_t size_ = 0, seen_ = 0, newest_ = -1, room_ = 0;
    Buffer<double> X_, Y_, tiles_, points_, born_, place_{size_t(w_)};
};

}  // namespace onlinegp::ONLINEGP_ISA
