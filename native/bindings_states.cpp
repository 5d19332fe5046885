// Records of the filters in a fleet: the twin of onlinegp.state.record, which describes the format.
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

constexpr char MAGIC[] = "ogprec";
constexpr uint16_t VERSION = 1;
constexpr const char* RESTORE = " Use an undamaged copy.";
constexpr const char* AGAIN = " Learn it again, or use the version of onlinegp that wrote it.";

// The start of a record, then the integers and numbers of the state of a recipe, in the order of its schema
struct Head {
    char magic[6];
    uint16_t version;
    uint32_t checksum, schema;
    int64_t features, outputs, single, size, seen;
    double largest, scale, bound, power, evidence;
};
static_assert(sizeof(Head) == 96);
constexpr size_t AFTER_CHECKSUM = offsetof(Head, schema);

// The checksums of the two schemas that a state may have
struct Schemas {
    uint32_t full, compact;
};

uint32_t checksum(const char* data, size_t bytes) {
    static const nb::object* crc32 = new nb::object(nb::module_::import_("zlib").attr("crc32"));  // never freed
    const auto view = nb::steal(PyMemoryView_FromMemory(const_cast<char*>(data) + AFTER_CHECKSUM,
                                                        Py_ssize_t(bytes - AFTER_CHECKSUM), PyBUF_READ));
    return nb::cast<uint32_t>((*crc32)(view));
}

int64_t length_of(const FleetEngine& fleet, std::string_view kind, int64_t m) {
    if (kind == "points") return m * fleet.d;
    if (kind == "outputs") return m * fleet.p;
    return kind == "triangular" || kind == "symmetric" ? m * (m + 1) / 2 : m;
}

// The positions of the arrays in a record with m centers. R is float32, and exists only in compact records.
struct Layout {
    Arrays arrays;
    float* R = nullptr;
    bool compact;
    size_t bytes = sizeof(Head);

    Layout(const FleetEngine& fleet, int64_t m, bool wanted, const char* record = nullptr)
        : compact(wanted && fleet.recipe().tracked()) {
        const Recipe& recipe = fleet.recipe();
        const auto take = [&](auto& field, int64_t length) {
            field = reinterpret_cast<std::remove_reference_t<decltype(field)>>(uintptr_t(record) + bytes);
            bytes += (sizeof(*field) * size_t(length) + 7) / 8 * 8;
        };
        arrays.each([&](std::string_view name, const char* kind, auto& field) {
            if constexpr (std::is_pointer_v<std::remove_reference_t<decltype(field)>>) {
                const bool kept = name == "centers" || name == "alpha" || name == "born";
                if (compact ? kept : recipe.tracks(name)) take(field, length_of(fleet, kind, m));
            }
        });
        if (compact && recipe.projects()) take(R, length_of(fleet, "symmetric", m));
    }
};

[[noreturn]] void refuse(const std::string& why) { throw nb::value_error(why.c_str()); }

template <class T> void check_finite(const char* name, const T* x, int64_t n) {
    T sum = 0;  // the sum of x - x, which is NaN if an x is not finite, else zero
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

nb::bytes write(FleetEngine& fleet, int64_t i, double largest, bool single, const Schemas& schemas, bool compact) {
    const int64_t m = fleet.models().size(i);
    const size_t bytes = Layout(fleet, m, compact).bytes;
    auto record = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, Py_ssize_t(bytes)));
    if (!record.is_valid()) throw nb::python_error();
    char* data = PyBytes_AS_STRING(record.ptr());
    std::memset(data + bytes - 8, 0, 8);  // the padding of the last array
    Layout layout(fleet, m, compact, data);
    Arrays& arrays = layout.arrays;
    if (layout.compact)
        fleet.models().save_compact(i, arrays, layout.R);
    else
        fleet.models().save(i, arrays);
    check_finite(fleet, layout);
    check_finite("largest", &largest, 1);
    Head head{{},
              VERSION,
              0,
              layout.compact ? schemas.compact : schemas.full,
              fleet.d,
              fleet.p,
              single,
              arrays.size,
              arrays.seen,
              largest,
              arrays.scale,
              arrays.bound,
              arrays.power,
              arrays.evidence};
    std::memcpy(head.magic, MAGIC, sizeof head.magic);
    std::memcpy(data, &head, sizeof head);
    head.checksum = checksum(data, bytes);
    std::memcpy(data, &head, sizeof head);
    return record;
}

