#pragma once
// The parts of the extension module _report; each binds one room's values.

#include <pybind11/pybind11.h>

#include <string>

#include "core/utf8.h"

namespace roofprof::python {

// Returns a function for .def("__repr__", ...) that makes the text printable, because it has names in it.
template <class Self>
auto repr_of(std::string (*text)(const Self&)) {
  return [text](const Self& self) { return printable(text(self)); };
}

void bind_ceilings(pybind11::module_& module);
void bind_rows(pybind11::module_& module);
void bind_notes(pybind11::module_& module);
void bind_report(pybind11::module_& module);
void bind_events(pybind11::module_& module);
void bind_text(pybind11::module_& module);
void bind_prediction(pybind11::module_& module);
void bind_comparison(pybind11::module_& module);
void bind_ops(pybind11::module_& module);

}  // namespace roofprof::python
