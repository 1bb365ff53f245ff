#pragma once
// The parts of the extension module _C; each binds one room's values.

#include <pybind11/pybind11.h>

namespace roofprof::python {

void bind_roofs(pybind11::module_& module);
void bind_run(pybind11::module_& module);
void bind_state(pybind11::module_& module);
void bind_session(pybind11::module_& module);
void bind_costs(pybind11::module_& module);
void bind_scopes(pybind11::module_& module);
void bind_scripts(pybind11::module_& module);
void bind_doctor(pybind11::module_& module);
void bind_host(pybind11::module_& module);
void bind_import(pybind11::module_& module);
void bind_size_hints();

}  // namespace roofprof::python