// Return the head of a record for these filters, after comparing all its sizes with the length of the record
Head checked_head(const FleetEngine& fleet, const nb::bytes& record, bool single, const Schemas& schemas) {
    Head head;
    if (record.size() < sizeof head || std::memcmp(record.c_str(), MAGIC, sizeof head.magic) != 0)
        refuse(std::string("these bytes are not the state of such a model, or they are cut short.") + RESTORE);
    std::memcpy(&head, record.c_str(), sizeof head);
    if (head.version != VERSION)
        refuse("the state has version " + std::to_string(head.version) + ", but this onlinegp reads version " +
               std::to_string(VERSION) + "." + AGAIN);
    if (checksum(record.c_str(), record.size()) != head.checksum)
        refuse(std::string("the state is damaged (its checksum does not match).") + RESTORE);
    if (head.features != fleet.d || head.outputs != fleet.p || head.single != single)
        refuse("the state has " + std::to_string(head.features) + " features and " + std::to_string(head.outputs) +
               " outputs, but the model has " + std::to_string(fleet.d) + " and " + std::to_string(fleet.p) + ".");
    if (head.schema != schemas.full && head.schema != schemas.compact)
        refuse(std::string("the state has other fields than this model.") + AGAIN);
    const int64_t budget = fleet.recipe().pruning.budget;
    if (budget && head.size > budget)
        refuse(std::to_string(head.size) + " centers exceed the budget of " + std::to_string(budget) + ".");
    if (head.size < 0 || head.size > int64_t(record.size()))
        refuse("the arrays do not fit the state of " + std::to_string(head.size) + " centers." + RESTORE);
    if (head.seen < 0 || head.largest < 0 || head.bound < 0 || head.evidence < 0)
        refuse(std::string("a number of the state is negative.") + RESTORE);
    if (head.scale <= 0 || head.power <= 0) refuse(std::string("scale and power must be positive.") + RESTORE);
    check_finite("largest", &head.largest, 1);
    return head;
}

Head read(FleetEngine& fleet, int64_t i, const nb::bytes& record, bool single, const Schemas& schemas) {
    const Head head = checked_head(fleet, record, single, schemas);
    Layout layout(fleet, head.size, head.schema != schemas.full, record.c_str());
    if (layout.bytes != record.size())
        refuse("the arrays do not fit the state of " + std::to_string(head.size) + " centers." + RESTORE);
    Arrays& arrays = layout.arrays;
    arrays.size = head.size;
    arrays.seen = head.seen;
    arrays.scale = head.scale;
    arrays.bound = head.bound;
    arrays.power = head.power;
    arrays.evidence = head.evidence;
    check_finite(fleet, layout);
    if (layout.compact)
        fleet.models().load_compact(i, arrays, layout.R);
    else
        fleet.models().load(i, arrays);
    return head;
}

using Indices = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::list to_bytes(FleetEngine& fleet, Indices which, Numbers largest, bool single, uint32_t schema, bool compact) {
    if (which.shape(0) != largest.shape(0)) refuse("there must be one largest |y| for each model.");
    const Held held(fleet.lock, Use::Read);
    nb::list out;
    for (size_t i = 0; i < which.shape(0); i++) {
        check_index(fleet, which.data()[i]);
        out.append(write(fleet, which.data()[i], largest.data()[i], single, {schema, schema}, compact));
    }
    return out;
}

// Return the number of rows that each filter has learned, and its largest |y|
nb::tuple from_bytes(FleetEngine& fleet, Indices which, nb::list records, bool single, uint32_t full,
                     uint32_t compact) {
    if (which.shape(0) != records.size()) refuse("there must be one state for each model.");
    const Held held(fleet.lock, Use::Change);
    Integers seen = fresh<int64_t>({which.shape(0)});
    Doubles largest = fresh<double>({which.shape(0)});
    for (size_t i = 0; i < which.shape(0); i++) {
        check_index(fleet, which.data()[i]);
        const Head head = read(fleet, which.data()[i], nb::cast<nb::bytes>(records[i]), single, {full, compact});
        seen.data()[i] = head.seen;
        largest.data()[i] = head.largest;
    }
    return nb::make_tuple(seen, largest);
}

}  // namespace

void onlinegp::bind_states(nb::class_<FleetEngine>& members) {
    members.def("to_bytes", to_bytes, "which"_a, "largest"_a, "single"_a, "schema"_a, "compact"_a)
        .def("from_bytes", from_bytes, "which"_a, "states"_a, "single"_a, "full"_a, "compact"_a);
}
