// Read the numbers of one sample from a Python object.
#pragma once
#include <Python.h>
#include <cstring>
#include "engine.hpp"

namespace onlinegp {

// The types of NumPy, found when the module is loaded. Subclasses such as masked arrays may interpret their contents
// differently, so Python handles them.
inline PyTypeObject *numpy_array = nullptr, *numpy_float = nullptr;

// A view of an object with a buffer, for the lifetime of this
class View {
  public:
    explicit View(PyObject* o) {
        if (Py_TYPE(o) != numpy_array && PyObject_TypeCheck(o, numpy_array)) return;
        held_ = PyObject_CheckBuffer(o) && PyObject_GetBuffer(o, &view_, PyBUF_RECORDS_RO) == 0;
        if (!held_) PyErr_Clear();
        const char* format = held_ && view_.format && view_.format[0] && !view_.format[1] ? view_.format : "";
        if (*format == 'd' || *format == 'f') kind_ = *format;
    }
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    ~View() {
        if (held_) PyBuffer_Release(&view_);
    }
    // Whether it holds float64 or float32 with this number of dimensions
    bool holds(int dimensions) const { return kind_ && view_.ndim == dimensions; }
    int64_t length() const { return view_.shape[0]; }
    bool plain() const {  // contiguous float64
        return kind_ == 'd' && view_.strides[0] == Py_ssize_t(sizeof(double)) &&
               reinterpret_cast<uintptr_t>(view_.buf) % alignof(double) == 0;
    }
    const double* data() const { return static_cast<const double*>(view_.buf); }
    double at(int64_t i) const { return kind_ == 'd' ? read<double>(i) : double(read<float>(i)); }

  private:
    template <class T> T read(int64_t i) const {
        T value;
        const char* from = static_cast<const char*>(view_.buf) + (view_.ndim ? i * view_.strides[0] : 0);
        std::memcpy(&value, from, sizeof value);
        return value;
    }
    bool held_ = false;
    char kind_ = 0;
    Py_buffer view_;
};

// A Python float or int, or a NumPy scalar of float64 or float32; false if a double cannot hold it
inline bool number(PyObject* o, double& value) {
    if (PyFloat_CheckExact(o) || Py_TYPE(o) == numpy_float) {
        value = PyFloat_AS_DOUBLE(o);
        return true;
    }
    if (PyLong_CheckExact(o)) {
        value = PyLong_AsDouble(o);
        if (!PyErr_Occurred()) return true;
        PyErr_Clear();
        return false;
    }
    const View view(o);
    if (!view.holds(0)) return false;
    value = view.at(0);
    return true;
}

// A vector, list or tuple of d numbers, or a single number. It is not copied if possible, and has no data if it is none
// of these.
class Sample {
  public:
    Sample(PyObject* o, int d, bool single = false) : view_(o) {
        if (single)
            data_ = number(o, short_[0]) ? short_ : nullptr;
        else if (PyList_CheckExact(o) || PyTuple_CheckExact(o))
            from_sequence(o, d);
        else if (view_.holds(1) && view_.length() == d)
            from_view(d);
        if (data_ && !is_sound(data_, d)) data_ = nullptr;
    }
    const double* data() const { return data_; }

  private:
    static constexpr int SHORT = 64;

    void from_sequence(PyObject* o, int d) {
        if (PySequence_Fast_GET_SIZE(o) != d || d > SHORT) return;
        for (int i = 0; i < d; i++)
            if (!number(PySequence_Fast_GET_ITEM(o, i), short_[i])) return;
        data_ = short_;
    }
    void from_view(int d) {
        if (view_.plain()) data_ = view_.data();
        if (data_ || d > SHORT) return;
        for (int i = 0; i < d; i++) short_[i] = view_.at(i);
        data_ = short_;
    }

    const View view_;
    const double* data_ = nullptr;
    double short_[SHORT];
};

}  // namespace onlinegp
