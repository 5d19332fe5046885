// The states of a fleet's filters as bytes: the twin of onlinegp.recipes.records, which has the format.
#include <cstring>
#include <stdexcept>
#include <string>
#include "arrays.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace onlinegp;

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "states are written as this machine has its numbers, which must be little-endian"
#endif

namespace {

constexpr char MAGIC[] = "ogpstat2";

struct Head {
    char magic[8];
    uint32_t checksum, arrays;
    int64_t features, outputs, single, size, seen;
    double scale, bound, power, evidence;
};
static_assert(sizeof(Head) == 88);
constexpr size_t AFTER_CHECKSUM = offsetof(Head, arrays);

uint32_t checksum(const char* data, size_t bytes) {
    static const nb::object* crc32 = new nb::object(nb::module_::import_("zlib").attr("crc32"));  // kept for good
    const auto view = nb::steal(PyMemoryView_FromMemory(const_cast<char*>(data) + AFTER_CHECKSUM, Py_ssize_t(bytes - AFTER_CHECKSUM), PyBUF_READ));
    return nb::cast<uint32_t>((*crc32)(view));
}

int64_t length_of(const FleetEngine& fleet, std::string_view kind, int64_t m) {
    if (kind == "points") return m * fleet.d;
    if (kind == "outputs") return m * fleet.p;
    return kind == "triangular" || kind == "symmetric" ? m * (m + 1) / 2 : m;
}

// Where the numbers of a record with m centers lie; R is of float32, and only there if it is compact
struct Layout {
    Arrays arrays;
    float* R = nullptr;
    uint32_t bits = 0;  // which arrays there are, in the order of Arrays, and then R
    size_t bytes = sizeof(Head);

    Layout(const FleetEngine& fleet, int64_t m, bool compact, const char* record = nullptr) {
        const Recipe& recipe = fleet.recipe();
        const bool fewer = compact && recipe.tracked();
        uint32_t bit = 1;
        const auto take = [&](auto& field, bool there, size_t length) {
            if (there) field = reinterpret_cast<std::remove_reference_t<decltype(field)>>(uintptr_t(record) + bytes);
            if (there) bytes += sizeof(*field) * length, bits |= bit;
            bit <<= 1;
        };
        arrays.each([&](std::string_view name, const char* kind, auto& field) {
            if constexpr (std::is_pointer_v<std::remove_reference_t<decltype(field)>>)
                take(field, fewer ? name == "centers" || name == "alpha" || name == "born" : recipe.tracks(name), size_t(length_of(fleet, kind, m)));
        });
        take(R, fewer && recipe.projects(), size_t(length_of(fleet, "symmetric", m)));
    }
    bool compact() const { return !arrays.kcc; }
};

[[noreturn]] void refuse(const std::string& why) { throw nb::value_error(why.c_str()); }

template <class T> void check_finite(const char* name, const T* x, int64_t n) {
    T sum = 0;  // of x - x, which is zero or not a number
    for (int64_t i = 0; x && i < n; i++) sum += x[i] - x[i];
    if (sum != 0) refuse(std::string(name) + " holds a value that is not finite.");
}
void check_finite(const FleetEngine& fleet, Layout& record) {
    Arrays& arrays = record.arrays;
    arrays.each([&](const char* name, const char* kind, auto& field) {
        using Field = std::remove_reference_t<decltype(field)>;
        if constexpr (std::is_same_v<Field, double*>) check_finite(name, field, length_of(fleet, kind, arrays.size));
        if constexpr (std::is_same_v<Field, double>) check_finite(name, &field, 1);
    });
    check_finite("R", record.R, length_of(fleet, "symmetric", arrays.size));
}

nb::bytes pack_one(FleetEngine& fleet, int64_t i, bool single, bool compact) {
    const int64_t m = fleet.models().size(i);
    const size_t bytes = Layout(fleet, m, compact).bytes;
    auto record = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, Py_ssize_t(bytes)));
    if (!record.is_valid()) throw nb::python_error();
    char* data = PyBytes_AS_STRING(record.ptr());
    Layout layout(fleet, m, compact, data);
    Arrays& arrays = layout.arrays;
    if (layout.compact()) fleet.models().save_compact(i, arrays, layout.R);
    else fleet.models().save(i, arrays);
    check_finite(fleet, layout);
    Head head{{}, 0, layout.bits, fleet.d, fleet.p, single, arrays.size, arrays.seen, arrays.scale, arrays.bound, arrays.power, arrays.evidence};
    std::memcpy(head.magic, MAGIC, sizeof head.magic), std::memcpy(data, &head, sizeof head);
    head.checksum = checksum(data, bytes), std::memcpy(data, &head, sizeof head);
    return record;
}

