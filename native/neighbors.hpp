// The rows that are kept, and the search for those nearest to a point: onlinegp.models.local, compiled.
#pragma once
#include <algorithm>
#include "api.hpp"
#include "tiles.hpp"

namespace onlinegp::ONLINEGP_ISA {

// A row as a neighbor: near is what has a small rank r2 + fade age, and of equals the newer one
struct Near {
    double rank;
    int64_t born, slot;
    bool operator<(const Near& other) const { return rank < other.rank || (rank == other.rank && born > other.born); }
};

// Finds the nearest few of the rows that it is shown. It has a limit, and a row beyond that need not be shown: now and then
// the far ones are thrown away, which lowers it. Ranks are random, so nothing here branches on how two of them compare.
class Nearest {
  public:
    static constexpr int64_t CHUNK = 4096;  // ranks that are looked at twice, to begin with a low limit
    static constexpr int BLOCK = 4 * W<double>;  // rows that are added together, at most

    explicit Nearest(int64_t wanted) : most_(wanted), ranks_(size_t(CHUNK)) {}
    void clear(int64_t rows) {  // before it is shown so many
        wanted_ = most_ < rows ? most_ : rows;
        if (4 * wanted_ > room_) {
            room_ = 2 * 4 * wanted_;  // so that a store that grows seldom asks for more
            rank_.resize(size_t(room_ + BLOCK + W<double>));
            born_.resize(size_t(room_ + BLOCK + W<double>));
            slot_.resize(size_t(room_ + BLOCK));
            sorted_.resize(size_t(room_ + BLOCK));
            least_.resize(size_t(room_ + W<double>));
        }
        count_ = 0;
        limit_ = wanted_ ? INFINITY : -INFINITY;
    }
    double limit() const { return limit_; }
    // Add those rows of a block that have a bit in `which`
    INLINE void add(unsigned which, int64_t first_slot, const double* ranks, const double* births) {
        for (; which; which &= which - 1) {
            const int i = __builtin_ctz(which);
            rank_[size_t(count_)] = ranks[i];
            born_[size_t(count_)] = births[i];
            slot_[size_t(count_)] = first_slot + i;
            count_++;
        }
        if (count_ > 4 * wanted_) shrink();
    }
    int64_t sort() {  // returns how many there are
        if (count_ > wanted_) drop_far();
        if (count_) order();
        if (count_ > wanted_) count_ = wanted_;
        return count_;
    }
    const Near& operator[](int64_t i) const { return sorted_[size_t(i)]; }

    // Lower the limit to what at least `wanted` of the n ranks do not exceed: dealt out to some lists, each of those many
    // has one of at most the wanted-th smallest of their least ones
    double* ranks() { return ranks_.data(); }
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

  private:
    // What at least `wanted` of n values do not exceed, and few more. Values of at least zero are in the order of their bits,
    // which are bisected.
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
            if (count < wanted_) low = middle;
            else high = middle;
            if (count >= wanted_ && count <= enough) break;
        }
        return number(high);
    }
    static int64_t bits(double x) { return load_anywhere<int64_t>(&x); }
    static double number(int64_t x) { return load_anywhere<double>(&x); }
    static int64_t at_most(double limit, const double* values, int64_t n) {
        Int<double> count{};
        for (int64_t i = 0; i < n; i += W<double>) count -= load(values + i) <= splat<double>(limit);
        int64_t total = 0;
        EACH(i, W<double>) total += count[i];
        return total;
    }
    void end_with_infinity() {  // up to a whole vector
        for (int64_t i = count_; i < count_ + W<double>; i++) rank_[size_t(i)] = INFINITY;
    }
    void drop_far() {
        end_with_infinity();
        limit_ = bound(rank_.data(), count_);
        int64_t kept = 0;
        for (int64_t i = 0; i < count_; i++) {
            rank_[size_t(kept)] = rank_[size_t(i)];
            born_[size_t(kept)] = born_[size_t(i)];
            slot_[size_t(kept)] = slot_[size_t(i)];
            kept += rank_[size_t(i)] <= limit_;
        }
        count_ = kept;
    }
    void shrink() {
        drop_far();
        if (count_ <= 2 * wanted_) return;
        for (int64_t i = 0; i < count_; i++) sorted_[size_t(i)] = one(i);
        std::nth_element(sorted_.data(), sorted_.data() + wanted_, sorted_.data() + count_);  // the newest of equals
        count_ = wanted_;
        for (int64_t i = 0; i < count_; i++) {
            rank_[size_t(i)] = sorted_[size_t(i)].rank;
            born_[size_t(i)] = double(sorted_[size_t(i)].born);
            slot_[size_t(i)] = sorted_[size_t(i)].slot;
        }
    }
    // Put each in its place: the number of those that are as near, less itself. Two equal ones would have the same place.
    void order() {
        end_with_infinity();
        int64_t places = 0;
        for (int64_t i = 0; i < count_; i++) {
            const int64_t place = at_most(rank_[size_t(i)], rank_.data(), count_) - 1;
            if (place < count_) sorted_[size_t(place)] = one(i);
            places += place;
        }
        if (places == count_ * (count_ - 1) / 2) return;
        for (int64_t i = 0; i < count_; i++) sorted_[size_t(i)] = one(i);
        std::sort(sorted_.data(), sorted_.data() + count_);
    }
    Near one(int64_t i) const { return {rank_[size_t(i)], int64_t(born_[size_t(i)]), slot_[size_t(i)]}; }

    const int64_t most_;
    Buffer<double> rank_, born_;
    Buffer<int64_t> slot_;
    Buffer<Near> sorted_;
    Buffer<double> ranks_, least_;
    int64_t wanted_ = 0, room_ = 0, count_ = 0;
    double limit_ = INFINITY;
};

