#pragma once
// The parts of the extension module; each binds one room's values.

#include <pybind11/pybind11.h>

#include <string>
#include <variant>

namespace roofprof::python {

void bind_report(pybind11::module_& module);
void bind_ceilings(pybind11::module_& module);
void bind_session(pybind11::module_& module);

// An observed session's module hooks: plain C functions, because they run around every module call.
struct ModuleHooks;

}  // namespace roofprof::python