// The head of a record for these filters, once all that it says of sizes was compared with its length
Head checked_head(const FleetEngine& fleet, const nb::bytes& record, bool single) {
    Head head;
    if (record.size() < sizeof head || std::memcmp(record.c_str(), MAGIC, sizeof head.magic) != 0)
        refuse("these bytes are not the state of such a model, or they are cut short.");
    std::memcpy(&head, record.c_str(), sizeof head);
    if (checksum(record.c_str(), record.size()) != head.checksum) refuse("the state is damaged (its checksum does not match).");
    if (head.features != fleet.d || head.outputs != fleet.p || head.single != single)
        refuse("the state has " + std::to_string(head.features) + " features and " + std::to_string(head.outputs) +
               " outputs, and the model " + std::to_string(fleet.d) + " and " + std::to_string(fleet.p) + ".");
    const int64_t budget = fleet.recipe().pruning.budget;
    if (budget && head.size > budget) refuse(std::to_string(head.size) + " centers exceed the budget of " + std::to_string(budget) + ".");
    if (head.size < 0 || head.size > int64_t(record.size()))
        refuse("the arrays do not fit the state of " + std::to_string(head.size) + " centers.");
    if (head.seen < 0 || head.scale < 0 || head.bound < 0 || head.power < 0 || head.evidence < 0)
        refuse("a number of the state is below zero.");
    return head;
}

void unpack_one(FleetEngine& fleet, int64_t i, const nb::bytes& record, bool single) {
    const Head head = checked_head(fleet, record, single);
    const bool compact = Layout(fleet, 0, false).bits != head.arrays;
    Layout layout(fleet, head.size, compact, record.c_str());
    if (layout.bits != head.arrays) refuse("the state has other arrays than such a model keeps.");
    if (layout.bytes != record.size()) refuse("the arrays do not fit the state of " + std::to_string(head.size) + " centers.");
    Arrays& arrays = layout.arrays;
    arrays.size = head.size, arrays.seen = head.seen;
    arrays.scale = head.scale, arrays.bound = head.bound, arrays.power = head.power, arrays.evidence = head.evidence;
    check_finite(fleet, layout);
    if (layout.compact()) fleet.models().load_compact(i, arrays, layout.R);
    else fleet.models().load(i, arrays);
}

using Indices = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::list pack(FleetEngine& fleet, Indices which, bool single, bool compact) {
    const Held held(fleet.lock, Use::Read);
    nb::list out;
    for (size_t i = 0; i < which.shape(0); i++) {
        check_index(fleet, which.data()[i]);
        out.append(pack_one(fleet, which.data()[i], single, compact));
    }
    return out;
}

void unpack(FleetEngine& fleet, Indices which, nb::list records, bool single) {
    if (which.shape(0) != records.size()) refuse("there must be one state for each model.");
    const Held held(fleet.lock, Use::Change);
    for (size_t i = 0; i < which.shape(0); i++) {
        check_index(fleet, which.data()[i]);
        unpack_one(fleet, which.data()[i], nb::cast<nb::bytes>(records[i]), single);
    }
}

}  // namespace

void onlinegp::bind_states(nb::class_<FleetEngine>& members) {
    members.def("pack", pack, "which"_a, "single"_a, "compact"_a)
        .def("unpack", unpack, "which"_a, "states"_a, "single"_a);
}
