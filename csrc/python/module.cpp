#include <string>

#include "bindings.h"

namespace py = pybind11;

PYBIND11_MODULE(_C, module) {
  module.doc() = "The compiled part of roofprof. Use the roofprof package; names in here may change.";
  // A separate module, _report, has what needs no torch. Its names are found here too, and each of its types exists
  // once.
  for (const auto& [name, value] : py::dict(py::module_::import("roofprof._report").attr("__dict__"))) {
    if (!py::str(name).cast<std::string>().starts_with('_')) module.attr(name) = value;
  }
  roofprof::python::bind_roofs(module);
  roofprof::python::bind_session(module);
  roofprof::python::bind_run(module);
  roofprof::python::bind_state(module);
  roofprof::python::bind_costs(module);
  roofprof::python::bind_scopes(module);
  roofprof::python::bind_scripts(module);
  roofprof::python::bind_doctor(module);
  roofprof::python::bind_host(module);
  roofprof::python::bind_import(module);
  roofprof::python::bind_size_hints();
}
