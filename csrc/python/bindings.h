#pragma once
// The parts of the extension module _C, one file each.

#include <pybind11/pybind11.h>

#include "python/report/signatures.h"

namespace roofprof::python {

void bind_machine(pybind11::module_& module);
void bind_run(pybind11::module_& module);
void bind_session(pybind11::module_& module);
void bind_costs(pybind11::module_& module);
void bind_scripts(pybind11::module_& module);
void bind_import(pybind11::module_& module);

}  // namespace roofprof::python
