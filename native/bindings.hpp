// What the files of the Python module share.
#pragma once
#include <nanobind/nanobind.h>
#include "api.hpp"

namespace onlinegp {

const InstructionSet& instructions();  // that this process runs

void bind_rows(nanobind::module_& m);  // bindings_rows.cpp

}  // namespace onlinegp