// The rows, in slots: X (slots, d), Y (slots, p), and where they are for the distance in tiles [tile][w][W]; where they are
// wanted, X in tiles too. Row t is in slot t, or in slot t mod the number of slots of a full store, which writes over its
// oldest row.
class Store {
  public:
    static constexpr int TILES = 4, BLOCK = Nearest::BLOCK;  // rows that are looked at together

    Store(const LocalPrior& prior, int d, int p, bool with_points = false)
        : prior_(prior), d_(d), p_(p), points_width_(with_points ? d : 0),
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
    // Continue as after so many rows, of which these are the last
    void restore(int64_t n, int64_t seen, const double* X, const double* Y) {
        reserve(n ? n : 1);
        size_ = n, newest_ = -1, seen_ = seen - n;
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

    // u (w,), where x is: onlinegp.models.local.distance
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
    // Show all rows that may be near the place u to `nearest`, the newest first: they are often the nearest. Each block and
    // its squared distances are shown to `each` as well.
    template <class Each> void scan(const double* u, Nearest& nearest, const Each& each) const {
        nearest.clear(size_);
        if (!size_) return;
        if (prior_.fade > 0) scan_blocks<true>(u, nearest, each);
        else scan_blocks<false>(u, nearest, each);
    }
    // Room for at least so many rows, twice as much as before. What fails leaves everything as it is.
    void reserve(int64_t rows) {
        if (rows <= room_) return;
        const int64_t room = room_for(rows);
        Buffer<double> X(size_t(room * d_)), Y(size_t(room * p_)), tiles(size_t(room * w_)), born{size_t(room)};
        Buffer<double> points(size_t(room * points_width_));
        if (room_) {
            std::copy(X_.data(), X_.data() + room_ * d_, X.data());
            std::copy(Y_.data(), Y_.data() + room_ * p_, Y.data());
            std::copy(tiles_.data(), tiles_.data() + room_ * w_, tiles.data());
            std::copy(points_.data(), points_.data() + room_ * points_width_, points.data());
            std::copy(born_.data(), born_.data() + room_, born.data());
        }
        X_.swap(X), Y_.swap(Y), tiles_.swap(tiles), points_.swap(points), born_.swap(born);
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
        newest_ = slot, seen_++;
    }
    template <bool Fades, class Each> void scan_blocks(const double* u, Nearest& nearest, const Each& each) const {
        const int64_t blocks = (size_ + BLOCK - 1) / BLOCK, first = newest_ / BLOCK;
        const int64_t twice = blocks < Nearest::CHUNK / BLOCK ? blocks : Nearest::CHUNK / BLOCK;
        const auto block = [&](int64_t i) { return i <= first ? first - i : blocks + first - i; };
        Vec<double> rank[TILES];
        for (int64_t i = 0; i < twice; i++) {
            ranks<Fades>(block(i), u, rank, each);
            EACH(n, TILES) store(nearest.ranks() + i * BLOCK + n * W<double>, rank[n]);
        }
        nearest.begin_with(twice * BLOCK);
        for (int64_t i = 0; i < twice; i++) {
            EACH(n, TILES) rank[n] = load(nearest.ranks() + i * BLOCK + n * W<double>);
            show(block(i), rank, nearest);
        }
        for (int64_t i = twice; i < blocks; i++) {
            ranks<Fades>(block(i), u, rank, each);
            show(block(i), rank, nearest);
        }
    }
    // r2 + fade age of the rows of a block, infinite where there are none
    template <bool Fades, class Each>
    INLINE void ranks(int64_t block, const double* u, Vec<double>* rank, const Each& each) const {
        euclidean<TILES>(tiles_.data() + block * BLOCK * w_, w_, u, rank);
        each(block, rank);
        if constexpr (Fades)
            EACH(n, TILES) {
                const Vec<double> born = load(born_.data() + block * BLOCK + n * W<double>);
                rank[n] += (splat<double>(double(seen_)) - born) * prior_.fade;
            }
        const int64_t rows = size_ - block * BLOCK;
        if (rows < BLOCK) EACH(n, TILES) rank[n] = infinite_beyond<double>(rank[n], rows - n * W<double>);
    }
    INLINE void show(int64_t block, const Vec<double>* rank, Nearest& nearest) const {
        const Vec<double> least = smaller(smaller(rank[0], rank[1]), smaller(rank[2], rank[3]));
        if (lanes_at_most(least, nearest.limit())) show_each(block * BLOCK, rank, nearest);
    }
    void show_each(int64_t slot, const Vec<double>* rank, Nearest& nearest) const {
        alignas(ALIGNMENT) double ranks[BLOCK];
        unsigned near = 0;
        EACH(n, TILES) {
            near |= lanes_at_most(rank[n], nearest.limit()) << (n * W<double>);
            store(ranks + n * W<double>, rank[n]);
        }
        if (size_ - slot < BLOCK) near &= (1u << (size_ - slot)) - 1;
        nearest.add(near, slot, ranks, born_.data() + slot);
    }

    const LocalPrior& prior_;
    const int d_, p_, points_width_, w_;
    int64_t size_ = 0, seen_ = 0, newest_ = -1, room_ = 0;
    Buffer<double> X_, Y_, tiles_, points_, born_, place_{size_t(w_)};
};

}  // namespace onlinegp::ONLINEGP_ISA
